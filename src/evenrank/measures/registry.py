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
    """How a measure is computed and read; ``k`` is "needed" or "optional", ``best`` the better end."""

    name: str
    k: str
    best: str
    per_query: PerQuery
    pooled: PerQuery | None = None
    alias: str = ""

    def value(self, ev: Evaluation, k: int | None) -> NDArray[Any]:
        """Over all queries, () or (models,): the mean over the queries where it exists, unless pooled."""
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
    """The measure and k of a name like ``"eop@3"``.

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
