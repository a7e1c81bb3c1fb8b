"""Power of t-tests against Student's t by its definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenrank.inference.students_t import beyond


def beyond_twin(freedom: float, shift: float, limit: float) -> float:
    """Student's t by its definition, (Z + shift) / √(V / freedom), averaged over a fine grid of Z."""
    z = np.linspace(-9, 9, 20_001)
    reach = (z + shift) / limit
    inside = stats.chi2.cdf(freedom * reach**2, freedom)
    return float((stats.norm.pdf(z) * inside).sum() * (z[1] - z[0]))


@pytest.mark.numeric
@pytest.mark.parametrize("freedom", [0.6, 1, 2, 5, 40, 1000])
@pytest.mark.parametrize("level", [0.05, 0.05 / 20, 0.05 / 500])
def test_power_is_that_of_students_t_at_every_shift(freedom: float, level: float) -> None:
    # scipy's sum is NaN at many of these, in other places on every processor; the normal once stood in for them.
    limit = float(stats.t.isf(level / 2, freedom))
    shifts = [0, 0.3, 1, 3, 6, 10, 17.5, 20, 28, 29, 29.999, 30, 30.001, 60, 500]
    found = [beyond(freedom, shift, limit) for shift in shifts]
    np.testing.assert_allclose(found, [beyond_twin(freedom, shift, limit) for shift in shifts], rtol=2e-4, atol=1e-6)
    assert found == sorted(found)
