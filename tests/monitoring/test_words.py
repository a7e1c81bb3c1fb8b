"""Each sentence is printed where it is true, and there is data for which it must not be."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import evenrank as er
from weekly import rows, taken

RANKER = "Within queries: groups are treated differently"
POOLED = "Only what is pooled over all lists changed"
QUALITY = "Only quality changed."
NONE = "No change is shown at the last look"
CANNOT = "Cannot tell at the last look"
EARLIER = "Earlier looks that showed a change"
TURNED = "was ahead, and now"


def told(frame: pl.DataFrame, **options: Any) -> str:
    scores, data, times = taken(frame)
    return "\n".join(er.monitor(scores, data, times, k=3, **options).conclusions())


def said(text: str) -> set[str]:
    return {sentence for sentence in (RANKER, POOLED, QUALITY, NONE, CANNOT, EARLIER, TURNED) if sentence in text}


def test_no_change() -> None:
    assert said(told(rows(10, 40, seed=11))) == {NONE}


def test_a_change_of_the_ranker() -> None:
    text = told(rows(10, 60, lean=[0] * 9 + [-3.0], seed=12))
    assert said(text) == {RANKER}
    assert "in 2026-03-09, where the reference's lean gives" in text
    assert "first shown" not in text


def test_a_change_that_went_away() -> None:
    text = told(rows(40, 60, lean=[0] * 6 + [-3.0] + [0] * 33, seed=13), measures=["dp"])
    assert said(text) == {NONE, EARLIER}


def test_a_change_that_stays_says_since_when() -> None:
    text = told(rows(10, 60, lean=[0] * 6 + [-3.0] * 4, seed=14))
    assert "; first shown at 2026-02-16)" in text


def mixed(weeks: int, seed: int) -> pl.DataFrame:
    """A blind ranker; in the last weeks group b comes in short lists, whose items are in the top 3 more often."""
    rng = np.random.default_rng(seed)
    parts = []
    for week in range(weeks):
        share = 0.4 if week < weeks - 4 else 0.9
        for items, b in ((20, 0.8 - share), (5, share)):
            part = rows(1, 40, items, share=max(b, 0.02), seed=int(rng.integers(1 << 30)))
            parts.append(part.with_columns(pl.col("qid") + 10_000 * week + 1000 * items, when=pl.lit(str(week))))
    return pl.concat(parts).with_columns(item=pl.int_range(pl.len()))


def test_a_change_of_the_mix_is_not_called_the_rankers() -> None:
    frame = mixed(12, 15).with_columns(when=pl.col("when").cast(pl.Int64))
    text = told(frame, window="1", measures=["dp", "four_fifths"], alert_on="all")
    assert said(text) - {EARLIER} == {POOLED}
    assert "no gap within queries is shown to have" in text


def test_a_pooled_gap_by_itself_says_nothing_of_gaps_within_queries() -> None:
    frame = mixed(12, 15).with_columns(when=pl.col("when").cast(pl.Int64))
    text = told(frame, window="1", measures=["dp"], questions=["pooled"])
    assert said(text) - {TURNED, EARLIER} == {POOLED}
    assert "no gap within queries" not in text


def test_a_change_of_quality_alone() -> None:
    frame = rows(10, 60, seed=16)
    last = pl.col("when") >= "2026-03-02"
    worse = frame.with_columns(score=pl.when(last).then(pl.col("score") - 4 * pl.col("relevance")).otherwise("score"))
    assert said(told(worse, alert_on="all")) - {EARLIER} == {QUALITY}
    default = told(worse)
    assert said(default) == {NONE}  # no gap changed; quality is shown, and gives no alert
    assert "Moved, and no alert: NDCG@3: " in default


def test_too_little_to_tell() -> None:
    text = told(rows(8, 2, seed=17).filter(pl.col("qid") < 14), measures=["dp"])
    assert said(text) in ({CANNOT}, {NONE})
    alone = rows(6, 3, seed=18).with_columns(group=pl.lit("a"))
    one = rows(1, 1, seed=1).with_columns(pl.col("qid") + 10_000, pl.col("item") + 10**6)
    two = pl.concat([alone, one])
    assert said(told(two, measures=["dp"])) == {CANNOT}


def test_a_turn_is_said_only_where_the_reference_had_shown_a_lead() -> None:
    assert TURNED not in told(rows(8, 60, lean=[0.0] * 7 + [-3.0], seed=19), measures=["dp"])
    assert TURNED in told(rows(8, 60, lean=[2.0] * 7 + [-3.0], seed=19), measures=["dp"])
    assert TURNED not in told(rows(8, 60, lean=[1.0] * 7 + [5.0], seed=19), measures=["dp"])


def test_all_in_the_reference() -> None:
    text = told(rows(3, 10, seed=20))
    assert said(text) == set()
    assert text.startswith("No look yet: all 3 windows are in the reference.")


def test_more_looks_than_share_the_level() -> None:
    scores, data, times = taken(rows(8, 10, seed=21))
    few = er.monitor(scores, data, times, k=3, looks=3)
    assert "4 looks so far: the stated chance of a false alarm holds for any 3 in a row." in few.notes()
    assert not any("looks so far" in note for note in er.monitor(scores, data, times, k=3, looks=4).notes())


def test_names_cannot_break_out() -> None:
    hostile = ("<script>alert(1)</script>", "=1+1\x1b[31m\n")
    scores, data, times = taken(rows(6, 10, seed=22, groups=hostile))
    result = er.monitor(scores, data, times, k=3)
    page = result.html("<b>title</b>")
    assert "<script>alert" not in page
    assert "<b>title" not in page
    assert "\x1b" not in page
    assert "\x1b" not in result.text()
    assert "script-src 'none'" in page
