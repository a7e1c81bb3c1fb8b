"""Does the verdict that a user reads hold where the truth is known? That of `er.audit`, over all gaps at once.

Per design (`verdict_designs.py`) logs are drawn with a fair ranker and with one that leans. Columns, in %: how often
``verdict["within_query"]`` is "uneven" for the fair ranker (nominal: at most 5; "2 se" where it is above by more than
two standard errors), how often nothing can be told, how often the lean is called uneven; and the same for the classical
tests over the same gaps with the same correction: the exact conditional test (doubled; whole selections only), Mantel
and Haenszel's with clusters' own variance, and, where items recur, Welch's t-test of items' mean deviations from their
lists. A classical test is a yardstick only where it keeps its level.

The first logs of every design go through `er.audit`. The others take the same steps without what the verdict does not
need (pooled gaps, intervals, plans, bounds), and where both are run they must agree.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np

import common
import evenrank as er
from audit_study import classical
from evenrank.audits import Summary
from evenrank.audits.cells import SummaryStatistics, pairs_of
from evenrank.audits.pairs import MOST_PAIRS, TESTED, cluster_codes, recurring_ids
from evenrank.audits.summary import VALUES
from evenrank.inference import ItemSums, Lists, Residuals, adjusted, within
from evenrank.inference.exact import Law
from evenrank.inference.student import deviate
from verdict_designs import DESIGNS, Log, VerdictDesign

TESTS = ("exact", "robust", "items")
LEVEL = 0.05
AUDITED = 20  # logs of each design and ranker that go through `er.audit`


def welch(items: ItemSums) -> float:
    """The p-value of Welch's t-test of the items' mean deviations from their lists' means."""
    from scipy.stats import ttest_ind

    assert items.rows is not None
    each = items.value_deviation / items.rows
    first, second = each[items.is_a], each[~items.is_a]
    if min(len(first), len(second)) < 2 or not np.ptp(each):
        return 1.0
    return float(ttest_ind(first, second, equal_var=False).pvalue)


def hypotheses(summary: Summary) -> Iterator[tuple[Lists, ItemSums | None]]:
    """All gaps of an audit: what each pair of groups got in each stratum, by each value, at each cut-off."""
    statistics = SummaryStatistics(summary)
    codes, recurring = cluster_codes(summary), recurring_ids(summary)
    if recurring is not None and not recurring.of_one_group:
        recurring = None
    for _, stratum, value in (row for row in TESTED if summary.labelled or row[1] == "all rows"):
        number = VALUES.index(value)
        for a, b in pairs_of(summary, MOST_PAIRS):
            place = statistics.stratum(stratum).pair(a, b)
            for cut in range(len(summary.ks)):
                lists = place.lists(number, cut, codes)
                items = None
                if recurring is not None:
                    items = place.items(lists, recurring.values[number, cut], recurring)
                yield lists, items


def verdict_of(gaps: list[tuple[Lists, ItemSums | None]]) -> tuple[str, float]:
    """The verdict within queries, as the audit reaches it, and the smallest corrected p-value."""
    with patch.object(Law, "limits", lambda law, level: (-math.inf, math.inf)):  # the verdict needs no intervals
        answers = [within(lists, items=items) for lists, items in gaps]
    decided = [answer for answer in answers if answer.decidable]
    if not decided:
        return "cannot tell", 1.0
    corrected = adjusted([answer.z for answer in decided], [answer.residuals for answer in decided])
    least = float(corrected.min())
    if least <= LEVEL:
        return "uneven", least
    return "hints" if any(answer.p <= LEVEL for answer in decided) else "none shown", least


def classical_verdicts(gaps: list[tuple[Lists, ItemSums | None]]) -> list[float]:
    """Whether each of the classical tests calls some gap uneven, corrected as the audit corrects."""
    z: list[list[float]] = [[], [], []]
    residuals: list[list[Residuals]] = [[], [], []]
    for lists, items in gaps:
        if not (lists.variance > 0).any():
            continue
        p = [*classical(lists), 1.0 if items is None else welch(items)]
        clustering = lists.clusterings[0]
        moved = Residuals.of(clustering, clustering.sums(lists.excess))
        for test, (p_value, used) in enumerate(zip(p, (lists.whole, True, True), strict=True)):
            if used:
                z[test].append(deviate(p_value, 1.0) if p_value < 1 else 0.0)
                residuals[test].append(moved)
    return [float((adjusted(one, other) <= LEVEL).any()) for one, other in zip(z, residuals, strict=True)]


def judged(design: VerdictDesign, log: Log, *, whole: bool, compare: bool) -> list[float]:
    """Whether the verdict is "uneven", "cannot tell", and what the classical tests say."""
    data = log.data()
    options: dict[str, Any] = {"cluster": log.cluster, "labelled": design.labelled}
    gaps = list(hypotheses(Summary.of(log.score, data, design.ks, **options)))
    verdict, least = verdict_of(gaps)
    if whole:
        said = er.audit(log.score, data, design.ks, **options).verdict["within_query"]
        # corrected p-values come from draws, which go by the order of the gaps
        assert said == verdict or abs(least - LEVEL) < 0.002, (said, verdict, least)
    return [verdict == "uneven", verdict == "cannot tell", *(classical_verdicts(gaps) if compare else [math.nan] * 3)]


def simulate(design: VerdictDesign, lean: float, sets: int, compared: int, seed: int) -> np.ndarray:
    """Everything judged, (sets, 5); the classical tests of the first ``compared`` sets."""
    lines = []
    for number in range(sets):
        log = design.draw(np.random.default_rng([seed, number, int(100 * lean)]), lean)
        lines.append(judged(design, log, whole=number < AUDITED, compare=number < compared))
    return np.array(lines, dtype=float)


def line(name: str, fair: np.ndarray, leaning: np.ndarray) -> list[str]:
    shares = fair[:, 0].mean(), fair[:, 1].mean(), leaning[:, 0].mean()
    error = math.sqrt(LEVEL * (1 - LEVEL) / len(fair))
    mark = "2 se" if shares[0] > LEVEL + 2 * error else ""
    tests = [f"{100 * np.nanmean(found[:, 2 + j]):.1f}" for j in range(3) for found in (fair, leaning)]
    return [name, f"{len(fair):,}", f"{100 * shares[0]:.1f}", mark, *(f"{100 * x:.1f}" for x in shares[1:]), *tests]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument(
        "settings", nargs="*", metavar="DESIGN", help=f"of {', '.join(DESIGNS)} (default: all)".replace("%", "%%")
    )
    parser.add_argument("--sets", type=int, default=1000, help="logs of a fair ranker per design (default: 1000)")
    parser.add_argument("--leaning", type=int, default=400, help="logs of a leaning ranker per design (default: 400)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    unknown = set(args.settings) - set(DESIGNS)
    if unknown:
        parser.error(f"no design {sorted(unknown)}; choose from {', '.join(DESIGNS)}")
    sets, leaning = (50, 20) if args.quick else (args.sets, args.leaning)
    common.start(f"Verdicts with a known truth, {sets:,} fair and {leaning:,} leaning logs", ["scipy"], threads=1)
    warnings.simplefilter("ignore", er.DataWarning)
    heads = [f"{name}, {kind}" for name in TESTS for kind in ("fair", "lean")]
    for name in args.settings or DESIGNS:
        design, begun = DESIGNS[name], time.process_time()
        fair = simulate(design, 0.0, sets, leaning, args.seed)
        lean = simulate(design, design.lean, leaning, leaning, args.seed)
        common.table(["design", "sets", "fair", "", "cannot tell", "power", *heads], [line(name, fair, lean)])
        common.note(f"{time.process_time() - begun:.0f} s of the processor")


if __name__ == "__main__":
    main()
