"""GroupOffset on data it was not made for: what it reports is what `er.measure` finds, and no fit raises the gap."""

import warnings

import numpy as np
import pytest

import evenrank as er
from evenrank.errors import DataWarning

SCALES = {
    "eighteen orders of size": lambda rng, n: 10.0 ** rng.uniform(-6, 12, n) * rng.choice([-1, 1], n),
    "huge beside tiny": lambda rng, n: rng.choice([1e12, 1e12 + 1, -1e12, 1e6, 0.5, 2e-3, 1e-3], n),
    "a few ulps apart": lambda rng, n: rng.choice([1, 1 + 1e-15, 1 + 2e-15, 2, 0.1, 0.3, 1e15], n),
    "all but equal": lambda rng, n: 1e9 + rng.integers(0, 5, n) * 1e-7,
    "near the end of floats": lambda rng, n: rng.choice([1e300, -1e300, 1.7e308, -1.7e308, 1.0, 2.0], n),
    "near the other end": lambda rng, n: rng.normal(size=n) * 1e-300,
    "a sentinel": lambda rng, n: np.append(rng.normal(size=n - 1), -1e30),
    "ties everywhere": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "all equal": lambda rng, n: np.full(n, 0.1),
}


def reported_as_measured(scores, data, notion, k, **options):
    """Whether the gap fell; None where the notion has nothing to compare."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            offset = er.GroupOffset(notion, k, **options).fit(scores, data)
        except er.DataError:
            return None
        name = f"{notion}@{k}"
        before, after = (er.measure(each, data, [name])[name] for each in (scores, offset.rerank(scores, data)))
    assert (offset.at(0.0).rerank(scores, data) == scores).all()
    if np.isnan(before):
        return None
    assert offset.gap_before_ == pytest.approx(before, abs=1e-9)
    assert offset.gap_after_ == pytest.approx(after, abs=1e-9)
    assert after <= before + 1e-9
    return after < before - 1e-9


OPTIONS = ({"shrink": False}, {}, {"shrink": False, "max_ndcg_loss": 0.01})


@pytest.mark.parametrize("scale", SCALES)
def test_scores_far_apart_or_too_near_for_an_offset(scale):
    rng, lowered = np.random.default_rng(0), []
    for number in range(30):
        n = int(rng.integers(4, 14))
        group = np.append(["a", "b"], rng.choice(["a", "b"], n - 2))
        data = er.RankingData.from_arrays(np.zeros((n, 0)), rng.integers(0, 2, n), group, rng.integers(0, 2, n))
        notion, k = ("dp", "eop", "eod")[number % 3], int(rng.integers(1, 4))
        lowered += [reported_as_measured(SCALES[scale](rng, n), data, notion, k, **each) for each in OPTIONS]
    assert any(lowered) or scale == "all but equal"


ROWS = {  # group, relevance, query of n rows
    "a group of 2 %": lambda rng, n: (rng.random(n) < 0.02, rng.integers(0, 2, n), np.arange(n) // 20),
    "lists of one and two": lambda rng, n: (rng.integers(0, 2, n), rng.integers(0, 2, n), rng.integers(0, n // 2, n)),
    "twelve groups": lambda rng, n: (rng.integers(0, 12, n), rng.integers(0, 2, n), np.arange(n) // 20),
    "all relevant": lambda rng, n: (rng.integers(0, 2, n), np.ones(n), np.arange(n) // 10),
    "none relevant": lambda rng, n: (rng.integers(0, 2, n), np.zeros(n), np.arange(n) // 10),
    "one list": lambda rng, n: (rng.integers(0, 2, n), rng.integers(0, 2, n), np.zeros(n)),
    "groups in lists of their own": lambda rng, n: (np.arange(n) // 10 % 2, rng.integers(0, 2, n), np.arange(n) // 10),
}


@pytest.mark.parametrize("rows", ROWS)
def test_groups_and_lists_that_leave_little_to_choose(rows):
    rng = np.random.default_rng(1)
    group, relevance, query = ROWS[rows](rng, 240)
    data = er.RankingData.from_arrays(np.zeros((240, 0)), relevance, np.asarray(group, int), query)
    scores = np.round(rng.normal(size=240) + 0.5 * (data.group == 0), 1)
    for notion in ("dp", "eop", "eod"):
        for k in (1, 5, 50):
            for options in OPTIONS:
                reported_as_measured(scores, data, notion, k, **options)


def test_a_part_of_the_way_never_raises_the_gap():
    """Between no offset and the best one, equalized odds may have a larger gap than at either."""
    rng, capped = np.random.default_rng(3), 0
    for _ in range(60):
        n = 24
        data = er.RankingData.from_arrays(
            np.zeros((n, 0)), rng.integers(0, 2, n), rng.integers(0, 3, n), np.arange(n) // 6
        )
        scores = rng.normal(size=n)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", DataWarning)
            offset = er.GroupOffset("eod", 2).fit(scores, data)
        capped += any("would not lower it; all are 0" in str(each.message) for each in said)
        assert offset.gap_after_ <= offset.gap_before_ + 1e-12
    assert capped


@pytest.mark.parametrize(
    "reranker",
    [
        er.GroupOffset("dp", 3),
        er.QuantileMatch(),
        er.QuantileBarycentre(),
        er.EqualOpportunityTransform(),
        er.FairController("dp", 3),
    ],
)
def test_data_without_groups_or_in_the_wrong_place_is_one_clear_line(reranker):
    data = er.RankingData.from_arrays(np.zeros((6, 0)), [0, 1] * 3, ["a", "b"] * 3, [0] * 6)
    scores, name = np.arange(6.0), type(reranker).__name__
    for rows, words in (
        (scores, f"{name} takes scores and then a RankingData; got ndarray"),
        (data.with_group(["a"] * 6), f"{name} needs two groups; the data has 'a'"),
        (data.with_group(None), f"{name} needs two groups; the data has none"),
    ):
        with pytest.raises(er.DataError, match=words):
            reranker.fit(scores, rows)


def test_a_controller_that_serves_rows_without_groups_says_so():
    data = er.RankingData.from_arrays(np.zeros((2, 0)), [0, 1], None, [0, 0])
    with pytest.raises(er.DataError, match="FairController needs group labels; the data has none"):
        er.FairController("dp", 1).rerank([1.0, 2.0], data)


def test_a_controller_takes_no_masked_scores_and_no_state_that_lacks_a_number():
    controller = er.FairController("eop", 1, warm={"a": 0.5})
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    with pytest.raises(er.DataError, match="row 1: scores must not be masked"):
        controller.rank(masked, ["a", "b"], relevance=[0.5, 0.5])
    with pytest.raises(er.DataError, match="row 1: relevance must not be masked"):
        controller.rank([1.0, 2.0], ["a", "b"], relevance=masked / 4)
    assert controller.served == 0
    state = controller.state()
    assert er.FairController.from_state(state).state() == state
    for name in ("notion", "k", "gain"):
        with pytest.raises(er.DataError, match=f"lacks its {name}"):
            er.FairController.from_state({**state, name: None})
    with pytest.raises(er.DataError, match="start of group 'a' must be a finite number; got nan"):
        er.FairController.from_state({**state, "offsets": [["a", float("nan")]]})


def test_maps_of_scores_too_small_for_slopes():
    rng = np.random.default_rng(0)
    scores, group, relevance = rng.integers(0, 50, 40), rng.choice(["a", "b"], 40), rng.integers(0, 2, 40)
    data = er.RankingData.from_arrays(np.zeros((40, 0)), relevance, group, np.arange(40) // 8)
    for make in (er.QuantileMatch, er.QuantileBarycentre, er.EqualOpportunityTransform):
        usual = make().fit(scores, data).rerank(scores, data)
        tiny = make().fit(scores * 2.0**-1060, data).rerank(scores * 2.0**-1060, data)
        assert tiny == pytest.approx(usual * 2.0**-1060, abs=2.0**-1060)
