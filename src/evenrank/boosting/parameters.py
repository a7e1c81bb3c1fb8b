"""Which parameters of LightGBM and XGBoost a model file keeps: those of learning, never those of the machine.

A file may come from anywhere. What it says about threads, devices, verbosity, files to read or ways to train must have
no effect on whoever loads it (docs/decisions/0013-model-files.md). Parameters outside these lists are left out when a
model is saved and passed over when it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenrank.errors import ConfigError

LIGHTGBM = frozenset(
    [
        "objective",
        "boosting_type",
        "num_leaves",
        "max_depth",
        "learning_rate",
        "n_estimators",
        "subsample_for_bin",
        "min_split_gain",
        "min_child_weight",
        "min_child_samples",
        "subsample",
        "subsample_freq",
        "colsample_bytree",
        "reg_alpha",
        "reg_lambda",
        "random_state",
        "importance_type",
        "bagging_fraction",
        "bagging_freq",
        "bagging_seed",
        "bagging_by_query",
        "feature_fraction",
        "feature_fraction_bynode",
        "feature_fraction_seed",
        "data_sample_strategy",
        "top_rate",
        "other_rate",
        "extra_trees",
        "extra_seed",
        "data_random_seed",
        "objective_seed",
        "drop_rate",
        "max_drop",
        "skip_drop",
        "xgboost_dart_mode",
        "uniform_drop",
        "drop_seed",
        "min_data_in_leaf",
        "min_sum_hessian_in_leaf",
        "min_gain_to_split",
        "lambda_l1",
        "lambda_l2",
        "max_delta_step",
        "path_smooth",
        "linear_tree",
        "linear_lambda",
        "min_data_per_group",
        "max_cat_threshold",
        "cat_l2",
        "cat_smooth",
        "max_cat_to_onehot",
        "monotone_constraints",
        "monotone_constraints_method",
        "monotone_penalty",
        "interaction_constraints",
        "feature_contri",
        "refit_decay_rate",
        "cegb_tradeoff",
        "cegb_penalty_split",
        "max_bin",
        "min_data_in_bin",
        "bin_construct_sample_cnt",
        "is_enable_sparse",
        "enable_bundle",
        "use_missing",
        "zero_as_missing",
        "feature_pre_filter",
        "sigmoid",
        "lambdarank_truncation_level",
        "lambdarank_norm",
        "lambdarank_position_bias_regularization",
        "label_gain",
        "boost_from_average",
        "deterministic",
        "use_quantized_grad",
        "num_grad_quant_bins",
        "quant_train_renew_leaf",
        "stochastic_rounding",
    ]
)
XGBOOST = frozenset(
    [
        "objective",
        "booster",
        "tree_method",
        "n_estimators",
        "max_depth",
        "max_leaves",
        "max_bin",
        "grow_policy",
        "learning_rate",
        "gamma",
        "min_child_weight",
        "max_delta_step",
        "subsample",
        "sampling_method",
        "colsample_bytree",
        "colsample_bylevel",
        "colsample_bynode",
        "reg_alpha",
        "reg_lambda",
        "scale_pos_weight",
        "base_score",
        "random_state",
        "missing",
        "num_parallel_tree",
        "monotone_constraints",
        "interaction_constraints",
        "importance_type",
        "enable_categorical",
        "feature_types",
        "max_cat_to_onehot",
        "max_cat_threshold",
        "sample_type",
        "normalize_type",
        "rate_drop",
        "one_drop",
        "skip_drop",
        "feature_selector",
        "top_k",
        "lambdarank_pair_method",
        "lambdarank_num_pair_per_sample",
        "lambdarank_normalization",
        "lambdarank_score_normalization",
        "lambdarank_unbiased",
        "lambdarank_bias_norm",
        "ndcg_exp_gain",
    ]
)


def kept(parameters: Mapping[str, Any], library: frozenset[str], ours: tuple[str, ...]) -> dict[str, Any]:
    """Pick the parameters that a model file keeps; those that are not set stay out of it."""
    return {
        name: value
        for name, value in parameters.items()
        if (name in library or name in ours) and value is not None and value == value
    }


def changes_prediction(name: str) -> bool:
    """Tell whether a parameter of LightGBM's changes what `predict` gives, as ``num_iteration_predict`` does."""
    return name.startswith("pred_") or name.startswith("predict_") or name.endswith("_predict")


def refuse_prediction_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that a model file has no place for and whose loss would change scores."""
    strange = [name for name, value in parameters.items() if changes_prediction(name) and value is not None]
    if strange:
        raise ConfigError(f"{strange[0]} changes predictions and has no place in a model file. Pass it to predict.")
