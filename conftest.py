"""Doctests of an adapter are collected only where the library it adapts is installed."""

from __future__ import annotations

from importlib.util import find_spec

ADAPTERS = {
    "torch": ["src/evenrank/torch/*.py"],
    "lightgbm": ["src/evenrank/lightgbm.py"],
    "xgboost": ["src/evenrank/xgboost.py"],
    "numba": ["src/evenrank/boosting/lambdarank.py", "src/evenrank/boosting/soft_topk.py"],
    "onnxruntime": ["src/evenrank/features/graph.py"],
}

collect_ignore_glob = [path for library, paths in ADAPTERS.items() if find_spec(library) is None for path in paths]
