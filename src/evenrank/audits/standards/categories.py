"""One table of a bias audit: each category's number, rate and impact ratio, with tests against the highest rate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenrank.audits.standards.people import Attribute
from evenrank.errors import DataError
from evenrank.inference import fisher, standard_deviations
from evenrank.wording import FOUR_FIFTHS, quoted

SMALL = 0.02  # of the applicants: categories below it may be left out of the impact ratios
MANY_DEVIATIONS = 2.0
ROUNDING = 1e-12  # rates and sums of chances that are closer are equal


@dataclass(frozen=True)
class CategoryRate:
    """A category's number, rate and impact ratio.

    Attributes
    ----------
    category : str
        Its name.
    number : int
        Its applicants.
    share : float
        Of the applicants in the table.
    selected, rate : float
        Those selected (or above the median), and their share.
    ratio : float or None
        Impact ratio: its rate over the highest one; None if set aside, or if nobody was selected.
    small, set_aside : bool
        Whether it has less than 2 % of the applicants, and whether it was therefore left out of the impact ratios.
    below_four_fifths : bool or None
        Whether the impact ratio is below 0.8; None without a ratio.
    fisher_p, corrected_p : float or None
        Fisher's exact test against the category with the highest rate, alone and corrected for all pairs of categories
        that might have been compared; None without a ratio and for the category with the highest rate.
    deviations : float or None
        The difference of the two rates in standard deviations; negative: this one's is lower.
    """

    category: str
    number: int
    share: float
    selected: float
    rate: float
    ratio: float | None = None
    small: bool = False
    set_aside: bool = False
    below_four_fifths: bool | None = None
    fisher_p: float | None = None
    corrected_p: float | None = None
    deviations: float | None = None

    @property
    def beyond_two(self) -> bool:
        """Whether the rate is more than two standard deviations below the highest."""
        return self.deviations is not None and self.deviations < -MANY_DEVIATIONS


@dataclass(frozen=True)
class CategoryTable:
    """The categories of one attribute, or of an intersection.

    Attributes
    ----------
    name : str
        "sex", "race" or "intersectional".
    column : str
        The column, or the columns, that the categories are of.
    categories : tuple of CategoryRate
        In the order of their names; combinations that nobody is of are left out.
    highest : str or None
        The category with the highest rate; None if nobody was selected.
    applicants, unknown : int
        The people in the table, and those who are not in it because their category is unknown.
    empty : int
        The combinations that nobody is of.
    """

    name: str
    column: str
    categories: tuple[CategoryRate, ...]
    highest: str | None
    applicants: int
    unknown: int
    empty: int = 0

    def of(self, category: str) -> CategoryRate:
        """Look a category up by its name."""
        return next(row for row in self.categories if row.category == category)

    @property
    def compared(self) -> list[CategoryRate]:
        """The categories with an impact ratio, the lowest first, without the one that has the highest rate."""
        others = [row for row in self.categories if row.ratio is not None and row.category != self.highest]
        return sorted(others, key=lambda row: (row.ratio, row.category))


def category_table(
    name: str,
    column: str,
    attribute: Attribute,
    values: NDArray[np.float64],
    min_share: float,
    *,
    tested: bool = True,
) -> CategoryTable:
    """Count the people of each category.

    Parameters
    ----------
    name, column
        As in `CategoryTable`.
    attribute : Attribute
        Of the people.
    values : ndarray
        1 for those who are selected, 0 for the others, between if that is left to chance, (p,).
    min_share : float
        Categories with a smaller share are set aside.
    tested : bool
        Whether people may be taken for independent of each other, and so be tested.

    Raises
    ------
    DataError
        Everybody's category is unknown, or fewer than two categories can be compared.
    """
    known = attribute.codes >= 0
    numbers = np.bincount(attribute.codes[known], minlength=len(attribute.names))
    selected = np.bincount(attribute.codes[known], values[known], minlength=len(attribute.names))
    total = int(numbers.sum())
    if not total:
        raise DataError(
            f"{name} ({column}): the category of all {len(known):,} applicants is unknown. Name another column."
        )
    occupied = np.flatnonzero(numbers)
    if len(occupied) < 2:
        raise DataError(
            f"{name} ({column}): an impact ratio compares at least two categories; all {total:,} applicants of known "
            f"category are {quoted(attribute.names[occupied[0]])}. Name another column."
        )
    shares = numbers / total
    compared = [code for code in occupied.tolist() if shares[code] >= min_share]
    if len(compared) < 2:
        raise DataError(
            f"{name} ({column}): an impact ratio compares at least two categories; {len(compared)} of {len(occupied)} "
            f"have a share of at least {min_share:g}. Lower min_share."
        )
    rates = selected / np.maximum(numbers, 1)
    # Of equal rates the first by name: sums of chances are off by last digits, which depend on the order of the rows.
    best = next(code for code in compared if rates[code] >= rates[compared].max() - ROUNDING)
    pairs = len(compared) * (len(compared) - 1) // 2
    rows = []
    for code in occupied.tolist():
        row = CategoryRate(
            category=attribute.names[code],
            number=int(numbers[code]),
            share=float(shares[code]),
            selected=float(selected[code]),
            rate=float(rates[code]),
            small=bool(shares[code] < SMALL),
            set_aside=code not in compared,
        )
        row = _against(row, attribute.names[best], float(selected[best]), int(numbers[best]), pairs)
        rows.append(row if tested else replace(row, fisher_p=None, corrected_p=None, deviations=None))
    return CategoryTable(
        name=name,
        column=column,
        categories=tuple(rows),
        highest=attribute.names[best] if rates[best] > 0 else None,
        applicants=total,
        unknown=int((~known).sum()),
        empty=len(attribute.names) - len(occupied),
    )


def _whole(people: float) -> int:
    """Round a sum of chances, halves to even, whatever its last digits."""
    return round(round(people, 9))


def _against(row: CategoryRate, highest: str, selected: float, number: int, pairs: int) -> CategoryRate:
    """Compare a category with the one that has the highest rate."""
    if row.set_aside or not selected > 0:
        return row
    if row.category == highest:
        return replace(row, ratio=1.0, below_four_fifths=False)
    ratio = row.rate / (selected / number)
    p = fisher(_whole(row.selected), row.number, _whole(selected), number)
    return replace(
        row,
        ratio=ratio,
        below_four_fifths=bool(ratio < FOUR_FIFTHS - ROUNDING),
        fisher_p=p,
        corrected_p=min(1.0, p * pairs),
        deviations=standard_deviations(row.selected, row.number, selected, number),
    )
