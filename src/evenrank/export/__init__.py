"""Rankers into production: written for search engines and runtimes, and checked in the engine's own arithmetic.

Each ``to_…`` takes a ranker of evenrank, of LightGBM or of XGBoost and gives an `Exported`: the model's definition, its
feature set and the upload request. `Exported.score` and `emulate` give the scores that the engine will give, with its
widths of numbers, its comparisons and its rules for missing values; `check` compares them with ``predict``.
"""

from evenrank.export.check import Checked, check
from evenrank.export.emulate import ENGINES, emulate
from evenrank.export.exported import Exported
from evenrank.export.fastar import fastar_table
from evenrank.export.onnx import to_onnx
from evenrank.export.plugins import to_elasticsearch, to_opensearch, to_ranklib
from evenrank.export.solr import to_solr
from evenrank.export.vespa import to_vespa

WRITERS = {
    "opensearch": to_opensearch,
    "elasticsearch": to_elasticsearch,
    "solr": to_solr,
    "vespa": to_vespa,
    "ranklib": to_ranklib,
    "onnx": to_onnx,
}

__all__ = [
    "ENGINES",
    "WRITERS",
    "Checked",
    "Exported",
    "check",
    "emulate",
    "fastar_table",
    "to_elasticsearch",
    "to_onnx",
    "to_opensearch",
    "to_ranklib",
    "to_solr",
    "to_vespa",
]
