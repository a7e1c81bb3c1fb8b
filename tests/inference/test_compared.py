"""Two rankers compared: the change of the absolute gap and its interval by brute force; gaps of opposite sign."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from evenrank.inference import compared

GAPS = st.floats(-0.5, 0.5)


def influences(seed: int, clusters: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal(clusters)
    made = 0.01 * (shared + rng.standard_normal((2, clusters)))
    return tuple(made - made.mean(axis=1, keepdims=True))  # type: ignore[return-value]


@given(GAPS, GAPS, st.integers(0, 10**6))
def test_intervals_are_ranges_and_agree_with_their_p_values(gap_a: float, gap_b: float, seed: int) -> None:
    a, b = influences(seed)
    result = compared(gap_a, a, gap_b, b)
    assert result.difference == pytest.approx(gap_b - gap_a)
    assert result.change == pytest.approx(abs(gap_b) - abs(gap_a))
    assert (result.p <= 0.05) == (not result.low < 0 < result.high)
    assert (result.change_p <= 0.05) == (not result.change_low <= 0 <= result.change_high)
    assert result.change_low - 1e-12 <= result.change <= result.change_high + 1e-12
    sums = compared(-gap_a, -a, gap_b, b)
    differences = np.linspace(result.low, result.high, 101)[:, None]
    totals = np.linspace(sums.low, sums.high, 101)
    change = np.abs(totals + differences) / 2 - np.abs(totals - differences) / 2
    assert (result.change_low, result.change_high) == pytest.approx((change.min(), change.max()))


def test_the_signed_test_is_the_paired_t_test() -> None:
    rng = np.random.default_rng(4)
    a, b = 0.1 + rng.standard_normal(30), 0.6 + rng.standard_normal(30)
    result = compared(a.mean(), (a - a.mean()) / 30, b.mean(), (b - b.mean()) / 30)
    assert result.p == pytest.approx(ttest_1samp(b - a, 0).pvalue)


def test_equal_gaps_of_opposite_sign_differ_and_their_size_does_not() -> None:
    a, b = influences(1)
    result = compared(0.4, a, -0.4, b)
    assert result.p < 1e-6
    assert result.change_p > 0.5
    assert result.change_low < 0 < result.change_high


def test_one_cluster_says_nothing() -> None:
    result = compared(0.1, np.array([0.0, 0.2]), 0.3, np.array([0.0, 0.1]))
    assert (result.decidable, result.p, result.change_p) == (False, 1.0, 1.0)
