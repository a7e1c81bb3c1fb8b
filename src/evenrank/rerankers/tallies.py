"""`Tallies`: what each group has got over the lists served so far, in sums that can be added up."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_number
from evenrank.errors import DataError, shortened

TABLES = ("got", "mass", "lists")
LEAST_MOVED = 0.01  # of 4 m (1 − m)
LEAST_RELEVANCE = 1e-4  # of a group in a list, where what it got is divided by it


class Tallies:
    """Sums by stratum and group: what the group got, what it could have got, and the lists that had it.

    The first place of every table is that of unknown groups, which stay 0.

    Parameters
    ----------
    strata : int
        The number of strata.
    keep : float
        What a list still counts when the next one is served.

    Attributes
    ----------
    labels : list
        The groups, in the order of their first appearance, after None for unknown ones.
    got, mass, lists : list of list of float
        (strata, groups) each.
    served : int
        The number of lists.
    """

    def __init__(self, strata: int, keep: float = 1.0) -> None:
        self.keep, self.served = keep, 0
        self.labels: list[Any] = [None]
        self.got, self.mass, self.lists = ([[0.0] for _ in range(strata)] for _ in range(3))
        self._code: dict[Any, int] = {None: 0, "": 0}

    def codes(self, groups: Any, n: int) -> NDArray[np.int64]:
        """Give the place of each of n labels in the tables, (n,); new labels get one."""
        labels = groups.tolist() if hasattr(groups, "tolist") else groups
        try:
            # The fastest look-up there is; of one label it gives no tuple.
            known = itemgetter(*labels)(self._code) if n > 1 else (self._code[labels[0]],)
        except (KeyError, TypeError):
            for label in labels:
                _check_label(label)
            known = tuple(map(self.code, labels))
        return np.fromiter(known, np.int64, n)

    def code(self, label: Any) -> int:
        """Give the place of one label in the tables, a new one if it is new."""
        _check_label(label)
        if label is None or label != label:  # NaN
            return 0
        code = self._code.get(label)
        if code is None:
            code = self._code[label] = len(self.labels)
            self.labels.append(label)
            for table in (self.got, self.mass, self.lists):
                for line in table:
                    line.append(0.0)
        return code

    def add(self, given: list[list[float]], whole: list[list[float]]) -> None:
        """Count one list.

        Parameters
        ----------
        given, whole : list of list of float
            What each group got and what it could have got, (strata, groups) each.
        """
        keep = self.keep
        self.served += 1
        for stratum, size in enumerate(whole):
            got = given[stratum]
            totals, sizes, lists = self.got[stratum], self.mass[stratum], self.lists[stratum]
            for group in range(1, len(size)):
                own = size[group]
                totals[group] = keep * totals[group] + got[group]
                sizes[group] = keep * sizes[group] + own
                lists[group] = keep * lists[group] + (own > 0)

    def pushes(self, gain: float, limit: float) -> list[float]:
        """Give what moves each group to the mean rate, (groups,).

        Parameters
        ----------
        gain : float
            The factor of (mean rate − own rate) × lists, where the mean rate m is a half; elsewhere it is divided by
            4 m (1 − m), as a shift moves fewer items past a threshold the further that is from the middle of the list.
        limit : float
            The largest push.

        Returns
        -------
        list of float
            The mean over strata; 0 for a group without items.
        """
        size, strata = len(self.labels), len(self.got)
        out = [0.0] * size
        for stratum in range(strata):
            totals, masses, lists = self.got[stratum], self.mass[stratum], self.lists[stratum]
            whole = sum(masses)
            if whole <= 0:
                continue
            mean = sum(totals) / whole
            moved = 4 * mean * (1 - mean)
            factor = gain / (moved if moved > LEAST_MOVED else LEAST_MOVED)
            for group in range(1, size):
                mass = masses[group]
                if mass > 0:
                    push = factor * lists[group] * (mean - totals[group] / mass)
                    out[group] += (limit if push > limit else -limit if push < -limit else push) / strata
        return out

    def evidence(self, label: Any) -> float:
        """Count what a group got or, if that is less, what it did not get: all that says how it fares."""
        group = self.code(label)
        return sum(min(got[group], mass[group] - got[group]) for got, mass in zip(self.got, self.mass, strict=True))

    def lifts(self, gain: float, count: list[int], merit: list[float]) -> list[float]:
        """Give FairCo's lifts: how much less a group got than another one, over its relevance in the list, (groups,).

        Parameters
        ----------
        gain : float
            The factor.
        count : list of int
            The number of items of each group, (groups,).
        merit : list of float
            The relevance of each group, (groups,).

        Returns
        -------
        list of float
            0 for the group that got most, for groups that are not in the list and for unknown ones.
        """
        out = [0.0] * len(count)
        present = [group for group in range(1, len(count)) if count[group]]
        quotient = [self.got[0][group] / max(LEAST_RELEVANCE, merit[group]) for group in present]
        most = max(quotient, default=0.0)
        for group, own in zip(present, quotient, strict=True):
            out[group] = gain * (most - own)
        return out

    # ------------------------------------------------------------------ keeping and adding up

    def state(self) -> dict[str, Any]:
        """Give the tables as plain values."""
        tables = {name: [list(line) for line in getattr(self, name)] for name in TABLES}
        return {"served": self.served, "groups": self.labels[1:], **tables}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave.

        Parameters
        ----------
        state : mapping
            The tables.

        Raises
        ------
        DataError
            If they do not fit each other.
        """
        check_number(state["served"], "served", least=0, whole=True)
        for label in state["groups"]:
            self.code(label)
        for name in TABLES:
            lines = [[float(number) for number in line] for line in state[name]]
            shape = (len(self.got), len(self.labels))
            if (len(lines), *{len(line) for line in lines}) != shape or not all(
                all(map(isfinite, one)) for one in lines
            ):
                raise DataError(f"the state's {name} must be {shape[0]} × {shape[1]} finite numbers.")
            setattr(self, name, lines)
        self.served = state["served"]

    def merge(self, other: Tallies) -> None:
        """Add the sums of other lists.

        Parameters
        ----------
        other : Tallies
            Their tallies, of as many strata.
        """
        place = [self.code(label) for label in other.labels]
        self.served += other.served
        for name in TABLES:
            for own, theirs in zip(getattr(self, name), getattr(other, name), strict=True):
                for group, number in zip(place, theirs, strict=True):
                    own[group] += number


def _check_label(label: Any) -> None:
    if label is not None and not isinstance(label, str | int | float):
        raise DataError(f"a group must be a text or a number, or None if unknown; got {shortened(repr(label))}.")
