"""How often certified bounds hold, over simulated data sets: they must in at least 1 − δ of them.

The populations are those of `interval_coverage.py` (dependent rows, ragged lists, top-3 selection); δ = 0.1. Beside
them, the hard ones: weights of 100 on some lists, and lists of 2 to 40. The bounds are for any data, so they should
hold far more often than promised; what that costs is their size. "Next" is the bound of the gap that the next queries
will show, checked against as many further queries.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Hard:
    """Two groups, one rarer, that some lists treat the other way round; these may be heavy or long."""

    name: str
    longest: float
    heavy: float = 1.0
    lengths: tuple[int, int] = (4, 12)

    def draw(self, queries: int, rng: np.random.Generator) -> tuple[np.ndarray, er.RankingData]:
        other = rng.random(queries) < 0.05
        length = np.where(other, self.lengths[1], rng.integers(self.lengths[0], self.lengths[1] + 1, queries))
        n, query = int(length.sum()), np.repeat(np.arange(queries), length)
        group = rng.random(n) < np.where(other[query], 0.7, 0.3)
        scores = rng.normal(size=n) + np.where(other[query], 2.0, -0.5) * group
        weight = np.where(other[query], self.heavy, 1.0)
        weighted = None if self.heavy == 1 else weight
        data = er.RankingData.from_arrays(
            np.zeros((n, 0)), np.ones(n), group.astype(int), query, group_names=[0, 1], sample_weight=weighted
        )
        return scores, data


HARD = (
    Hard("some lists weigh 100", longest=1200, heavy=100.0),
    Hard("some lists weigh 10,000", longest=120_000, heavy=10_000.0),
    Hard("lists of 2 to 40", longest=40, lengths=(2, 40)),
)


def hard(population: Hard, queries: int, datasets: int) -> tuple[np.ndarray, float]:
    """(data sets, 4): the bounds of the population by each method and of the next queries; what these showed; truth."""
    rng = np.random.default_rng([queries, HARD.index(population)])
    scores, data = population.draw(300_000, np.random.default_rng(99))
    truth = er.measure(scores, data, "dp@3")["dp@3"]
    found = np.empty((datasets, 4))
    for line in found:
        scores, data = population.draw(queries, rng)
        options = {"longest": population.longest}
        line[:2] = [er.bounds.certified(scores, data, "dp@3", DELTA, method=each, **options).bound for each in METHODS]
        line[2] = er.bounds.certified(scores, data, "dp@3", DELTA, next_queries=queries, **options).bound
        later, fresh = population.draw(queries, rng)
        line[3] = er.measure(later, fresh, "dp@3")["dp@3"]
    return found, truth


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
    common.table(["population", "truth", "queries", *heads, "next holds, %", "next, median"], hard_rows(datasets))


def hard_rows(datasets: int) -> list[list[str]]:
    rows = []
    for population in HARD:
        for size in (200, 2000):
            found, truth = hard(population, size, datasets)
            held = [100 * (found[:, i] >= limit).mean() for i, limit in enumerate((truth, truth, found[:, 3]))]
            middle = [f"{value:.2f}" for value in np.median(found[:, :3], axis=0)]
            text = [f"{value:.1f}" for value in held]
            rows.append([population.name, f"{truth:.3f}", f"{size:,}", *text[:2], *middle[:2], text[2], middle[2]])
    return rows


if __name__ == "__main__":
    main()
