"""The exact minimisers: the whole path in closed form but for a J-dimensional box problem (`boxqp`)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.linear import boxqp
from evenrank.linear.descent import Term
from evenrank.linear.design import Design
from evenrank.losses import Loss
from evenrank.progress import Progress
from evenrank.rounding import beyond_rounding, resolution, rounding

NEWTON_STEPS = 100


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights Θ (models, width) and what the solver knows of them."""

    theta: NDArray[np.float64]
    alphas: NDArray[np.float64]
    residual: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    multipliers: NDArray[np.float64] | None = None
    steps: int = 0
    resolution: NDArray[np.float64] | None = None
    problems: tuple[tuple[Whitened, NDArray[np.float64]], ...] = ()

    def __post_init__(self) -> None:
        if not len(self.residual):
            object.__setattr__(self, "residual", np.full(len(self.alphas), np.nan))


def exact(
    design: Design, loss: Loss, alphas: NDArray[np.float64], *, relative: bool, progress: Progress | None
) -> Solution:
    """Solve for every strength of every grouping and notion; with ``relative``, strengths are fractions of α*."""
    second, cross = design.quadratic()
    noise = _rounding_of_weights(second + np.diag(design.ridge), cross)
    columns = len(design.spread)  # the intercept, if any, follows
    thetas, strengths, residuals, multipliers, steps, problems = [], [], [], [], [], []
    for term in design.terms():
        alpha = alphas
        if loss.quadratic:
            white = Whitened.of(second + np.diag(design.ridge), cross, term.rows)
            if relative:
                # The largest number stands for a product beyond it: the path is constant there.
                with np.errstate(over="ignore"):
                    alpha = np.minimum(alphas * vanishing_strength(white, term.pairs.weight), np.finfo(float).max)
            beta = alpha[:, None] * term.pairs.weight
            share = boxqp.saturation(white.F, white.y, beta / 2)
            beta *= share[:, None]
            x, u = boxqp.solve(white.F, white.y, beta / 2)
            theta = x @ white.L.T
            problems.append((white, term.pairs.weight))
        else:
            theta, u, share = newton(design, loss, term, alpha, progress=progress)
            beta = alpha[:, None] * term.pairs.weight * share[:, None]
        # Where the gaps leave the weights no direction, what is left of them is rounding, and must not rank the rows.
        theta[(np.abs(theta[:, :columns]) <= noise[:columns]).all(axis=1), :columns] = 0
        slope = design.slope(loss)(theta) + 2 * design.ridge * theta + (beta * u) @ term.rows
        # u must also be a subgradient of |·| at the gaps: it stays where it is when pushed along them within its box.
        off = beta * (np.clip(u + theta @ term.rows.T, -1, 1) - u)
        thetas.append(theta)
        strengths.append(alpha)
        residuals.append(np.maximum(np.abs(slope).max(axis=1), np.abs(off).max(axis=1, initial=0)))
        multipliers.append(u * share[:, None])
        within = term.rows[:, :columns] if design.scope == "per_query" else term.rows[:0, :columns]
        steps.append(_score_steps(theta[:, :columns], second[:columns, :columns], within))
    J = max(u.shape[1] for u in multipliers)
    return Solution(
        np.concatenate(thetas),
        np.concatenate(strengths),
        np.concatenate(residuals),
        np.concatenate([np.pad(u, ((0, 0), (0, J - u.shape[1]))) for u in multipliers]),
        resolution=np.concatenate(steps),
        problems=tuple(problems),
    )


@dataclass(frozen=True, eq=False)
class Whitened:
    """A quadratic loss seen where it is ‖x − y‖²: θ = L x, and the contrasts F = C L."""

    L: NDArray[np.float64]
    F: NDArray[np.float64]
    y: NDArray[np.float64]

    @classmethod
    def of(cls, H: NDArray[Any], b: NDArray[Any], C: NDArray[Any]) -> Whitened:
        """Take θᵀHθ − 2bᵀθ; directions H does not see (below rounding) are left at 0. Leading axes are models."""
        values, vectors = np.linalg.eigh(H)
        floor = H.shape[-1] * np.finfo(float).eps * np.maximum(values[..., -1:], 1e-300)
        root = np.where(values > floor, 1 / np.sqrt(np.maximum(values, floor)), 0.0)
        L = vectors * root[..., None, :]
        return cls(L, C @ L, (np.swapaxes(L, -1, -2) @ b[..., None])[..., 0])


def _rounding_of_weights(H: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """How large weights, (width,), may come out that should be 0: the rounding of what was taken away from y."""
    white = Whitened.of(H, b, np.zeros((0, len(b))))
    return np.asarray(rounding(len(b)) * np.linalg.norm(white.y) * np.abs(white.L).sum(axis=1))


def _score_steps(theta: NDArray[Any], second: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
    """The resolution of each model's scores, (models,); 0 for a model that holds none of these gaps at 0.

    The gaps, (J, columns), are those within queries. Many are between two rows: held at 0 they tie the two, in
    mathematics, while the computed scores are apart by rounding, which must not say who is above.
    """
    largest = np.abs(theta).max(axis=1, initial=0)
    unit = theta / np.where(largest > 0, largest, 1)[:, None]  # whose squares do not overflow
    step = resolution(largest * np.sqrt(np.maximum(((unit @ second) * unit).sum(axis=1), 0)))
    held = (np.abs(theta @ rows.T) <= step[:, None]) & rows.any(axis=1)
    return np.where(held.any(axis=1), step, 0.0)


def vanishing_strength(white: Whitened, weight: NDArray[np.float64]) -> float:
    """Compute α*: the smallest strength whose gaps are all 0 (the least largest multiplier that balances the loss)."""
    lengths = np.linalg.norm(white.F, axis=1)
    # Of rows of one length, so that a gap far smaller than another counts as one too.
    left, size, right = np.linalg.svd(white.F / np.where(lengths > 0, lengths, 1)[:, None], full_matrices=False)
    rank = int((size > 1e-10 * size.max(initial=0)).sum())
    if rank == 0:
        return 0.0
    weight = weight * lengths
    balance = (left[:, :rank] * size[:rank]).T * (weight / 2)
    # A pull of the loss along the gaps that is mere rounding is none: there is no gap to close.
    target = beyond_rounding(right[:rank] @ white.y, rounding(1) * float(np.linalg.norm(white.y)))
    if not target.any():
        return 0.0
    if rank == len(weight):
        return float(np.abs(np.linalg.solve(balance, target)).max())
    from scipy.optimize import linprog

    # The longest multiple of the target that multipliers within [−1, 1] balance: J variables and a row for each of the
    # few directions of the contrasts (G groups have G(G−1)/2 pairs but only G−1 directions in a stratum).
    rows, goal = left[:, :rank].T * weight / weight.max(), target / size[:rank]
    length = float(np.linalg.norm(goal))
    if length == 0:
        return 0.0
    J = len(weight)
    result = linprog(
        np.append(np.zeros(J), -1.0),
        A_eq=np.hstack([rows, -goal[:, None] / length]),
        b_eq=np.zeros(rank),
        bounds=[(-1, 1)] * J + [(0, None)],
    )
    return 2 * length / (float(weight.max()) * -float(result.fun))


def newton(
    design: Design,
    loss: Loss,
    term: Term,
    alphas: NDArray[np.float64],
    *,
    progress: Progress | None = None,
    tolerance: float = 1e-13,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Find the minimiser of any smooth convex loss + α·Γ, by Newton steps each of which is the exact quadratic problem.

    The kink of |·| is inside the quadratic problem, where it is solved exactly, so convergence is Newton's. Of a huge α
    only as much is used as the steps so far have needed (`boxqp.saturation`); the share is returned with θ and u.
    """
    rows, ridge = design.blocks(loss), design.ridge
    models, d = len(alphas), term.rows.shape[1]
    theta, u = np.zeros((models, d)), np.zeros((models, len(term.rows)))
    beta, share = alphas[:, None] * term.pairs.weight, np.full(models, np.nan)

    def objective(at: NDArray[Any], which: NDArray[Any]) -> NDArray[Any]:
        used = beta[which] * share[which, None]
        total = (ridge * at**2).sum(axis=1) + (used * np.abs(at @ term.rows.T)).sum(axis=1)
        for Z, relevance, weight in rows():
            total += weight @ loss.value(Z @ at.T, relevance[:, None])
        return np.asarray(total)

    todo = np.arange(models)
    for step in range(NEWTON_STEPS):
        now = theta[todo]
        gradient, hessian = 2 * ridge * now, np.repeat(np.diag(2 * ridge)[None], len(todo), axis=0)
        for Z, relevance, weight in rows():
            scores = Z @ now.T
            gradient = gradient + (weight[:, None] * loss.gradient(scores, relevance[:, None])).T @ Z
            curvature = (weight[:, None] * loss.curvature(scores, relevance[:, None])).T
            for model, bend in enumerate(curvature):
                hessian[model] += (Z * bend[:, None]).T @ Z
        white = Whitened.of(hessian, (hessian @ now[:, :, None])[:, :, 0] - gradient, term.rows)
        share[todo] = np.fmax(share[todo], boxqp.saturation(white.F, white.y, beta[todo]))
        x, u[todo] = boxqp.solve(white.F, white.y, beta[todo] * share[todo, None])
        move = (white.L @ x[:, :, None])[:, :, 0] - now
        decrement = (move * (hessian @ move[:, :, None])[:, :, 0]).sum(axis=1)
        length = np.ones(len(todo))
        value = objective(now, todo)
        for _ in range(30):
            trial = objective(now + length[:, None] * move, todo)
            worse = trial > value - 1e-4 * length * decrement + 1e-15 * np.abs(value)
            if not worse.any():
                break
            length[worse] /= 2
        theta[todo] = now + length[:, None] * move
        # On separable data the decrement vanishes while the scores grow for ever.
        swing = np.max([np.abs(Z @ move.T).max(axis=0) for Z, _, _ in rows()], axis=0)
        todo = todo[(decrement > tolerance) | (swing > 1e-3)]
        if progress is not None:
            progress(1 - len(todo) / models * (1 - (step + 1) / NEWTON_STEPS))
        if len(todo) == 0:
            return theta, u, share
    warnings.warn(
        f"{loss.name} loss did not converge at {len(todo)} of {models} strengths (separable data?); set ridge > 0",
        stacklevel=3,
    )
    return theta, u, share
