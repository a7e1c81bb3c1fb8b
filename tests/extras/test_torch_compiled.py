"""The compiled forms that `FairnessLoss` takes where numba is there, against the plain ones, on hostile batches too."""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from evenrank.errors import DataError
from evenrank.targets import bind_target

pytestmark = pytest.mark.extras
torch = pytest.importorskip("torch", reason="installed by make test-extras")
pytest.importorskip("numba", reason="installed by make test-extras")
fairness = import_module("evenrank.torch.fairness")
batch_rows = import_module("evenrank.torch.batch_rows")
compiled = import_module("evenrank.targets.compiled")

TARGETS = ["score", "probability", "centered", "topk", "exposure"]
NOTIONS = ["dp", "eop", "eod"]
LISTWISE = ["centered", "topk", "exposure"]

SCORES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "equal": lambda rng, n: np.full(n, 0.3),
    "huge": lambda rng, n: np.abs(rng.normal(size=n)) * 1e30,
    "tiny": lambda rng, n: rng.normal(size=n) * 1e-30,
    "almost nothing": lambda rng, n: rng.normal(size=n) * 1e-170,
    "far from 0": lambda rng, n: rng.normal(size=n) + 1e6,
    "within rounding": lambda rng, n: 1 + rng.integers(0, 3, n) * 2.0**-52,
    "an outlier": lambda rng, n: np.where(np.arange(n) == n // 2, 1e30, rng.normal(size=n)),
}
LENGTHS = {
    "equal": [6] * 7,
    "unequal": [1, 9, 2, 4, 1, 13, 3, 7],
    "one item each": [1] * 9,
    "one list": [40],
    "long": [130, 3, 75],
}


def assert_near(found: Any, wanted: Any, scores: Any, slope: float, ptr: Any) -> None:
    """Slopes of lists cancel out, so that what is left is as exact as a slope over the list's spread."""
    for begin, end in pairwise(ptr):
        part = scores[begin:end]
        largest = np.abs(part - part.mean()).max()
        if largest <= 1e-12 * np.abs(part).max():  # equal scores, which nothing moves
            assert (found[begin:end] == 0).all()
            assert (wanted[begin:end] == 0).all()
            continue
        spread = largest * np.sqrt(np.mean(((part - part.mean()) / largest) ** 2))
        atol = 1e-11 * slope / spread * (1 + np.abs(part).max() / spread * 1e-3)
        np.testing.assert_allclose(found[begin:end], wanted[begin:end], rtol=1e-9, atol=atol)


@pytest.mark.parametrize(("scores", "lengths"), list(product(SCORES, LENGTHS)))
@pytest.mark.parametrize("floor", [0.0, 0.01])
@pytest.mark.parametrize(
    ("target", "k", "temperature"),
    [
        ("centered", 1, 1.0),
        ("topk", 1, 0.5),
        ("topk", 3, 0.5),
        ("topk", 60, 0.2),
        ("exposure", 1, 0.5),
        ("exposure", 1, 0.01),
    ],
)
def test_compiled_targets_are_the_plain_ones(
    target: str, k: int, temperature: float, floor: float, scores: str, lengths: str
) -> None:
    rng = np.random.default_rng(1)
    ptr = np.cumsum([0, *LENGTHS[lengths]])
    values, slope = SCORES[scores](rng, ptr[-1]), rng.normal(size=ptr[-1])
    plain = bind_target(target, ptr, k=k, temperature=temperature, floor=floor)
    fast = compiled.COMPILED[target](ptr, k, temperature, floor)
    atol = 1e-9 * np.abs(values).max() if target == "centered" else 1e-12 / temperature
    atol = 1e-8 if scores == "far from 0" else atol
    np.testing.assert_allclose(fast.value(values), plain.value(values), rtol=1e-9, atol=atol)
    if target == "centered":
        np.testing.assert_allclose(fast.pull_back(values, slope), plain.pull_back(values, slope), rtol=0, atol=1e-14)
    else:
        found, wanted = fast.pull_back(values, slope), plain.pull_back(values, slope)
        if floor > 0:
            values = values + np.linspace(-floor, floor, len(values))  # no list is narrower
        assert_near(found, wanted, values, np.abs(slope).max() / temperature, ptr)


def hostile_batch(seed: int, scores: str, lengths: str, shuffled: bool) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(len(LENGTHS[lengths])), LENGTHS[lengths]) * 7 - 5
    n = len(qid)
    if shuffled:
        qid = rng.permutation(qid)
    relevance, group = rng.integers(0, 3, n), rng.integers(-1, 4, n)
    group[group == 2] = -1  # one group of those numbered is empty
    return torch.tensor(SCORES[scores](rng, n)), torch.tensor(relevance), torch.tensor(group), torch.tensor(qid)


def both(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], rows: tuple[Any, ...], **more: Any) -> list[Any]:
    """Value and gradient, compiled and not."""
    results = []
    for modules in (batch_rows.compiled(), None):
        monkeypatch.setattr(fairness, "compiled", lambda modules=modules: modules)
        scores = rows[0].detach().clone().requires_grad_()
        loss = fairness.FairnessLoss(**options)
        value = loss(scores, *rows[1:], **more)
        value.backward()
        assert value.dtype == scores.dtype
        results.append((value.item(), scores.grad.double().numpy()))
    return results


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("target", TARGETS)
def test_a_compiled_batch_is_the_plain_one(
    target: str, lengths: str, scores: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed, (notion, shuffled, weighed) in enumerate(product(NOTIONS, [False, True], [False, True])):
        rows = hostile_batch(seed, scores, lengths, shuffled)
        n = len(rows[0])
        weight = torch.arange(n) % 4 + 0.0 if weighed else None
        options = {"notion": notion, "target": target, "k": 3, "smoothing": 0.05 * (seed % 2)}
        (fast, fast_slope), (plain, plain_slope) = both(monkeypatch, options, rows, sample_weight=weight)
        size = rows[0].abs().max().item() if target in ("score", "centered") else 1.0
        apart = 1e-8 if scores == "far from 0" else 1e-12
        assert fast == pytest.approx(plain, rel=1e-9, abs=apart * size)
        if target in ("topk", "exposure"):
            order = np.argsort(rows[3].numpy(), kind="stable")
            bounds = np.cumsum([0, *LENGTHS[lengths]])
            assert_near(fast_slope[order], plain_slope[order], rows[0].numpy()[order], 4.0, bounds)
        else:
            np.testing.assert_allclose(fast_slope, plain_slope, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("target", TARGETS)
def test_any_type_of_the_columns(target: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, relevance, group, qid = hostile_batch(3, "normal", "unequal", shuffled=True)
    scores = scores.to(getattr(torch, dtype))
    options = {"notion": "eod", "target": target, "k": 2}
    first = None
    for kind, of_qid in product((torch.int64, torch.int32, torch.float32), (torch.int64, torch.int32, torch.float64)):
        rows = scores, relevance.to(kind), group.to(kind), qid.to(of_qid)
        fast, plain = both(monkeypatch, options, rows)
        first = first or fast
        for result in (fast, plain):
            assert result[0] == pytest.approx(first[0], rel=1e-5)
            np.testing.assert_allclose(result[1], first[1], rtol=1e-5, atol=1e-2 if dtype != "float32" else 1e-6)


def test_what_is_compiled_and_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = hostile_batch(6, "normal", "unequal", shuffled=True)
    taken = []
    plain = fairness.FairnessTerm.value_and_gradient
    monkeypatch.setattr(
        fairness.FairnessTerm, "value_and_gradient", lambda term, scores: taken.append(1) or plain(term, scores)
    )
    for notion, target in product(NOTIONS, TARGETS):
        fairness.FairnessLoss(notion, target=target)(*rows)
    assert not taken
    strata = np.ones((1, len(rows[0])), bool)
    fairness.FairnessLoss("dp", across="max")(*rows)
    fairness.FairnessLoss("dp", "per_query")(*rows)
    fairness.FairnessLoss("dp", momentum=0.5)(*rows)
    fairness.FairnessLoss("dp")(*rows, strata=strata)
    fairness.FairnessLoss("dp")(rows[0][:, None], *rows[1:])
    assert len(taken) == 5


def test_columns_with_gaps_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = hostile_batch(4, "normal", "unequal", shuffled=True)
    table = torch.stack([column.double() for column in rows], dim=1)
    strided = (table[:, 0], table[:, 1], *(table[:, i].long()[:, None].expand(-1, 2)[:, 1] for i in (2, 3)))
    for target in TARGETS:
        options = {"notion": "eop", "target": target}
        fast, plain = both(monkeypatch, options, strided)
        expected, _ = both(monkeypatch, options, rows)
        assert fast[0] == pytest.approx(plain[0]) == pytest.approx(expected[0])
        np.testing.assert_allclose(fast[1], expected[1])


@pytest.mark.parametrize("ids", [[2**62, -(2**62), 0], [-(2**63), 2**63 - 1, 5], [10**15, 3, 4], [1, 2, 3], [3, 1, 2]])
def test_any_numbers_of_queries(ids: list[int]) -> None:
    scores = torch.tensor([1.0, 5.0, 2.0, 2.5, 8.0, 3.0, -1.0])
    place = torch.tensor([0, 1, 2, 0, 1, 2, 0])
    group = torch.tensor([0, 1, 0, 1, 0, 1, 1])
    loss = fairness.FairnessLoss("dp", target="topk", k=1)
    wanted = loss(scores, group, group, place).item()
    assert loss(scores, group, group, torch.tensor(ids)[place]).item() == pytest.approx(wanted)


@pytest.mark.parametrize("wrong", ["group", "many", "weight", "nan weight", "padding", "half a group"])
@pytest.mark.parametrize("target", ["score", "topk"])
def test_what_is_refused_is_refused_alike(target: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, relevance, group, qid = hostile_batch(5, "normal", "equal", shuffled=False)
    weight = torch.ones(len(scores))
    if wrong in ("group", "many"):
        group[3] = -2 if wrong == "group" else 10**6
    if wrong == "half a group":
        group = group / 2
    if wrong in ("weight", "nan weight"):
        weight[2] = -1 if wrong == "weight" else torch.nan
    if wrong == "padding":
        scores[7] = -1e9
    messages = []
    for modules in (batch_rows.compiled(), None):
        monkeypatch.setattr(fairness, "compiled", lambda modules=modules: modules)
        with pytest.raises(DataError) as error:
            fairness.FairnessLoss("dp", target=target)(scores, relevance, group, qid, sample_weight=weight)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_a_second_derivative_is_refused() -> None:
    scores = torch.tensor([3.0, 1.0], requires_grad=True)
    gamma = fairness.FairnessLoss("dp")(scores, torch.ones(2), torch.tensor([0, 1])) ** 2
    slope = torch.autograd.grad(gamma, scores, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="differentiate twice"):
        slope.sum().backward()


class Unwritable:
    """numba, where it finds no folder to write to."""

    @staticmethod
    def njit(**_: Any) -> Any:
        def refuse(function: Any) -> Any:
            raise RuntimeError("cannot cache function: no locator available")

        return refuse


@pytest.mark.parametrize("numba", [None, Unwritable])
def test_without_numba_the_plain_form_is_taken(numba: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("evenrank.targets.compiled", "evenrank.targets.compiled_batch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.delattr(sys.modules["evenrank.targets"], name.rpartition(".")[2], raising=False)
    monkeypatch.setitem(sys.modules, "numba", numba)
    batch_rows.compiled.cache_clear()
    try:
        assert batch_rows.compiled() is None
        loss = fairness.FairnessLoss("dp", target="topk", k=1)
        value = loss(torch.tensor([3.0, 1.0, 2.0]), torch.ones(3), torch.tensor([0, 1, 1]), torch.tensor([4, 4, 4]))
        assert value.item() > 0
    finally:
        monkeypatch.undo()
        batch_rows.compiled.cache_clear()
    assert batch_rows.compiled() is not None
