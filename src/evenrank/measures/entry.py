"""`Measure`: how a measure is computed, and how it is to be read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import choose
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
    formula : str
        What it computes, in the words of docs/measures.md.
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
    sums : callable, optional
        For a measure of all lists together that is made of ratios of sums over lists: (evaluation, k) → each list's
        part of the numerators and of the denominators, (q, r) each, of one ranking. `kind` says what is made of the
        ratios: "mean" (there is one), "gap" (the largest difference), "ratio" (lowest over highest), or "shares" (the
        differences between the first and the second half, added up).
    of_pairs : bool
        Whether the ratios of ``sums`` are of ordered pairs of different groups, and not of groups.
    no_interval : str
        Why it has no interval, if it has none.
    """

    name: str
    k: str
    best: str
    per_query: PerQuery
    pooled: PerQuery | None = None
    alias: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    formula: str = ""
    range: str = ""
    fair: str = ""
    ties: str = EXACT
    needs: tuple[str, ...] = ()
    reference: str = ""
    notion: Notion | None = None
    kind: str = ""
    value_of: str = "top"
    sums: Callable[[Evaluation, int | None], tuple[NDArray[Any], NDArray[Any]]] | None = None
    of_pairs: bool = False
    no_interval: str = ""

    def __post_init__(self) -> None:
        if not self.kind:
            object.__setattr__(self, "kind", "mean" if self.pooled is None else "gap" if self.notion else "pooled")

    @property
    def fair_value(self) -> float | None:
        """The number that `fair` begins with, if it does."""
        head = self.fair.partition(":")[0]
        return float(head) if head.isdecimal() else None

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of `range`, infinite where it has none."""
        low, _, high = self.range.partition(" to ")
        high = high.partition(",")[0]
        bounded = self.range.startswith("0 ") and "below 0" not in self.range
        return 0.0 if bounded else -np.inf, float(high) if low and high.isdecimal() else np.inf

    @classmethod
    def of(
        cls, function: Callable[..., Any], name: str | None = None, *, best: str = "high", per_query: bool = False
    ) -> Measure:
        """Make a measure of a function of one's own.

        Parameters
        ----------
        function : callable
            (scores, data) → a number. Scores are (n,), in the caller's row order of ``data``, so that `measure` and its
            like can be called with them. It is called once per model; ties are its own matter. With several rankings
            per model its values are averaged.
        name : str, optional
            What tables and files call it; by default the function's own name.
        best : str
            The better end: "high" or "low".
        per_query : bool
            Whether the function gives one value per query, (q,), in the order of ``data.query_ids``, NaN where there is
            none. The measure is their mean, and has intervals and tests as other means over queries do.

        Returns
        -------
        Measure
            The measure.

        Examples
        --------
        >>> import evenrank as er
        >>> data = er.RankingData.from_arrays([[0.0]] * 3, [1, 0, 1], ["a", "a", "b"], [1, 1, 1])
        >>> spread = Measure.of(lambda scores, data: scores.max() - scores.min(), "spread of scores")
        >>> er.measure([3.0, 2.0, 1.0], data, ["precision@2", spread])
        {'precision@2': 0.5, 'spread of scores': 2.0}
        """
        choose(best, ("high", "low"), what="best")
        if not callable(function):
            raise ConfigError(f"a measure of your own must be a function of scores and data; got {function!r}.")
        called = name or getattr(function, "__name__", "")
        if not called or called == "<lambda>":
            raise ConfigError("a measure of your own needs a name: er.Measure.of(function, 'its name').")
        value = own_values(function, called, per_query=per_query)
        return cls(
            called, "none", best, value if per_query else _no_value_per_query(called), None if per_query else value
        )

    def value(self, ev: Evaluation, k: int | None) -> NDArray[Any]:
        """Compute the value over all queries, () or (models,): pooled, or the mean over the queries that have one."""
        if self.pooled is not None:
            return self.pooled(ev, k)
        values = self.per_query(ev, k)
        counted = ~np.isnan(values)
        number = counted.sum(axis=0)
        if not np.all(number):
            lacking = "a relevant item" if self.needs == ("relevance",) else "what it needs"
            if "step" in self.options:
                lacking = f"{ev.options.step} ranks or more within the cut-off (step={ev.options.step}) and both groups"
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


def own_values(function: Callable[..., Any], name: str, *, per_query: bool) -> PerQuery:
    """Call a function of scores and data once per column of scores, and check what it gives.

    Parameters
    ----------
    function : callable
        As in `Measure.of`.
    name : str
        What errors call it.
    per_query : bool
        Whether it gives (q,) values, or one.

    Returns
    -------
    callable
        (evaluation, k) → (q,), (q, models), () or (models,).
    """

    def values(ev: Evaluation, k: int | None) -> NDArray[Any]:
        assert ev.scores is not None
        shape = (ev.data.n_queries,) if per_query else ()
        columns = ev.scores.reshape(len(ev.scores), -1)
        out = np.empty((*shape, columns.shape[1]))
        for number in range(columns.shape[1]):
            value = function(ev.data.to_caller(np.ascontiguousarray(columns[:, number])), ev.data)
            try:
                array = np.asarray(value, np.float64)
            except (TypeError, ValueError):
                array = np.empty((0, 0))
            if array.shape != shape:
                wanted = f"one value per query, {shape}" if per_query else "one number"
                raise ConfigError(f"measure {name!r} must return {wanted}; got {_described(value)}.")
            out[..., number] = array
        if ev.chances is not None and not per_query:
            raise ConfigError(f"measure {name!r} gives one number of all lists, so it takes no chances= per list.")
        return ev.averaged(out, slice(None)) if ev.ranking.first.ndim > 1 else out[..., 0]

    return values


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"shape {shape}" if shape else repr(value)[:60]


def _no_value_per_query(name: str) -> PerQuery:
    def refuse(ev: Evaluation, k: int | None) -> NDArray[Any]:
        raise ConfigError(
            f"measure {name!r} has no value per query; make it with er.Measure.of(function, per_query=True)."
        )

    return refuse
