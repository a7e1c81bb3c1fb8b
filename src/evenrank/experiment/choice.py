"""`Choice`: the strength that `select` chose, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenrank.comparisons import Comparison
from evenrank.experiment.asked import ONE
from evenrank.experiment.select_rules import RULES
from evenrank.wording import FOUR_FIFTHS

RATIO = "four_fifths"


@dataclass(frozen=True)
class Outcome:
    """What a strength gives, averaged over repeats.

    Attributes
    ----------
    method : str
        The method.
    strength : float
        Its strength.
    quality, violation, ratio : float
        Mean quality, gap and four-fifths ratio.
    """

    method: str
    strength: float
    quality: float
    violation: float
    ratio: float


@dataclass(frozen=True)
class HeldOut:
    """Means over folds, each measured with what the *other* folds would have chosen.

    No fold's outcome takes part in the choice that is measured on it. Its rows did train the models that the other
    folds compare, as in any cross-validation without an inner one; ``select(train=…, test=…)`` avoids that too.

    Attributes
    ----------
    quality, quality_error : float
        Mean quality and its standard error.
    violation, violation_error : float
        Mean gap and its standard error.
    ratio : float
        Mean four-fifths ratio.
    before : Outcome
        The same folds at the baseline.
    picks : dict of int to tuple
        For each fold the method and strength that the other folds would have chosen.
    """

    quality: float
    quality_error: float
    violation: float
    violation_error: float
    ratio: float
    before: Outcome
    picks: dict[int, tuple[str, float]]


@dataclass(frozen=True)
class Choice:
    """The strength that `select` chose, and why.

    Attributes
    ----------
    rule : str
        The rule's name.
    tolerance : float
        The tolerance of rule "within".
    notion, quality_name, grouping : str
        What was compared.
    k : int
        The cut-off.
    qualified : bool
        Whether a strength meets the rule; if not, ``method`` and ``strength`` are the baseline's.
    chosen, baseline : Outcome
        Means over all repeats, which took part in the choice and so flatter it.
    nearest : Outcome, optional
        The strength with the highest four-fifths ratio, if that rule is not met.
    held_out : HeldOut, optional
        The honest estimate from folds; None where repeats share queries or there is only one.
    test : tuple of Comparison, optional
        On the test data, the baseline (a) against the choice (b), with intervals.
    gap_name : str
        The measure that was taken for the gap, with what was done to it, if it is not the notion's violation.
    """

    rule: str
    tolerance: float
    notion: str
    k: int
    quality_name: str
    grouping: str
    qualified: bool
    chosen: Outcome
    baseline: Outcome
    nearest: Outcome | None = None
    held_out: HeldOut | None = None
    test: tuple[Comparison, ...] | None = None
    gap_name: str = ""

    @property
    def method(self) -> str:
        """The chosen method."""
        return self.chosen.method

    @property
    def strength(self) -> float:
        """The chosen strength."""
        return self.chosen.strength

    @property
    def holds(self) -> bool | None:
        """Whether the choice also works on the held-out folds: a smaller gap, or the four-fifths rule met."""
        if self.held_out is None or not self.qualified:
            return None
        if self.rule == RATIO:
            return self.held_out.ratio >= FOUR_FIFTHS
        return self.held_out.violation < self.held_out.before.violation

    def text(self) -> str:
        """Put the choice into a few sentences."""
        parts = [self.verdict()]
        if self.held_out is not None and self.qualified:
            before, after = self.held_out.before, self.held_out
            parts.append(f"On folds that took no part in the choice: {self._change(before, after)}.")
            if not self.holds:
                lost = "the four-fifths rule is not met" if self.rule == RATIO else "the gap does not fall"
                parts.append(f"There {lost}, so what was seen may be chance.")
        elif self.held_out is None and self.test is None:
            parts.append("The figures are of the queries it was chosen on, which flatter it; measure it on others.")
        if self.test is not None:
            changes = (
                f"{change.measure} {_three(change.a)} → {_three(change.b)} (change {change.difference:+.3f}, "
                f"{change.confidence:.0%} interval {change.low:+.3f} to {change.high:+.3f})"
                for change in self.test
            )
            parts.append(f"On the test data: {', '.join(changes)}.")
        return " ".join(parts)

    def verdict(self) -> str:
        """Say in one sentence what was chosen, or that nothing qualifies."""
        rule = RULES[self.rule]
        words = {"quality": self.quality_name.upper(), "share": f"{100 * self.tolerance:.3g}%"}
        of = f" ({self.grouping})" if self.grouping not in ("", ONE) else ""
        spoken = self.notion.replace("_", " ")
        name = f"{spoken[:1].upper()}{spoken[1:]} at {self.k}{of}"
        model = f"{self.method}, strength {self.strength:.3g}"
        if not self.qualified:
            near = self.nearest
            also = (
                "" if near is None else f" (nearest: {near.method}, strength {near.strength:.3g}: {_three(near.ratio)})"
            )
            why = rule.lacking.format(**words)
            if np.isnan(self.baseline.quality):
                why = f"{words['quality']} is not defined; no query has a relevant item"
            elif np.isnan(self.baseline.violation) and near is None:
                why = "the gap is not defined; the queries lack items of a group"
            return f"{name}: {why}{also}. Left at the baseline: {model}."
        if self.strength == 0:
            return f"{name}: {model}, which is the baseline, has {rule.asked.format(**words)}."
        change = self._change(self.baseline, self.chosen)
        against = f"against {self.baseline.method}, strength 0" if self.baseline.method != self.method else ""
        return f"{name}: {model}, has {rule.asked.format(**words)}: {change}{f' ({against})' if against else ''}."

    def _change(self, before: Outcome, after: Outcome | HeldOut) -> str:
        return (
            f"{self.gap_name or 'gap'} {_three(before.violation)} → {_three(after.violation)}, "
            f"{self.quality_name.upper()} {_three(before.quality)} → {_three(after.quality)}, "
            f"four-fifths ratio {_three(before.ratio)} → {_three(after.ratio)}"
        )


def _three(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}"
