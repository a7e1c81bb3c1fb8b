"""How often a nominal 95 % interval contains the truth, over simulated data sets whose rows are dependent.

Lists have 6 to 12 items. Each query has its own share of every group, its own rate of relevant items and its own lean
towards each group, so rows of a query depend on each other in all three; the top 3 are selected, so one item's selection
is another's loss. The truth of a population is its value on 2 million further queries (0 for even populations, whose
groups are exchangeable).
"""

from __future__ import annotations

import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

import common
import evenrank as er
from evenrank.errors import DataWarning
from evenrank.intervals import METHODS, Statistic, _interval as interval_of, resampled_sums, stacked, statistics, unstacked

SHORTEST, LONGEST = 6, 12
TRUTH_QUERIES, BLOCK = 2_000_000, 20_000
SIZES = (50, 200, 1000, 5000)
QUALITY = ("ndcg@3",)
GAPS = ("dp@3", "eop@3", "eod@3", "exposure_gap", "four_fifths@3")
TARGET = (93.0, 97.0)


@dataclass(frozen=True)
class Population:
    """Groups with given overall shares, and how far scores lean towards each."""

    name: str
    shares: tuple[float, ...]
    lean: tuple[float, ...]

    @property
    def groups(self) -> int:
        return len(self.shares)

    @property
    def even(self) -> bool:
        return len(set(self.shares)) == len(set(self.lean)) == 1

    def draw(self, queries: int, rng: np.random.Generator) -> tuple[np.ndarray, er.RankingData]:
        """Scores and data of new queries."""
        lists = (queries, LONGEST)
        inside = np.arange(LONGEST) < rng.integers(SHORTEST, LONGEST + 1, (queries, 1))
        share = rng.dirichlet(4 * self.groups * np.array(self.shares), queries)
        group = (rng.random(lists)[..., None] > share.cumsum(axis=1)[:, None, :-1]).sum(axis=-1)
        relevant = rng.random(lists) < rng.beta(2, 3, (queries, 1))
        lean = np.array(self.lean) + 0.5 * rng.standard_normal((queries, self.groups))
        scores = rng.standard_normal(lists) + relevant + np.take_along_axis(lean, group, axis=1)
        query = np.broadcast_to(np.arange(queries)[:, None], lists)[inside]
        data = er.RankingData.from_arrays(
            np.zeros((len(query), 0)),
            relevant[inside].astype(float),
            group[inside],
            query,
            group_names=[f"g{i}" for i in range(self.groups)],
        )
        return scores[inside], data


POPULATIONS = (
    Population("2 groups", (0.5, 0.5), (0.0, 0.4)),
    Population("2 groups, one 5 %", (0.05, 0.95), (0.0, 0.4)),
    Population("2 groups, even", (0.5, 0.5), (0.0, 0.0)),
    Population("4 groups", (0.25, 0.25, 0.25, 0.25), (0.0, 0.1, 0.2, 0.4)),
    Population("4 groups, one 5 %", (0.05, 0.35, 0.3, 0.3), (0.0, 0.1, 0.2, 0.4)),
    Population("4 groups, even", (0.25, 0.25, 0.25, 0.25), (0.0, 0.0, 0.0, 0.0)),
)


class Kind(NamedTuple):
    """What an interval is of: a measure, whether signed, and how groups are combined."""

    measure: str
    signed: bool
    across: str

    def __str__(self) -> str:
        return f"{self.measure} {'signed' if self.signed else ''}{'max' if self.across == 'max' else ''}".strip()


def kinds(population: Population) -> list[Kind]:
    plain = [Kind(name, False, "mean") for name in (*QUALITY, *GAPS)]
    if population.groups == 2:
        return plain + [Kind(name, True, "mean") for name in GAPS if name != "four_fifths@3"]
    return plain + [Kind("dp@3", False, "max"), Kind("eod@3", False, "max")]


def tables(population: Population, queries: int, rng: np.random.Generator) -> list[Statistic]:
    """The sums behind every kind of interval, for one new data set."""
    scores, data = population.draw(queries, rng)
    wanted = kinds(population)
    made = {
        across: dict(zip(names, statistics(scores, data, names, across=across), strict=True))
        for across in ("mean", "max")
        if (names := list(dict.fromkeys(kind.measure for kind in wanted if kind.across == across)))
    }
    return [made[kind.across][kind.measure] for kind in wanted]


def truth(population: Population, queries: int) -> list[float]:
    """Each kind's value in the population, by simulation; exactly even gaps are set to what symmetry makes them."""
    rng = np.random.default_rng(12345)
    blocks = [tables(population, BLOCK, rng) for _ in range(0)]
    sums, stats = 0.0, blocks
    for _ in range(queries // BLOCK):
        stats = tables(population, BLOCK, rng)
        sums = sums + stacked(stats).sum(axis=0)
    values = []
    for kind, stat, gaps in zip(kinds(population), stats, unstacked(stats, np.asarray(sums)), strict=True):
        if population.even and kind.measure not in QUALITY:
            values.append(1.0 if stat.kind == "ratio" else 0.0)
        else:
            values.append(float(gaps.mean() if kind.signed else stat.value(gaps)))
    return values


class Found(NamedTuple):
    """(datasets, kinds, methods) each."""

    low: np.ndarray
    high: np.ndarray
    queries: np.ndarray


def simulate(population: Population, queries: int, seeds: range, replicates: int) -> Found:
    """Intervals of every kind by every method on one data set a seed."""
    warnings.simplefilter("ignore", DataWarning)
    wanted = kinds(population)
    found = np.full((3, len(seeds), len(wanted), len(METHODS)), np.nan)
    for i, seed in enumerate(seeds):
        stats = tables(population, queries, np.random.default_rng([queries, population.groups, seed]))
        drawn = unstacked(stats, resampled_sums(stacked(stats), replicates=replicates, seed=seed))
        for j, (kind, stat, sample) in enumerate(zip(wanted, stats, drawn, strict=True)):
            for m, method in enumerate(METHODS):
                one = interval_of(stat, sample if method == "bootstrap" else None, 0.95, method, kind.signed, seed)
                found[:, i, j, m] = one.low, one.high, one.queries
    return Found(*found)


def main() -> None:
    parser = common.parser(__doc__)
    args = parser.parse_args()
    datasets = 200 if args.quick else 1000
    common.start(f"Coverage of 95 % intervals, {datasets:,} data sets a setting", [], threads=1)
    context = get_context("spawn")
    with ProcessPoolExecutor(args.threads, mp_context=context, initializer=common.cap_threads, initargs=(1,)) as pool:
        truths = {p.name: pool.submit(truth, p, TRUTH_QUERIES // (10 if args.quick else 1)) for p in POPULATIONS}
        part = datasets // 4
        runs = {
            (p.name, size): [
                pool.submit(simulate, p, size, range(start, start + part), 500 if size > 1000 else 1000)
                for start in range(0, datasets, part)
            ]
            for p in POPULATIONS
            for size in SIZES
        }
        rows = []
        for p in POPULATIONS:
            true = np.array(truths[p.name].result())[:, None]
            print(p.name, dict(zip(map(str, kinds(p)), true[:, 0].round(4).tolist(), strict=True)))
            for size in SIZES:
                f = Found(*(np.concatenate(parts) for parts in zip(*(run.result() for run in runs[p.name, size]), strict=True)))
                covered = np.where(np.isnan(f.low), np.nan, (f.low <= true + 1e-12) & (true - 1e-12 <= f.high))
                for j, kind in enumerate(kinds(p)):
                    cov = np.nanmean(covered[:, j], axis=0) * 100
                    above = np.nanmean(f.low[:, j] > true[j], axis=0)*100
                    below = np.nanmean(f.high[:, j] < true[j], axis=0)*100
                    width = np.nanmean(f.high[:, j] - f.low[:, j], axis=0)
                    rows.append([p.name, size, kind, *(f"{c:.1f}" for c in cov), *(f"{w:.3f}" for w in width), f"{np.median(f.queries[:, j, 0]):.0f}", above.round(1), below.round(1), int(np.isnan(f.low[:,j,0]).sum())])
        common.table(["population", "queries", "interval of", *METHODS, *(f"width" for m in METHODS), "queries of the rarest cell","above","below","nan"], rows)


if __name__ == "__main__":
    main()
