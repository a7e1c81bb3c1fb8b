"""2,000 bootstrap replicates of all default measures on 100,000 queries × 10 items, against resampling and recomputing.

Ours is `intervals` from scores to limits. The loop draws queries with replacement, takes their rows and measures them
anew, as one would without it; a few of its replicates are timed, and its time for all is extrapolated from these. Both
must give the same numbers for the same draws.
"""

from __future__ import annotations

from functools import partial

import numpy as np

import common
import evenrank as er
from evenrank.confidence import REPLICATES, intervals
from evenrank.measures import measure_names
from evenrank.query_sums import quotient
from evenrank.statistic import statistics

ITEMS = 10
NAMES = measure_names((1, 3, 5, 10), ("ndcg", "precision", "recall", "dp", "eop", "eod", "four_fifths", "exposure_gap"))


def synthetic(queries: int) -> tuple[np.ndarray, er.RankingData]:
    rng = np.random.default_rng(0)
    n = queries * ITEMS
    group, relevance = rng.integers(0, 2, n), rng.integers(0, 2, n).astype(float)
    scores = rng.standard_normal(n) + relevance + 0.2 * group
    return scores, er.RankingData.from_arrays(np.zeros((n, 0)), relevance, group, np.repeat(np.arange(queries), ITEMS))


def replicate(scores: np.ndarray, data: er.RankingData, drawn: np.ndarray) -> dict[str, float]:
    """The measures of the drawn queries."""
    rows = (drawn[:, None] * ITEMS + np.arange(ITEMS)).ravel()
    return er.measure(scores[rows], data.take(drawn), NAMES)


def main() -> None:
    args = common.parser(__doc__).parse_args()
    queries = 20_000 if args.quick else 100_000
    looped = 2 if args.quick else 5
    title = f"{REPLICATES:,} replicates × {len(NAMES)} measures, {queries:,} queries × {ITEMS} items"
    common.start(title, [], threads=args.threads)
    scores, data = synthetic(queries)
    rng = np.random.default_rng(1)
    draws = [rng.integers(0, queries, queries) for _ in range(looped)]

    sums, stats = common.timed(partial(statistics, scores, data, NAMES))
    own = common.best(partial(intervals, scores, data, NAMES), 2, warm_up=False)
    took = [common.timed(partial(replicate, scores, data, drawn)) for drawn in draws]
    each = min(seconds for seconds, _ in took)
    whole = each * REPLICATES
    common.table(
        ["", "time", "a replicate", "ratio"],
        [
            ["evenrank", common.seconds(own), common.seconds(own / REPLICATES), ""],
            ["  of which the sums, once", common.seconds(sums), "", ""],
            [
                f"resample and recompute ({looped} replicates timed, extrapolated)",
                common.seconds(whole),
                common.seconds(each),
                common.times(whole / own),
            ],
        ],
    )
    difference = 0.0
    for drawn, (_, theirs) in zip(draws, took, strict=True):
        counts = np.bincount(drawn, minlength=queries).astype(float)
        for stat in stats:
            weights = stat.sums.weights
            times = np.repeat(counts, np.diff(weights.ptr))
            ratios = quotient(weights.by_column(times * stat.sums.top), weights.by_column(times * weights.weight))
            difference = max(difference, abs(float(stat.value(stat.gaps(ratios))) - theirs[stat.name]))
    common.note(f"largest difference of a replicate for the same draws: {difference:.1e}")


if __name__ == "__main__":
    main()
