"""The measures, as data: name, cut-off, better end and formula."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError, DataWarning
from evenrank.measures.evaluation import Evaluation, PerQuery, divide
from evenrank.measures.formulas import gap_per_query, mrr, ndcg, precision, rates_of, ratio, recall
from evenrank.notions import ALIASES, NOTIONS, gamma_of


@dataclass(frozen=True)
class Measure:
    """How a measure is computed and read.

    Attributes
    ----------
    name : str
        Its full name.
    k : str
        Whether the cut-off is "needed" or "optional".
    best : str
        The better end: "high" or "low".
    per_query : callable
        (evaluation, k) → the value of each query, (q,) or (q, models).
    pooled : callable, optional
        (evaluation, k) → the value over all queries together, () or (models,); without it, the mean over queries.
    alias : str
        A short name that is accepted too.
    """

    name: str
    k: str
    best: str
    per_query: PerQuery
    pooled: PerQuery | None = None
    alias: str = ""

    def value(self, ev: Evaluation, k: int | None) -> NDArray[Any]:
        """Compute the value over all queries, () or (models,): pooled, or the mean over the queries that have one."""
        if self.pooled is not None:
            return self.pooled(ev, k)
        values = self.per_query(ev, k)
        counted = ~np.isnan(values)
        number = counted.sum(axis=0)
        if not np.all(number):
            warnings.warn(f"{self.name} is NaN: no query has a relevant item", DataWarning, stacklevel=2)
        return divide(np.where(counted, values, 0).sum(axis=0), number)


def _violation_measure(notion: str) -> Measure:
    def pooled(ev: Evaluation, k: int | None) -> NDArray[Any]:
        assert k is not None
        return gamma_of(ev.contrast(notion), ev.ranking.top(k))

    def per_query(ev: Evaluation, k: int | None) -> NDArray[Any]:
        assert k is not None
        return gap_per_query(ev, notion, ev.ranking.top(k))

    return Measure(notion, "needed", "low", per_query, pooled, NOTIONS[notion].alias)


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("ndcg", "optional", "high", ndcg),
        Measure("precision", "needed", "high", precision, alias="p"),
        Measure("recall", "needed", "high", recall),
        Measure("mrr", "optional", "high", mrr),
        *map(_violation_measure, NOTIONS),
        Measure(
            "exposure_gap",
            "optional",
            "low",
            lambda ev, k: gap_per_query(ev, "demographic_parity", ev.ranking.exposure(k)),
            lambda ev, k: gamma_of(ev.contrast("demographic_parity"), ev.ranking.exposure(k)),
        ),
        Measure(
            "four_fifths",
            "needed",
            "high",
            lambda ev, k: ratio(*rates_of(ev, k, "per_query")),
            lambda ev, k: ratio(*rates_of(ev, k, "amortized"))[0],
            "ratio",
        ),
    )
}
MEASURE_ALIASES = {m.alias: m.name for m in MEASURES.values() if m.alias} | ALIASES


def parse_measure(text: str) -> tuple[Measure, int | None]:
    """Read a name like ``"eop@3"`` as users write it.

    Parameters
    ----------
    text : str
        The name or alias of a measure, with its cut-off after "@".

    Returns
    -------
    tuple
        The `Measure`, and k or None.

    Raises
    ------
    ConfigError
        For an unknown measure, or a cut-off that is missing or not a whole number ≥ 1.

    Examples
    --------
    >>> measure, k = parse_measure("eop@3")
    >>> measure.name, k
    ('equal_opportunity', 3)
    """
    name, at, cut = str(text).strip().partition("@")
    name = MEASURE_ALIASES.get(name.lower(), name.lower())
    if name not in MEASURES:
        known = ", ".join(f"{m.name}{'@k' if m.k == 'needed' else '[@k]'}" for m in MEASURES.values())
        raise ConfigError(f"measure must be one of {known}; got {text!r}.")
    measure = MEASURES[name]
    if not at:
        if measure.k == "needed":
            raise ConfigError(f"measure {text!r} needs a cut-off, as in '{text}@5'.")
        return measure, None
    if not cut.isdecimal() or int(cut) < 1:
        raise ConfigError(f"k in {text!r} must be a whole number ≥ 1; got {cut!r}.")
    return measure, int(cut)
