"""Measures of quality and fairness, named as text: ``"ndcg@3"``, ``"eop@3"``, ``"exposure_gap"``.

Each is a function of two values of a row, its selection probability in the top k and its exposure, so that ties are
exact expectations and many models are measured at once.
"""

from evenrank.measures.ask import MeasureLike, ask, ask_all, listed_measures
from evenrank.measures.compute import measure, measure_with_rates, selection_rates
from evenrank.measures.entry import Measure
from evenrank.measures.evaluation import Evaluation
from evenrank.measures.joint import joint_groups
from evenrank.measures.named import MeasureAt, measure_names
from evenrank.measures.options import Options
from evenrank.measures.registry import MEASURE_ALIASES, MEASURES, Asked, parse_measure
from evenrank.measures.table import measures_table

__all__ = [
    "MEASURES",
    "MEASURE_ALIASES",
    "Asked",
    "Evaluation",
    "Measure",
    "MeasureAt",
    "MeasureLike",
    "Options",
    "ask",
    "ask_all",
    "joint_groups",
    "listed_measures",
    "measure",
    "measure_names",
    "measure_with_rates",
    "measures_table",
    "parse_measure",
    "selection_rates",
]
