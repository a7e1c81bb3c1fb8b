"""How often a nominal 95 % interval contains the truth, over simulated data sets whose rows are dependent.

Lists have 6 to 12 items. Each query has its own share of every group, its own rate of relevant items and its own lean
towards each group, so its rows depend on each other in all three; the top 3 are selected, so one item's selection is
another's loss. The truth of a population is its value on a million further queries (0 for gaps of even populations,
whose groups are exchangeable). Resamples: 1,000 a data set, 500 for 5,000 queries; users get 2,000.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

import common
import evenrank as er
from evenrank.confidence import FEW, METHODS, interval_of
from evenrank.contrasts import Pairs
from evenrank.query_sums import quotient, resampled_ratios
from evenrank.statistic import Statistic, statistics

SHORTEST, LONGEST = 6, 12
TRUTH_QUERIES, BLOCK, AT_ONCE = 1_000_000, 20_000, 50
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
            group_names=range(self.groups),
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
    signed = [Kind(name, True, "mean") for name in GAPS if name != "four_fifths@3"]
    largest = [Kind(name, False, "max") for name in ("dp@3", "eod@3")]
    plain = [Kind(name, False, "mean") for name in (*GAPS, *QUALITY)]
    return [*(signed if population.groups == 2 else largest), *plain]


def tables(population: Population, queries: int, rng: np.random.Generator) -> list[Statistic]:
    """The sums behind every kind of interval, for new queries."""
    scores, data = population.draw(queries, rng)
    made = {stat.name: stat for stat in statistics(scores, data, (*QUALITY, *GAPS))}
    out = []
    for kind in kinds(population):
        stat = made[kind.measure]
        if kind.across == "max":
            cells = stat.sums.weights.total.reshape(-1, 1, population.groups)
            stat = replace(stat, pairs=Pairs.of(cells, across="max", training=False))
        out.append(stat)
    return out


def truth(population: Population, queries: int) -> list[float]:
    """Each kind's value in the population; what symmetry makes exactly 0 (a ratio: 1) is set to that."""
    rng = np.random.default_rng(0)
    totals = None
    for _ in range(queries // BLOCK):
        stats = tables(population, BLOCK, rng)
        own = [np.stack([stat.sums.total, stat.sums.weights.total]) for stat in stats]
        totals = own if totals is None else [one + two for one, two in zip(totals, own, strict=True)]
    values = []
    for kind, stat, (top, bottom) in zip(kinds(population), stats, totals, strict=True):
        gaps = stat.gaps(quotient(top, bottom))
        if population.even and stat.kind != "mean":
            values.append(1.0 if stat.kind == "ratio" else 0.0)
        else:
            values.append(float(gaps.mean() if kind.signed else stat.value(gaps)))
    return values


class Found(NamedTuple):
    """Ends of the intervals and queries of the rarest cell, (data sets, kinds, methods) each."""

    low: np.ndarray
    high: np.ndarray
    queries: np.ndarray


def simulate(population: Population, queries: int, datasets: int, replicates: int, seed: int) -> Found:
    """Intervals of every kind by both methods.

    Queries of several data sets are drawn, summed and resampled at once (with the same counts, as users with the same
    seed get); then each data set is assessed by itself.
    """
    rng = np.random.default_rng([seed, queries, POPULATIONS.index(population)])
    wanted = kinds(population)
    found = np.full((3, datasets, len(wanted), len(METHODS)), np.nan)
    at_once = min(AT_ONCE, max(1, 4 * BLOCK // queries))
    for start in range(0, datasets, at_once):
        number = min(at_once, datasets - start)
        drawn = tables(population, number * queries, rng)
        sets = [
            [replace(stat, sums=stat.sums.part(i * queries, (i + 1) * queries)) for stat in drawn]
            for i in range(number)
        ]
        every = [stat.sums for stats in sets for stat in stats]
        ratios = iter(resampled_ratios(every, replicates=replicates, seed=seed * datasets + start))
        for i, stats in enumerate(sets, start):
            for j, (kind, stat, sample) in enumerate(zip(wanted, stats, ratios, strict=False)):
                for m, given in enumerate((sample, None)):
                    one = interval_of(stat, given, signed=kind.signed)
                    found[:, i, j, m] = one.low, one.high, one.queries
    return Found(*found)


def main() -> None:
    args = common.parser(__doc__).parse_args()
    datasets = 200 if args.quick else 1000
    common.start(f"Coverage of 95 % intervals, {datasets:,} data sets a setting", [], threads=1)
    outside = []
    with ProcessPoolExecutor(args.threads, get_context("spawn"), common.cap_threads, (1,)) as pool:
        truths = [pool.submit(truth, p, TRUTH_QUERIES // (5 if args.quick else 1)) for p in POPULATIONS]
        runs = [
            [pool.submit(simulate, p, size, datasets // 2, 500 if size > 1000 else 1000, half) for half in range(2)]
            for p in POPULATIONS
            for size in SIZES
        ]
        settings = iter(runs)
        for population, waiting in zip(POPULATIONS, truths, strict=True):
            true = np.array(waiting.result())
            rows = []
            for size in SIZES:
                halves = [run.result() for run in next(settings)]
                found = Found(*(np.concatenate(both) for both in zip(*halves, strict=True)))
                rows += summary(population, size, found, true)
            rows.sort(key=lambda row: row[0])
            common.note(population.name)
            common.table(
                [
                    "interval of",
                    "truth",
                    "queries",
                    "in rarest cell",
                    *(f"{m} {x}" for m in METHODS for x in ("%", "width")),
                ],
                [row[1:] for row in rows],
            )
            outside += [(population.name, *row) for row in rows if "signed" in row[1]]
    report(outside)


def summary(population: Population, size: int, found: Found, true: np.ndarray) -> list[list[str]]:
    """A line a kind: its number, name, truth, queries, those of the rarest cell, and coverage and width by method."""
    target = true[:, None]
    exists = ~np.isnan(found.low)
    covered = (found.low <= target + 1e-12) & (target - 1e-12 <= found.high)
    share = 100 * covered.sum(axis=0) / exists.sum(axis=0)
    width = np.nanmean(found.high - found.low, axis=0)
    rarest = np.median(found.queries[..., 0], axis=0)
    lines = []
    for j, kind in enumerate(kinds(population)):
        cells = [text for m in range(len(METHODS)) for text in (f"{share[j, m]:.1f}", f"{width[j, m]:.3f}")]
        lines.append([f"{j:02d}", str(kind), f"{true[j]:.3f}", f"{size:,}", f"{rarest[j]:.0f}", *cells])
    return lines


def report(signed: list[tuple[str, ...]]) -> None:
    """Say which signed gaps leave the target."""
    low, high = TARGET
    common.note(f"signed gaps outside {low:g}–{high:g} %:")
    for name, _, kind, _, size, rarest, *cells in signed:
        for method, share in zip(METHODS, cells[::2], strict=True):
            if not low <= float(share) <= high:
                common.note(
                    f"  {name}, {size} queries, {kind}, {method}: {share} % ({rarest} queries in the rarest cell)"
                )
    for method, at in zip(METHODS, (6, 8), strict=True):
        shares = [float(line[at]) for line in signed if int(line[5]) >= FEW]
        common.note(
            f"{method}, rarest cell of at least {FEW} queries: {min(shares)} … {max(shares)} %, {len(shares)} settings"
        )


if __name__ == "__main__":
    main()
