"""Doctests of an adapter are collected only where the library it adapts is installed."""

from __future__ import annotations

from importlib.util import find_spec

ADAPTERS = {
    "torch": ["src/evenrank/torch/*.py"],
    "lightgbm": ["src/evenrank/lightgbm.py", "src/evenrank/boosting/lightgbm_callables.py"],
    "xgboost": [
        "src/evenrank/xgboost.py",
        *(f"src/evenrank/boosting/xgboost_{name}.py" for name in ("callables", "fit")),
    ],
    "numba": [
        *(f"src/evenrank/boosting/{name}.py" for name in ("lambdarank", "soft_topk", "xendcg")),
        *(f"src/evenrank/targets/{name}.py" for name in ("compiled", "compiled_batch")),
    ],
    "onnxruntime": ["src/evenrank/features/graph.py"],
}

collect_ignore_glob = [path for library, paths in ADAPTERS.items() if find_spec(library) is None for path in paths]
