"""Numbers beyond every float, and what is no number, are refused in one line wherever one is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import evenrank as er

N = 60
DATA = er.RankingData.from_arrays(
    np.random.default_rng(0).normal(size=(N, 3)), np.arange(N) % 2, np.arange(N) % 3 // 2, np.arange(N) // 10
)
SCORES = np.random.default_rng(1).normal(size=N)
ASKED: dict[str, Callable[[Any], Any]] = {
    "alphas": lambda value: er.fairness_path(DATA, "dp", [value]),
    "alpha": lambda value: er.FairLinearRanker(alpha=value).fit(DATA),
    "gamma": lambda value: er.DELTR(gamma=value, protected=0).fit(DATA),
    "learning_rate": lambda value: er.FairLinearRanker(alpha=1.0, solver="gd", learning_rate=value).fit(DATA),
    "max_violation": lambda value: er.FairLinearRanker(max_violation=value).fit(DATA),
    "strengths": lambda value: er.sweep(DATA, ["amortized"], strengths=[value]),
    "strength": lambda value: er.GroupOffset(strength=value).fit(SCORES, DATA),
    "p": lambda value: er.FAStar(p=value, protected=0),
    "significance": lambda value: er.FAStar(p=0.5, significance=value, protected=0),
    "gain": lambda value: er.FairController(gain=value).rerank(SCORES, DATA, 3),
    "k": lambda value: er.audit(SCORES, DATA, [value]),
    "confidence": lambda value: er.interval(SCORES, DATA, "dp@3", confidence=value),
    "relevance_threshold": lambda value: er.RankingData.from_arrays(
        [[1.0], [2]], [1, 0], ["a", "b"], [1, 1], relevance_threshold=value
    ),
}


@pytest.mark.parametrize(
    "value", [10**400, 10**9999, "x", float("nan")], ids=["400 digits", "9,999 digits", "x", "NaN"]
)
@pytest.mark.parametrize("name", ASKED)
def test_no_number_is_refused_in_a_line(name: str, value: Any) -> None:
    with pytest.raises(er.EvenrankError) as caught:
        ASKED[name](value)
    assert "\n" not in str(caught.value)
    assert "must be" in str(caught.value)
