"""The listwise loss that each library's parameters stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import choose
from evenrank.errors import ConfigError
from evenrank.losses import LOSSES

POINTWISE = tuple(name for name, loss in LOSSES.items() if not loss.within)
# What XGBoost's LambdaRank swaps pairs for, by objective.
XGBOOST_MEASURES = {"rank:ndcg": "ndcg", "lambdarank": "ndcg", "rank:pairwise": "pairs", "rank:map": "map"}
XGBOOST_OBJECTIVES = (*XGBOOST_MEASURES, *POINTWISE)
SAMPLED = ("lambdarank_pair_method", "lambdarank_unbiased")  # XGBoost's, of which a fair objective has the usual


def lightgbm_rule(params: dict[str, Any], objective: str = "lambdarank") -> Any:
    """Make LightGBM's LambdaRank.

    Parameters
    ----------
    params : dict
        LightGBM's; sigmoid, lambdarank_truncation_level, lambdarank_norm and label_gain are used, or objective_seed.
    objective : str
        "lambdarank" or "rank_xendcg".

    Returns
    -------
    LambdaRank or CrossEntropyNDCG
        The rule.
    """
    from evenrank.boosting.lambdarank import LambdaRank
    from evenrank.boosting.xendcg import CrossEntropyNDCG

    choose(objective, ("lambdarank", "rank_xendcg", *POINTWISE), what="objective")
    if objective == "rank_xendcg":
        return CrossEntropyNDCG(int(params.get("objective_seed") or 5))

    gains = params.get("label_gain") or ()
    if isinstance(gains, str):
        gains = [float(part) for part in gains.split(",")]
    norm = str(params.get("lambdarank_norm", True)).lower() not in ("false", "0")
    return LambdaRank(
        truncation=int(params.get("lambdarank_truncation_level", 30)),
        sigma=float(params.get("sigmoid", 1.0)),
        by_difference=norm,
        by_sum=norm,
        gains=tuple(gains),
    )


def xgboost_rule(params: dict[str, Any], objective: str = "rank:ndcg") -> Any:
    """Make XGBoost's LambdaRank.

    Parameters
    ----------
    params : dict
        XGBoost's; those whose name begins with lambdarank, and ndcg_exp_gain, are used.
    objective : str
        "rank:ndcg" (or "lambdarank"), "rank:pairwise" or "rank:map".

    Returns
    -------
    LambdaRank
        The rule.
    """
    from evenrank.boosting.lambdarank import LambdaRank

    choose(objective, XGBOOST_OBJECTIVES, what="objective")
    measure = XGBOOST_MEASURES[objective]
    if params.get("lambdarank_pair_method", "topk") != "topk" or params.get("lambdarank_unbiased", False):
        raise ConfigError(
            "a fair objective needs lambdarank_pair_method='topk' and lambdarank_unbiased=False; got "
            f"{params.get('lambdarank_pair_method', 'topk')!r} and {params.get('lambdarank_unbiased', False)!r}."
        )
    return LambdaRank(
        truncation=int(params.get("lambdarank_num_pair_per_sample") or 32),
        by_difference=bool(params.get("lambdarank_score_normalization", True)),
        by_sum=bool(params.get("lambdarank_normalization", True)),
        gains=() if params.get("ndcg_exp_gain", True) and measure == "ndcg" else None,
        library="xgboost",
        measure=measure,
    )


def check_labels(make: Callable[..., Any], params: dict[str, Any], objective: str, relevance: NDArray[Any]) -> None:
    """Refuse labels that the library's listwise loss does not take, before it does so in words of its source.

    Parameters
    ----------
    make : callable
        `lightgbm_rule` or `xgboost_rule`.
    params : dict
        The library's.
    objective : str
        Its name; those that have no rule for labels, or are not ours, pass.
    relevance : ndarray
        The labels, (n,).
    """
    if objective in ("lambdarank", "rank:ndcg", "rank:map"):
        alike = {name: value for name, value in params.items() if name not in SAMPLED}
        labels = np.unique(relevance)
        make(alike, objective).bind(labels, np.array([0, len(labels)]))
