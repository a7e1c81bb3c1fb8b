"""How often certified bounds hold, over simulated data sets: they must in at least 1 − δ of them.

The populations are those of `interval_coverage.py` (dependent rows, ragged lists, top-3 selection); δ = 0.1. The bounds
are for any data, so they should hold far more often than promised; what that costs is their size.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

import common
import evenrank as er
from evenrank.bounds import METHODS
from interval_coverage import LONGEST, POPULATIONS, Population

DELTA = 0.1
MEASURES = ("dp@3", "eop@3", "eod@3")
SIZES = (200, 1000, 5000)


def truths(population: Population, queries: int) -> list[float]:
    scores, data = population.draw(queries, np.random.default_rng(99))
    return [er.measure(scores, data, name)[name] for name in MEASURES]


def bounds(population: Population, queries: int, datasets: int) -> np.ndarray:
    """(data sets, measures, methods)."""
    rng = np.random.default_rng([queries, POPULATIONS.index(population)])
    found = np.empty((datasets, len(MEASURES), len(METHODS)))
    for line in found:
        scores, data = population.draw(queries, rng)
        for i, name in enumerate(MEASURES):
            for j, method in enumerate(METHODS):
                made = er.bounds.certified(scores, data, name, DELTA, method=method, list_length=LONGEST)
                line[i, j] = made.bound
    return found


def main() -> None:
    options = common.parser(__doc__).parse_args()
    datasets = 50 if options.quick else 1000
    common.start(f"Certified bounds, δ = {DELTA}, {datasets:,} data sets a setting", [], threads=1)
    with ProcessPoolExecutor(options.threads, get_context("spawn"), common.cap_threads, (1,)) as pool:
        true = [pool.submit(truths, population, 200_000) for population in POPULATIONS]
        runs = {
            (population.name, size): pool.submit(bounds, population, size, datasets if size < 5000 else datasets // 5)
            for population in POPULATIONS
            for size in SIZES
        }
        rows = []
        for population, waiting in zip(POPULATIONS, true, strict=True):
            for size in SIZES:
                found = runs[population.name, size].result()
                for i, (name, truth) in enumerate(zip(MEASURES, waiting.result(), strict=True)):
                    held = (found[:, i] >= truth).mean(axis=0)
                    middle = np.median(found[:, i], axis=0)
                    cells = [f"{100 * h:.1f}" for h in held] + ["vacuous" if m >= 0.995 else f"{m:.2f}" for m in middle]
                    rows.append([population.name, name, f"{truth:.3f}", f"{size:,}", *cells])
    heads = [f"{method} holds, %" for method in METHODS] + [f"{method}, median" for method in METHODS]
    common.table(["population", "bound of", "truth", "queries", *heads], rows)


if __name__ == "__main__":
    main()
