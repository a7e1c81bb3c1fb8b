"""The LambdaRank that each library's parameters stand for."""

from __future__ import annotations

from typing import Any

from evenrank.errors import ConfigError


def lightgbm_rule(params: dict[str, Any]) -> Any:
    """Make LightGBM's LambdaRank.

    Parameters
    ----------
    params : dict
        LightGBM's; sigmoid, lambdarank_truncation_level, lambdarank_norm and label_gain are used.

    Returns
    -------
    LambdaRank
        The rule.
    """
    from evenrank.boosting.lambdarank import LambdaRank

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


def xgboost_rule(params: dict[str, Any]) -> Any:
    """Make XGBoost's LambdaRank.

    Parameters
    ----------
    params : dict
        XGBoost's; those whose name begins with lambdarank, and ndcg_exp_gain, are used.

    Returns
    -------
    LambdaRank
        The rule.
    """
    from evenrank.boosting.lambdarank import LambdaRank

    if params.get("lambdarank_pair_method", "topk") != "topk" or params.get("lambdarank_unbiased", False):
        raise ConfigError(
            "a fair objective needs lambdarank_pair_method='topk' and lambdarank_unbiased=False; got "
            f"{params.get('lambdarank_pair_method', 'topk')!r} and {params.get('lambdarank_unbiased', False)!r}."
        )
    return LambdaRank(
        truncation=int(params.get("lambdarank_num_pair_per_sample") or 32),
        by_difference=bool(params.get("lambdarank_score_normalization", True)),
        by_sum=bool(params.get("lambdarank_normalization", True)),
        gains=() if params.get("ndcg_exp_gain", True) else None,
        library="xgboost",
    )
