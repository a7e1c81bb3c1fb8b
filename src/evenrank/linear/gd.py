"""Full-batch descent, plain where that is stable."""

from __future__ import annotations

import numpy as np

from evenrank.linear.descent import Penalised, beyond, descend, diverged, still_diverged, warn_diverged
from evenrank.linear.design import Design
from evenrank.linear.exact import Solution
from evenrank.losses import Loss
from evenrank.progress import Progress

PAPERS = 0.003 * 10  # its learning rate times its largest strength


def train(
    design: Design, loss: Loss, penalty: Penalised, rate: float, steps: int, progress: Progress | None
) -> Solution:
    """Plain descent; the strengths that diverge are trained again in the longest steps that are stable."""
    slope = design.slope(loss)
    last, taken = descend(slope, penalty, design.ridge, learning_rate=rate, steps=steps, progress=progress)
    theta = last[-1]
    alphas = np.tile(penalty.alphas, len(theta) // len(penalty.alphas))

    with np.errstate(over="ignore", invalid="ignore"):
        start = design.start(loss)
        strong = beyond(PAPERS, rate, alphas)
        each = [
            diverged(start, design.rise(loss, at), np.where(strong, alphas * penalty.gamma(at), 0.0)) for at in last
        ]
    lost = np.any(each, axis=0)
    if taken == steps and lost.any():
        warn_diverged("gd", lost, alphas, rate)
        some = lost.reshape(-1, len(penalty.alphas)).any(axis=0)
        shorter = min(rate, 1 / design.steepest(loss))
        again = penalty.at(penalty.alphas[some])
        (*_, stable), _ = descend(slope, again, design.ridge, learning_rate=shorter, steps=steps, capped=True)
        theta[lost] = stable[lost.reshape(-1, len(penalty.alphas))[:, some].ravel()]
    if not np.isfinite(theta).all():
        raise still_diverged("gd", rate)
    return Solution(theta, alphas, steps=taken)
