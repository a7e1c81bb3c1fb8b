"""p-values corrected for their number: between no correction and Holm's, and exact where the answer is known."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from evenrank.inference import Residuals, adjusted
from evenrank.inference.family import correlation

CLUSTERS = 500


def residuals(table: np.ndarray) -> list[Residuals]:
    """Residuals whose rows are scaled to 1."""
    table = table / np.linalg.norm(table, axis=1, keepdims=True)
    return [Residuals(np.arange(len(row)), row.astype(np.float32)) for row in table]


def apart(number: int) -> list[Residuals]:
    return [Residuals(np.array([i]), np.ones(1, np.float32)) for i in range(number)]


def two_sided(z: np.ndarray) -> np.ndarray:
    return 2 * norm.sf(np.abs(z))


def holm(p: np.ndarray) -> np.ndarray:
    order, out = np.argsort(p), np.empty(len(p))
    out[order] = np.minimum(1, np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]))
    return out


def test_independent_hypotheses_are_sidaks_by_steps() -> None:
    z = np.array([0.3, -4.2, 2.4, 1.9, -7.0])
    p = np.sort(two_sided(z))
    expected = np.maximum.accumulate(1 - (1 - p) ** np.arange(5, 0, -1))
    np.testing.assert_allclose(np.sort(adjusted(z, apart(5))), expected, rtol=0.05)


def test_the_same_hypothesis_said_ten_times_is_one() -> None:
    same = residuals(np.ones((10, CLUSTERS)))
    z = np.full(10, 2.2)
    np.testing.assert_allclose(adjusted(z, same), two_sided(z), rtol=0.1)
    far = np.full(10, 9.0)
    np.testing.assert_allclose(adjusted(far, same), two_sided(far), rtol=0.1)


def test_correlated_deviates_have_the_multivariate_normals_tail() -> None:
    rng = np.random.default_rng(0)
    shared = rng.standard_normal(CLUSTERS)
    table = shared + 0.7 * rng.standard_normal((3, CLUSTERS))
    made = residuals(table)
    matrix = np.array([[one.values @ other.values for other in made] for one in made], dtype=float)
    np.testing.assert_allclose(correlation(made), matrix, atol=1e-6)
    np.fill_diagonal(matrix, 1.0)
    for largest in (1.5, 2.3, 3.1):
        limits = np.full(3, largest)
        inside = multivariate_normal(np.zeros(3), matrix).cdf(limits, lower_limit=-limits)
        found = adjusted(np.array([0.1, largest, 0.2]), made)[1]
        assert found == pytest.approx(1 - inside, rel=0.06)


@settings(max_examples=25)
@given(st.integers(1, 12), st.integers(0, 10**6))
def test_it_lies_between_no_correction_and_holms(number: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((number, 40)) + rng.standard_normal(40) * rng.random()
    z = 4 * rng.standard_normal(number)
    found, p = adjusted(z, residuals(table)), two_sided(z)
    assert (found >= p * (1 - 1e-9)).all()
    assert (found <= holm(p) * (1 + 1e-9)).all()
    assert (np.diff(found[np.argsort(-np.abs(z))]) >= 0).all()
    np.testing.assert_array_equal(found, adjusted(z, residuals(table)))


def test_tiny_p_values_have_no_floor() -> None:
    z = np.array([20.0, 0.5, 37.0, -30.0])
    found = adjusted(z, apart(4))
    np.testing.assert_allclose(found[[2, 3, 0]], two_sided(z[[2, 3, 0]]) * [4, 3, 2], rtol=0.1)


def test_no_hypothesis_and_one() -> None:
    assert len(adjusted([], [])) == 0
    np.testing.assert_allclose(adjusted([1.96], apart(1)), [two_sided(np.array(1.96))])


def test_codes_may_be_far_apart_and_missing() -> None:
    one = Residuals(np.array([3, 70_000]), np.array([0.6, 0.8], np.float32))
    other = Residuals(np.array([70_000, 90_001]), np.array([0.8, -0.6], np.float32))
    empty = Residuals(np.array([], np.int64), np.array([], np.float32))
    np.testing.assert_allclose(correlation([one, other, empty]), [[1, 0.64, 0], [0.64, 1, 0], [0, 0, 1]], atol=1e-6)


def test_processors_agree() -> None:
    """Equal and repeated hypotheses leave eigenvectors free; what is drawn must not depend on which a kernel gives."""
    script = (
        "import numpy as np; from evenrank.inference import Residuals, adjusted; rng = np.random.default_rng(5);"
        "table = rng.standard_normal((6, 30)); table = np.vstack([table, table[:3], -table[:2], table[0] + table[1]]);"
        "table /= np.linalg.norm(table, axis=1, keepdims=True); z = 1.5 * rng.standard_normal(len(table));"
        "print(*adjusted(z, [Residuals(np.arange(30), row) for row in table]))"
    )
    results = []
    for kernel in ("Haswell", "Prescott"):
        env = {**os.environ, "OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": "1"}
        ran = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
        results.append(np.array(ran.stdout.split(), float))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_a_last_digit_of_equal_deviates_changes_nothing() -> None:
    # Equal gaps of several pairs are common in small logs; which is the larger is up to the processor's rounding.
    rng = np.random.default_rng(4)
    made = residuals(rng.standard_normal((6, CLUSTERS)) + rng.standard_normal(CLUSTERS))
    z = np.array([0.4, 1.3, 1.3, 2.1, 1.3, 0.4])
    nudged = np.nextafter(z, [9, 0, 9, 9, 0, 9])
    np.testing.assert_array_equal(adjusted(nudged, made), adjusted(z, made))
