"""What the engines themselves gave: our emulators give the same bits, and accept and refuse the same definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenrank.export.emulate import emulate
from evenrank.export.errors import Refused
from golden import golden

FAST_FOREST = 1e-12  # its sum has two parts


def table(rows: list[list[Any]], width: Any = np.float32) -> np.ndarray:
    return np.array([[np.nan if x is None else float(x) for x in row] for row in rows]).astype(width).astype(float)


def numbers(values: list[Any]) -> np.ndarray:
    return np.array([float(value) for value in values])


def scored(case: dict[str, Any], engine: str, **options: Any) -> np.ndarray:
    rows = table(case["rows"])
    if engine == "solr" and not case["model_type"].endswith("MultipleAdditiveTreesModel"):
        rows = np.nan_to_num(rows)  # their features have the default value 0
    return emulate(
        engine,
        options.pop("definition", case["model_definition"]),
        rows,
        features=case["feature_names"],
        normalizers=case.get("feature_normalizers"),
        **options,
    )


@golden("engines/es_os")
def test_the_plugins(case: dict[str, Any]) -> None:
    for engine in case["engine"]:
        np.testing.assert_array_equal(scored(case, engine), numbers(case["expected_scores"]).astype(np.float32))


@golden("engines/es_os")
def test_versions_of_opensearch(case: dict[str, Any]) -> None:
    for version, other in case.get("other_versions", {}).items():
        definition = case["model_definition"]
        if "missing_as_zero" in version:
            definition = definition.replace('{"objective"', '{"missing_as_zero":true,"objective"', 1)
        if other.get("refused"):
            with pytest.raises(Refused):
                scored(case, "opensearch", version=version.split()[1], definition=definition)
            continue
        expected = numbers(case["expected_scores"])
        expected[other["rows"]] = numbers(other["scores"])
        found = scored(case, "opensearch", version=version.split()[1], definition=definition)
        np.testing.assert_array_equal(found, expected.astype(np.float32))


@golden("engines/ranklib")
def test_ranklib(case: dict[str, Any]) -> None:
    for engine in ("ranklib", *case["engine"]):
        np.testing.assert_array_equal(scored(case, engine), numbers(case["expected_scores"]).astype(np.float32))


@golden("engines/solr")
def test_solr(case: dict[str, Any]) -> None:
    np.testing.assert_array_equal(scored(case, "solr"), numbers(case["expected_scores"]).astype(np.float32))


@golden("engines/vespa")
def test_vespa(case: dict[str, Any]) -> None:
    np.testing.assert_array_equal(scored(case, "vespa"), numbers(case["expected_scores"]))
    tolerance = FAST_FOREST * max(1.0, np.abs(numbers(case["expected_scores"])).max())
    if "expected_scores_fast_forest" in case:
        found = scored(case, "vespa", evaluator="fast_forest")
        np.testing.assert_allclose(found, numbers(case["expected_scores_fast_forest"]), rtol=0, atol=tolerance)
    for key, evaluator in (("double_expected_scores", None), ("double_expected_scores_fast_forest", "fast_forest")):
        if key in case:
            rows = table(case["double_rows"], np.float64)
            found = emulate(
                "vespa", case["model_definition"], rows, features=case["feature_names"], evaluator=evaluator
            )
            np.testing.assert_allclose(found, numbers(case[key]), rtol=0, atol=tolerance if evaluator else 0)


@golden("engines/acceptance")
def test_what_is_accepted_and_refused(case: dict[str, Any]) -> None:
    for outcome in case["outcomes"]:
        for name in outcome["by"]:
            engine, version = name.split()
            rows = table(case["rows"], np.float64 if engine == "vespa" else np.float32)
            options = {
                "features": case["features"],
                "version": version,
                "normalizers": case.get("feature_normalizers"),
                "model_type": case.get("model_type") or case.get("format"),
            }
            expected = outcome["result"]
            fails = isinstance(expected, str) or any(str(value).startswith("error") for value in expected)
            if fails:
                with pytest.raises(Refused):
                    emulate(engine, case["definition"], rows, **options)
                if isinstance(expected, str):
                    continue
                kept = [number for number, value in enumerate(expected) if not str(value).startswith("error")]
                rows, expected = rows[kept], [expected[number] for number in kept]
            found = emulate(engine, case["definition"], rows, **options)
            np.testing.assert_array_equal(found, numbers(expected).astype(found.dtype), err_msg=name)
