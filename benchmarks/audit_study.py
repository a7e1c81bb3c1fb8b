"""Does an audit's verdict hold where the truth is known? Rejections of fair rankers, coverage of intervals, power.

Per design (`audit_designs.py`) many data sets are drawn twice: with a fair ranker, and with one that leans to group b.
Of each the selections at two cut-offs are tested over all rows (dp) and the relevant ones (eop). Columns, in %: how
often the fair ranker is called uneven within lists (nominal 5; "2 se" where it is above 5 by more than two standard
errors); how often the intervals hold the truth, within lists and pooled (difference, ratio), fair and leaning; how
often the lean is seen, by these statistics and by the classical tests (the exact conditional one, doubled; Mantel and
Haenszel's with clusters' own variance); and in how many data sets nothing could be told. The truth of a setting is the
ratio of sums over all its data sets.
"""

from __future__ import annotations

import math
import time

import numpy as np

import common
from audit_designs import DESIGNS, Design, lists_of
from evenrank.inference import ItemSums, Lists, pooled, within
from evenrank.inference.exact import Law, Margins
from evenrank.inference.student import two_sided

COLUMNS = ["design", "hypothesis", "fair", "", "covers", "leaning", "pooled", "ratio", "leaning", "ratio", "power"]
CLASSICAL = ["exact", "robust"]


def classical(lists: Lists) -> tuple[float, float]:
    """The p-values of the exact conditional test and of the cluster-robust test of Mantel and Haenszel."""
    bearing = lists.variance > 0
    clustering = lists.clusterings[0]
    moved = clustering.sums(lists.excess)
    variance = float(moved @ moved)
    clusters = int((clustering.sums(lists.variance) > 0).sum())
    if not bearing.any() or clusters < 2:
        return 1.0, 1.0
    robust = two_sided(float(moved.sum()) / math.sqrt(variance), clusters - 1) if variance else 1.0
    exact = 1.0
    if lists.whole:
        margins = Margins.of(lists.a[bearing], lists.b[bearing], lists.selected[bearing])
        least = np.maximum(0.0, lists.selected - lists.b)[bearing]
        law = Law.of(margins, round(float((lists.x_a[bearing] - least).sum())))
        if law is not None:
            below, above = law.tails(np.zeros(1))
            exact = min(1.0, 2 * float(min(below[0, law.observed], above[0, law.observed])))
    return exact, robust


def measured(lists: Lists, items: ItemSums | None, compare: bool) -> list[float]:
    inner, outer = within(lists, items=items), pooled(lists, items=items)
    weight = lists.weight.sum()
    tests = classical(lists) if compare else (math.nan, math.nan)
    return [
        inner.p,
        inner.decidable,
        inner.low,
        inner.high,
        outer.low,
        outer.high,
        outer.ratio_low,
        outer.ratio_high,
        lists.excess.sum(),
        weight,
        lists.a.sum(),
        lists.b.sum(),
        lists.x_a.sum(),
        lists.x_b.sum(),
        *tests,
    ]


def simulate(design: Design, lean: float, sets: int, seed: int) -> dict[tuple[str, int], np.ndarray]:
    """Everything measured, (sets, columns), per notion and cut-off."""
    found: dict[tuple[str, int], list[list[float]]] = {(n, k): [] for n in ("dp", "eop") for k in design.ks}
    for number in range(sets):
        made = design.draw(np.random.default_rng([seed, number, int(100 * lean)]), lean)
        for (notion, k), lines in found.items():
            lines.append(measured(*lists_of(made, notion, k), compare=lean > 0))
    return {key: np.array(lines) for key, lines in found.items()}


def covered(found: np.ndarray) -> list[float]:
    """How often the intervals hold the truth: within, pooled difference and ratio."""
    total = found.sum(axis=0)
    rates = total[12] / total[10], total[13] / total[11]
    truths = total[8] / total[9], rates[0] - rates[1], rates[0] / rates[1] if rates[1] else math.nan
    pairs = [(2, 3), (4, 5), (6, 7)]
    return [float(np.mean((found[:, i] <= t) & (t <= found[:, j]))) for (i, j), t in zip(pairs, truths, strict=True)]


def line(name: str, key: tuple[str, int], fair: np.ndarray, leaning: np.ndarray) -> list[str]:
    decided = fair[:, 1] > 0
    rejected = float(np.mean((fair[:, 0] <= 0.05) & decided))
    error = math.sqrt(0.05 * 0.95 / len(fair))
    zero = float(np.mean((fair[:, 2] <= 0) & (fair[:, 3] >= 0)))
    _, gap, ratio = covered(fair)
    inner, gap_lean, ratio_lean = covered(leaning)
    power = [float(np.mean((leaning[:, i] <= 0.05) & (leaning[:, 1] > 0))) for i in (0, 14, 15)]
    mark = "2 se" if rejected > 0.05 + 2 * error else ""
    shown = [zero, inner, gap, ratio, gap_lean, ratio_lean, *power, 1 - float(decided.mean())]
    return [name, f"{key[0]}@{key[1]}", f"{100 * rejected:.1f}", mark, *(f"{100 * x:.1f}" for x in shown)]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument(
        "settings", nargs="*", metavar="DESIGN", help=f"of {', '.join(DESIGNS)} (default: all)".replace("%", "%%")
    )
    parser.add_argument("--sets", type=int, default=1000, help="data sets per design and ranker (default: 1000)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    unknown = set(args.settings) - set(DESIGNS)
    if unknown:
        parser.error(f"no design {sorted(unknown)}; choose from {', '.join(DESIGNS)}")
    sets = 200 if args.quick else args.sets
    common.start(f"Audits with a known truth, {sets:,} data sets per design and ranker", ["scipy"], threads=1)
    for name in args.settings or DESIGNS:
        design, begun = DESIGNS[name], time.perf_counter()
        fair = simulate(design, 0.0, sets, args.seed)
        leaning = simulate(design, design.lean, sets, args.seed)
        lines = [line(name, key, fair[key], leaning[key]) for key in fair]
        common.table([*COLUMNS, *CLASSICAL, "none told"], lines)
        common.note(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
