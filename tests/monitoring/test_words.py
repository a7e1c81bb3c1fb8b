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


def worse(frame: pl.DataFrame, since: str) -> pl.DataFrame:
    """Relevant items fall back, whatever their group."""
    lower = pl.col("score") - 4 * pl.col("relevance")
    return frame.with_columns(score=pl.when(pl.col("when") >= since).then(lower).otherwise("score"))


def test_only_is_said_only_of_what_else_was_watched() -> None:
    frame = worse(rows(10, 60, seed=16), "2026-03-02")
    alone = told(frame, measures=["ndcg"])
    assert "Quality changed. That may be harder queries" in alone
    assert QUALITY not in alone
    assert QUALITY in told(frame, measures=["ndcg", "dp"], alert_on="all")


def test_pooled_rates_and_quality_together_are_not_called_only_pooled() -> None:
    frame = rows(10, 80, lean=[0.0] * 8 + [-3.0] * 2, seed=23)
    both = told(worse(frame, "2026-03-02"), measures=["four_fifths", "ndcg"])
    assert "Ratio of pooled rates" in both
    assert "NDCG@3" in both
    assert POOLED not in both
    assert "Where rates are pooled over all lists, other lists" in both
    ratio = told(frame, measures=["four_fifths"])
    assert POOLED in ratio
    assert "Where rates are pooled over all lists, other lists" not in ratio


def test_a_lead_that_is_gone_is_not_called_the_other_groups() -> None:
    """From a lead of b to none: who is ahead now is not shown."""
    text = told(rows(8, 60, lean=[2.5] * 7 + [-0.05], seed=19), measures=["dp"])
    assert "Changed at the last look" in text
    assert TURNED not in text


def test_what_cannot_be_compared_is_not_called_too_small() -> None:
    """Long lists in the reference, short ones later: many lists, and none that can be compared."""
    frame = rows(4, 60, 40, seed=24)
    short = rows(4, 60, 4, seed=25).with_columns(pl.col("qid") + 10**6, pl.col("item") + 10**7)
    later = short.with_columns(when=(pl.col("when").str.to_date() + pl.duration(weeks=4)).cast(pl.String))
    scores, data, times = taken(pl.concat([frame, later]))
    result = er.monitor(scores, data, times, k=3, measures=["dp"])
    assert result.verdict == "cannot tell"
    assert "have too few lists that can be compared with the reference" in result.conclusions()[0]
    note = "Never tested, for lack of lists that can be compared with the reference: demographic parity at 3"
    assert any(text.startswith(note) for text in result.notes())
    fine = er.monitor(*taken(rows(8, 40, seed=24)), k=3, measures=["dp"])
    assert not any("Never tested" in text for text in fine.notes())


def test_no_windows_and_more_changes_than_are_spelled_out() -> None:
    assert er.monitor(er.Monitor()).conclusions() == ["There are no windows yet."]
    frame = rows(8, 120, 12, lean=[0.0] * 7 + [-3.0], seed=26)
    third = (pl.int_range(pl.len()) % 3 == 0) & (pl.col("group") == "b")
    frame = frame.with_columns(group=pl.when(third).then(pl.lit("c")).otherwise("group"))
    text = told(frame)
    assert "more changed, see the tables." in text
    assert "There are no windows yet" not in text
    assert "more changed" not in told(frame, measures=["dp"])


def test_clusters_and_items_are_mentioned_where_they_are_known() -> None:
    frame = rows(6, 20, 8, seed=27)
    scores, data, times = taken(frame)
    clusters, items = 'Clusters: "user"', "Items are known by their ids"
    plain = " ".join(er.monitor(scores, data, times, k=3, items=False).notes())
    assert clusters not in plain
    assert items not in plain
    users = {"user": frame["qid"].to_numpy() % 7}
    assert clusters in " ".join(er.monitor(scores, data, times, k=3, cluster=users).notes())
    again = frame.with_columns(item=pl.int_range(pl.len()) % 8, group=pl.Series(["a", "b"] * (len(frame) // 2)))
    assert items in " ".join(er.monitor(*taken(again), k=3).notes())


def test_the_page_says_which_charts_give_no_alert() -> None:
    result = er.monitor(*taken(rows(7, 20, seed=28)), k=3)
    assert "This chart gives no alert" in result.html()
    every = er.monitor(*taken(rows(7, 20, seed=28)), k=3, alert_on="all")
    assert "This chart gives no alert" not in every.html()
