"""Sums over clusters and the degrees of freedom of their variance, against the matrices written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.inference.clusters import Clustering, Covariance, cluster_freedom, size_freedom


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20), st.sampled_from([1, 10**7]))
def test_sums_over_clusters(codes: list[int], scale: int) -> None:
    values = np.arange(len(codes)) + 1.0
    clustering = Clustering.of([scale * code for code in codes])
    present = sorted(set(codes))
    assert clustering.codes.tolist() == [scale * code for code in present]
    expected = [sum(v for v, own in zip(values, codes, strict=True) if own == code) for code in present]
    assert clustering.sums(values).tolist() == expected


@given(st.lists(st.floats(0.5, 50), min_size=2, max_size=12), st.floats(0, 3), st.integers(0, 10**6))
def test_degrees_of_freedom_are_those_of_the_quadratic_form(sizes: list[float], noise: float, seed: int) -> None:
    n = np.array(sizes)
    moved = noise * n * np.random.default_rng(seed).standard_normal(len(n))
    lean = max(0.0, moved @ moved - n.sum()) / (n @ n)
    share = n / n.sum()
    left = np.diag(1 / (1 - share)) @ (np.eye(len(n)) - np.outer(share, np.ones(len(n))))
    matrix = left @ np.diag(n + lean * n**2) @ left.T
    expected = np.trace(matrix) ** 2 / (matrix**2).sum()
    assert size_freedom(n, moved, 1.0) == pytest.approx(expected, rel=1e-6)


def test_equal_clusters_have_one_less_and_one_has_none() -> None:
    ones = np.ones(10)
    assert cluster_freedom(ones, ones) == pytest.approx(9)
    assert cluster_freedom(ones[:1], ones[:1], 10.0) == pytest.approx(9)
    assert cluster_freedom(ones[:1], ones[:1]) == 0


def test_many_clusters_of_few_sizes_are_counted() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 9, 3000).astype(float)
    moved = sizes * rng.standard_normal(3000)
    lean = (moved @ moved - 0.3 * sizes.sum()) / (sizes @ sizes)
    expected = cluster_freedom(0.3 * sizes + lean * sizes**2, sizes)
    assert size_freedom(sizes, moved, 0.3) == pytest.approx(expected, rel=1e-9)
    apart = np.append(sizes, 1e6)  # a size beyond what is counted
    assert size_freedom(apart, np.append(moved, 0.0), 0.3) < 2


def test_two_clusterings_add_up_but_never_below_either() -> None:
    assert Covariance([(4.0, 1.0, 2.0)]).of_difference(2.0) == 4 - 4 + 8
    together = Covariance([(4.0, 0.0, 1.0), (2.0, 0.0, 1.0), (1.0, 0.0, 1.0)])
    assert together.of_difference() == 5 + 3 - 2
    assert together.at_one() == (5.0, 0.0, 1.0)
    assert Covariance([(4.0, 0.0, 1.0), (1.0, 0.0, 0.0), (3.0, 0.0, 1.0)]).of_difference() == 5
