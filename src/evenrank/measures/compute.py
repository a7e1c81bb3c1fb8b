"""`measure`: named measures of scores, for one ranking or many at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_k, choose
from evenrank.contrasts import ACROSS
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.measures.ask import MeasureLike, ask_all
from evenrank.measures.evaluation import Evaluation, divide
from evenrank.measures.options import Options
from evenrank.measures.registry import Asked
from evenrank.ranking import Ranking
from evenrank.row_checks import as_array, as_floats, number_array, unmasked

MODEL_CHUNK = 1 << 22  # values that are worked on at a time
TOGETHER, LARGEST = 4, 1 << 25  # models that share the work on their rows, as long as there are not too many values
GAINS = ("linear", "exponential")


def measure(
    scores: ArrayLike,
    data: RankingData | None = None,
    measures: Iterable[MeasureLike] | MeasureLike = ("ndcg@5", "precision@5", "dp@5", "eop@5", "eod@5"),
    *,
    relevance: ArrayLike | None = None,
    group: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    chances: ArrayLike | None = None,
    relevance_threshold: float = 1.0,
    per_query: bool = False,
    ties: str = "average",
    gain: str = "linear",
    across: str = "mean",
    discount: str | None = None,
    target: Any = None,
    patience: float | None = None,
    stop: float | None = None,
    step: int | None = None,
    protected: Any = None,
    among: str | None = None,
    smoothing: float | None = None,
) -> dict[str, Any]:
    """Measure scores given in the caller's row order.

    Parameters
    ----------
    scores : array-like
        (n,), or (n, models) for several models, or (n, models, samples) for several rankings per model, over which the
        exposure and the selection of each row are averaged.
    data : RankingData, optional
        The rows that the scores are of; or else their ``relevance``, ``group`` and ``qid``.
    measures : str, Notion, callable, or an iterable of them
        Names such as "ndcg@3", "precision@3", "recall@3", "mrr", "dp@3", "eop@3", "eod@3", "exposure_gap",
        "four_fifths@3"; `measures_table` lists them all. Options may stand in brackets after a name, as in
        "exposure_gap@3(discount=rbp,patience=0.8)". A notion of your own is given as a pair with its cut-off,
        ``(notion, 3)``, and a function of scores and data as it is, see `Measure.of`.
    relevance, group, qid : array-like, optional
        Without ``data``: the relevance, group label and query id of each row, (n,), in any order. Without relevance it
        is 0 everywhere, and without query ids all rows are one list.
    chances : array-like, optional
        How likely each of several rankings per model is: (samples,), or (q, samples) in the order of
        ``data.query_ids``; each list's add up to 1. Without it all are alike.
    relevance_threshold : float
        Without ``data``: relevance at or above it is relevant.
    per_query : bool
        Give the value of each query, (q,) or (q, models) in the order of ``data.query_ids``; NaN where a query has
        none.
    ties : str
        "average" (the exact expectation over random tie-breaking) or "input" (the order of the rows).
    gain : str
        "linear" or "exponential" (2ʳ − 1), for NDCG.
    across : str
        How more than two groups are combined: "mean" over all pairs, or "max".
    discount, target, patience, stop, step, protected, among, smoothing : optional
        Options of the measures, see `Options`, for all of them that take the option; one in brackets goes first.

    Returns
    -------
    dict
        Name → float, or (models,) for a matrix of scores.

    Examples
    --------
    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 0, 1], ["a", "a", "b"], [1, 1, 1])
    >>> measure([3.0, 2.0, 1.0], data, ["precision@2", "eop@2"])
    {'precision@2': 0.5, 'eop@2': 1.0}
    >>> measure([3.0, 2.0, 1.0], relevance=[1, 0, 1], qid=[1, 1, 1], measures="precision@2")
    {'precision@2': 0.5}
    """
    data = _rows(scores, data, relevance, group, qid, relevance_threshold)
    choose(gain, GAINS, what="gain")
    choose(across, ACROSS, what="across")
    by_name = ask_all(measures)
    names = list(by_name)
    common = Options(discount, target, patience, stop, step, protected, among, smoothing)
    asked = chosen_options(list(by_name.values()), common)
    stored = data.to_stored(scores, samples=True)
    likely = None if chances is None else _chances(chances, data, stored)
    shared: dict[Any, Any] = {}

    def of(block: NDArray[Any]) -> list[NDArray[Any]]:
        ev = Evaluation.of(block, data, ties=ties, gain=gain, across=across, shared=shared, chances=likely)
        return [
            item.per_query(ev.with_options(options), k) if per_query else item.value(ev.with_options(options), k)
            for item, k, options in asked
        ]

    if stored.ndim == 1:
        values = of(stored)
        return {name: value if per_query else float(value) for name, value in zip(names, values, strict=True)}
    parts = [of(block) for block in model_blocks(stored)]
    return {name: np.concatenate(part, axis=-1) for name, part in zip(names, zip(*parts, strict=True), strict=True)}


def chosen_options(asked: Sequence[Asked], common: Options) -> list[Asked]:
    """Complete the options of measures by those of the call and by each measure's own choice.

    Parameters
    ----------
    asked : sequence of Asked
        The measures, with the options in their names.
    common : Options
        The options of the call; one that no measure takes is an error.

    Returns
    -------
    list of Asked
        The measures, with the options they are computed with.
    """
    for option in common.given():
        if asked and not any(option in item.measure.options for item in asked):
            names = ", ".join(item.measure.name for item in asked)
            raise ConfigError(f"{option}= is an option of none of the measures {names}; leave it out.")
    return [item._replace(options=item.measure.chosen(item.options, common)) for item in asked]


def _chances(chances: ArrayLike, data: RankingData, stored: NDArray[Any]) -> NDArray[np.float64]:
    """Check the chances of the samples, and give them per list, (q, samples)."""
    if stored.ndim != 3:
        raise ConfigError(f"chances= are those of several rankings, scores (n, models, samples); got {stored.shape}.")
    given = as_floats(as_array(chances, "chances"), "chances")
    samples = stored.shape[2]
    if given.shape not in ((samples,), (data.n_queries, samples)):
        raise DataError(
            f"chances must be ({samples},) or ({data.n_queries}, {samples}), one per ranking; got {given.shape}."
        )
    sums = given.sum(axis=-1)
    if (given < 0).any() or not np.allclose(sums, 1.0, rtol=0, atol=1e-6):
        raise DataError(f"chances must be at least 0 and add up to 1 in each list; got sums from {sums.min():g}.")
    return np.broadcast_to(given, (data.n_queries, samples))


def _rows(
    scores: ArrayLike, data: RankingData | None, relevance: Any, group: Any, qid: Any, threshold: float
) -> RankingData:
    """The rows of `measure`: those given, or made of their columns."""
    if isinstance(data, RankingData):
        if any(part is not None for part in (relevance, group, qid)):
            raise ConfigError("measure(scores, data) takes relevance, group and qid from the data; leave them out.")
        return data
    if data is not None:
        raise ConfigError(
            f"data must be a RankingData; got {type(data).__name__}. Pass relevance=, group= and qid= by name, and "
            "names of measures as measures=."
        )
    if relevance is None and group is None and qid is None:
        raise ConfigError("measure needs data, or relevance=, group= and qid=, one value per row; got neither.")
    n = len(number_array(scores, "scores")) if np.ndim(unmasked(scores, "scores")) else 0
    return RankingData.from_arrays(
        np.empty((n, 0)),
        np.zeros(n) if relevance is None else relevance,
        group,
        np.zeros(n, np.int64) if qid is None else qid,
        relevance_threshold=threshold,
    )


def model_blocks(stored: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Cut (n, models, …) values into blocks of a few models, so that what is computed from a block stays small."""
    size = stored[:, 0].size
    step = max(1, MODEL_CHUNK // size, min(TOGETHER, LARGEST // size))
    for start in range(0, stored.shape[1], step):
        yield stored[:, start : start + step]


def measure_with_rates(
    scores: ArrayLike, data: RankingData, measures: Sequence[MeasureLike], rates: Mapping[str, tuple[int, str]]
) -> dict[str, NDArray[Any]]:
    """Measure scores and take the groups' selection rates from the same ranking.

    Parameters
    ----------
    scores : array-like
        (n, models), in the caller's row order.
    data : RankingData
        The rows that the scores are of.
    measures : sequence of str, Notion or callable
        The measures, as in `measure`.
    rates : mapping
        The rates wanted: name → (k, among), as in `selection_rates`.

    Returns
    -------
    dict
        Measure → (models,), and rate → (groups, models).
    """
    by_name = ask_all(measures)
    asked = chosen_options(list(by_name.values()), Options())
    shared: dict[Any, Any] = {}
    parts = []
    for block in model_blocks(data.to_stored(scores)):
        ev = Evaluation.of(block, data, shared=shared)
        part = [item.value(ev.with_options(options), k) for item, k, options in asked]
        parts.append(part + [group_rates(ev.ranking, data, k, among) for k, among in rates.values()])
    names = [*by_name, *rates]
    return {name: np.concatenate(part, axis=-1) for name, part in zip(names, zip(*parts, strict=True), strict=True)}


def selection_rates(
    scores: ArrayLike, data: RankingData, k: int, *, among: str = "all", ties: str = "average"
) -> dict[Any, Any]:
    """Compute the share of each group's items that are in the top k.

    Parameters
    ----------
    scores : array-like
        (n,) or (n, models), in the caller's row order.
    data : RankingData
        The rows that the scores are of.
    k : int
        The cut-off.
    among : str
        Which rows count: "all", "relevant" or "irrelevant".
    ties : str
        "average" or "input", as in `measure`.

    Returns
    -------
    dict
        Group → float, or (models,) for a matrix of scores; NaN for a group with no such row.

    Examples
    --------
    >>> data = RankingData.from_arrays([[0.0]] * 3, [1, 0, 1], ["a", "a", "b"], [1, 1, 1])
    >>> selection_rates([3.0, 2.0, 1.0], data, 1)
    {'a': 0.5, 'b': 0.0}
    """
    check_k(k)
    stored = data.to_stored(scores)
    rates = group_rates(Ranking(stored, data.query_ptr, ties=ties), data, k, among)
    return {name: float(rate) if stored.ndim == 1 else rate for name, rate in zip(data.group_names, rates, strict=True)}


def group_rates(ranking: Ranking, data: RankingData, k: int, among: str = "all") -> NDArray[np.float64]:
    """Compute `selection_rates` as an array, (groups,) or (groups, models); NaN for a group with no such row."""
    strata = {"all": np.ones(data.n_rows, bool), "relevant": data.relevant, "irrelevant": ~data.relevant}
    inside = strata[choose(among, strata, what="among")]
    weight = np.ones(data.n_rows) if data.sample_weight is None else data.sample_weight
    codes = np.arange(data.n_groups)[:, None]
    member = data.group == codes if data.membership is None else data.membership.T
    share = np.where(inside, member * weight, 0.0)
    total = share.sum(axis=1)
    return divide(share @ ranking.top(k), total if ranking.first.ndim == 1 else total[:, None])
