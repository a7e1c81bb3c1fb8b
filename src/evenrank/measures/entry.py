"""`Measure`: how a measure is computed, and how it is to be read."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError, DataWarning
from evenrank.measures.evaluation import Evaluation, PerQuery, divide
from evenrank.measures.options import Options
from evenrank.notions import Notion

EXACT = "exact expectation"
AT_EXPECTED = "at expected exposure"


@dataclass(frozen=True)
class Measure:
    """How a measure is computed and read.

    Attributes
    ----------
    name : str
        Its full name.
    k : str
        Whether the cut-off is "needed" or "optional", or there is "none".
    best : str
        The better end: "high" or "low".
    per_query : callable
        (evaluation, k) → the value of each query, (q,) or (q, models).
    pooled : callable, optional
        (evaluation, k) → the value over all queries together, () or (models,); without it, the mean over queries.
    alias : str
        A short name that is accepted too.
    options : mapping
        The options that it takes (`Options`), each with the measure's own choice; the formula finds them as
        ``evaluation.options``.
    range : str
        The values it can have, as "0 to 1".
    fair : str
        What its fair value is and means; empty for a measure of quality.
    ties : str
        What it does with ties: `EXACT`, `AT_EXPECTED`, or other words.
    needs : tuple of str
        What the data must have: "relevance", "groups", "items", "protected".
    reference : str
        Where it is from.
    notion : Notion, optional
        For a gap or a ratio of rates between groups: its notion.
    kind : str
        "mean" over queries, "gap" or "ratio" of the notion's group means, or "pooled"; by default as the formulas are.
    value_of : str
        For a gap or a ratio: the row value that is compared, "top" or "exposure".
    """

    name: str
    k: str
    best: str
    per_query: PerQuery
    pooled: PerQuery | None = None
    alias: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    range: str = ""
    fair: str = ""
    ties: str = EXACT
    needs: tuple[str, ...] = ()
    reference: str = ""
    notion: Notion | None = None
    kind: str = ""
    value_of: str = "top"

    def __post_init__(self) -> None:
        if not self.kind:
            object.__setattr__(self, "kind", "mean" if self.pooled is None else "gap" if self.notion else "pooled")

    def value(self, ev: Evaluation, k: int | None) -> NDArray[Any]:
        """Compute the value over all queries, () or (models,): pooled, or the mean over the queries that have one."""
        if self.pooled is not None:
            return self.pooled(ev, k)
        values = self.per_query(ev, k)
        counted = ~np.isnan(values)
        number = counted.sum(axis=0)
        if not np.all(number):
            lacking = "a relevant item" if self.needs == ("relevance",) else "what it needs"
            warnings.warn(f"{self.name} is NaN: no query has {lacking}", DataWarning, stacklevel=2)
        return divide(np.where(counted, values, 0).sum(axis=0), number)

    def chosen(self, named: Options, common: Options | None = None) -> Options:
        """Put together the options it is computed with.

        Parameters
        ----------
        named : Options
            Those that stand with its name; one that it does not take is an error.
        common : Options, optional
            Those of all measures of a call; ones that it does not take do not concern it.

        Returns
        -------
        Options
            The options, with its own choice where none is given.
        """
        strange = [option for option in named.given() if option not in self.options]
        if strange:
            takes = f"it takes {', '.join(self.options)}" if self.options else "it takes none"
            raise ConfigError(f"measure {self.name!r} has no option {strange[0]!r}; {takes}.")
        shared = {} if common is None else {name: v for name, v in common.given().items() if name in self.options}
        return Options(**{**self.options, **shared, **named.given()})
