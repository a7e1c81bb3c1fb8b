"""How often the monitor itself, as users call it, alarms where the ranker does not change, and how soon it notices one.

Every year of 4 weeks of reference and 52 weekly looks goes through `er.Monitor.update` and `er.monitor`, with the
default charts or with measures of the field. The ranker adds the same lean to one group in every design; what changes
is the queries, the traffic, the users or the groups. "all" is what `--alert-on all` would do.

    python benchmarks/monitor_hostile.py alarms --runs 300
    python benchmarks/monitor_hostile.py measures --runs 100
    python benchmarks/monitor_hostile.py delays --runs 60
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

import common
import evenrank as er
from evenrank.monitoring.looks import corrected

REFERENCE, LOOKS, LEVEL, START = 4, 52, 0.05, 13
WEEKS = REFERENCE + LOOKS
LEAN = 0.6
K = 5
SHARES = "target=a:0.5/b:0.5"
FIELD = (
    "ndcg",
    "precision",
    "mrr",
    f"awrf@{K}",
    f"awrf_ndcg@{K}",
    f"ee_l@{K}",
    f"ee_d@{K}",
    f"ee_r@{K}",
    f"item_ee_l@{K}",
    f"exposure_ratio@{K}",
    f"dtr@{K}",
    f"dir@{K}",
    f"max_skew@{K}({SHARES},smoothing=1)",
    f"ndkl@{K}",
    f"infeasible_index@{K}",
    "fair_prefix@10(protected=b)",
    "rnd(step=5,protected=b)",
    "pairwise_accuracy",
    "pairwise_gap",
    "pairwise_intra_gap",
    "pairwise_parity",
    f"group_iaa@{K}",
)


class Year:
    """Lists by week: their lengths, shares of the second group, rates of relevant items, leans and users."""

    def __init__(self, rng: Any, per_week: Any = 60) -> None:
        number = np.broadcast_to(np.asarray(per_week), WEEKS)
        self.rng = rng
        self.week = np.repeat(np.arange(WEEKS), number)
        self.length = np.full(len(self.week), 20)
        self.share = np.full(len(self.week), 0.4)
        self.relevant = np.full(len(self.week), 0.3)
        self.lean = np.full(len(self.week), LEAN)
        self.user: Any = None
        self.third: Any = None  # the share of a third group, by list

    @property
    def season(self) -> Any:
        """From 0 in winter to 1 in summer, by list."""
        return 0.5 - 0.5 * np.cos(2 * np.pi * self.week / 52)

    def rows(self) -> tuple[Any, er.RankingData, Any, Any]:
        rng, query = self.rng, np.repeat(np.arange(len(self.week)), self.length)
        code = (rng.random(len(query)) < self.share[query]).astype(np.int64)
        if self.third is not None:
            code[rng.random(len(query)) < self.third[query]] = 2
        relevance = (rng.random(len(query)) < self.relevant[query]).astype(float)
        scores = rng.gumbel(size=len(query)) + relevance + self.lean[query] * (code == 1)
        data = er.RankingData.from_arrays(np.zeros((len(query), 0)), relevance, np.array(["a", "b", "c"])[code], query)
        users = None if self.user is None else {"user": self.user[query]}
        return scores, data, self.week[query], users


def calm(year: Year) -> None:
    pass


def seasonal(year: Year) -> None:
    """Lists become longer, and hold more of the second group, in summer."""
    long = year.rng.random(len(year.week)) < 0.1 + 0.8 * year.season
    year.length, year.share = np.where(long, 60, 15), np.where(long, 0.55, 0.25)


def drifting(year: Year) -> None:
    """Shares and lengths drift within one kind of list."""
    year.share = 0.35 + 0.3 * year.season
    year.length = np.rint(16 + 9 * year.season).astype(np.int64)


def trending(year: Year) -> None:
    """Lists and the second group grow all year, and more items are relevant."""
    part = year.week / WEEKS
    year.length = np.rint(10 + 40 * part).astype(np.int64)
    year.share, year.relevant = 0.15 + 0.6 * part, 0.1 + 0.5 * part


def relevant(year: Year) -> None:
    """More items are relevant in summer."""
    year.relevant = 0.1 + 0.5 * year.season


def zipf_users(year: Year) -> None:
    """400 users, of whom few ask most queries; each leans, and asks for lists of a length of their own."""
    chance = 1 / np.arange(1, 401)
    year.user = year.rng.choice(400, len(year.week), p=chance / chance.sum())
    year.lean = LEAN + year.rng.normal(0, 0.7, 400)[year.user]
    year.length = year.rng.integers(10, 40, 400)[year.user]


def tiny_group(year: Year) -> None:
    year.share = np.full(len(year.week), 0.02)


def late_group(year: Year) -> None:
    """A third group appears at the 20th week."""
    year.third = np.where(year.week < 20, 0.0, 0.15)


def reference_group(year: Year) -> None:
    """A third group with a few items in the reference grows later."""
    year.third = np.where(year.week < 4, 0.005, 0.15)


def hidden(year: Year) -> None:
    """Two topics on which the ranker leans differently, in lists that look alike; their mix follows the season."""
    year.lean = np.where(year.rng.random(len(year.week)) < 0.1 + 0.8 * year.season, 1.2, 0.0)


def growing(rng: Any) -> Any:
    return np.rint(15 * np.exp(np.arange(WEEKS) / WEEKS * np.log(12))).astype(int)


def with_gaps(rng: Any) -> Any:
    number = np.where(rng.random(WEEKS) < 0.25, 0, 60)
    number[[0, -1]] = 60
    return number


def one_large(rng: Any) -> Any:
    number = np.full(WEEKS, 60)
    number[rng.integers(0, WEEKS)] = 600
    return number


Design = tuple[Callable[[Year], None], Any]
DESIGNS: dict[str, Design] = {
    "nothing changes": (calm, 60),
    "seasonal mix": (seasonal, 60),
    "mix drifts within a kind": (drifting, 60),
    "longer lists, more of b, more relevant, all year": (trending, 60),
    "more relevant items in summer": (relevant, 60),
    "traffic grows twelvefold": (calm, growing),
    "seasonal mix and growing traffic": (seasonal, growing),
    "users, few of whom ask most": (zipf_users, 60),
    "2 % group": (tiny_group, 60),
    "a group appears at week 20": (late_group, 60),
    "a group of 0.5 % in the reference grows": (reference_group, 60),
    "a quarter of the weeks missing": (seasonal, with_gaps),
    "one week with ten times the rows": (seasonal, one_large),
    "12 lists per week, seasonal mix": (seasonal, 12),
}
LIMIT: dict[str, Design] = {"topics that lists do not show": (hidden, 60)}


def year_of(design: Design, rng: Any) -> tuple[Any, er.RankingData, Any, Any]:
    change, traffic = design
    year = Year(rng, traffic(rng) if callable(traffic) else traffic)
    change(year)
    return year.rows()


def watch(rows: Any, measures: Any = ()) -> er.Monitored:
    scores, data, times, users = rows
    return er.monitor(er.Monitor(measures, window="1", k=K).update(scores, data, times, cluster=users))


def first_alarm(charts: Any) -> float:
    """The first look at which charts, which share the level, alarm; infinite if none does."""
    p = np.array([[point.p for point in chart.points if point.role == "look"] for chart in charts])
    if not p.size:
        return np.inf
    shown = np.flatnonzero((corrected(p, LOOKS) <= LEVEL).any(axis=0))
    return float(shown[0]) if len(shown) else np.inf


def alarms(runs: int, seed: int, only: list[str]) -> None:
    """The share of years, in per cent, with any alert of the default charts, and of each kind of chart."""
    rows = []
    for name, design in (DESIGNS | LIMIT).items():
        if only and not any(part in name for part in only):
            continue
        rng, began = np.random.default_rng([seed, len(name)]), time.time()
        counts = np.zeros(4)
        for _ in range(runs):
            result = watch(year_of(design, rng))
            quality = [chart for chart in result.charts if chart.measure == "ndcg"]
            ratios = [chart for chart in result.charts if chart.question == "ratio"]
            counts += [
                bool(result.alerts()),
                first_alarm(result.charts) < np.inf,
                first_alarm(ratios) < np.inf,
                first_alarm(quality) < np.inf,
            ]
        rows.append([name, *(f"{100 * count / runs:.1f}" for count in counts)])
        print(f"{rows[-1]} {time.time() - began:.0f} s", flush=True)
    common.table(["design", "alerts", "with --alert-on all", "ratio of rates alone", "NDCG alone"], rows)
    common.note(f"{runs} years per design")


def measures(runs: int, seed: int, only: list[str]) -> None:
    """The share of years, in per cent, with any alarm of each measure, watched alone."""
    found: dict[str, list[str]] = defaultdict(list)
    names = [name for name in DESIGNS | LIMIT if not only or any(part in name for part in only)]
    for name in names:
        rng, began = np.random.default_rng([seed, len(name)]), time.time()
        counts: dict[str, int] = defaultdict(int)
        for _ in range(runs):
            charts = defaultdict(list)
            for chart in watch(year_of((DESIGNS | LIMIT)[name], rng), FIELD).charts:
                charts[chart.measure, chart.k].append(chart)
            for key, own in charts.items():
                counts[f"{key[0]} {key[1]}"] += first_alarm(own) < np.inf
        for key, count in counts.items():
            found[key].append(f"{100 * count / runs:.1f}")
        print(name, dict(counts), f"{time.time() - began:.0f} s", flush=True)
    common.table(["measure, k", *names], [[key, *cells] for key, cells in found.items()])
    common.note(f"{runs} years per design")


def delays(runs: int, seed: int) -> None:
    """How soon a lean that begins at look 14, in a seasonal mix, is noticed, by the default charts and by measures."""
    rows = []
    for lists in (60, 300):
        for more in (0.4, 0.8, 1.6):
            rng = np.random.default_rng([seed, lists])
            waits: dict[str, list[float]] = defaultdict(list)
            gaps = []
            for _ in range(runs):
                year = Year(rng, lists)
                seasonal(year)
                year.lean = np.where(year.week < REFERENCE + START, 0.0, more)
                result = watch(year.rows(), ("dp", "eop", "eod", "exposure", "ndcg", f"awrf@{K}", f"ndkl@{K}"))
                alone = {"all gaps within queries": [chart for chart in result.charts if chart.alerting]}
                alone |= {chart.measure: [chart] for chart in result.charts if chart.measure in ("awrf", "ndkl")}
                for name, charts in alone.items():
                    waits[name].append(first_alarm(charts) - START + 1)
                chart = result.charts[0]
                gaps.append(np.mean([abs(point.value - point.expected) for point in chart.points[REFERENCE + START :]]))
            for name, each in waits.items():
                wait = np.array(each)
                within = [f"{100 * np.mean((wait > 0) & (wait <= most)):.0f}%" for most in (4, 13, 39)]
                median = np.median(np.where(wait > 0, wait, np.inf))
                rows.append([f"{lists}", f"{more:g}", f"{np.mean(gaps):.3f}", name, *within, f"{median:g}"])
                print(rows[-1], flush=True)
    head = ["lists per week", "lean", "mean change of the gap", "charts", "in 4 looks", "in 13", "in 39", "median"]
    common.table(head, rows)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("what", nargs="+", choices=("alarms", "measures", "delays"))
    parser.add_argument("--runs", type=int, default=300, help="simulated years per design (default: 300)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="designs whose name holds one of these")
    args = parser.parse_args()
    runs = 10 if args.quick else args.runs
    warnings.simplefilter("ignore", er.DataWarning)
    common.start(f"The monitor where the ranker does not change, {runs} years per design", ["scipy"], threads=1)
    for what in args.what:
        if what == "delays":
            delays(runs, args.seed)
        else:
            {"alarms": alarms, "measures": measures}[what](runs, args.seed, args.only)


if __name__ == "__main__":
    main()
