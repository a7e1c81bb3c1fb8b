"""Seconds that `GroupOffset` takes on a million rows, beside a plain scan of a grid of offsets.

It fits three notions at five cut-offs, to lists of 5, 10, 50 and 116. The scan ranks all lists anew for each of 101
offsets and takes the best; it is timed for one notion and cut-off and multiplied. Notions at one cut-off come one after
the other, as in a sweep, because they share the crossings.
"""

from __future__ import annotations

import time

import numpy as np

import common
import evenrank as er
from evenrank.rerankers.scored_lists import ScoredLists

NOTIONS, KS, GRID = ("dp", "eop", "eod"), (1, 2, 3, 4, 5), np.linspace(-2, 2, 101)


def race(rows: int, length: int) -> list[list[str]]:
    rng = np.random.default_rng(0)
    group = rng.random(rows) < 0.3
    relevance = (rng.random(rows) < 0.2).astype(float)
    data = er.RankingData.from_arrays(np.zeros((rows, 0)), relevance, group, np.arange(rows) // length)
    scores = relevance + rng.normal(size=rows) + 0.5 * group

    used = time.process_time()
    lists = ScoredLists.of(scores, data)
    fitted = {(notion, k): er.GroupOffset(notion, k).fit_lists(lists) for k in KS for notion in NOTIONS}
    exact = time.process_time() - used

    used = time.process_time()
    gaps = [er.measure(scores + offset * group, data, ["eop@3"])["eop@3"] for offset in GRID]
    scan = (time.process_time() - used) * len(fitted)
    what = f"{rows:,} rows in lists of {length}"
    best = er.GroupOffset("eop", 3, shrink=False).fit_lists(lists).gap_after_
    return [
        [f"{what}, {len(fitted)} fits", common.seconds(exact), f"{best:.2g}"],
        [f"the same, a scan of {len(GRID)} offsets", common.seconds(scan), f"{min(gaps):.2g}"],
    ]


def main() -> None:
    options = common.parser(__doc__).parse_args()
    common.start("Offsets", [], threads=options.threads)
    rows = 100_000 if options.quick else 1_000_000
    common.table(
        ["", "processor time", "smallest eop@3"], [line for length in (5, 10, 50, 116) for line in race(rows, length)]
    )


if __name__ == "__main__":
    main()
