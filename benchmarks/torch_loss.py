"""What `FairnessLoss` adds to a training step of a network, and its time against fairret's loss on the pooled case.

fairret's norm of violations relative to the overall rate, times that rate, is |gap| for two groups; this is checked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import evenrank.torch as et
from common import best_of_each, note, parser, peer, seconds, start, table, times

Clock = Callable[[], float]
TARGETS = ("score", "centered", "probability", "topk", "exposure")


def rows(queries: int, length: int, features: int, *, mixed: bool = False) -> tuple[Any, ...]:
    """Rows with a weight each; ``mixed`` lists have 2 to 2 · length − 2 items, and their rows stand in any order."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.full((queries,), length)
    if mixed:
        lengths = torch.randint(2, 2 * length - 1, (queries,), generator=generator)
    n = int(lengths.sum())
    qid = torch.arange(queries).repeat_interleave(lengths)
    if mixed:
        qid = qid[torch.randperm(n, generator=generator)]
    X = torch.randn(n, features, generator=generator)
    relevance = torch.randint(0, 2, (n,), generator=generator).float()
    group = torch.randint(0, 2, (n,), generator=generator)
    return X, relevance, group, qid, torch.rand(n, generator=generator) + 0.5


def network(features: int, hidden: tuple[int, ...]) -> Any:
    torch.manual_seed(0)
    layers: list[Any] = []
    for width in hidden:
        layers += [torch.nn.Linear(features, width), torch.nn.ReLU()]
        features = width
    return torch.nn.Sequential(*layers, torch.nn.Linear(features, 1))


def step(batch: tuple[Any, ...], hidden: tuple[int, ...], fairness: Any, *, weighed: bool) -> Callable[[], None]:
    X, relevance, group, qid, weight = batch
    model = network(X.shape[1], hidden)
    optimizer = torch.optim.Adam(model.parameters())
    base = et.ListNetLoss()

    def run() -> None:
        scores = model(X)[:, 0]
        loss = base(scores, relevance, group, qid)
        if fairness is not None:
            loss = loss + fairness(scores, relevance, group, qid, sample_weight=weight if weighed else None)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run


def overhead(quick: bool, clock: Clock) -> None:
    note("A step (forward, ListNet, backward, Adam), and what the fairness loss adds to it")
    small = (100, 10, 136, (64, 32))
    kinds = [
        (*small, "demographic_parity", False, False),
        (*small, "equal_opportunity", False, False),
        (*small, "equalized_odds", False, False),
        (*small, "equal_opportunity", False, True),
        (*small, "equal_opportunity", True, False),
        (*small, "equalized_odds", True, True),
        (100, 100, 136, (256, 128), "equal_opportunity", False, False),
        (100, 100, 136, (256, 128), "equal_opportunity", True, False),
        (128, 120, 136, (512, 256, 128), "equal_opportunity", False, False),
    ]
    found = []
    for queries, length, features, hidden, notion, mixed, weighed in kinds[: 6 if quick else len(kinds)]:
        batch = rows(queries, length, features, mixed=mixed)
        losses = [None, *(et.FairnessLoss(notion, target=target) for target in TARGETS)]
        repeats = 300 if length <= 10 else 15  # of a step of a millisecond, many
        runs = [step(batch, hidden, loss, weighed=weighed) for loss in losses]
        plain, *fair = best_of_each(runs, 20 if quick else repeats, clock)
        shape = f"{queries} × {length} × {features}, {hidden}"
        about = ", ".join([notion, *(["mixed"] if mixed else []), *(["weights"] if weighed else [])])
        found.append([shape, about, seconds(plain), *(f"{value / plain - 1:+.1%}" for value in fair)])
    table(["queries × items × features, hidden", "", "without", *TARGETS], found)


def against_fairret(quick: bool, clock: Clock) -> None:
    fairret = peer("fairret.loss")
    if fairret is None:
        print("fairret: not installed")
        return
    statistics = {"demographic_parity": "PositiveRate", "equal_opportunity": "TruePositiveRate"}
    found = []
    for notion, statistic in statistics.items():
        theirs = fairret.NormLoss(getattr(peer("fairret.statistic"), statistic)())
        ours = et.FairnessLoss(notion, target="probability")
        for queries in (100, 1000, 10000):
            _, relevance, group, qid, _ = rows(queries, 10, 1)
            scores = torch.randn(len(qid), generator=torch.Generator().manual_seed(1)).requires_grad_()
            sensitive = torch.nn.functional.one_hot(group, 2).float()
            labels = () if notion == "demographic_parity" else (relevance[:, None],)

            def run_ours() -> Any:
                scores.grad = None  # noqa: B023
                value = ours(scores, relevance, group, qid)  # noqa: B023
                value.backward()
                return value

            def run_theirs() -> Any:
                scores.grad = None  # noqa: B023
                value = theirs(scores[:, None], sensitive, *labels)  # noqa: B023
                value.backward()
                return value

            inside = torch.ones_like(relevance, dtype=torch.bool) if not labels else relevance == 1
            overall = torch.sigmoid(scores.detach())[inside].mean()
            np.testing.assert_allclose(run_ours().item(), (run_theirs() * overall).item(), atol=2e-6)
            mine, yours = best_of_each([run_ours, run_theirs], 20 if quick else 100, clock)
            found.append([f"{notion}, {len(qid)} rows", seconds(mine), seconds(yours), times(yours / mine)])
    note("Pooled |gap| of sigmoid(score), value and gradient; the values agree to 2e-6")
    table(["", "FairnessLoss", "fairret", "ratio"], found)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--processor", action="store_true", help="processor seconds, for a machine with other work")
    given = options.parse_args()
    clock = time.process_time if given.processor else time.perf_counter
    start("The fairness loss in torch", ["torch", "fairret"], threads=given.threads)
    overhead(given.quick, clock)
    against_fairret(given.quick, clock)


if __name__ == "__main__":
    main()
