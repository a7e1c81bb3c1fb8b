"""Intervals and comparisons of every measure: by sums over lists, by the jackknife, or none with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.confidence import intervals
from evenrank.measures import MEASURES, Evaluation, ask
from evenrank.statistic import RankedQueries

pytestmark = pytest.mark.filterwarnings("ignore::evenrank.errors.DataWarning")


def make_data(seed: int = 0, q: int = 40, length: int = 12, groups: str = "abc") -> er.RankingData:
    rng = np.random.default_rng(seed)
    n = q * length
    items = np.concatenate([rng.permutation(60)[:length] for _ in range(q)])
    return er.RankingData.from_arrays(
        rng.normal(size=(n, 1)),
        rng.integers(0, 3, n),
        rng.choice(list(groups), n),
        np.repeat(np.arange(q), length),
        item_ids=items,
    )


DATA = make_data()
RNG = np.random.default_rng(1)
A, B = np.round(2 * RNG.normal(size=(2, DATA.n_rows))) / 2  # with ties
STEPS = ("rnd@4", "rkl@4", "rrd@4")
NAMES = [name if measure.k == "none" else f"{name}@4" for name, measure in MEASURES.items()]


def written(name: str) -> str:
    """Skews are smoothed here, as others may be infinite; lists of 12 need small steps."""
    return f"{name}(smoothing=1)" if "skew" in name else f"{name}(step=2)" if name in STEPS else name


@pytest.mark.parametrize("name", NAMES)
def test_the_estimate_is_the_measure_and_lies_in_its_interval(name: str) -> None:
    name = written(name)
    value = er.measure(A, DATA, name)[name]
    for method in ("analytic", "bootstrap"):
        got = er.interval(A, DATA, name, method=method, replicates=200)
        assert got.estimate == pytest.approx(value, abs=1e-12)
        if MEASURES[ask(name)[1].measure.name].no_interval:
            assert np.isnan([got.low, got.high]).all()
            assert "items, which lists share" in got.reason
            assert got.method == "none"
        else:
            assert got.low <= value <= got.high
            assert got.low < got.high
            assert not got.reason
            low, high = ask(name)[1].measure.limits
            assert low <= got.low
            assert got.high <= high
    (line,) = er.compare(A, B, DATA, [name])
    assert (line.a, line.b) == pytest.approx((value, er.measure(B, DATA, name)[name]), abs=1e-12)
    assert line.difference == pytest.approx(line.b - line.a, abs=1e-12)
    if not MEASURES[ask(name)[1].measure.name].no_interval:
        assert line.low <= line.difference <= line.high
        assert (line.p_value <= 0.05) == (line.low > 0 or line.high < 0)
        (same,) = er.compare(A, A, DATA, [name])
        assert (same.difference, same.p_value) == (0.0, 1.0)


@pytest.mark.parametrize("name", [name for name in NAMES if MEASURES[ask(name)[1].measure.name].sums is not None])
def test_the_sums_make_the_measure_on_any_lists(name: str) -> None:
    """What is resampled is the measure: sums of some lists give its value on the rows of those lists."""
    stat = RankedQueries(A, DATA).statistics([ask(name)])[0]
    rng = np.random.default_rng(2)
    for _ in range(5):
        chosen = rng.integers(0, DATA.n_queries, DATA.n_queries)
        part = DATA.take(chosen)
        rows = np.concatenate([np.arange(DATA.query_ptr[i], DATA.query_ptr[i + 1]) for i in chosen])
        count = np.bincount(chosen, minlength=DATA.n_queries)
        weights = stat.sums.weights
        query = np.repeat(np.arange(weights.n_queries), np.diff(weights.ptr))
        ratios = np.bincount(weights.column, stat.sums.top * count[query], minlength=weights.width)
        ratios = ratios / np.bincount(weights.column, weights.weight * count[query], minlength=weights.width)
        value = er.measure(A[rows], part, name)[name]
        assert float(stat.value(stat.gaps(ratios))) == pytest.approx(value, abs=1e-12)


def test_an_infinite_skew_has_no_interval() -> None:
    got = er.interval(A, DATA, "min_skew@1")
    assert got.estimate == -np.inf
    assert np.isnan([got.low, got.high]).all()
    assert got.reason == "the value of some queries is infinite"
    (line,) = er.compare(A, B, DATA, ["min_skew@1"])
    assert (line.a, line.b) == (-np.inf, -np.inf)
    assert np.isnan([line.difference, line.low, line.p_value]).all()


def test_a_function_has_the_jackknife_s_interval() -> None:
    """The mean over lists as one number has the interval of a mean."""

    def list_mean(scores: Any, data: er.RankingData) -> float:
        return float(np.mean(np.add.reduceat(data.to_stored(scores), data.query_ptr[:-1])))

    got = er.interval(A, DATA, list_mean)
    sums = np.add.reduceat(A, DATA.query_ptr[:-1])
    assert got.method == "jackknife"
    assert got.high - got.estimate == pytest.approx(2.0227 * sums.std(ddof=1) / np.sqrt(40), rel=1e-3)
    (line,) = er.compare(A, B, DATA, [list_mean])
    apart = np.add.reduceat(B - A, DATA.query_ptr[:-1])
    assert line.difference == pytest.approx(apart.mean())
    assert line.high - line.difference == pytest.approx(2.0227 * apart.std(ddof=1) / np.sqrt(40), rel=1e-3)
    clustered = er.compare(A, B, DATA, [list_mean], cluster=DATA.query_of_row // 2)[0]
    pairs = apart.reshape(20, 2).mean(axis=1)
    assert clustered.high - clustered.difference == pytest.approx(2.093 * pairs.std(ddof=1) / np.sqrt(20), rel=1e-3)


def test_functions_without_an_interval_say_why() -> None:
    constant = er.Measure.of(lambda scores, data: 2.0, "two")
    assert er.interval(A, DATA, constant).reason == "it does not change with the queries"
    fragile = er.Measure.of(lambda scores, data: 1.0 if data.n_queries == 40 else np.nan, "fragile")
    assert er.interval(A, DATA, fragile).reason == "it is not defined without some queries"
    per_query = er.Measure.of(lambda scores, data: np.full(data.n_queries, 7.0), "sevens", per_query=True)
    assert "all queries have the same value" in er.interval(A, DATA, per_query).reason


def test_clusters_across_queries_are_refused_for_measures_of_all_lists() -> None:
    with pytest.raises(er.ConfigError, match="'dtr@4' is compared list by list; cluster must hold whole queries"):
        er.compare(A, B, DATA, ["dtr@4"], cluster=np.arange(DATA.n_rows) % 7)
    with pytest.raises(er.ConfigError, match="signed=True is for violations with two groups; got 'pairwise_parity'"):
        er.interval(A, make_data(groups="ab"), "pairwise_parity", signed=True)


def test_the_order_of_rows_changes_nothing() -> None:
    order = np.random.default_rng(3).permutation(DATA.n_rows)
    shuffled = er.RankingData.from_arrays(
        DATA.features[order],
        DATA.relevance[order],
        np.array(DATA.group_names)[DATA.group[order]],
        DATA.query_ids[DATA.query_of_row[order]],
        item_ids=np.asarray(DATA.item_ids)[order],
    )
    own = er.Measure.of(lambda s, d: float(np.mean(d.to_stored(s) * d.relevance)), "own")
    wanted: list[Any] = ["awrf@4", "dtr@4", "pairwise_gap", "group_iaa@4", own]
    for one, two in zip(intervals(A, DATA, wanted), intervals(A[order], shuffled, wanted), strict=True):
        np.testing.assert_allclose(tuple(one), tuple(two), rtol=1e-9)


def test_hostile_lists() -> None:
    """One-item lists, unknown groups, lists of one group: each measure gives a number, NaN or an infinity."""
    group = ["a", None, "b", "a", "a", None, "b", "b", "a"]
    data = er.RankingData.from_arrays(
        np.zeros((9, 0)),
        [1, 0, 2, 0, 1, 0, 0, 1, 0],
        group,
        [0, 1, 2, 2, 3, 3, 4, 4, 4],
        item_ids=[5, 5, 5, 6, 5, 6, 5, 6, 7],
    )
    scores = np.array([1.0, 2.0, 2.0, 2.0, 0.0, 1.0, 3.0, 3.0, 1.0])
    soft = data.with_membership(np.random.default_rng(0).dirichlet([1, 1, 1], 9)[:, :2], ["a", "b"])
    for rows in (data, soft):
        for name in NAMES:
            if ask(name)[1].measure.name in ("rnd", "rkl", "rrd") and rows is soft:
                continue
            got = er.interval(scores, rows, written(name), method="analytic")
            assert isinstance(got.estimate, float)
            assert not got.low > got.high
            er.compare(scores, -scores, rows, [written(name)])
    ev = Evaluation.of(data.to_stored(scores), data)
    assert ev.membership[[1, 5]].tolist() == [[0, 0], [0, 0]]
