"""From rows of ranked lists to applicants: one value and one category of each attribute per person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.errors import DataError
from evenrank.labels import UNKNOWN, checked_ids, group_codes
from evenrank.wording import quoted

UNKNOWN_WORD = "unknown"  # as a label, whatever its case
MOST_CATEGORIES = 1000  # of one attribute; more are ids or numbers, and their intersections do not fit in memory


@dataclass(frozen=True, eq=False)
class Attribute:
    """The categories of one attribute.

    Attributes
    ----------
    names : tuple of str
        The categories.
    codes : ndarray
        Of rows or of people, (n,); -1 is unknown.
    words : tuple of str
        The labels that were counted as unknown.
    """

    names: tuple[str, ...]
    codes: NDArray[np.int64]
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, labels: ArrayLike, n: int, unknown: tuple[str, ...] = (), *, what: str = "an attribute") -> Attribute:
        """Number the labels of n rows; a missing one, "unknown" and the given words are unknown."""
        codes, names = group_codes(labels, None, n)
        texts = [str(name) for name in names]
        words = [name for name in texts if name.strip().lower() == UNKNOWN_WORD or name in unknown]
        kept = sorted(set(texts) - set(words))
        if len(kept) > MOST_CATEGORIES:
            raise DataError(
                f"{what}: at most {MOST_CATEGORIES:,} categories can be compared; found {len(kept):,}, such as "
                f"{quoted(kept[0])}. Name the column of the category, or join small ones."
            )
        place = {name: code for code, name in enumerate(kept)}
        new = np.array([*(place.get(name, UNKNOWN) for name in texts), UNKNOWN], np.int64)
        return cls(tuple(kept), new[codes], tuple(words))


@dataclass(frozen=True, eq=False)
class People:
    """Which rows are of the same person.

    Attributes
    ----------
    order : ndarray
        Rows sorted by person, (n,).
    starts : ndarray
        Where each person begins among them, (p,).
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, ids: ArrayLike | None, n: int) -> People:
        """Bring the rows of a person together; without ids every row is a person."""
        if ids is None:
            return cls(np.arange(n), np.arange(n))
        labels = checked_ids(ids, n, "person", lambda row: f"row {row}")
        numbers: dict[Any, int] = {}
        codes = np.fromiter((numbers.setdefault(label, len(numbers)) for label in labels.tolist()), np.int64, n)
        order = np.argsort(codes, kind="stable")
        return cls(order, np.flatnonzero(np.diff(codes[order], prepend=-1)))

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.starts)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The number of rows of each, (p,)."""
        return np.diff(self.starts, append=len(self.order))

    def mean(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average the rows of each, (p,)."""
        return np.asarray(np.add.reduceat(values[self.order], self.starts) / self.rows)

    def highest(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take the largest value of the rows of each, (p,)."""
        return np.asarray(np.maximum.reduceat(values[self.order], self.starts))

    def ever(self, chances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the probability that at least one row of each is selected, ties being broken list by list, (p,)."""
        return np.asarray(1 - np.multiply.reduceat(1 - chances[self.order], self.starts))

    def category(self, attribute: Attribute, what: str, ids: NDArray[Any] | None) -> tuple[Attribute, int]:
        """Give each person's category, and how many of them lack it in some rows only.

        Parameters
        ----------
        attribute : Attribute
            Of the rows.
        what : str
            What an error calls it.
        ids : ndarray or None
            The ids of the rows, for the error.

        Raises
        ------
        DataError
            A person is in two categories.
        """
        codes = attribute.codes[self.order]
        highest = np.maximum.reduceat(codes, self.starts)
        lowest = np.minimum.reduceat(np.where(codes < 0, len(attribute.names), codes), self.starts)
        differs = np.flatnonzero((highest >= 0) & (highest != lowest))
        if len(differs):
            some = int(differs[0])
            name = "" if ids is None else f" {quoted(str(ids[self.order[self.starts[some]]]))}"
            pair = " and ".join(quoted(attribute.names[code]) for code in (lowest[some], highest[some]))
            raise DataError(
                f"{what}: a person must be of one category; {len(differs):,} of {self.number:,} have several, such as "
                f"person{name} with {pair}. Name a column that tells people apart as the person, or count rows."
            )
        partly = (highest >= 0) & (np.minimum.reduceat(codes, self.starts) < 0)
        return Attribute(attribute.names, highest, attribute.words), int(partly.sum())


def crossed(attributes: Mapping[str, Attribute]) -> Attribute:
    """Join attributes to one of all their combinations, such as "female & Asian"; unknown if one of them is."""
    first, *rest = attributes.values()
    names, codes = list(first.names), first.codes
    for other in rest:
        names = [f"{a} & {b}" for a in names for b in other.names]
        known = (codes >= 0) & (other.codes >= 0)
        codes = np.where(known, codes * len(other.names) + other.codes, UNKNOWN)
    return Attribute(tuple(names), codes)
