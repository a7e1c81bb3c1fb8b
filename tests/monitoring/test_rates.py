"""Measures of the field in a monitor: their sums against `er.measure`, their tests against plain twins, and words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank import Monitor
from evenrank.measures import MEASURES, Evaluation
from evenrank.monitoring.field import kinds_of_lists, sums_of_lists
from evenrank.monitoring.looks import compared, looks_of
from evenrank.monitoring.rates import DIFFERENCE, MEAN, QUOTIENT, SIDES, Rates
from evenrank.monitoring.series import BINS
from evenrank.monitoring.watched import PAIRS, asked_at, watched
from weekly import rows, taken

OPTIONS = {
    "min_skew": "(target=a:0.5/b:0.5,smoothing=1)",
    "max_skew": "(target=a:0.5/b:0.5,smoothing=1)",
    "fair_prefix": "(protected=b)",
    **dict.fromkeys(("rnd", "rkl", "rrd"), "(step=2,protected=b)"),
}
FIELD = [
    f"{name}{'' if measure.k == 'none' else '@3'}{OPTIONS.get(name, '')}"
    for name, measure in MEASURES.items()
    if name not in PAIRS and not measure.no_interval
]


def test_every_measure_with_an_interval_can_be_watched() -> None:
    assert {name.partition("@")[0] for name in FIELD} >= {"awrf", "ndkl", "dtr", "pairwise_gap", "ee_l", "mrr"}
    assert [watched(name) for name in FIELD] == FIELD


@pytest.mark.parametrize("name", FIELD)
def test_sums_give_the_measure_itself(name: str) -> None:
    """What is kept of lists is enough for the value that `er.measure` gives."""
    scores, data, _ = taken(rows(1, 25, 9, seed=3).with_columns(score=pl.col("score").round(1)))
    asked = asked_at(name, 3)
    labels, top, size = sums_of_lists(asked, Evaluation.of(data.to_stored(scores), data))
    assert len(labels) == top.shape[1] == size.shape[1]
    rates = [t / n for t, n in zip(top.sum(0).tolist(), size.sum(0).tolist(), strict=True) if n > 0]
    value = {
        "mean": lambda: rates[0],
        "gap": lambda: max(rates) - min(rates),
        "ratio": lambda: min(rates) / max(rates),
        "shares": lambda: sum(map(abs, rates)),
    }[asked.measure.kind]()
    assert value == pytest.approx(er.measure(scores, data, name)[name], rel=1e-9)


def test_parts_of_any_measure_are_the_whole(tmp_path: Path) -> None:
    frame = rows(4, 12, 8, seed=5)
    whole = Monitor(FIELD, k=3).update(*taken(frame))
    parts = [Monitor(FIELD, k=3).update(*taken(frame.filter(pl.col("qid") % 3 == j))) for j in (2, 0, 1)]
    together = parts[0].merge(parts[1], parts[2])
    together.save(tmp_path / "state.npz")
    loaded = Monitor.load(tmp_path / "state.npz")
    assert loaded.measures == tuple(FIELD)
    assert loaded.table.series == whole.table.series
    np.testing.assert_array_equal(loaded.table.key, whole.table.key)
    np.testing.assert_allclose(loaded.table.values, whole.table.values, atol=1e-12)


def test_a_part_without_a_group_of_the_target_counts_as_in_one_pass() -> None:
    frame = rows(3, 20, 6, seed=6)
    alone = pl.col("qid") // 20 == 1
    frame = frame.with_columns(group=pl.when(alone).then(pl.lit("a")).otherwise("group"))
    names = ["awrf@3(target=a:0.5/b:0.5)", "min_skew@3(target=a:0.5/b:0.5,smoothing=1)", "fair_prefix@3(protected=b)"]
    state = Monitor(names, k=3)
    for week in range(3):
        state = state.update(*taken(frame.filter(pl.col("qid") // 20 == week)))
    whole = Monitor(names, k=3).update(*taken(frame))
    np.testing.assert_allclose(state.table.values, whole.table.values, atol=1e-12)


def test_kinds_are_by_length_relevant_items_and_the_group_that_dominates() -> None:
    lengths = [4, 4, 16, 9]
    group = [*"aaab", *"aabb", *("b" * 15 + "a"), *("a" * 6 + "b" * 3)]
    relevance = [0, 0, 0, 0, 1, 0, 0, 0, *([1] * 7 + [0] * 9), *([1] * 3 + [0] * 6)]
    query = np.repeat(np.arange(4), lengths)
    data = er.RankingData.from_arrays(np.zeros((33, 0)), relevance, group, query)
    kind, mix = kinds_of_lists(asked_at("dtr@4", 4), data)
    # log2(n / 4), and 10 times: none, 1, 7 (rounds to 8), 3 (rounds to 4) relevant items
    assert kind.tolist() == [0, 10, 2 + 10 * 4, 1 + 10 * 3]
    assert mix.tolist() == [0, -1, 1, -1]  # 6 of 9 are not more than two thirds
    kind, mix = kinds_of_lists(asked_at("awrf@4", 4), data)
    assert kind.tolist() == [0, 0, 2, 1]
    assert kinds_of_lists(asked_at("ndcg", 4), data)[1].tolist() == [-1] * 4


# ---------------------------------------------------------------------- plain twins


def some_rates(seed: int, windows: int, kinds: int, sides: int, bins: int = 40) -> np.ndarray:
    rng = np.random.default_rng(seed)
    out = np.zeros((windows, BINS, sides, kinds, 3))
    lists = rng.integers(0, 3, (windows, bins, sides, kinds))
    size = lists * rng.integers(1, 4, lists.shape)
    out[:, :bins, ..., 2], out[:, :bins, ..., 1] = lists, size
    out[:, :bins, ..., 0] = size * (0.5 + 0.2 * np.arange(kinds)) + np.sqrt(size) * rng.normal(0, 0.1, size.shape)
    return out.reshape(windows, BINS, -1)


def plain(kind: str, table: np.ndarray, weights: list[float], ratio: float = 1.0) -> float:
    """The estimate from sums over bins, (sides, kinds, 3), at given weights of kinds."""
    rates = []
    for side in table.tolist():
        top = sum(w * t / n for w, (t, _, n) in zip(weights, side, strict=True))
        size = sum(w * s / n for w, (_, s, n) in zip(weights, side, strict=True))
        rates.append(top / size)
    return rates[0] if kind == MEAN else rates[0] - (ratio if kind == QUOTIENT else 1.0) * rates[1]


@pytest.mark.parametrize("kind", [MEAN, DIFFERENCE, QUOTIENT])
def test_both_sides_are_compared_at_one_mix(kind: str) -> None:
    count = SIDES[kind]
    sums = some_rates(1, 5, 3, count)
    tables = sums.reshape(5, BINS, count, 3, 3)
    base, span = tables[:4].sum((0, 1)), tables[4].sum(0)
    each = [1 / sum(1 / n for n in (*base[:, j, 2], *span[:, j, 2])) for j in range(3)]
    weights = [one / sum(each) for one in each]
    ratio = 1.0
    if kind == QUOTIENT:
        sides = [plain(MEAN, base[[side]], weights) for side in (0, 1)]
        ratio = sides[0] / sides[1]
    reference = Rates(kind, sums[:4].sum(0, keepdims=True))
    both = compared(Rates(kind, sums[4:]), reference)
    change = plain(kind, span, weights, ratio) - plain(kind, base, weights, ratio)
    assert both.change[0] == pytest.approx(change, rel=1e-9)
    # How far a bin moves the estimate: the derivative with respect to its weight.
    step = 1e-6
    for bin in (0, 7, 39):
        less = span - step * tables[4, bin]
        moved = (plain(kind, span, weights, ratio) - plain(kind, less, weights, ratio)) / step
        left = 1 - tables[4, bin, :, :, 2] / span[..., 2]
        own = both.own.moves(1.0)[0, bin]
        assert own == pytest.approx(moved, rel=2 * float(1 / left.min() - 1), abs=1e-6)
        assert np.sign(own) == np.sign(moved)


def test_a_mean_moves_as_if_a_bin_were_left_out_of_each_kind() -> None:
    sums = some_rates(2, 2, 2, 1)
    own, _ = Rates(MEAN, sums[1:]).at_one_mix(Rates(MEAN, sums[:1]))
    table = sums[1].reshape(BINS, 1, 2, 3)
    table[..., 1] = table[..., 2]  # of a mean, sizes are lists
    own = Rates(MEAN, table.reshape(1, BINS, -1), 1.0, own.weights)
    total = table.sum(0)
    weights = own.weights[0].tolist()
    for bin in range(40):
        left_out = sum(
            w * (total[0, j, 0] - table[bin, 0, j, 0]) / (total[0, j, 2] - table[bin, 0, j, 2])
            for j, w in enumerate(weights)
        )
        assert own.moves(1.0)[0, bin] == pytest.approx(own.value[0] - left_out, abs=1e-9)


def test_kinds_that_one_side_lacks_take_no_part() -> None:
    sums = some_rates(3, 6, 2, 1)
    apart = sums.reshape(6, BINS, 2, 3).copy()
    apart[:4, :, 1] = 0
    apart[4:, :, 0] = 0
    assert np.isnan(looks_of(MEAN, [apart[:4].reshape(4, BINS, -1)], [apart[4:].reshape(2, BINS, -1)]).p).all()
    assert np.isfinite(looks_of(MEAN, [sums[:4]], [sums[4:]]).p).all()


# ---------------------------------------------------------------------- what is noticed


def seasonal(weeks: int, lists: int, lean: float, seed: int) -> pl.DataFrame:
    """Long lists with many of b take the place of short ones with few; the ranker leans the same."""
    parts = []
    for week in range(weeks):
        long = round(lists * (0.1 + 0.8 * week / weeks))
        for items, share, number in ((40, 0.65, long), (10, 0.15, lists - long)):
            part = rows(1, number, items, share=share, lean=lean, seed=seed + 1000 * week + items)
            parts.append(part.with_columns(pl.col("qid") + 10_000 * week + 1000 * items, when=pl.lit(week)))
    return pl.concat(parts).with_columns(item=pl.int_range(pl.len()))


def test_the_mix_of_queries_is_no_alert_unless_asked_for() -> None:
    """Pooled ratios follow the mix of lists; what the ranker does within them stays."""
    state = Monitor(["dp", "exposure", "four_fifths", "awrf@3", "ndcg"], window="1", k=3)
    state = state.update(*taken(seasonal(24, 60, 0.8, 7)))
    result = er.monitor(state)
    assert result.alerts() == []
    assert result.verdict == "no change shown"
    assert {chart.measure for chart, _ in result.moves()} == {"four_fifths"}
    said = "\n".join(result.conclusions())
    assert "Moved, and no alert: Ratio of pooled rates at 3" in said
    assert "What moved without an alert may be other queries than in the reference" in said
    assert any("Alerts come from gaps within queries." in note for note in result.notes())
    every = er.monitor(state, alert_on="all")
    assert {chart.measure for chart, _ in every.alerts()} == {"four_fifths"}
    assert every.moves() == []
    assert "Moved, and no alert" not in "\n".join(every.conclusions())
    assert not any("Alerts come from" in note for note in every.notes())


def test_a_change_of_awrf_is_noticed_and_said() -> None:
    frame = rows(14, 80, 12, lean=[0.0] * 8 + [3.0] * 6, seed=8)
    result = er.monitor(*taken(frame), measures=["awrf@3", "ndkl", "dtr", "pairwise_parity", "group_iaa"], k=3)
    assert all(chart.alerting for chart in result.charts)
    changed = {chart.measure for chart, _ in result.alerts()}
    assert {"awrf", "ndkl", "pairwise_parity", "group_iaa"} <= changed
    said = "\n".join(result.conclusions())
    assert "Means and rates were compared at one mix of lists" in said
    assert "where the reference, with the same mix of lists, has" in said
    assert "Only quality changed" not in said
    assert "Within queries: groups" not in said
    assert "AWRF@3" in result.html()
    calm = er.monitor(*taken(rows(14, 80, 12, seed=8)), measures=["awrf@3", "ndkl", "dtr", "pairwise_parity"], k=3)
    assert calm.alerts() == []
    assert "Means and rates were compared" not in "\n".join(calm.conclusions())


def test_three_groups_have_charts_of_each_pair() -> None:
    frame = rows(6, 30, 9, seed=9)
    third = (pl.int_range(pl.len()) % 4 == 0) & (pl.col("group") == "a")
    frame = frame.with_columns(group=pl.when(third).then(pl.lit("c")).otherwise("group"))
    result = er.monitor(*taken(frame), measures=["dtr@3", "pairwise_parity", "pairwise_gap", "group_iaa"], k=3)
    names = [(chart.measure, chart.a, chart.b) for chart in result.charts]
    assert [name for name in names if name[0] == "pairwise_parity"] == [
        ("pairwise_parity", f"{a} above {b}", f"{b} above {a}") for a, b in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    assert len([name for name in names if name[0] == "pairwise_gap"]) == 15
    assert len([name for name in names if name[0] == "dtr"]) == 3
    assert [name[1] for name in names if name[0] == "group_iaa"] == ["a", "b", "c"]
    for chart in result.charts:
        if chart.question == QUOTIENT:
            assert chart.reference <= 1  # the one behind over the one ahead


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gini", "gini cannot be watched, since it has no interval: it is of items"),
        ("dp@5", "demographic_parity is watched at the monitor's cut-off, without options; got 'dp@5'"),
        ("exposure_gap(discount=rbp)", "exposure_gap is watched at the monitor's cut-off"),
        ("rnd", "rnd needs the protected group in a monitor"),
        ("awrf@5(target=equal)", "awrf needs shares by group in a monitor"),
        ("ndkl(target=all)", "ndkl needs shares by group in a monitor"),
        ("min_skew@5(smoothing=1)", "min_skew needs shares by group in a monitor"),
        ("nope", "measure must be one of ndcg"),
        (len, "a monitor watches measures by name, since its state is kept in a file"),
    ],
)
def test_what_cannot_be_watched_says_why(name: object, told: str) -> None:
    with pytest.raises(er.ConfigError, match=told.replace("(", r"\(").replace(")", r"\)")):
        Monitor([name])  # type: ignore[list-item]


def test_an_infinite_value_names_its_query() -> None:
    frame = rows(2, 6, 6, seed=10).with_columns(group=pl.when(pl.col("qid") == 3).then(pl.lit("b")).otherwise("group"))
    with pytest.raises(er.DataError, match=r"min_skew@1\(target=a:0.5/b:0.5\) is infinite in \d+ lists, such as query"):
        Monitor(["min_skew@1(target=a:0.5/b:0.5)"]).update(*taken(frame))


def test_alerts_of_gaps_within_queries_need_one() -> None:
    state = Monitor(["four_fifths", "awrf"], k=3).update(*taken(rows(6, 10)))
    assert all(chart.alerting for chart in er.monitor(state).charts)
    with pytest.raises(er.ConfigError, match="alert_on='within' needs a gap within queries, and none is watched"):
        er.monitor(state, alert_on="within")
    with pytest.raises(er.ConfigError, match="alert_on must be one of within, all"):
        er.monitor(state, alert_on="some")
