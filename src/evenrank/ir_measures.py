"""Measures of fairness in ir_measures, and so in PyTerrier: ``evenrank.ir_measures.register(groups=…)``.

Judgements carry no groups, so the groups of documents are given once. Needs ``pip install 'evenrank[ir-measures]'``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.extras import require
from evenrank.measures import MEASURES, Measure, MeasureAt, Options
from evenrank.measures import measure as evaluate

NAME = "evenrank"
NUMBERS = {"patience": float, "stop": (int, float), "step": int, "smoothing": (int, float)}

Groups = Mapping[str, Any] | Callable[[str], Any]


class QueryValue(float):
    """A query's value that knows the value over all queries, which need not be a mean."""

    overall: float

    @classmethod
    def of(cls, value: float, overall: float) -> QueryValue:
        """Make one."""
        made = cls(value)
        made.overall = overall
        return made


class Overall:
    """Aggregates as evenrank does: the value over all queries; without it, the mean of those that have one."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def add(self, value: float) -> None:
        """Take a query's value."""
        self.values.append(value)

    def result(self) -> float:
        """Give the value over all queries; NaN if none has one."""
        overall = [value.overall for value in self.values if isinstance(value, QueryValue)]
        if overall:
            return overall[0]
        known = [value for value in self.values if not np.isnan(value)]
        return float(np.mean(known)) if known else float("nan")


def register(groups: Groups, *, relevance_threshold: float = 1.0) -> SimpleNamespace:
    """Add the measures of fairness, and what computes them, to ir_measures.

    A list is what the run has of a query with judgements; ties in scores are averaged. Documents without a judgement
    have relevance 0, and judged documents that the run lacks take no part. A query without results has no value (NaN)
    and no part in the aggregate, which is evenrank's own: pooled for gaps, the mean over queries for others.

    Parameters
    ----------
    groups : mapping or callable
        From a document's id to its group's label, or to a mapping of labels to probabilities. A document that is not in
        the mapping, or of group None, is of unknown group.
    relevance_threshold : float
        Judgements at or above it are relevant.

    Returns
    -------
    SimpleNamespace
        The measures by name, such as ``.awrf`` or ``.demographic_parity``; ir_measures parses the names too.
        Registering again replaces the groups.

    Examples
    --------
    >>> import ir_measures                                                                  # doctest: +SKIP
    >>> fair = er.ir_measures.register(groups={"d1": "a", "d2": "b"})                       # doctest: +SKIP
    >>> ir_measures.calc_aggregate([fair.awrf @ 10, ir_measures.nDCG @ 10], qrels, run)     # doctest: +SKIP
    """
    library = require("ir_measures")
    if not isinstance(groups, Mapping) and not callable(groups):
        raise ConfigError(f"groups must be a mapping from document ids to groups, or a function; got {groups!r}.")
    provider = library.providers.registry.get(NAME)
    if provider is None:
        provider = library.providers.register(_provider_class(library)())
        library.DefaultPipeline.providers.append(provider)
        for measure in fairness_measures():
            known = library.measures.registry
            if measure.name not in known:
                library.measures.register(_measure_class(library, measure)(), name=measure.name)
    provider.groups, provider.relevance_threshold = groups, float(relevance_threshold)
    return SimpleNamespace(**{measure.name: library.measures.registry[measure.name] for measure in fairness_measures()})


def experiment(systems: Sequence[Any], topics: Any, qrels: Any, measures: Sequence[Any], **options: Any) -> Any:
    """Call PyTerrier's Experiment, and put the values over all queries into its table.

    PyTerrier's own table has the plain mean of each query's values. That is another number for measures of all lists
    together, such as gaps between groups, and NaN where a query has no value. Here the columns of evenrank's measures
    are `evenrank.measure`'s. What a ``baseline`` adds are tests of each query's values, as PyTerrier makes them.

    Parameters
    ----------
    systems : sequence
        Transformers, or frames of results; each transformer runs once.
    topics, qrels : frame
        As of ``pyterrier.Experiment``.
    measures : sequence
        Measures of ir_measures; those of evenrank are what `register` gave.
    **options : Any
        Others of ``pyterrier.Experiment``, such as ``names`` or ``baseline``.

    Returns
    -------
    pandas.DataFrame
        The table; with ``perquery=True`` it is PyTerrier's own.

    Examples
    --------
    >>> fair = er.ir_measures.register(groups=group_of_document)                            # doctest: +SKIP
    >>> er.ir_measures.experiment([bm25, model], topics, qrels, [fair.dp @ 10, nDCG @ 10])  # doctest: +SKIP
    """
    library, pyterrier = require("ir_measures"), require("pyterrier")
    names = options.pop("names", None) or [str(system) for system in systems]
    results = [system if hasattr(system, "columns") else system.transform(topics) for system in systems]
    table = pyterrier.Experiment(results, topics, qrels, list(measures), names=names, **options)
    ours = [one for one in measures if getattr(one, "NAME", None) in {measure.name for measure in fairness_measures()}]
    if not ours or options.get("perquery") or options.get("dataframe") is False:
        return table
    judged = qrels.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    for row, result in enumerate(results):
        run = result.rename(columns={"qid": "query_id", "docno": "doc_id"})[["query_id", "doc_id", "score"]]
        values = library.calc_aggregate(ours, judged, run)
        for measure, value in values.items():
            table.loc[row, str(measure)] = _rounded(value, measure, options.get("round"))
    return table


def _rounded(value: float, measure: Any, digits: Any) -> float:
    """As PyTerrier's option ``round`` has it: one number of digits, or one per measure."""
    if isinstance(digits, Mapping):
        digits = digits.get(measure, digits.get(str(measure)))
    return value if digits is None else round(value, digits)


def fairness_measures() -> list[Measure]:
    """List the measures that know groups or items; of quality ir_measures has its own."""
    return [measure for measure in MEASURES.values() if measure.needs != ("relevance",)]


def _measure_class(library: Any, measure: Measure) -> Any:
    info = library.measures.ParamInfo
    parameters = {option: info(dtype=NUMBERS.get(option)) for option in measure.options}
    if measure.k != "none":
        parameters["cutoff"] = info(dtype=int, required=measure.k == "needed", desc="ranking cutoff threshold")
    return type(
        f"_{measure.name}",
        (library.measures.Measure,),
        {
            "__name__": measure.name,
            "NAME": measure.name,
            "__doc__": measure.fair,
            "SHORT_DESC": measure.fair,
            "SUPPORTED_PARAMS": parameters,
            "DEFAULT": float("nan"),
            "aggregator": lambda self: Overall(),
        },
    )


def _provider_class(library: Any) -> Any:
    class Provider(library.providers.Provider):  # type: ignore[misc]
        NAME = NAME
        groups: Groups = {}  # noqa: RUF012 - set by register
        relevance_threshold = 1.0

        def supports(self, measure: Any) -> bool:
            measure.validate_params()
            return measure.NAME in {ours.name for ours in fairness_measures()}

        def _evaluator(self, measures: Any, qrels: Any) -> Any:
            judged = library.util.QrelsConverter(qrels).as_dict_of_dict()
            return Evaluator(list(measures), judged, self.groups, self.relevance_threshold)

    class Evaluator(library.providers.Evaluator):  # type: ignore[misc]
        def __init__(self, measures: Any, judged: Any, groups: Groups, threshold: float) -> None:
            super().__init__(measures, set(judged))
            self.judged, self.groups, self.threshold = judged, groups, threshold

        def _iter_calc(self, run: Any) -> Iterator[Any]:
            lists = library.util.RunConverter(run).as_dict_of_dict()
            scores, data = _rows(lists, self.judged, self.groups, self.threshold)
            if data is None:
                return
            for measure in self.measures:
                name = _written(measure)
                overall = evaluate(scores, data, name)[name]
                values = evaluate(scores, data, name, per_query=True)[name]
                for query, value in zip(data.query_ids.tolist(), values.tolist(), strict=True):
                    yield library.Metric(query_id=query, measure=measure, value=QueryValue.of(value, overall))

    return Provider


def _rows(
    lists: Mapping[str, Mapping[str, float]],
    judged: Mapping[str, Mapping[str, float]],
    groups: Groups,
    threshold: float,
) -> tuple[Any, RankingData | None]:
    """The run's rows of judged queries."""
    rows = [(query, doc, score) for query, docs in lists.items() if query in judged for doc, score in docs.items()]
    if not rows:
        return None, None
    queries, docs, scores = zip(*rows, strict=True)
    relevance = [max(0.0, float(judged[query].get(doc, 0))) for query, doc in zip(queries, docs, strict=True)]
    group_of: Callable[[str], Any] = groups if callable(groups) else groups.get
    of_doc = {doc: group_of(doc) for doc in dict.fromkeys(docs)}
    soft = any(isinstance(value, Mapping) for value in of_doc.values())
    labels = None if soft else [of_doc[doc] for doc in docs]
    data = RankingData.from_arrays(
        np.empty((len(docs), 0)), relevance, labels, queries, item_ids=docs, relevance_threshold=threshold
    )
    if soft:
        shares = {doc: value if isinstance(value, Mapping) else {value: 1.0} for doc, value in of_doc.items()}
        names = list(dict.fromkeys(name for part in shares.values() for name in part if name is not None))
        data = data.with_membership([[shares[doc].get(name, 0.0) for name in names] for doc in docs], names)
    return np.asarray(scores), data


def _written(measure: Any) -> str:
    """An ir_measures measure as evenrank writes it."""
    options = {name: value for name, value in measure.params.items() if name != "cutoff"}
    if isinstance(options.get("target"), str):
        options["target"] = Options.of(f"target={options['target']}").target
    text = str(Options(**options))
    return str(MeasureAt(f"{measure.NAME}({text})" if text else measure.NAME, measure.params.get("cutoff")))
