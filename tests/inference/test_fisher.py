"""Fisher's exact test and differences in standard deviations, against plain twins and scipy's own."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.inference import fisher, standard_deviations


def by_hand(x_a: int, n_a: int, x_b: int, n_b: int) -> float:
    """All tables with these margins that are no likelier, counted as whole numbers."""
    selected = x_a + x_b
    ways = {
        x: math.comb(n_a, x) * math.comb(n_b, selected - x)
        for x in range(max(0, selected - n_b), min(n_a, selected) + 1)
    }
    return sum(number for number in ways.values() if number <= ways[x_a]) / sum(ways.values())


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_fisher_is_that_of_whole_numbers(n_a, n_b, data):
    x_a, x_b = data.draw(st.integers(0, n_a)), data.draw(st.integers(0, n_b))
    assert fisher(x_a, n_a, x_b, n_b) == pytest.approx(by_hand(x_a, n_a, x_b, n_b), rel=1e-9)


def test_fisher_is_that_of_scipy_and_takes_large_numbers():
    stats = pytest.importorskip("scipy.stats")
    for x_a, n_a, x_b, n_b in ((3, 1_261, 297, 10_929), (50, 92, 34, 76), (400_000, 1_000_000, 99_500, 250_000)):
        expected = stats.fisher_exact([[x_a, n_a - x_a], [x_b, n_b - x_b]]).pvalue
        assert fisher(x_a, n_a, x_b, n_b) == pytest.approx(expected, rel=1e-5)


def test_nothing_to_compare_is_no_difference():
    assert fisher(0, 5, 0, 9) == fisher(5, 5, 9, 9) == 1
    assert standard_deviations(0, 5, 0, 9) == standard_deviations(5, 5, 9, 9) == 0


def test_deviations_turn_with_the_groups():
    forward = standard_deviations(34, 76, 50, 92)
    assert forward == -standard_deviations(50, 92, 34, 76)
    assert forward == pytest.approx((34 / 76 - 50 / 92) / math.sqrt(0.5 * 0.5 * (1 / 76 + 1 / 92)))
