"""A sweep in plain words: how uneven the ranker is and to whom, how far the gap falls at no loss, what more costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenrank.experiment.curves import Curve
from evenrank.measures import MeasureAt
from evenrank.wording import FOUR_FIFTHS, percent, quoted, short_title, spoken

NOTICEABLE = 5e-4  # a difference of rates that shows in the digits written
MEANING = {
    "demographic_parity": "Items of every group should reach the top k equally often.",
    "equal_opportunity": "Relevant items of every group should reach the top k equally often.",
    "equalized_odds": "Relevant items of every group should reach the top k equally often, and so should irrelevant "
    "ones.",
}


def answer(curve: Curve) -> str:
    """Say in one sentence how far a curve's gap falls at no significant quality loss.

    Parameters
    ----------
    curve : Curve
        One method, notion and k of a sweep.

    Returns
    -------
    str
        The sentence; it says so where the gap is not defined, is 0, or cannot be lowered at no loss.
    """
    name = spoken(curve.notion).capitalize()
    k = curve.k
    if np.isnan(curve.violation[0]):
        return f"{name}: the gap at {k} is not defined; every fold lacks items of a group."
    if curve.even:
        return f"{name}: the gap at {k} is 0; there is nothing to mitigate."
    if curve.best == 0 or not curve.max_reduction > 0:
        return f"{name}: the gap at {k} is {curve.violation[0]:.3f}; no strength lowers it without {_a(curve)}loss."
    before, after = curve.violation[0], curve.violation[curve.best]
    return (
        f"{name}: the gap at {k} can fall by {curve.max_reduction:.0%} ({before:.3f} → {after:.3f}) "
        f"with no {_significant(curve)}loss of {short_title(*MeasureAt.of(curve.quality_name))} "
        f"({curve.quality[0]:.3f} → {curve.quality[curve.best]:.3f}), at strength {curve.strengths[curve.best]:.3g}."
    )


def _significant(curve: Curve) -> str:
    """A loss can only be called significant where its error is known."""
    return "" if np.isnan(curve.quality_error[0]) else "significant "


def _a(curve: Curve) -> str:
    return f"a {_significant(curve)}"


@dataclass(frozen=True)
class Rates:
    """Each group's selection rate at strength 0; NaN where it is not known.

    Attributes
    ----------
    groups : sequence of str
        The groups' names.
    overall : array of float
        Rates among all items, (groups,).
    relevant : array of float
        Rates among relevant items, (groups,).
    """

    groups: Sequence[str]
    overall: NDArray[np.float64]
    relevant: NDArray[np.float64]


@dataclass(frozen=True)
class Story:
    """The answer of one setting: a sentence, and three findings of a large figure and a text each.

    Attributes
    ----------
    answer : str
        The sentence.
    uneven : tuple of str
        The gap now, and which group is behind.
    no_loss : tuple of str
        The reduction at no significant quality loss, and its strength.
    further : tuple of str
        What the next smaller gap costs.
    """

    answer: str
    uneven: tuple[str, str]
    no_loss: tuple[str, str]
    further: tuple[str, str]


def next_step(curve: Curve) -> int | None:
    """Find the cheapest strength with a smaller gap than `Curve.best` has and significantly worse quality.

    Parameters
    ----------
    curve : Curve
        One method, notion and k of a sweep.

    Returns
    -------
    int or None
        The strength's number; None if there is none.
    """
    lower = curve.worse & (curve.violation < curve.violation[curve.best])
    return int(np.argmax(np.where(lower, curve.quality, -np.inf))) if lower.any() else None


def story(curve: Curve, rates: Rates, *, others: Sequence[Curve] = ()) -> Story:
    """Put one curve into words.

    Parameters
    ----------
    curve : Curve
        One method, notion and k of a sweep.
    rates : Rates
        The groups' selection rates at strength 0.
    others : sequence of Curve
        The same setting's curves of the other methods, if there are any.

    Returns
    -------
    Story
        The answer and its three findings.
    """
    method = spoken(curve.method) if others else ""
    quality = short_title(*MeasureAt.of(curve.quality_name))
    gap, by = f"{spoken(curve.notion)} gap at {curve.k}", f"With the {method} method, the" if method else "The"
    gap += _at_whose_expense(curve, rates)
    if np.isnan(curve.violation[0]) or np.isnan(curve.quality[0]):
        missing = "gap" if np.isnan(curve.violation[0]) else quality
        undefined = (
            f"The {spoken(curve.notion)} gap at {curve.k} cannot be weighed: the {missing} is not defined, because the "
            "items it needs are missing."
        )
        return Story(undefined, ("–", undefined), ("–", "Nothing can be said."), ("–", "Nothing can be said."))
    return Story(
        _answer(curve, gap, by, quality),
        _uneven(curve, rates),
        _no_loss(curve, quality),
        _further(curve, quality, others),
    )


def _of_interest(curve: Curve, rates: Rates) -> tuple[NDArray[np.float64], str]:
    """The rates that the notion compares, and whose rates they are; all items' where no others are known."""
    if curve.notion != "demographic_parity" and np.isfinite(rates.relevant).sum() > 1:
        return rates.relevant, "relevant items"
    return rates.overall, "items"


def _at_whose_expense(curve: Curve, rates: Rates) -> str:
    values, _ = _of_interest(curve, rates)
    if np.isfinite(values).sum() < 2 or np.nanmax(values) - np.nanmin(values) < NOTICEABLE:
        return ""
    mostly = " mostly" if len(values) > 2 else ""
    return f",{mostly} at the expense of {quoted(rates.groups[int(np.nanargmin(values))])},"


def _falls_at_no_loss(curve: Curve) -> bool:
    return curve.best > 0 and curve.max_reduction > 0


def _answer(curve: Curve, gap: str, by: str, quality: str) -> str:
    start, best, step = curve.violation[0], curve.best, next_step(curve)
    if curve.even:
        return f"The {spoken(curve.notion)} gap at {curve.k} is 0: there is nothing to mitigate."
    if _falls_at_no_loss(curve):
        reduced = (
            f"{by} {gap} can fall by {percent(curve.max_reduction)} ({start:.3f} → {curve.violation[best]:.3f}) with "
            f"no {_significant(curve)}loss of {quality} ({curve.quality[0]:.3f} → {curve.quality[best]:.3f}); "
        )
        if step is None:
            return reduced + "no strength that was tried lowers it further."
        return (
            f"{reduced}beyond that, going down to {curve.violation[step]:.3f} costs {_loss(curve, step)} of {quality}."
        )
    costly = f"{by} {gap} is {start:.3f}, and none of the strengths tried lowers it without {_a(curve)}loss"
    if step is None:
        return f"{costly}, nor with one." if len(curve.strengths) > 1 else f"{by} {gap} is {start:.3f}."
    return f"{costly}: going down to {curve.violation[step]:.3f} costs {_loss(curve, step)} of {quality}."


def _loss(curve: Curve, step: int) -> str:
    return f"{curve.quality[0] - curve.quality[step]:.3f}"


def _uneven(curve: Curve, rates: Rates) -> tuple[str, str]:
    values, items = _of_interest(curve, rates)
    parts = (_who(rates.groups, values, curve.k, items), _four_fifths(rates, relevant=values is rates.relevant))
    return f"{curve.violation[0]:.3f} gap", " ".join(part for part in parts if part)


def _who(groups: Sequence[str], rates: NDArray[np.float64], k: int, items: str) -> str:
    if np.isfinite(rates).sum() < 2:
        return ""
    low, high = int(np.nanargmin(rates)), int(np.nanargmax(rates))
    if rates[high] - rates[low] < NOTICEABLE:
        return f"Taken over all lists, {rates[high]:.1%} of the {items} of every group reach the top {k}."
    return (
        f"{quoted(groups[low])} is behind: {rates[low]:.1%} of its {items} reach the top {k}, against "
        f"{rates[high]:.1%} of those of {quoted(groups[high])}."
    )


def _four_fifths(rates: Rates, *, relevant: bool) -> str:
    if np.isfinite(rates.overall).sum() < 2 or not np.nanmax(rates.overall) > 0:
        return ""
    ratio = np.nanmin(rates.overall) / np.nanmax(rates.overall)
    counted = "Counting all items, the" if relevant else "The"
    verdict = "below the four-fifths mark" if ratio < FOUR_FIFTHS else "above the four-fifths mark"
    return f"{counted} lowest rate is {ratio:.2f} of the highest, {verdict}."


def _no_loss(curve: Curve, quality: str) -> tuple[str, str]:
    best = curve.best
    if curve.even:
        return "–", "There is no gap to lower."
    if not (curve.violation < curve.violation[0]).any():
        return "nothing", "No strength tried lowers the gap."
    if not _falls_at_no_loss(curve):
        by = " by more than its error" if _significant(curve) else ""
        return "nothing", f"Every strength that lowers the gap also lowers {quality}{by}."
    drop = curve.quality[0] - curve.quality[best]
    change = "does not fall" if drop <= 0 else f"falls by {drop:.3f}, within the error of the measurement"
    return (
        f"−{percent(curve.max_reduction)} gap",
        f"At strength {curve.strengths[best]:.3g} the gap is {curve.violation[best]:.3f} instead of "
        f"{curve.violation[0]:.3f}, and {quality} {change}.",
    )


def _further(curve: Curve, quality: str, others: Sequence[Curve]) -> tuple[str, str]:
    step, elsewhere = next_step(curve), _elsewhere(curve, quality, others)
    if step is None:
        return "none found", f"No strength tried makes the gap smaller still, at any price.{elsewhere}"
    verdict = ": significantly lower" if _significant(curve) else ""
    return (
        f"−{_loss(curve, step)} {quality}",
        f"The cheapest smaller gap, {curve.violation[step]:.3f} at strength {curve.strengths[step]:.3g}, has "
        f"{quality} {curve.quality[step]:.3f} instead of {curve.quality[0]:.3f}{verdict}.{elsewhere}",
    )


def _elsewhere(curve: Curve, quality: str, others: Sequence[Curve]) -> str:
    """The smallest gap of another method, if it is smaller than every gap of this one."""
    lowest = [(other, int(np.nanargmin(other.violation))) for other in others if not np.isnan(other.violation).all()]
    if not lowest:
        return ""
    other, i = min(lowest, key=lambda pair: float(pair[0].violation[pair[1]]))
    if not other.violation[i] < np.nanmin(curve.violation):
        return ""
    return (
        f" Another method, {spoken(other.method)}, gets as low as {other.violation[i]:.3f}, with {quality} "
        f"{other.quality[i]:.3f}."
    )
