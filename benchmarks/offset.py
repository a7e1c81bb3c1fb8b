"""Seconds that `GroupOffset` takes on a million rows, beside a plain scan of a grid of offsets.

Run it as ``python benchmarks/offset.py [rows] [list length]``. It fits three notions at five cut-offs. The scan ranks
all lists anew for each of 101 offsets and takes the best; it is timed for one notion and cut-off and multiplied.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import evenrank as er
from evenrank.rerankers.scored_lists import ScoredLists

NOTIONS, KS, GRID = ("dp", "eop", "eod"), (1, 2, 3, 4, 5), np.linspace(-2, 2, 101)


def main(rows: int = 1_000_000, length: int = 50) -> None:
    rng = np.random.default_rng(0)
    group = rng.random(rows) < 0.3
    relevance = (rng.random(rows) < 0.2).astype(float)
    data = er.RankingData.from_arrays(np.zeros((rows, 0)), relevance, group, np.arange(rows) // length)
    scores = relevance + rng.normal(size=rows) + 0.5 * group

    began, used = time.perf_counter(), time.process_time()
    lists = ScoredLists.of(scores, data)
    fitted = {(notion, k): er.GroupOffset(notion, k).fit_lists(lists) for notion in NOTIONS for k in KS}
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    what = f"{rows:,} rows in lists of {length}: {len(fitted)} exact fits"
    print(f"{what} in {seconds:.2f} s ({processor:.2f} s of processor)")

    used = time.process_time()
    gaps = [er.measure(scores + offset * group, data, ["eop@5"])["eop@5"] for offset in GRID]
    scan = (time.process_time() - used) * len(fitted)
    exact = fitted["eop", 5].gap_after_
    print(f"a scan of {len(GRID)} offsets: {scan:.1f} s of processor, {scan / processor:.0f} times as much")
    print(f"eop@5: {fitted['eop', 5].gap_before_:.5f} before, {exact:.2g} exact, {min(gaps):.2g} by the scan")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
