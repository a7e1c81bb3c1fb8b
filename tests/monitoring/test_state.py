"""The state: parts in any order are the whole, late and repeated lists are known, and files are checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenrank as er
from evenrank.monitoring.series import EXCESS, ITEMS, VARIANCE, WEIGHT, Series, kinds_of
from weekly import rows, taken

Monitor = er.Monitor


def assert_same(one: Monitor, other: Monitor, *, late: bool = True) -> None:
    assert [w.key for w in one.windows] == [w.key for w in other.windows]
    for mine, theirs in zip(one.windows, other.windows, strict=True):
        assert (mine.ids == theirs.ids).all()
        assert mine.rows == theirs.rows
        assert not late or mine.late == theirs.late
    assert one.table.series == other.table.series
    assert (one.table.key == other.table.key).all()
    np.testing.assert_allclose(one.table.values, other.table.values, rtol=1e-9, atol=1e-9)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from(["lists", "windows"]))
def test_parts_in_any_order_are_the_whole(seed: int, parts: int, by: str) -> None:
    rng = np.random.default_rng(seed)
    frame = rows(4, 5, 5, share=0.2, seed=seed)
    code = frame["qid"].to_numpy() // (5 if by == "windows" else 1)
    part = rng.integers(0, parts, code.max() + 1)[code]
    start = Monitor(k=2)
    whole = start.update(*taken(frame))
    updated = start
    pieces = [frame.filter(pl.Series(part == j)) for j in rng.permutation(parts)]
    for piece in pieces:
        if len(piece):
            updated = updated.update(*taken(piece))
    assert_same(updated, whole, late=False)
    states = [start.update(*taken(piece)) for piece in pieces if len(piece)]
    assert_same(states[0].merge(*states[1:]), whole)


def test_a_window_without_one_group_counts_as_in_one_pass() -> None:
    frame = rows(5, 6, 6, seed=3)
    frame = frame.filter((pl.col("group") == "a") | (pl.col("qid") < 18))  # weeks 4 and 5 have no b
    state = Monitor(k=2)
    for week in range(5):
        state = state.update(*taken(frame.filter(pl.col("qid") // 6 == week)))
    assert_same(state, Monitor(k=2).update(*taken(frame)))
    assert any("is absent in: 2026-01-26, 2026-02-02" in note for note in er.monitor(state, reference=2).notes())


def test_sums_of_a_pair_are_those_of_plain_loops() -> None:
    frame = rows(2, 7, 6, seed=5).with_columns(item=pl.int_range(pl.len()) % 9)
    frame = frame.with_columns(group=pl.when(pl.col("item") % 4 == 0).then(pl.lit("a")).otherwise(pl.lit("b")))
    frame = frame.filter(pl.int_range(pl.len()) % 5 != 0)
    scores, data, times = taken(frame)
    state = Monitor(["dp"], k=2).update(scores, data, times)
    expected: dict[tuple[int, int, str], float] = {}
    for (query,), part in frame.group_by("qid"):
        week = int(query) // 7
        order = sorted(range(len(part)), key=lambda j: -part["score"][j])
        x = [1.0 if j in order[:2] else 0.0 for j in range(len(part))]
        is_a = [group == "a" for group in part["group"]]
        n, a = len(x), sum(is_a)
        if a in (0, n):
            continue
        kind = 3 * round(float(np.log2(n / 2))) + (0 if a / n < 1 / 3 else 1 if a / n < 2 / 3 else 2)
        excess = sum(v for v, own in zip(x, is_a, strict=True) if own) - sum(x) * a / n
        variance = a * (n - a) / (n * (n - 1)) * sum((v - sum(x) / n) ** 2 for v in x)
        for name, value in (("D", excess), ("V", variance), ("W", a * (n - a) / n)):
            expected[week, kind, name] = expected.get((week, kind, name), 0.0) + value
    assert len({kind for _, kind, _ in expected}) > 1
    for (week, kind, name), value in expected.items():
        column = {"D": EXCESS, "V": VARIANCE, "W": WEIGHT}[name] - EXCESS
        for clusters in ("lists", ITEMS):
            dense = state.table.dense(Series("demographic_parity", 2, "a", "b", clusters, kind))
            assert dense[week].sum(axis=0)[column] == pytest.approx(value, abs=1e-9)


def test_kinds_are_by_length_and_share() -> None:
    kinds = kinds_of(
        np.array([2, 4, 4, 4, 60, 10**9]), 2, np.array([1, 1, 2, 3, 30, 1.0]), np.array([1, 3, 2, 1, 30, 0.0])
    )
    assert kinds.tolist() == [1, 3, 4, 5, 16, 29]


def test_a_query_in_two_windows_is_two_lists() -> None:
    frame = rows(2, 4, 5)
    twice = frame.with_columns(qid=pl.col("qid") % 4, item=pl.col("item") % 5 + 5 * (pl.int_range(pl.len()) % 5))
    assert twice.group_by("qid", "item").len()["len"].max() > 1  # an item comes again in the other week
    scores, data, times = taken(twice.drop("item").with_columns(item=pl.int_range(pl.len())))
    assert [window.lists for window in Monitor(k=2).update(scores, data, times).windows] == [4, 4]


# ---------------------------------------------------------------------- lists that come again, or late


def test_known_lists_are_refused_skipped_or_replaced() -> None:
    frame = rows(3, 6, 5)
    first, rest = frame.filter(pl.col("qid") < 9), frame.filter(pl.col("qid") >= 6)
    whole, state = Monitor(k=2).update(*taken(frame)), Monitor(k=2).update(*taken(first))
    with pytest.raises(
        er.DataError, match=r"window 2026-01-12: 3 of 12 lists are already counted, such as query [678]\."
    ):
        state.update(*taken(rest))
    assert_same(state.update(*taken(rest), again="skip"), whole)
    assert_same(state.update(*taken(rest), again="replace"), whole)
    assert state.update(*taken(first), again="skip") is state
    changed = rest.with_columns(score=-pl.col("score"))
    replaced = state.update(*taken(changed), again="replace")
    assert_same(replaced, Monitor(k=2).update(*taken(pl.concat([frame.filter(pl.col("qid") < 6), changed]))))


def test_late_lists_are_added_and_said() -> None:
    frame = rows(6, 6, 5)
    late = frame.filter(pl.col("qid") < 2)
    state = Monitor(k=2).update(*taken(frame.filter(pl.col("qid") >= 2))).update(*taken(late))
    assert_same(state, Monitor(k=2).update(*taken(frame)), late=False)
    assert [window.late for window in state.windows] == [2, 0, 0, 0, 0, 0]
    told = er.monitor(state).notes()
    assert any(
        note.startswith("Lists that came late and were added to their windows: 2026-01-05 (2 lists)") for note in told
    )
    assert not any("late" in note for note in er.monitor(Monitor(k=2).update(*taken(frame))).notes())


def test_windows_without_lists_are_named() -> None:
    frame = rows(6, 6, 5).filter(pl.col("qid") // 6 != 2)
    assert "Windows without any list: 2026-01-19." in er.monitor(Monitor(k=2).update(*taken(frame))).notes()


# ---------------------------------------------------------------------- refusals


def test_what_cannot_be_watched_is_refused() -> None:
    with pytest.raises(er.ConfigError, match="gini cannot be watched, since it has no interval"):
        Monitor(["gini"])
    with pytest.raises(er.ConfigError, match="equal_opportunity needs relevance labels"):
        Monitor(["eop"], labelled=False)
    scores, data, times = taken(rows(1, 3, 4))
    with pytest.raises(er.DataError, match="times must be one per row, 12; got 3"):
        Monitor().update(scores, data, times[:3])
    weighed = er.RankingData.from_arrays(
        data.features, data.relevance, data.group, data.query_of_row, sample_weight=np.ones(12)
    )
    with pytest.raises(er.DataError, match="a monitor counts rows"):
        Monitor().update(scores, weighed, times)
    with pytest.raises(er.DataError, match="parts of one monitor must agree in their k; got 2 and 3"):
        Monitor(k=2).update(scores, data, times).merge(Monitor(k=3).update(scores, data, times))
    with pytest.raises(er.ConfigError, match="needs scores, data and times, or a state"):
        er.monitor(scores)


def test_an_item_twice_in_a_list_is_refused() -> None:
    frame = rows(1, 2, 4)
    scores, data, times = taken(frame)
    object.__setattr__(data, "item_ids", np.zeros(8, np.int64))
    with pytest.raises(er.DataError, match="item 0 occurs twice in query 0"):
        Monitor().update(scores, data, times)


# ---------------------------------------------------------------------- files


def test_a_state_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    frame = rows(3, 6, 5)
    state = Monitor(["dp", "four_fifths", "recall"], window="day", k=2).update(
        *taken(frame), cluster=frame["qid"].to_numpy() // 2
    )
    state.save(tmp_path / "state.npz")
    loaded = Monitor.load(tmp_path / "state.npz")
    assert_same(loaded, state)
    assert loaded.measures == ("demographic_parity", "four_fifths", "recall")
    assert (loaded.window, loaded.k, loaded.cluster_names) == ("day", 2, ("cluster",))
    assert er.monitor(loaded).to_dict()["charts"][0].keys() == er.monitor(state).to_dict()["charts"][0].keys()


@pytest.mark.parametrize("where", [0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("how", ["cut", "flip"])
def test_a_damaged_state_is_one_line(tmp_path: Path, where: float, how: str) -> None:
    path = tmp_path / "state.npz"
    Monitor(k=2).update(*taken(rows(2, 6, 5))).save(path)
    content = bytearray(path.read_bytes())
    place = int(where * len(content))
    if how == "cut":
        content = content[:place]
    else:
        content[place] ^= 0x55
    path.write_bytes(content)
    with pytest.raises(er.DataError, match=r"state\.npz: (is no state of a monitor|the state's parts do not fit)"):
        Monitor.load(path)


def test_places_whose_differences_overflow_are_refused(tmp_path: Path) -> None:
    state = Monitor(k=2).update(*taken(rows(2, 6, 5)))
    places = state.table.key.copy()
    places[-1] = np.iinfo(np.int64).min  # below the others, though the difference overflows to a number above 0
    object.__setattr__(state, "table", replace(state.table, key=places))
    state.save(tmp_path / "state.npz")
    with pytest.raises(er.DataError, match="the state's parts do not fit"):
        Monitor.load(tmp_path / "state.npz")


def test_other_files_are_no_states(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    (tmp_path / "rows.csv").write_text("qid\n1\n")
    for name in ("other.npz", "rows.csv"):
        with pytest.raises(er.DataError, match="is no state of a monitor, or is damaged"):
            Monitor.load(tmp_path / name)
    with pytest.raises(er.DataError, match="there is no such file"):
        Monitor.load(tmp_path / "none.npz")


def test_a_state_unpacks_within_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Monitor(k=2).update(*taken(rows(2, 3, 4, share=0.3, seed=1))).save(tmp_path / "state.npz")
    Monitor.load(tmp_path / "state.npz")
    monkeypatch.setenv("EVENRANK_MAX_BYTES", "1K")
    with pytest.raises(er.DataError, match=r"state.npz: [0-9,]+ bytes unpack to .*; at most 1 KB are allowed"):
        Monitor.load(tmp_path / "state.npz")
