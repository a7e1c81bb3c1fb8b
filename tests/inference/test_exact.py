"""The exact law of selections given the lists' margins, against enumeration of every assignment."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import nchypergeom_fisher, poisson

from evenrank.inference.exact import Law, Margins
from inference_oracles import Counts, bearing, blaker, count, law_by_enumeration, tilted

SMALL = st.lists(count(), min_size=1, max_size=4)


def margins_of(counts: list[Counts]) -> Margins:
    a, b, x_a, x_b = (np.array(column, dtype=float) for column in zip(*counts, strict=True))
    return Margins.of(a, b, x_a + x_b)


def law_of(counts: list[Counts]) -> tuple[Law, int]:
    """The law, and the smallest possible number selected of group a."""
    least = sum(max(0, x_a + x_b - b) for _, b, x_a, x_b in counts)
    law = Law.of(margins_of(counts), sum(c[2] for c in counts) - least)
    assert law is not None
    return law, least


@given(SMALL, st.floats(-3, 3))
def test_every_odds_ratio_has_the_enumerated_law(counts: list[Counts], log_odds: float) -> None:
    assume(bearing(counts))
    counts = bearing(counts)
    expected = tilted(law_by_enumeration(counts), log_odds)
    below, above = law_of(counts)[0].tails(np.array([log_odds]))
    probabilities = [expected[s] for s in sorted(expected)]
    np.testing.assert_allclose(below[0], np.cumsum(probabilities), rtol=1e-9)
    np.testing.assert_allclose(above[0], np.cumsum(probabilities[::-1])[::-1], rtol=1e-9)


@given(SMALL, st.floats(-2, 2))
def test_blakers_p_value_is_its_definition(counts: list[Counts], log_odds: float) -> None:
    assume(bearing(counts))
    counts = bearing(counts)
    law, _ = law_of(counts)
    expected = blaker(tilted(law_by_enumeration(counts), log_odds), sum(c[2] for c in counts))
    assert law.p_values(np.array([log_odds]))[0] == pytest.approx(expected, rel=1e-6)


@given(SMALL)
def test_limits_hold_every_odds_ratio_that_is_not_rejected(counts: list[Counts]) -> None:
    assume(bearing(counts))
    law, _ = law_of(bearing(counts))
    low, high = law.limits(0.05)
    tried = np.linspace(law.log_odds - 8, law.log_odds + 8, 501)
    accepted = tried[law.p_values(tried) > 0.05 * (1 + 1e-6)]
    assert low - 0.02 <= accepted.min()
    assert accepted.max() <= high + 0.02
    outside = [end + step for end, step in ((low, -1e-3), (high, 1e-3)) if np.isfinite(end)]
    assert (law.p_values(np.array(outside)) <= 0.05 * (1 + 1e-2)).all()


def test_one_list_is_fishers_law() -> None:
    law, least = law_of([(12, 30, 2, 8)])
    below, _ = law.tails(np.array([log(0.4)]))
    assert least == 0
    assert below[0, 2] == pytest.approx(nchypergeom_fisher(42, 12, 10, 0.4).cdf(2), rel=1e-9)


def test_equal_lists_are_convolved_once_and_to_the_same_law() -> None:
    kinds = [(2, 3, 1, 1), (1, 4, 0, 2), (3, 3, 2, 0)]
    times = (13, 6, 5)
    mixed = [kind for kind, n in zip(kinds, times, strict=True) for _ in range(n)]
    expected = np.ones(1)
    for kind in mixed:
        own = law_by_enumeration([kind])
        expected = np.convolve(expected, [own[s] for s in sorted(own)])
    np.testing.assert_allclose(margins_of(mixed).convolved(0.0, 10**6), expected, rtol=1e-10)


def test_a_million_lists_near_the_end_need_only_their_tail() -> None:
    margins = Margins.of(np.ones(10**6), np.full(10**6, 3.0), np.ones(10**6))
    law = Law.of(margins, 4)
    assert law is not None
    assert len(law.log_law) < 1000
    assert law.p_values(np.zeros(1))[0] < 1e-300
    # with an odds ratio near 0 the number selected is Poisson with a mean of 10⁶ψ/3
    low, high = (10**6 / 3 * exp(end) for end in law.limits(0.05))
    numbers = np.arange(60)
    laws = [dict(enumerate(poisson.pmf(numbers, mean))) for mean in (low - 0.01, low + 0.01, high - 0.01, high + 0.01)]
    assert [blaker(law, 4) > 0.05 for law in laws] == [False, True, True, False]
