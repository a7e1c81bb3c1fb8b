"""Random rankings of fair exposure: golden optima, a linear program over all orders, decompositions, and batches."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

import evenrank as er
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.rerankers.exposure import ExposureRanker
from evenrank.rerankers.permutohedron import decompose, place_weights, project
from golden import golden

GROUPED = ("parity", "disparate_treatment", "disparate_impact")


def group_values(constraint: str, exposure: np.ndarray, merit: np.ndarray, group: np.ndarray) -> np.ndarray:
    out = []
    for name in sorted(set(group.tolist())):
        mine = group == name
        if constraint == "parity":
            out.append(exposure[mine].mean())
        elif constraint == "disparate_treatment":
            out.append(exposure[mine].sum() / merit[mine].sum())
        else:
            out.append((merit * exposure)[mine].sum() / merit[mine].sum())
    return np.array(out)


@golden("rerankers/exposure_lp", "cases")
@pytest.mark.parametrize("constraint", ["demographic_parity", "disparate_treatment", "disparate_impact"])
def test_optima_are_the_expected_ones(case: dict[str, Any], constraint: str) -> None:
    merit, group = np.array(case["relevance"]), np.array(case["group"])
    expected = case["expected"][constraint]
    mixture = ExposureRanker(constraint, case["slack"]).solve(merit, group)
    assert mixture.feasible == (expected["status"] == "optimal")
    assert len(mixture.rankings) <= len(merit)
    if mixture.feasible:
        assert mixture.quality == pytest.approx(expected["dcg"], abs=1e-7)
        values = group_values("parity" if "parity" in constraint else constraint, mixture.exposure, merit, group)
        assert np.ptp(values) <= case["slack"] + 1e-8


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 6)), min_size=1, max_size=5),
    st.sampled_from(GROUPED),
    st.sampled_from([0.0, 0.05, 0.3]),
)
def test_no_mixture_of_all_orders_is_better(items: list[Any], constraint: str, slack: float) -> None:
    group, merit = np.array([label for label, _ in items]), np.array([value / 6 for _, value in items])
    weights = place_weights(len(items))
    exposures = []
    for order in permutations(range(len(items))):
        exposures.append(np.empty(len(items)))
        exposures[-1][list(order)] = weights
    values = np.array([group_values(constraint, e, merit, group) for e in exposures]).T
    number, groups = len(exposures), len(values)
    pairs = [(i, j) for i in range(groups) for j in range(groups) if i != j]
    found = linprog(
        [-float(merit @ e) for e in exposures],
        [values[i] - values[j] for i, j in pairs] or None,
        [slack] * len(pairs) or None,
        np.ones((1, number)),
        [1.0],
    )
    mixture = ExposureRanker(constraint, slack).solve(merit, group)
    assert mixture.feasible == (found.status == 0)
    assert mixture.probabilities.sum() == pytest.approx(1)
    assert (mixture.probabilities > 0).all()
    assert all(sorted(ranking) == list(range(len(items))) for ranking in mixture.rankings.tolist())
    if found.status == 0:
        assert mixture.quality == pytest.approx(-found.fun, abs=1e-6)
    else:
        # The nearest: no mixture brings all groups nearer to each other.
        columns = np.hstack([np.array([values[i] - values[j] for i, j in pairs]), -np.ones((len(pairs), 1))])
        least = linprog(
            np.r_[np.zeros(number), 1.0], columns, np.zeros(len(pairs)), [[*[1.0] * number, 0.0]], [1.0]
        ).fun
        assert np.ptp(group_values(constraint, mixture.exposure, merit, group)) <= least + 1e-6


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("groups", [2, 3])
def test_a_constraint_that_one_order_of_the_groups_meets_is_met(seed: int, groups: int) -> None:
    """Each group has the merit of places that follow each other, so that only these places give it its due."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, groups)
    weights, ends = place_weights(int(sizes.sum())), np.cumsum(sizes)
    due = [weights[end - size : end].sum() for end, size in zip(ends, sizes, strict=True)]
    factor = rng.random()
    merit = np.concatenate([factor * d * rng.dirichlet(np.ones(n)) for d, n in zip(due, sizes, strict=True)])
    group = np.repeat(np.arange(groups), sizes)
    for way in (slice(None), slice(None, None, -1)):
        mixture = ExposureRanker("disparate_treatment").solve(merit[way], group[way])
        assert mixture.feasible
        values = group_values("disparate_treatment", mixture.exposure, merit[way], group[way])
        assert np.ptp(values) <= 1e-8 * values.max()


@pytest.mark.parametrize("constraint", GROUPED)
@pytest.mark.parametrize("groups", [2, 4])
def test_the_size_of_merits_changes_nothing(constraint: str, groups: int) -> None:
    rng = np.random.default_rng(3)
    merit, group = rng.random(60), np.append(np.arange(groups), rng.integers(0, groups, 60 - groups))
    quality = ExposureRanker(constraint).solve(merit, group).quality
    for factor in (2.0**-40, 1e-8, 1e8):
        mixture = ExposureRanker(constraint).solve(factor * merit, group)
        assert mixture.feasible
        assert mixture.quality == pytest.approx(factor * quality, rel=1e-8)
        assert np.ptp(group_values(constraint, mixture.exposure, merit, group)) < 1e-8


@pytest.mark.parametrize("constraint", GROUPED)
def test_merits_that_hardly_differ_take_few_rounds(constraint: str, monkeypatch: Any) -> None:
    programs = []

    def counted(*arguments: Any, **options: Any) -> Any:
        programs.append(1)
        return linprog(*arguments, **options)

    monkeypatch.setattr("scipy.optimize.linprog", counted)
    rng = np.random.default_rng(4)
    merit, group = 0.3 + 1e-9 * rng.random(300), np.append(np.arange(8), rng.choice(8, 292, p=np.arange(1, 9) / 36))
    mixture = ExposureRanker(constraint).solve(merit, group)
    assert len(programs) < 20
    assert np.ptp(group_values(constraint, mixture.exposure, merit, group)) < 1e-8
    assert mixture.quality == pytest.approx(0.3 * place_weights(300).sum(), rel=1e-8)


def decomposed(exposure: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rankings of one list, and how likely each is."""
    places, chances = decompose(exposure[None], weights)
    used = chances[:, 0] > 0
    return np.argsort(places[used, 0], axis=1), chances[used, 0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 30))
def test_decompositions_give_the_exposure_back_in_at_most_n_rankings(merit: list[float], k: int) -> None:
    weights = place_weights(len(merit), k)
    exposure = project(np.array(merit) * 3, weights)
    rankings, probabilities = decomposed(exposure, weights)
    mean = np.zeros(len(merit))
    for ranking, probability in zip(rankings, probabilities, strict=True):
        mean[ranking] += probability * weights
    assert mean == pytest.approx(exposure, abs=1e-9)
    assert len(rankings) <= len(merit)
    assert probabilities.sum() == pytest.approx(1)
    assert (probabilities >= 0).all()


HOSTILE = {
    "even": lambda rng, n: rng.random(n),
    "two values": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "far apart": lambda rng, n: rng.choice([0, 1e-13, 1e-9, 1], n),
    "hardly different": lambda rng, n: 1 + 1e-9 * rng.random(n),
    "rounded": lambda rng, n: rng.random(n).round(1),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_rounding_does_not_add_up_over_a_decomposition(kind: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        n = int(rng.integers(1, 31))
        weights = place_weights(n, int(rng.integers(1, n + 1)))
        exposure = project(3 * HOSTILE[kind](rng, n), weights)
        rankings, probabilities = decomposed(exposure, weights)
        mean = np.zeros(n)
        for ranking, probability in zip(rankings, probabilities, strict=True):
            mean[ranking] += probability * weights
        assert np.abs(mean - exposure).max() < 1e-11
        assert len(rankings) <= n
        assert (np.sort(rankings, axis=1) == np.arange(n)).all()
        assert (probabilities > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_projection_is_the_nearest_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, point = place_weights(4), 2 * rng.random(4)
    corners = np.array([[weights[place] for place in order] for order in permutations(range(4))])
    start = np.full(len(corners), 1 / len(corners))
    found = minimize(
        lambda share: ((share @ corners - point) ** 2).sum(),
        start,
        bounds=[(0, 1)] * len(corners),
        constraints={"type": "eq", "fun": lambda share: share.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert ((project(point, weights) - point) ** 2).sum() == pytest.approx(found.fun, abs=1e-6)


def test_individual_exposure_is_proportional_to_merit_where_rankings_allow() -> None:
    merit = np.array([0.5, 0.45, 0.4, 0.35])
    mixture = ExposureRanker("individual").solve(merit, [None] * 4)
    assert mixture.feasible
    assert mixture.exposure / merit == pytest.approx(mixture.exposure[0] / merit[0])
    steep = ExposureRanker("individual").solve([1.0, 0.0, 0.0, 0.0], [None] * 4)
    assert not steep.feasible
    assert steep.exposure[0] == pytest.approx(1.0)
    assert ExposureRanker("individual").solve([0, 0], [None] * 2).rankings.tolist() == [[0, 1]]
    assert steep.exposure[1:] == pytest.approx(place_weights(4)[1:].mean())


def example(q: int = 6, n: int = 8) -> tuple[Any, RankingData]:
    rng = np.random.default_rng(2)
    group = rng.choice(list("aab"), q * n)
    score = rng.random(q * n) + (group == "a")
    return score, RankingData.from_arrays(np.zeros((q * n, 0)), [0] * q * n, group, np.repeat(range(q), n))


def test_batches_sample_and_average_out() -> None:
    score, data = example()
    ranker = ExposureRanker("parity")
    exposure = ranker.exposure(score, data)
    seen = np.zeros(data.n_rows)
    for seed in range(400):
        drawn = ranker.rerank(score, data, seed=seed)
        assert sorted(-drawn[:8]) == list(range(1, 9))
        seen += 1 / np.log2(1 - drawn)
    assert seen / 400 == pytest.approx(exposure, abs=0.08)
    assert np.array_equal(ranker.rerank(score, data, seed=3), ranker.rerank(score, data, seed=3))
    selected = ranker.selection(score, data, 3)
    assert selected.reshape(-1, 8).sum(axis=1) == pytest.approx(3)
    shuffled = np.random.default_rng(5).permutation(data.n_rows)
    again = RankingData.from_arrays(
        np.zeros((data.n_rows, 0)),
        [0] * data.n_rows,
        np.array(data.group_names)[data.to_caller(data.group)][shuffled],
        np.repeat(range(6), 8)[shuffled],
    )
    assert ranker.exposure(score[shuffled], again) == pytest.approx(exposure[shuffled])
    for seed in range(5):
        assert np.array_equal(
            ranker.rerank(score[shuffled], again, seed=seed), ranker.rerank(score, data, seed=seed)[shuffled]
        )


def test_unknown_groups_and_groups_without_merit_count_for_none() -> None:
    merit = [0.9, 0.8, 0.7, 0.0]
    free = ExposureRanker("parity").solve(merit, ["a", None, "a", ""])
    assert free.rankings.tolist() == [[0, 1, 2, 3]]
    without = ExposureRanker("disparate_treatment").solve(merit, ["a", "a", "a", "b"])
    assert without.rankings.tolist() == [[0, 1, 2, 3]]


def test_what_cannot_be_met_is_said_and_the_nearest_taken() -> None:
    data = RankingData.from_arrays(np.zeros((3, 0)), [0] * 3, ["a", "b", "b"], [1] * 3)
    ranker = ExposureRanker("disparate_treatment")
    with pytest.warns(DataWarning, match=r"in 1 of 1 lists no mixture of rankings meets disparate_treatment"):
        ranker.rerank([1.0, 0.01, 0.01], data)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ExposureRanker("fair"), ConfigError, "constraint must be one of parity, disparate_treatment"),
        (lambda: ExposureRanker(slack=-1), ConfigError, "slack must be a finite number ≥ 0; got -1"),
        (lambda: ExposureRanker().solve([1.0, 1], ["a"]), DataError, "must be two lists of one length"),
        (lambda: ExposureRanker().solve([], []), DataError, "one item at least; got"),
        (lambda: ExposureRanker().solve([1.0, np.nan], ["a", "b"]), DataError, "must be finite; item 1 has nan"),
        (
            lambda: ExposureRanker().solve([1.0, 1e308], ["a", "b"]),
            DataError,
            r"must be at most 1e\+100; item 1 has 1e",
        ),
        (
            lambda: ExposureRanker("disparate_impact").solve([-1.0, 1], ["a", "b"]),
            DataError,
            "merits must be at least 0 for disparate_impact; got -1",
        ),
    ],
)
def test_input_is_checked(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.filterwarnings("ignore")  # of lists that lack a group, or anything relevant
@pytest.mark.parametrize("constraint", ["parity", "disparate_treatment", "individual"])
def test_measures_of_all_rankings_are_their_expectations(constraint: str) -> None:
    rng = np.random.default_rng(4)
    query = np.repeat(np.arange(12), rng.integers(1, 9, 12))
    n = len(query)
    data = er.RankingData.from_arrays(
        np.zeros((n, 0)), rng.integers(0, 2, n), rng.choice(["a", "b"], n), query, item_ids=rng.permutation(n)
    )
    merit = rng.random(n)
    ranker = er.ExposureRanker(constraint)
    rankings, chances = ranker.rankings(merit, data)
    mixtures = ranker.mixtures(merit, data)
    names = ["ndcg@3", "precision@3", "mrr", "pairwise_accuracy"]
    found = er.measure(rankings, data, names, chances=chances)
    selected, exposure = ranker.selection(merit, data, 3), ranker.exposure(merit, data)
    gaps = er.measure(rankings, data, ["dp@3", "exposure_gap", "ndkl"], chances=chances)
    for name in names[:3]:  # linear in the ranking: the mean over a list's rankings, then over lists
        values = []
        for number, mixture in enumerate(mixtures):
            rows = np.flatnonzero(data.to_caller(data.query_of_row.astype(float)) == number)
            alone = {"relevance": data.to_caller(data.relevance)[rows], "qid": np.zeros(len(rows))}
            values.append(
                sum(
                    chance * er.measure(-np.argsort(ranking).astype(float), measures=name, **alone)[name]
                    for ranking, chance in zip(mixture.rankings, mixture.probabilities, strict=True)
                )
            )
        assert found[name][0] == pytest.approx(np.nanmean(values))
    assert gaps["dp@3"][0] == pytest.approx(er.violation(selected, data, "dp"))
    assert gaps["exposure_gap"][0] == pytest.approx(er.violation(exposure, data, "dp"))
    assert gaps["ndkl"].shape == (1,)


@pytest.mark.filterwarnings("ignore")  # of lists whose constraint cannot be met
@pytest.mark.parametrize("constraint", ["parity", "disparate_treatment", "disparate_impact", "individual"])
@pytest.mark.parametrize(("slack", "strength"), [(0.0, 1.0), (0.05, 1.0), (0.0, 0.4)])
def test_many_lists_are_solved_as_each_alone(constraint: str, slack: float, strength: float) -> None:
    rng = np.random.default_rng(9)
    query = np.repeat(np.arange(12), rng.integers(1, 12, 12))
    n = len(query)
    group = rng.choice(np.array(["a", "b", "c", None], object), n, p=[0.5, 0.3, 0.1, 0.1])
    merit = np.where(rng.random(n) < 0.2, 0.0, rng.random(n).round(2))
    data = er.RankingData.from_arrays(np.zeros((n, 0)), np.zeros(n), group, query)
    ranker = ExposureRanker(constraint, slack, strength=strength)
    mixtures = ranker.mixtures(merit, data)
    assert {len(set(group[query == number]) - {None}) for number in range(12)} >= {1, 2, 3}
    for number, mixture in enumerate(mixtures):
        rows = query == number
        # Alone, items go in as they stand; ties of merit are broken by row in both.
        order = np.argsort(-merit[rows], kind="stable")
        alone = ranker.solve(merit[rows][order], group[rows][order])
        assert mixture.quality == pytest.approx(alone.quality, abs=1e-9)
        if len(set(group[rows]) - {None}) < 3:  # with more groups several mixtures may be best
            assert mixture.exposure[order] == pytest.approx(alone.exposure, abs=1e-9)
        assert mixture.feasible == alone.feasible
        assert mixture.slack == pytest.approx(alone.slack, abs=1e-9, nan_ok=True)
        assert mixture.probabilities.sum() == pytest.approx(1)


@pytest.mark.filterwarnings("ignore:in . of 16 lists no mixture")
@pytest.mark.parametrize("constraint", GROUPED)
def test_draws_of_several_groups_hang_on_no_last_digit(constraint: str) -> None:
    rng = np.random.default_rng(5)
    merit, group = 0.5 + rng.random(160), rng.integers(0, 4, 160)
    data = RankingData.from_arrays(np.zeros((160, 0)), np.zeros(160), group, np.repeat(np.arange(16), 10))
    ranker = ExposureRanker(constraint)
    drawn = ranker.rerank(merit, data, seed=1)
    most = max(len(mixture.probabilities) for mixture in ranker.mixtures(merit, data))
    assert 2 <= most <= 4  # as many rankings as groups give the best exposures
    for _ in range(3):
        nearly = merit * (1 + rng.choice([-1, 0, 1], 160) * 2.0**-52)
        assert ranker.rerank(nearly, data, seed=1).tolist() == drawn.tolist()
