"""The one place where optional dependencies are imported, with the install command when absent."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from evenrank.errors import MissingExtraError

EXTRA_OF = {
    "torch": "torch",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "numba": "lightgbm",
    "dask": "dask",
    "distributed": "dask",
    "duckdb": "duckdb",
    "pyspark": "spark",
    "ir_measures": "ir-measures",
    "huggingface_hub": "encoder",
    "onnx": "encoder",
    "onnxruntime": "encoder",
    "safetensors": "encoder",
    "tokenizers": "encoder",
    "xlsxwriter": "xlsx",
}
PACKAGE_OF = {"pyterrier": "python-terrier"}  # where pip knows a module that no extra brings by another name


def require(module: str, *, extra: str | None = None) -> ModuleType:
    """Import ``module`` or say which extra brings it; ``extra`` names one where several do.

    >>> require("json").__name__
    'json'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != top:
            raise
        extra = extra or EXTRA_OF.get(top)
        package = f"'evenrank[{extra}]'" if extra else PACKAGE_OF.get(top, top)
        raise MissingExtraError(f"{top} is not installed. Run: pip install {package}") from error
