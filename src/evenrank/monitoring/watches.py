"""What charts a state can show: each with its question, its groups, and where its sums are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenrank.errors import DataError
from evenrank.measures import MeasureAt
from evenrank.monitoring.estimates import POOLED, RATIO, WITHIN, Array, over, reference_ratio
from evenrank.monitoring.monitor import MOST_GROUPS, Monitor
from evenrank.monitoring.rates import DIFFERENCE, MEAN, QUOTIENT, SIDES
from evenrank.monitoring.series import ITEMS, LISTS, N_A, N_B, NUMBER, TOTAL, X_A, X_B, Series
from evenrank.monitoring.watched import PAIRS, asked_at
from evenrank.monitoring.watched import RATIO as FOUR_FIFTHS

MOST_CHARTS = MOST_GROUPS * (MOST_GROUPS - 1) // 2  # of one measure
Label = tuple[str, str]


@dataclass(frozen=True)
class Watch:
    """One chart that is asked for.

    Attributes
    ----------
    kind : str
        Its question, as of `Chart`.
    measure : str
        Its name, with options.
    k : int
        The cut-off; 0 for whole lists.
    a, b : str
        What is compared, as charts call it.
    labels : tuple of (str, str)
        Of means and rates: the groups of each side's series.
    limits : tuple of float
        The least and the largest value that it can have.
    """

    kind: str
    measure: str
    k: int
    a: str = ""
    b: str = ""
    labels: tuple[Label, ...] = ()
    limits: tuple[float, float] = (-1.0, 1.0)

    @property
    def source(self) -> str:
        """The measure whose sums it is made of."""
        return "demographic_parity" if self.measure == FOUR_FIFTHS else self.measure

    def strata(self, *states: Monitor) -> list[Any]:
        """Find the kinds of list that states have."""
        if self.kind in SIDES:
            found: set[Any] = set()
            for state in states:
                of_measure = _series(state, self.measure, self.k)
                found |= {(one.kind, one.mix) for one in of_measure if (one.a, one.b) in self.labels}
            return sorted(found) or [(0, "")]
        kinds = sorted(set().union(*(state.table.kinds(self.source, self.a, self.b) for state in states)))
        return (kinds if self.kind == WITHIN else kinds[:1]) or [0]  # pooled rates are of all lists together

    def sums(self, state: Monitor, strata: Sequence[Any]) -> list[Array]:
        """Give the sums that it is made of, (windows, bins, columns), by each clustering, lists first."""
        clusterings = list(state.cluster_names or ("lists",))
        if self.kind in SIDES:
            return [
                np.concatenate(
                    [
                        state.table.dense(Series(self.measure, self.k, *label, name, *stratum))
                        for label in self.labels
                        for stratum in strata
                    ],
                    axis=-1,
                )
                for name in clusterings
            ]
        if any(series.clusters == ITEMS for series in state.table.series):
            clusterings.append(ITEMS)
        return [state.table.of_pair(self.source, self.k, self.a, self.b, name, strata) for name in clusterings]

    def reference_ratio(self, sums: Array) -> float:
        """The first side's rate over the second's; NaN if it is not known."""
        if self.kind == RATIO:
            return reference_ratio(sums)
        sides = sums.sum((0, 1)).reshape(2, -1, LISTS + 1).sum(1)
        rates = over(sides[:, TOTAL], sides[:, NUMBER])
        return float(rates[0] / rates[1]) if rates[1] > 0 else float("nan")

    def turned(self, sums: Array) -> Array:
        """Exchange the two sides."""
        if self.kind == RATIO:
            return sums[..., [N_B, X_B, N_A, X_A, 4, 5, 6]]
        half = sums.shape[-1] // 2
        return np.concatenate([sums[..., half:], sums[..., :half]], axis=-1)


def charts_of(state: Monitor, base: Monitor, questions: Sequence[str]) -> list[Watch]:
    """List the charts of what a state watches.

    Parameters
    ----------
    state : Monitor
        The state.
    base : Monitor
        The state that has the reference; it may be the same.
    questions : sequence of str
        What is asked of gaps: "within_query", "pooled" or both.

    Returns
    -------
    list of Watch
        In the order of the measures.
    """
    charts: list[Watch] = []
    if not state.windows and not base.windows:
        return charts
    groups = sorted({series.a for part in (state, base) for series in part.table.series if series.a})
    k = state.k or base.k or 0
    for measure in state.measures:
        if measure not in PAIRS:
            charts += _of_lists(state, base, measure, k)
            continue
        for a, b in _pairs(groups):
            if measure == FOUR_FIFTHS:
                charts.append(Watch(RATIO, measure, k, a, b, limits=(0.0, np.inf)))
                continue
            charts += [Watch(WITHIN if kind == WITHIN else POOLED, measure, k, a, b) for kind in questions]
    return charts


def _of_lists(state: Monitor, base: Monitor, name: str, k: int) -> list[Watch]:
    """The charts of a measure that is a mean over lists, or is made of rates of groups."""
    asked = asked_at(name, k)
    measure, cut, called = asked.measure, asked.k or 0, MeasureAt.of(name).name
    labels = sorted({(one.a, one.b) for part in (state, base) for one in _series(part, called, cut)})
    if measure.kind == "mean":
        return [Watch(MEAN, called, cut, labels=(("", ""),), limits=measure.limits)]
    if measure.kind == "shares":
        return [Watch(MEAN, called, cut, label[0], labels=(label,)) for label in labels]
    pairs = _pairs(labels)
    if measure.name == "pairwise_parity":  # the shares of a pair and of its reverse add up to 1
        pairs = [(one, other) for one, other in pairs if one == other[::-1]]
    if len(pairs) > MOST_CHARTS:
        raise DataError(
            f"{name} has {len(labels)} rates, which make {len(pairs)} charts; a monitor has at most {MOST_CHARTS} of "
            "one measure. Join small groups, or watch another measure."
        )
    kind = QUOTIENT if measure.kind == "ratio" else DIFFERENCE
    limits = (0.0, np.inf) if kind == QUOTIENT else (-1.0, 1.0)
    return [Watch(kind, called, cut, _called(a), _called(b), (a, b), limits) for a, b in pairs]


def _series(state: Monitor, measure: str, k: int) -> list[Series]:
    return [one for one in state.table.series if (one.measure, one.k) == (measure, k)]


def _pairs(labels: Sequence[Any]) -> list[tuple[Any, Any]]:
    return [(a, b) for j, a in enumerate(labels) for b in labels[j + 1 :]]


def _called(label: Label) -> str:
    """A group, or a pair of groups of which the first should stand higher."""
    return f"{label[0]} above {label[1]}" if label[1] else label[0]
