"""The steps of an audit, over summaries of the same lists at successive cut-offs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenrank.audits.cells import SummaryStatistics, pairs_of
from evenrank.audits.list_shares import SHARES, share_intervals
from evenrank.audits.pairs import MOST_PAIRS, Tester, Tests
from evenrank.audits.parts import Finding, Parts, facts_of, parts_of
from evenrank.audits.summary import QUALITY, Summary
from evenrank.audits.tested import TestedGaps
from evenrank.audits.verdicts import Category, categories_of
from evenrank.errors import DataError
from evenrank.measures import measure_names
from evenrank.notions import NOTIONS, warn_empty
from evenrank.wording import quoted

GAPS = (*NOTIONS, "exposure_gap")
UNLABELLED = ("demographic_parity", "exposure_gap")
RATIO = "four_fifths"
ORDER = (*QUALITY, *GAPS, RATIO)
COPIES = 0.1  # of the lists that repeat another one, from which that is said


def can_tell(name: str, summary: Summary) -> bool:
    """Whether a measure can be taken from what is summed up."""
    value = "quality" if name in QUALITY else "exposure" if name == "exposure_gap" else "top"
    return value in summary.values and (summary.labelled or name in (*UNLABELLED, RATIO))


@dataclass(frozen=True)
class Run:
    """The options of an audit, as `evenrank.audit` explains them."""

    confidence: float
    method: str
    items: bool
    min_share: float
    min_count: float
    replicates: int
    seed: int

    def over(self, summaries: Iterable[Summary], ks: tuple[int, ...]) -> dict[str, Any]:
        """Audit summaries of the same lists, of which each has some of the cut-offs, ascending; gives the parts."""
        parts, tests = Parts(), Tests()
        categories: list[Category] = []
        facts: dict[str, Any] = {}
        notes: list[str] = []
        by_list: list[Finding] = []
        labelled, main_k = True, ks[0]
        for given in summaries:
            aside = self._set_aside(given)
            summary = given.without_groups(aside) if len(aside) else given
            if summary.n_groups < 2:
                raise DataError(
                    f"an audit needs at least two groups; {len(aside)} of {given.n_groups} were set aside by min_share "
                    f"{self.min_share:g} and min_count {self.min_count:g}. Lower them."
                )
            statistics = SummaryStatistics(summary)
            tester = Tester(summary, statistics, self.confidence, items=self.items)
            labelled = summary.labelled
            gaps = GAPS if labelled else UNLABELLED
            batch = facts_of(summary)
            if not facts:
                facts = batch | {
                    "clusters": list(summary.cluster_names),
                    "recurring_items": tester.recurring is not None,
                    "set_aside_share": float(given.group_counts[aside].sum()) / batch["rows"],
                }
                facts["unknown_group_share"] = max(0.0, facts["unknown_group_share"] - facts["set_aside_share"])
                main_k = min(ks, key=lambda k: (abs(2 * k - facts["median_list"]), k))
                self._warn_empty(statistics, [gap for gap in gaps if gap in NOTIONS])
                notes = self._notes(given, aside, summary, tester)
            if "top" in given.values:
                facts["whole_lists"] |= batch["whole_lists"]
                own = statistics if summary is given else SummaryStatistics(given)
                categories += categories_of(given, own, aside.tolist())
                del own  # it holds the sums, as those below do
            pairs = len(list(pairs_of(summary, MOST_PAIRS)))
            tester.run(tests, wider=1 - (1 - self.confidence) / pairs, main_k=main_k)
            parts += parts_of(
                statistics,
                measure_names(summary.ks, [name for name in ORDER if can_tell(name, summary)]),
                TestedGaps(tests, self.confidence),
                resampled=self.method == "bootstrap",
                main_k=main_k,
                confidence=self.confidence,
                replicates=self.replicates,
                seed=self.seed,
            )
            shares = share_intervals(summary, () if tester.recurring is not None else tester.clusters, self.confidence)
            by_list += [Finding(name, k, "mean", interval) for (name, k), interval in shares.items()]
            del given, summary, statistics, tester  # before the next cut-offs take their room
        # Their order does not depend on what was summed up together.
        parts.findings.sort(key=lambda each: (each.across != "mean", ORDER.index(each.measure)))
        by_list.sort(key=lambda each: (each.k, SHARES.index(each.measure)))
        return {
            "facts": facts,
            "ks": ks,
            "main_k": main_k,
            "confidence": self.confidence,
            "method": self.method,
            "labelled": labelled,
            "findings": tuple(parts.findings),
            "shares": tuple(by_list),
            "rates": tuple(parts.rates),
            "certificates": tuple(parts.certificates),
            "influences": tuple(parts.influences),
            "pairs": tuple(tests.corrected()),
            "plans": tuple(tests.plans),
            "categories": tuple(categories),
            "notes": tuple(notes),
        }

    def _set_aside(self, summary: Summary) -> Any:
        counts = summary.group_counts
        return np.flatnonzero((counts < self.min_count) | (counts < self.min_share * counts.sum()))

    def _warn_empty(self, statistics: SummaryStatistics, notions: list[str]) -> None:
        summary = statistics.summary
        for name in notions:
            totals = np.array([statistics.stratum(stratum).weights.total for stratum in NOTIONS[name].strata])
            warn_empty(NOTIONS[name], totals, summary.group_names, training=False)

    def _notes(self, given: Summary, aside: Any, summary: Summary, tester: Tester) -> list[str]:
        """Say what was done to the data."""
        notes = []
        if len(aside):
            names = ", ".join(f"{quoted(str(given.group_names[j]))} ({given.group_counts[j]:g} items)" for j in aside)
            limits = [f"below {self.min_share:.3g} of the items"] if self.min_share else []
            limits += [f"fewer than {self.min_count:g} items"] if self.min_count else []
            notes.append(f"Set aside, as asked ({' or '.join(limits)}): {names}. They are ranked and in no gap.")
        again, of = summary.copies
        if not summary.clusters and tester.recurring is None and again >= COPIES * of > 0:
            notes.append(
                f"Copies: {again:,} of {of:,} lists have the same scores, labels and groups as another one, row by "
                "row. Copies of a list are no new evidence, but the tests count them as if they were: name what copies "
                "share as clusters (`--cluster`), or leave them out."
            )
        for name, codes in zip(summary.cluster_names, tester.clusters, strict=False):
            notes.append(
                f"Clusters: {summary.n_queries:,} queries of {len(np.unique(codes)):,} {quoted(name)}; queries of the "
                "same one may depend on each other, and tests and intervals of pairs allow for that."
            )
        if tester.recurring is not None:
            notes.append(
                f"Items recur: {tester.recurring.n_ids:,} items stand in {tester.recurring.lists_per_item:.3g} "
                "lists each on average. Tests and intervals of pairs allow for what an item carries from list to list."
            )
        elif tester.ids is not None:
            notes.append(
                f"Item ids recur, but {tester.ids.strayed:.0%} of the rows have another group than their id mostly "
                "has: the ids are not taken to name items, and tests do not allow for items that recur."
            )
        if len(list(pairs_of(summary, MOST_PAIRS))) < summary.n_groups * (summary.n_groups - 1) // 2:
            notes.append(
                f"{summary.n_groups} groups make too many pairs: each is compared with the largest group only."
            )
        return notes
