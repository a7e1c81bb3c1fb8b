"""What `FairnessLoss` adds to a training step of a network, and its time against fairret's loss on the pooled case.

fairret's norm of violations relative to the overall rate, times that rate, is |gap| for two groups; this is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import evenrank.torch as et
from common import best_of_each, note, parser, peer, seconds, start, table, times


def rows(queries: int, length: int, features: int) -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(0)
    n = queries * length
    X = torch.randn(n, features, generator=generator)
    relevance = torch.randint(0, 2, (n,), generator=generator).float()
    group = torch.randint(0, 2, (n,), generator=generator)
    return X, relevance, group, torch.arange(queries).repeat_interleave(length)


def network(features: int, hidden: tuple[int, ...]) -> Any:
    torch.manual_seed(0)
    layers: list[Any] = []
    for width in hidden:
        layers += [torch.nn.Linear(features, width), torch.nn.ReLU()]
        features = width
    return torch.nn.Sequential(*layers, torch.nn.Linear(features, 1))


def step(batch: tuple[Any, ...], hidden: tuple[int, ...], fairness: Any) -> Callable[[], None]:
    X, relevance, group, qid = batch
    model = network(X.shape[1], hidden)
    optimizer = torch.optim.Adam(model.parameters())
    base = et.ListNetLoss()

    def run() -> None:
        scores = model(X)[:, 0]
        loss = base(scores, relevance, group, qid)
        if fairness is not None:
            loss = loss + fairness(scores, relevance, group, qid)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run


def overhead(quick: bool) -> None:
    note("A step (forward, ListNet, backward, Adam), and what the fairness loss adds to it")
    sizes = [(100, 10, 136, (64, 32)), (100, 100, 136, (256, 128)), (128, 120, 136, (512, 256, 128))]
    found = []
    for queries, length, features, hidden in sizes[: 2 if quick else 3]:
        batch = rows(queries, length, features)
        targets = ("score", "probability", "topk", "exposure")
        losses = [None, *(et.FairnessLoss("equal_opportunity", target=target) for target in targets)]
        repeats = 300 if queries * length <= 1000 else 15  # of a step of a millisecond, many
        plain, *fair = best_of_each([step(batch, hidden, loss) for loss in losses], 5 if quick else repeats)
        shape = f"{queries} × {length} × {features}, {hidden}"
        found.append([shape, seconds(plain), *(f"{value / plain - 1:+.1%}" for value in fair)])
    table(["queries × items × features, hidden", "without", *targets], found)


def against_fairret(quick: bool) -> None:
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
            _, relevance, group, qid = rows(queries, 10, 1)
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
            mine, yours = best_of_each([run_ours, run_theirs], 20 if quick else 100)
            found.append([f"{notion}, {len(qid)} rows", seconds(mine), seconds(yours), times(yours / mine)])
    note("Pooled |gap| of sigmoid(score), value and gradient; the values agree to 2e-6")
    table(["", "FairnessLoss", "fairret", "ratio"], found)


def main() -> None:
    given = parser(__doc__).parse_args()
    start("The fairness loss in torch", ["torch", "fairret"], threads=given.threads)
    overhead(given.quick)
    against_fairret(given.quick)


if __name__ == "__main__":
    main()
