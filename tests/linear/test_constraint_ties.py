"""Rows that a constraint ties are tied in their scores, whatever digits the solver's rounding left."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.notions import as_notion
from evenrank.rounding import resolution, to_resolution

pytestmark = pytest.mark.numeric

MEASURES = ["ndcg@3", "precision@1", "dp@1", "dp@3", "eop@3"]
STRENGTHS = [0.0, 0.02, 0.1, 0.5, 2.0]


def few_relevant(seed: int, *, shift: float = 0.0, order: Any = None, groups: int = 2) -> er.RankingData:
    """30 queries of 6 rows, of which two are relevant, so that many contrasts of eop compare two single rows."""
    rng = np.random.default_rng(seed)
    n, d = 180, 6
    X = rng.normal(size=(n, d)) + shift
    group = np.tile(np.arange(6) % groups, 30)
    relevance = np.zeros((30, 6))
    relevance[np.arange(30), rng.integers(0, 3, 30) * 2] = relevance[np.arange(30), rng.integers(0, 3, 30) * 2 + 1] = 1
    X[:, 0] += relevance.ravel() + group / 2
    order = np.arange(n) if order is None else order
    qid = np.repeat(np.arange(30), 6)
    return er.RankingData.from_arrays(X[order], relevance.ravel()[order], group[order], qid[order])


@pytest.mark.parametrize("shift", [0.0, 30.0])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_two_rows_whose_gap_is_held_at_0_have_one_score(loss: str, shift: float) -> None:
    ties = 0
    for seed in range(4):
        data = few_relevant(seed, shift=shift)
        path = er.fairness_path(data, "eop", STRENGTHS, scope="per_query", loss=loss, ridge=0.01)
        scores = path.scores(data)
        assert path.multipliers is not None
        relevant = np.flatnonzero(data.to_caller(data.relevance)).reshape(30, 2)
        above, below = scores[relevant[:, 0]].T, scores[relevant[:, 1]].T
        held = (np.abs(path.multipliers) < 1) & (np.array(STRENGTHS) > 0)[:, None]
        assert held.shape == above.shape
        np.testing.assert_array_equal(above[held], below[held])
        ties += int(held.sum())
    assert ties >= 20


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize("group_aware", [False, True])
def test_the_order_in_which_training_adds_up_changes_no_measure(groups: int, group_aware: bool) -> None:
    """Shuffled training rows give other last digits, as another processor does."""
    digits = 0
    for seed in range(3):
        data = few_relevant(seed, groups=groups)
        order = np.random.default_rng(seed).permutation(data.n_rows)
        paths = [
            er.fairness_path(train, "eop", STRENGTHS, scope="per_query", group_aware=group_aware)
            for train in (data, few_relevant(seed, groups=groups, order=order))
        ]
        digits += int((paths[0].coef != paths[1].coef).sum())
        first, second = (er.measure(path.scores(data), data, MEASURES) for path in paths)
        for name in MEASURES:
            np.testing.assert_allclose(first[name], second[name], rtol=0, atol=1e-12)
    assert digits > 0


def test_scores_of_other_models_keep_every_digit() -> None:
    data = few_relevant(0)
    weak = er.fairness_path(data, "dp", [0.0, 0.3], relative=True)
    gd = er.fairness_path(data, "dp", [0.0, 5.0], "gd")
    for path in (weak, gd):
        assert path.resolution is None or not path.resolution.any()
        plain = np.einsum("rj,mj->rm", np.ascontiguousarray(data.to_caller(data.features)), path.coef) + path.intercept
        np.testing.assert_array_equal(path.scores(data), plain)


@pytest.mark.parametrize("unit", [1e-140, 1.0, 1e140])
def test_scores_are_rounded_by_little_in_any_unit(unit: float) -> None:
    data = few_relevant(1)
    X, group = data.to_caller(data.features) / unit, data.to_caller(data.group)
    qid = data.to_caller(data.query_ids[data.query_of_row])
    scaled = er.RankingData.from_arrays(X, data.to_caller(data.relevance), group, qid)
    path = er.fairness_path(scaled, "eop", [0.1], scope="per_query")
    assert path.resolution is not None
    assert path.resolution[0] > 0
    plain = X @ path.coef[0] + path.intercept[0]
    scores = path.scores(scaled)[:, 0]
    np.testing.assert_allclose(scores, plain, rtol=0, atol=2e-10 * plain.std())
    assert (scores != plain).any()


def test_a_saved_model_rounds_as_the_trained_one(tmp_path: Path) -> None:
    data = few_relevant(2)
    ranker = er.FairLinearRanker("eop", 0.1, "per_query").fit(data)
    assert ranker.resolution_ > 0
    file = tmp_path / "model.json"
    ranker.save(file)
    np.testing.assert_array_equal(er.load(file).predict(data), ranker.predict(data))
    content = json.loads(file.read_text())
    content |= {"version": 1, "resolution": -1.0}
    content.pop("digest", None)
    file.write_text(json.dumps(content))
    with pytest.raises(er.DataError, match=r"'resolution' must be at least 0; got -1\.0\.$"):
        er.load(file)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.integers(-1000, 900))
def test_rounding_to_a_step_is_that_of_fractions(values: list[float], exponent: int) -> None:
    step = 2.0**exponent
    scores = to_resolution(np.array(values)[:, None].copy(), np.array([step]))
    exact = [round(Fraction(value) / Fraction(step)) * Fraction(step) for value in values]
    assert scores[:, 0].tolist() == [float(value) for value in exact]


def test_the_step_is_a_power_of_two_near_1e_10_of_the_size() -> None:
    sizes = np.array([0.0, 1e-290, 1.0, 3.0, 1e300])
    steps = resolution(sizes)
    assert steps[0] == 0
    assert (np.frexp(steps[1:])[0] == 0.5).all()
    assert ((steps[1:] / sizes[1:] > 1e-10) & (steps[1:] / sizes[1:] < 3e-10)).all()


def test_a_sweep_rounds_each_notion_s_models_as_training_them_alone_does() -> None:
    data, test = few_relevant(3), few_relevant(4)
    result = er.sweep(data, ["per_query"], ["dp", "eop"], STRENGTHS, [3], test=test)
    for notion in ("dp", "eop"):
        alone = er.measure(er.fairness_path(data, notion, STRENGTHS, scope="per_query").scores(test), test, "ndcg@3")
        frame = result.frame()
        values = frame.filter(frame["notion"] == as_notion(notion).name)["ndcg@3"].to_numpy()
        assert len(values) == len(STRENGTHS)
        np.testing.assert_allclose(values, alone["ndcg@3"], rtol=0, atol=1e-12)
