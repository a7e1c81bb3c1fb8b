"""Fair learning to rank: train rankers that treat groups evenly, see what that costs, know whether it will hold."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

# Where each public name lives; it is imported when first used, so that `import evenrank` is fast and silent.
_NAMES = {
    "RankingData": "data",
    "Ranking": "ranking",
    "Notion": "notions",
    "Contrast": "contrasts",
    "violation": "notions",
    "read": "io",
    "scan": "io",
    "RankingFiles": "io",
    "measure": "measures",
    "MeasureAt": "measures",
    "Measure": "measures",
    "Options": "measures",
    "measures_table": "measures",
    "joint_groups": "measures",
    "selection_rates": "measures",
    "by_group": "group_table",
    "interval": "confidence",
    "intervals": "confidence",
    "Interval": "confidence",
    "compare": "comparisons",
    "Comparison": "comparisons",
    "PairComparison": "comparisons",
    "noticeable": "planning",
    "Noticeable": "planning",
    "Moments": "moments",
    "fairness_path": "linear.path",
    "FairnessPath": "linear.path",
    "strength_grid": "linear.strengths",
    "FairLinearRanker": "linear.ranker",
    "DELTR": "linear.deltr",
    "deltr_path": "linear.deltr_path",
    "FAStar": "rerankers.fastar",
    "FairController": "rerankers.controller",
    "GroupOffset": "rerankers.offset",
    "QuantileMatch": "rerankers.quantiles",
    "QuantileBarycentre": "rerankers.quantiles",
    "EqualOpportunityTransform": "rerankers.opportunity",
    "DetRanker": "rerankers.det",
    "MultinomialFAStar": "rerankers.multinomial",
    "ExposureRanker": "rerankers.exposure",
    "StochasticRanking": "rerankers.exposure",
    "EquityOfAttention": "rerankers.attention",
    "FairnessSpec": "rankers.spec",
    "QueryKFold": "rankers.selection",
    "ranking_scorer": "rankers.selection",
    "NotFittedError": "rankers.base",
    "load": "methods.load",
    "Method": "methods.method",
    "METHODS": "methods.registry",
    "sweep": "page.report",
    "Sweep": "page.report",
    "About": "experiment.about",
    "Trial": "experiment.trials",
    "Curve": "experiment.curves",
    "Titles": "experiment.examples",
    "bench": "page.bench",
    "Bench": "page.bench",
    "BenchData": "leaderboard.plan",
    "Standing": "leaderboard.result",
    "select": "experiment.select",
    "Choice": "experiment.choice",
    "Outcome": "experiment.choice",
    "HeldOut": "experiment.choice",
    "audit": "page.audit",
    "Audit": "page.audit",
    "Finding": "audits.parts",
    "Rate": "audits.parts",
    "audit_page": "page.audit",
    "monitor": "page.monitor",
    "Monitor": "monitoring.monitor",
    "Monitored": "page.monitor",
    "bias_audit": "page.bias_audit",
    "BiasAudit": "page.bias_audit",
    "bias_audit_page": "page.bias_audit",
    "report_page": "page.report",
    "EvenrankError": "errors",
    "DataError": "errors",
    "ConfigError": "errors",
    "MissingExtraError": "errors",
    "DataWarning": "errors",
}
_MODULES = (
    "audits",
    "bounds",
    "datasets",
    "duckdb",
    "export",
    "io",
    "ir_measures",
    "lightgbm",
    "spark",
    "targets",
    "torch",
    "xgboost",
)

__all__ = ["__version__", *_NAMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(import_module(f"evenrank.{_NAMES[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"evenrank.{name}")
    else:
        raise AttributeError(f"module 'evenrank' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
