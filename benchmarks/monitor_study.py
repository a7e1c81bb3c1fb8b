"""How often a monitor gives a false alarm, and how soon it notices a change.

Lists are simulated by week, 4 of reference and 52 looks, in designs where nothing changes (hostile ones included) and
in some where a gap of known size begins at look 14. Tests are the package's own; `rules` compares the alpha-spending
rule with confidence sequences on the same normal deviates.

    python benchmarks/monitor_study.py rules
    python benchmarks/monitor_study.py alarms --runs 400
    python benchmarks/monitor_study.py delays --runs 200
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

import common
from evenrank.inference import Lists
from evenrank.monitoring.estimates import POOLED, RATIO, WITHIN, reference_ratio
from evenrank.monitoring.looks import SPANS, corrected, looks_of
from evenrank.monitoring.rates import MEAN
from evenrank.monitoring.series import (
    BINS,
    EXCESS,
    LISTS,
    N_A,
    N_B,
    NUMBER,
    TOTAL,
    VARIANCE,
    WEIGHT,
    X_A,
    X_B,
    kinds_of,
)

Array = NDArray[Any]
REFERENCE, LOOKS, LEVEL, START = 4, 52, 0.05, 13
WEEKS = REFERENCE + LOOKS
ALL = "all"


# ---------------------------------------------------------------------- lists


@dataclass
class Week:
    """Simulated lists of equal length, padded: groups (m, n), -1 where there is no item; scores; bins."""

    week: Array
    group: Array
    score: Array
    bins: Array
    items: Array | None = None
    relevant: Array | None = None


def leaning(rng: Any, lists: int, n: int, share: float, lean: Any = 0.0, **more: Any) -> Week:
    """Lists of n items whose second group has ``lean`` added to Gumbel scores, from a number, (weeks,) or (m,)."""
    week = np.repeat(np.arange(WEEKS), lists)
    group = (rng.random((len(week), n)) < share).astype(np.int64)
    lean = np.asarray(lean, float)
    by_list = np.broadcast_to(lean[week] if lean.shape == (WEEKS,) else lean, len(week))
    score = rng.gumbel(size=group.shape) + group * by_list[:, None]
    return Week(week, group, score, rng.integers(0, BINS, len(week)), **more)


def selected(part: Week, k: int) -> Array:
    score = np.where(part.group >= 0, part.score, -np.inf)
    top = np.argpartition(-score, k - 1, axis=1)[:, :k]
    x = np.zeros(score.shape)
    np.put_along_axis(x, top, 1.0, axis=1)
    return x


def exposure(part: Week, k: int) -> Array:
    places = np.argsort(np.argsort(-part.score, axis=1), axis=1)
    return np.where(places < k, 1 / np.log2(places + 2.0), 0.0)


def sums(part: Week, x: Array, a: int, b: int, at_stake: Array | None = None) -> Array:
    """The sums of a pair by week and bin of lists, (weeks, bins, 7)."""
    there = np.ones(part.group.shape, bool) if at_stake is None else at_stake
    is_a, is_b = (part.group == a) & there, (part.group == b) & there
    lists = Lists(
        is_a.sum(1).astype(float),
        is_b.sum(1).astype(float),
        (x * is_a).sum(1),
        (x * is_b).sum(1),
        (x * x * (is_a | is_b)).sum(1),
        (np.arange(len(x)),),
        whole=True,
    )
    kinds = kinds_of((part.group >= 0).sum(1), round(float(top(x))), lists.a, lists.b)
    columns = {N_A: lists.a, X_A: lists.x_a, N_B: lists.b, X_B: lists.x_b}
    for j, kind in enumerate(np.unique(kinds)):
        own = kinds == kind
        columns |= {EXCESS + 3 * j: lists.excess * own, VARIANCE + 3 * j: lists.variance * own}
        columns[WEIGHT + 3 * j] = lists.weight * own
    return _summed(columns, part.week * BINS + part.bins)


def top(x: Array) -> float:
    """The cut-off that selections were made with."""
    return float((x > 0).sum(1).max())


def item_sums(part: Week, x: Array, a: int, b: int) -> Array:
    """The same by bin of items."""
    is_a, is_b = part.group == a, part.group == b
    n_a, n_b = (side.sum(1, keepdims=True) for side in (is_a, is_b))
    rows = np.maximum(n_a + n_b, 1)
    mean = (x * (is_a | is_b)).sum(1, keepdims=True) / rows
    off = (is_a - n_a / rows) * (is_a | is_b)
    squares = ((x - mean) ** 2 * (is_a | is_b)).sum(1, keepdims=True)
    variance = off**2 * squares / np.maximum(rows - 1, 1)
    assert part.items is not None
    place = (part.week[:, None] * BINS + part.items % BINS).ravel()
    columns = {N_A: is_a, X_A: is_a * x, N_B: is_b, X_B: is_b * x}
    kinds = kinds_of((part.group >= 0).sum(1), round(top(x)), n_a[:, 0], n_b[:, 0])
    for j, kind in enumerate(np.unique(kinds)):
        own = (kinds == kind)[:, None]
        columns |= {EXCESS + 3 * j: off * (x - mean) * own, VARIANCE + 3 * j: variance * own}
        columns[WEIGHT + 3 * j] = off**2 * own
    return _summed({column: values.ravel().astype(float) for column, values in columns.items()}, place)


def mean_sums(part: Week, values: Array) -> Array:
    ones = np.ones(len(values))
    return _summed({TOTAL: values, NUMBER: ones, LISTS: ones}, part.week * BINS + part.bins)[..., : LISTS + 1]


def _summed(columns: dict[int, Array], place: Array) -> Array:
    out = np.zeros((WEEKS * BINS, max(7, max(columns) + 1)))
    for column, values in columns.items():
        out[:, column] = np.bincount(place, values, minlength=WEEKS * BINS)
    return out.reshape(WEEKS, BINS, -1)


def looked(kind: str, *clusterings: Array) -> Array:
    """P-values of all looks, (52,)."""
    ratio = reference_ratio(clusterings[0][:REFERENCE]) if kind == RATIO else 1.0
    if ratio != ratio:
        return np.full(LOOKS, np.nan)
    if ratio > 1:
        clusterings = tuple(each[..., [N_B, X_B, N_A, X_A, EXCESS, VARIANCE, WEIGHT]] for each in clusterings)
        ratio = 1 / ratio
    return looks_of(
        kind, [each[:REFERENCE] for each in clusterings], [each[REFERENCE:] for each in clusterings], ratio
    ).p


def first_alarm(p: Array) -> float:
    """The first look that alarms, from 0; infinite if none does."""
    shown = np.flatnonzero((corrected(p, LOOKS) <= LEVEL).any(axis=0))
    return float(shown[0]) if len(shown) else np.inf


# ---------------------------------------------------------------------- designs where nothing changes


def two_groups(rng: Any) -> dict[str, Array]:
    part = leaning(rng, 60, 20, 0.5, 0.3)
    pair = sums(part, selected(part, 5), 0, 1)
    return {kind: looked(kind, pair)[None] for kind in (WITHIN, POOLED, RATIO)}


def rare_group(rng: Any) -> dict[str, Array]:
    part = leaning(rng, 100, 20, 0.02)
    pair = sums(part, selected(part, 5), 0, 1)
    return {kind: looked(kind, pair)[None] for kind in (WITHIN, POOLED, RATIO)}


def rare_at_one(rng: Any) -> dict[str, Array]:
    part = leaning(rng, 200, 20, 0.02)
    pair = sums(part, selected(part, 1), 0, 1)
    return {kind: looked(kind, pair)[None] for kind in (WITHIN, POOLED, RATIO)}


def long_lists(rng: Any) -> dict[str, Array]:
    part = leaning(rng, 40, 200, 0.1, 0.3)
    pair = sums(part, selected(part, 10), 0, 1)
    return {kind: looked(kind, pair)[None] for kind in (WITHIN, POOLED, RATIO)}


def tiny_windows(rng: Any) -> dict[str, Array]:
    part = leaning(rng, 12, 10, 0.4)
    pair = sums(part, selected(part, 3), 0, 1)
    return {kind: looked(kind, pair)[None] for kind in (WITHIN, POOLED, RATIO)}


def leaning_lists(rng: Any) -> dict[str, Array]:
    """Each list leans by itself: selections of a list depend on each other."""
    part = leaning(rng, 60, 20, 0.5, rng.normal(0, 1, WEEKS * 60))
    pair = sums(part, selected(part, 5), 0, 1)
    return {kind: looked(kind, pair)[None] for kind in (WITHIN, POOLED, RATIO)}


def users(rng: Any) -> dict[str, Array]:
    """60 lists a week by 150 users who lean by themselves and stay; clusters are users."""
    user = rng.integers(0, 150, WEEKS * 60)
    part = leaning(rng, 60, 20, 0.5, rng.normal(0, 0.7, 150)[user])
    part.bins = user
    pair = sums(part, selected(part, 5), 0, 1)
    return {kind: looked(kind, pair)[None] for kind in (WITHIN, POOLED, RATIO)}


def passing_users(rng: Any) -> dict[str, Array]:
    """Users come and go: each stays for ten weeks or so."""
    week = np.repeat(np.arange(WEEKS), 60)
    user = (week * 15 + rng.integers(0, 150, len(week))) % 2000
    part = leaning(rng, 60, 20, 0.5, rng.normal(0, 0.7, 2000)[user])
    part.bins = user % BINS
    pair = sums(part, selected(part, 5), 0, 1)
    return {kind: looked(kind, pair)[None] for kind in (WITHIN, POOLED, RATIO)}


def _catalogue(rng: Any, items: int, leaving: float) -> dict[str, Array]:
    """Items with scores of their own, of which some are replaced every week; 60 lists of 20."""
    name, group = np.arange(items), rng.random(items) < 0.5
    own = rng.normal(0, 1, items)
    names, groups, scores = [], [], []
    for _ in range(WEEKS):
        which = np.argsort(rng.random((60, items)), axis=1)[:, :20]
        names.append(name[which])
        groups.append(group[which])
        scores.append(own[which] + rng.normal(0, 1, which.shape))
        gone = np.flatnonzero(rng.random(items) < leaving)
        name, own, group = name.copy(), own.copy(), group.copy()
        name[gone] += items
        own[gone] = rng.normal(0, 1, len(gone))
    week = np.repeat(np.arange(WEEKS), 60)
    ids = np.concatenate(names).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)
    part = Week(week, np.concatenate(groups).astype(np.int64), np.concatenate(scores), rng.integers(0, BINS, len(week)))
    part.items = ids.astype(np.int64)
    x = selected(part, 5)
    lists, by_item = sums(part, x, 0, 1), item_sums(part, x, 0, 1)
    return {kind: looked(kind, lists, by_item)[None] for kind in (WITHIN, POOLED, RATIO)}


def same_items(rng: Any) -> dict[str, Array]:
    return _catalogue(rng, 60, 0.0)


def passing_items(rng: Any) -> dict[str, Array]:
    return _catalogue(rng, 300, 0.05)


def six_groups(rng: Any) -> dict[str, Array]:
    """15 pairs at once, of shares 40, 25, 15, 10, 7 and 3 %."""
    part = leaning(rng, 60, 20, 0.5)
    part.group = rng.choice(6, part.group.shape, p=[0.4, 0.25, 0.15, 0.1, 0.07, 0.03])
    x = selected(part, 5)
    pairs = [sums(part, x, a, b) for a in range(6) for b in range(a + 1, 6)]
    return {WITHIN: np.array([looked(WITHIN, pair) for pair in pairs])}


def six_measures(rng: Any) -> dict[str, Array]:
    """The default charts: four gaps within queries, the ratio, and a quality."""
    part = leaning(rng, 60, 20, 0.4, 0.3)
    relevant = rng.random(part.group.shape) < 0.3
    part.score = part.score + relevant
    x = selected(part, 5)
    pair = sums(part, x, 0, 1)
    rows = [
        looked(WITHIN, pair),
        looked(WITHIN, sums(part, x, 0, 1, relevant)),
        looked(WITHIN, sums(part, x, 0, 1, ~relevant)),
        looked(WITHIN, sums(part, exposure(part, 5), 0, 1)),
        looked(RATIO, pair),
        looked(MEAN, mean_sums(part, (x * relevant).sum(1) / 5)),
    ]
    return {ALL: np.array(rows)}


def seasons(rng: Any) -> dict[str, Array]:
    """The ranker leans the same all year; lists become longer, and the second group's share larger, in summer."""
    week = np.repeat(np.arange(WEEKS), 60)
    summer = 0.5 - 0.5 * np.cos(2 * np.pi * week / 52)
    length = np.where(rng.random(len(week)) < 0.1 + 0.8 * summer, 60, 15)
    share = np.where(length == 60, 0.55, 0.25)
    group = (rng.random((len(week), 60)) < share[:, None]).astype(np.int64)
    group[np.arange(60)[None] >= length[:, None]] = -1
    part = Week(week, group, rng.gumbel(size=group.shape) + 0.8 * (group == 1), rng.integers(0, BINS, len(week)))
    pair = sums(part, selected(part, 5), 0, 1)
    return {kind: looked(kind, pair)[None] for kind in (WITHIN, POOLED, RATIO)}


DESIGNS: dict[str, Callable[[Any], dict[str, Array]]] = {
    "two groups": two_groups,
    "2 % group": rare_group,
    "2 % group, k = 1": rare_at_one,
    "lists of 200, 10 % group": long_lists,
    "12 lists of 10 per week": tiny_windows,
    "lists that lean by themselves": leaning_lists,
    "150 users who stay": users,
    "users who come and go": passing_users,
    "60 items in all lists": same_items,
    "300 items, 5 % new per week": passing_items,
    "six groups, 15 pairs": six_groups,
    "six measures": six_measures,
    "seasonal mix, ranker that leans": seasons,
}


def alarms(runs: int, seed: int, only: list[str]) -> None:
    """The share of years, in percent, with a false alarm: of one chart of each kind, or of all charts of a design."""
    for name, design in DESIGNS.items():
        if only and not any(part in name for part in only):
            continue
        rng, counts, began = np.random.default_rng([seed, len(name)]), {}, time.time()
        for _ in range(runs):
            for kind, p in design(rng).items():
                counts[kind] = counts.get(kind, 0) + (first_alarm(p) < np.inf)
        cells = [f"{100 * counts[key] / runs:.1f}" if key in counts else "" for key in (WITHIN, POOLED, RATIO, ALL)]
        common.table(["design", "within queries", "pooled gap", "ratio", "all charts"], [[name, *cells]])
        common.note(f"{runs} runs, {time.time() - began:.0f} s")


def delays(runs: int, seed: int) -> None:
    """How soon a gap that begins at look 14 is noticed, by one chart of gaps within queries."""
    settings = {
        "60 lists of 20, 50 %": (60, 20, 0.5, 5),
        "300 lists of 20, 50 %": (300, 20, 0.5, 5),
        "60 lists of 20, 10 % group": (60, 20, 0.1, 5),
        "100 lists of 20, 2 % group": (100, 20, 0.02, 5),
    }
    for name, (lists, n, share, k) in settings.items():
        for size in (0.05, 0.1, 0.2):
            rng, waits, gaps = np.random.default_rng([seed, lists]), [], []
            rate = k / n
            lean = size / (rate * (1 - rate))
            by_week = np.where(np.arange(WEEKS) < REFERENCE + START, 0.0, lean)
            for _ in range(runs):
                part = leaning(rng, lists, n, share, by_week)
                pair = sums(part, selected(part, k), 1, 0)
                after = pair[REFERENCE + START :].sum((0, 1))
                gaps.append(after[EXCESS::3].sum() / after[WEIGHT::3].sum())
                waits.append(first_alarm(looked(WITHIN, pair)[None]) - START + 1)
            wait = np.array(waits)
            within = [f"{100 * np.mean((wait > 0) & (wait <= most)):.0f}%" for most in (4, 13, 39)]
            median = np.median(np.where(wait > 0, wait, np.inf))
            head = ["lists per week", "gap", "noticed in 4 looks", "in 13", "in 39", "median delay"]
            common.table(head, [[name, f"{np.mean(gaps):+.3f}", *within, f"{median:g}"]])


# ---------------------------------------------------------------------- rules compared on normal deviates


def spending(z: Array, level: float) -> Array:
    """Ours: spans of 1, 2, 4 … windows; each look spends level/52, each span an equal share of it."""
    crossed = np.zeros(z.shape, bool)
    total = np.concatenate([np.zeros((len(z), 1)), np.cumsum(z, axis=1)], axis=1)
    spans = np.array([sum(span <= t + 1 for span in SPANS) for t in range(LOOKS)])
    limit = -ndtri(level / LOOKS / spans / 2)
    for span in SPANS:
        sums_of = (total[:, span:] - total[:, :-span]) / np.sqrt(span)
        crossed[:, span - 1 :] |= np.abs(sums_of) > limit[span - 1 :]
    return crossed


def single(z: Array, level: float) -> Array:
    """Each window by itself at level/52."""
    return np.abs(z) > -ndtri(level / LOOKS / 2)


def sequence(z: Array, level: float, about: float = 13.0) -> Array:
    """The confidence sequence of Robbins (normal mixture) for the mean since the first look."""
    t = np.arange(1, LOOKS + 1)
    rho = about / (np.log(1 / level**2) + np.log(np.log(1 / level**2)))  # narrowest at about so many looks
    return np.abs(np.cumsum(z, axis=1)) > np.sqrt((t + rho) * np.log((t + rho) / (rho * level**2)))


def restarted(z: Array, level: float, about: float = 4.0) -> Array:
    """A mixture of such sequences, one from every look on, each with 1/52 of the level."""
    log = np.full((len(z), LOOKS, LOOKS), -np.inf)
    total = np.concatenate([np.zeros((len(z), 1)), np.cumsum(z, axis=1)], axis=1)
    rho = about / 10
    for begin in range(LOOKS):
        n = np.arange(1, LOOKS - begin + 1)
        s = total[:, begin + 1 :] - total[:, [begin]]
        log[:, begin, begin:] = 0.5 * np.log(rho / (n + rho)) + s**2 / (2 * (n + rho))
    value = np.exp(np.minimum(log, 700)).sum(axis=1) / LOOKS + (LOOKS - np.arange(1, LOOKS + 1)) / LOOKS
    return value >= 1 / level


RULES = {
    "alpha spending over spans": spending,
    "alpha spending, single windows": single,
    "confidence sequence": sequence,
    "confidence sequences, restarted": restarted,
}


def rules(runs: int, seed: int, charts: int = 6) -> None:
    """Median delays; the level is shared by six charts, of which one changes; a window of the change has mean μ."""
    sizes, starts = (0.5, 1.0, 2.0, 4.0), (0, 13, 26)
    head = [f"μ = {size:g}, look {start + 1}" for size in sizes for start in starts]
    level = LEVEL / charts
    lines = []
    for name, rule in RULES.items():
        rng = np.random.default_rng(seed)
        false = np.mean([rule(rng.normal(size=(charts, LOOKS)), level).any() for _ in range(4 * runs)])
        cells = []
        for size in sizes:
            for start in starts:
                z = rng.normal(size=(runs, LOOKS)) + size * (np.arange(LOOKS) >= start)
                after = rule(z, level)[:, start:]
                wait = np.where(after.any(axis=1), after.argmax(axis=1) + 1.0, np.inf)
                cells.append(f"{np.median(wait):g}")
        lines.append([name, f"{100 * false:.1f}%", *cells])
    common.table(["rule", "false alarms, six charts", *head], lines)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("what", nargs="+", choices=("alarms", "delays", "rules"))
    parser.add_argument("--runs", type=int, default=400, help="simulated years per design (default: 400)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="designs whose name holds one of these")
    args = parser.parse_args()
    runs = 40 if args.quick else args.runs
    common.start(f"Monitors with a known truth, {runs} years of {LOOKS} weekly looks per design", ["scipy"], threads=1)
    for what in args.what:
        if what == "alarms":
            alarms(runs, args.seed, args.only)
        else:
            {"delays": delays, "rules": rules}[what](runs, args.seed)


if __name__ == "__main__":
    main()
