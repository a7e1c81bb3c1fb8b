"""Reference outputs of published packages and engines, whose files are kept beside the project.

The folder is ``$EVENRANK_GOLDEN``, by default ``../shared/golden`` beside the repository. Tests run on every case that
the files hold, so that other files of the same layout are other tests; where the folder is absent they skip.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

VARIABLE = "EVENRANK_GOLDEN"
Case = dict[str, Any]
TEXTS = {None: nan, "inf": inf, "-inf": -inf}
FOLDER = Path(os.environ.get(VARIABLE) or Path(__file__).parents[2] / "shared" / "golden")


def golden(kind: str, key: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a test and run it on each ``case`` in the list under ``key`` of the files ``kind*.json`` of the folder.

    ``kind`` may name a folder too, as "rerankers/fairco". Without ``key`` a file is a list of cases, or one case.
    """
    cases = [
        pytest.param(case, id=f"{path.stem}-{case.get('name', number)}")
        for path in sorted(FOLDER.glob(f"{kind}*.json"))
        for number, case in enumerate(_cases(json.loads(path.read_text(encoding="utf-8")), key))
    ]
    if not cases:
        reason = f"no cases {key or ''!r} in {FOLDER / kind}*.json; set {VARIABLE} to the folder of reference outputs"
        cases = [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=reason))]

    def mark(test: Callable[..., Any]) -> Callable[..., Any]:
        return pytest.mark.golden(pytest.mark.parametrize("case", cases)(test))

    return mark


def _cases(content: Any, key: str | None) -> list[Any]:
    if key is not None:
        return list(content.get(key, []))
    return content if isinstance(content, list) else [content]


def numbers(value: Any) -> Any:
    """A golden value with its null and infinities as numbers."""
    if isinstance(value, list):
        return np.array([numbers(part) for part in value], float)
    return TEXTS.get(value, value) if value is None or isinstance(value, str) else value


def agrees(value: Any, expected: Any, rel: float = 1e-9) -> None:
    """Assert that a value is the golden one."""
    np.testing.assert_allclose(np.asarray(value, float), numbers(expected), rtol=rel, atol=1e-12, equal_nan=True)
