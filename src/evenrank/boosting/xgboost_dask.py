"""XGBoost on a Dask cluster with the fair objective: groups' sums go through XGBoost's own collective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.collective import CollectiveObjective, local_rows
from evenrank.boosting.objective import BASES, base_gradients, fairness
from evenrank.boosting.rules import POINTWISE, xgboost_rule
from evenrank.errors import ConfigError, DataError
from evenrank.extras import require
from evenrank.labels import group_codes, is_missing
from evenrank.rankers.spec import FairnessSpec
from evenrank.row_checks import listed

# The field of XGBoost's matrices that carries the groups' numbers to the workers, row by row; no ranking uses it.
CARRIER = "label_lower_bound"


class dask_objective:
    """The fair objective for ``obj`` of xgboost.dask.train: each worker has its own rows, the gaps are those of all.

    The matrix must carry the number of each row's group, from 0 (-1: unknown), as ``label_lower_bound``, and each query
    must be whole on one worker, sorted by ``qid``; `dask_fit` sees to both. Set ``base_score=0`` beside it.

    Parameters
    ----------
    objective : str
        "rank:ndcg" (the same as "lambdarank"), "rank:pairwise", "rank:map", "logistic" or "squared".
    params : dict, optional
        XGBoost's; those of LambdaRank are used.
    relevance_threshold : float
        Relevance at or above it is relevant.
    n_queries : int, optional
        The number of queries of all rows; where workers have another, some were split or taken for one, and training is
        refused.
    **options : Any
        notion, alpha, target, k, temperature and max_violation, as in `FairXGBRanker`; the scope is pooled.
    """

    def __init__(
        self,
        *,
        objective: str = "lambdarank",
        params: dict[str, Any] | None = None,
        relevance_threshold: float = 1.0,
        n_queries: int | None = None,
        **options: Any,
    ) -> None:
        self.name, self.params, self.threshold = objective, dict(params or {}), relevance_threshold
        self.n_queries = n_queries
        self.spec = fairness(**options)
        if self.spec.scope != "amortized":
            raise ConfigError(f"scope={self.spec.scope!r} is not for training on several machines; use 'amortized'.")
        self._made: CollectiveObjective | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Give the options alone: what a worker has seen is its own."""
        return {**self.__dict__, "_made": None}

    def __call__(self, scores: NDArray[Any], rows: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Give first and second derivatives, (n,) each, for scores (n,); ``rows`` is the worker's DMatrix."""
        if self._made is None:
            self._made = self._on(rows)
        return self._made(np.asarray(scores).ravel())

    def _on(self, rows: Any) -> CollectiveObjective:
        collective = require("xgboost.collective")

        def total(values: NDArray[Any]) -> NDArray[Any]:
            values = np.array(values, np.float64)  # a copy: the sum may be made in place
            return np.asarray(collective.allreduce(values.ravel(), collective.Op.SUM)).reshape(values.shape)

        relevance = np.asarray(rows.get_label(), np.float64)
        group = np.asarray(rows.get_float_info(CARRIER))
        bounds = np.asarray(rows.get_uint_info("group_ptr"), np.int64)
        # All workers or none must go on, or those that do would wait for ever.
        wrong = np.array([len(group) != len(relevance), len(bounds) < 2, not np.isfinite(group).all()], np.float64)
        faults = total(wrong)
        if faults[0] or faults[2]:
            raise ConfigError(
                f"the matrix must carry each row's group number as {CARRIER}; {faults[0] + faults[2]:.0f} workers have "
                "none. Use er.xgboost.dask_fit, or pass it to DaskDMatrix."
            )
        if faults[1]:
            raise ConfigError(
                f"the matrix must have queries; {faults[1]:.0f} workers have none. Pass qid to DaskDMatrix."
            )
        seen = int(total(np.array([len(bounds) - 1.0]))[0])
        if self.n_queries is not None and seen != self.n_queries:
            raise ConfigError(
                f"the workers have {seen} queries, the rows {self.n_queries}: some were split between workers, or "
                "taken for one. Keep each query in one partition, with a number below 2^24 of its own."
            )
        most = np.array([group.max(initial=-1)], np.float64)
        n_groups = int(np.asarray(collective.allreduce(most, collective.Op.MAX))[0]) + 1
        if n_groups < 2 and self.spec.active:
            raise ConfigError(f"a gap needs two groups; the rows of all workers have {n_groups}. Set alpha=0.")
        data = local_rows(relevance, group, bounds, n_groups, self.threshold)
        rule = None if self.name in POINTWISE else xgboost_rule(self.params, self.name)
        return CollectiveObjective(data, base_gradients(self.name, data, rule), self.spec, total)


def dask_fit(
    client: Any,
    frame: Any,
    ranker: Any,
    *,
    query: str = "qid",
    relevance: str = "relevance",
    group: str = "group",
    features: Sequence[str] | None = None,
) -> Any:
    """Train a `FairXGBRanker` on the workers of a Dask cluster.

    Rows are brought together by query, one partition per worker, in the order of their features, so that the model does
    not depend on how many workers there are, but for the rounding of sums (and XGBoost's bins of features that have
    more than ``max_bin`` values). The groups themselves say where rows are pulled, not what features tell of them on
    other queries (`FairXGBRanker.fit` in memory does that), so that the model is that of `fair_objective` given
    (relevance, groups, queries).

    Parameters
    ----------
    client : dask.distributed.Client
        The cluster.
    frame : dask.dataframe.DataFrame
        The rows.
    ranker : FairXGBRanker
        Its parameters are used, and it is trained. ``group_aware``, ``validation_fraction`` and early stopping are for
        `fit` in memory; ``max_violation`` moves the strength from round to round, as in `fair_objective`.
    query, relevance, group : str
        The columns.
    features : sequence of str, optional
        By default every other column of numbers.

    Returns
    -------
    FairXGBRanker
        The ranker itself. Its ``violation_`` is NaN: no worker has all lists.
    """
    dask_xgboost = require("xgboost.dask")
    _refuse(ranker, frame, (query, relevance, group))
    kinds = frame.dtypes.to_dict()
    taken = [name for name in kinds if name not in (query, relevance, group, "item", "score", "rank")]
    features = [name for name in taken if kinds[name].kind in "fiub"] if features is None else list(features)
    strange = [name for name in features if kinds[name].kind not in "fiub"]
    if strange or not features:
        raise DataError(f"features must be columns of numbers; got {listed(strange) or 'none'}.")
    labels = [label for label in frame[group].unique().compute().tolist() if not is_missing(label)]
    names = group_codes(labels, None, len(labels))[1] if labels else ()
    spec = FairnessSpec.of(ranker)
    if spec.active and len(names) < 2:
        raise DataError(f"a gap needs two groups; the frame has {listed(names) or 'none'}. Set alpha=0.")
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
    together = frame[[query, relevance, group, *features]].shuffle(on=query, npartitions=len(workers))
    together = together.persist()
    counts = together[query].map_partitions(_n_queries, meta=(None, "i8")).compute().tolist()
    if sum(counts) >= NUMBERS:
        raise DataError(f"XGBoost numbers queries below 2^32; the frame has {sum(counts)}. Train on fewer.")
    sorted_parts = together.map_partitions(
        _prepared,
        query,
        relevance,
        group,
        features,
        {name: code for code, name in enumerate(names)},
        [sum(counts[:number]) for number in range(len(counts))],
        meta={**{name: "f4" if kinds[name] == np.float32 else "f8" for name in features}, **ROLES},
    )
    # A partition stays whole on one worker, and so do its queries, whose numbers no other partition has.
    rows = sorted_parts.persist()
    require("distributed").wait(rows)
    roles = {role: rows[name] for role, name in (("label", LABEL), (CARRIER, GROUP))}
    # As an array: of a pandas column XGBoost rounds the numbers to 24 bits, and queries beyond would become one.
    roles["qid"] = rows[QID].to_dask_array(lengths=True)
    matrix = dask_xgboost.DaskDMatrix(client, rows[features], **roles, missing=ranker.missing)
    params = ranker.get_xgb_params()
    if params.get("base_score") is None:
        params["base_score"] = 0.0
    name = ranker.objective
    options = {
        field: getattr(spec, field) for field in ("notion", "alpha", "target", "k", "temperature", "max_violation")
    }
    fair = dask_objective(
        objective=name,
        params=ranker.get_params(),
        relevance_threshold=ranker.relevance_threshold,
        n_queries=sum(counts),
        **options,
    )
    result = dask_xgboost.train(client, params, matrix, ranker.get_num_boosting_rounds(), obj=fair, verbose_eval=False)
    ranker._Booster = result["booster"]
    ranker.feature_names_, ranker.group_names_, ranker.categories_ = tuple(features), names, {}
    ranker.alpha_, ranker.violation_, ranker.group_offset_ = float(spec.alpha), float("nan"), None
    return ranker


LABEL, QID, GROUP = "evenrank_label", "evenrank_qid", "evenrank_group"
NUMBERS = 1 << 32  # that XGBoost has for queries
ROLES = {LABEL: "f8", QID: "i8", GROUP: "f4"}


def _n_queries(ids: Any) -> Any:
    return require("pandas").Series([ids.nunique()], dtype="i8")


def _prepared(
    part: Any,
    query: str,
    relevance: str,
    group: str,
    features: list[str],
    codes: dict[Any, int],
    starts: list[int],
    partition_info: dict[str, Any] | None = None,
) -> Any:
    """A partition sorted by query, with numbers for groups and for queries, which begin at the partition's start."""
    # LambdaRank breaks ties by the order of rows, which must not be that in which the cluster delivered them.
    part = part.sort_values([query, *features, relevance], kind="stable")
    ids = part[query].to_numpy()
    out = part[features].astype({name: "f4" if part[name].dtype == np.float32 else "f8" for name in features})
    new = np.ones(len(ids), bool)
    new[1:] = ids[1:] != ids[:-1]
    out[LABEL] = part[relevance].astype("f8")
    first = 0 if partition_info is None else starts[partition_info["number"]]
    out[QID] = first + np.cumsum(new) - 1
    out[GROUP] = part[group].map(codes).astype("f4").fillna(-1.0).to_numpy()
    return out


def _refuse(ranker: Any, frame: Any, columns: tuple[str, ...]) -> None:
    """What several machines cannot do, in one line each."""
    if not hasattr(frame, "map_partitions") or not hasattr(frame, "dtypes"):
        raise ConfigError(f"frame must be a Dask DataFrame; got {type(frame).__name__}. Use fit for rows in memory.")
    if not hasattr(ranker, "get_xgb_params") or not hasattr(ranker, "notion"):
        raise ConfigError(
            f"ranker must be a FairXGBRanker; got {type(ranker).__name__}. lightgbm.dask and DaskXGBRanker train "
            "without the groups' sums of other workers."
        )
    for name in ("group_aware", "validation_fraction", "early_stopping_rounds", "callbacks"):
        if getattr(ranker, name, None):
            raise ConfigError(f"{name} is for fit in memory; leave it out of the ranker for dask_fit.")
    if ranker.scope != "amortized":
        raise ConfigError(f"scope={ranker.scope!r} is not for training on several machines; use 'amortized'.")
    if ranker.objective not in (*BASES, "rank:ndcg", "rank:pairwise", "rank:map"):
        raise ConfigError(f"objective {ranker.objective!r} is not one of ours; see FairXGBRanker.")
    absent = [name for name in columns if name not in frame.columns]
    if absent:
        raise DataError(f"column {absent[0]!r} is not in the frame; it has {listed(list(frame.columns))}.")
