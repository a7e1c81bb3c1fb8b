"""AWRF and skew in an audit: those of the registry, from sums; with intervals, or without and why."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.audits.list_shares import CHUNK, SHARES, list_shares

pytestmark = pytest.mark.filterwarnings("ignore::evenrank.DataWarning")
NAMES = [name.replace("(", "@{k}(") if "(" in name else name + "@{k}" for name in SHARES]


def rankings(lengths, group, items=None, weight=None):
    query = np.repeat(np.arange(len(lengths)), lengths)
    n = len(query)
    relevance = np.arange(n) % 2
    return er.RankingData.from_arrays(np.zeros((n, 1)), relevance, group, query, item_ids=items, sample_weight=weight)


@given(st.data())
def test_lists_have_the_values_of_the_registry(data):
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    n = sum(lengths)
    group = data.draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=n, max_size=n))
    scores = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), float)
    ks = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3, unique=True))
    rows = rankings(lengths, group)
    if rows.n_groups < 2:
        return
    summary = er.audits.Summary.of(scores, rows, ks)
    for cut, k in enumerate(summary.ks):
        found = list_shares(summary, cut)
        for name, pattern in zip(SHARES, NAMES, strict=True):
            expected = er.measure(scores, rows, [pattern.format(k=k)], per_query=True)
            np.testing.assert_allclose(found[name], next(iter(expected.values())), atol=1e-12)


def test_lists_in_chunks_and_soft_groups_have_the_same_values(monkeypatch):
    rng = np.random.default_rng(0)
    rows = rankings([7] * 30, rng.choice(["a", "b"], 210))
    scores = rng.normal(size=210)
    summary = er.audits.Summary.of(scores, rows, [3])
    whole = list_shares(summary, 0)
    assert CHUNK > 30 * 2
    monkeypatch.setattr("evenrank.audits.list_shares.CHUNK", 8)
    for name, values in list_shares(summary, 0).items():
        assert (values == whole[name]).all()
    soft = rows.with_membership(rng.dirichlet([1, 1], 210), ["a", "b"])
    found = list_shares(er.audits.Summary.of(scores, soft, [3]), 0)
    for name, pattern in zip(SHARES, NAMES, strict=True):
        expected = er.measure(scores, soft, [pattern.format(k=3)], per_query=True)
        np.testing.assert_allclose(found[name], next(iter(expected.values())), atol=1e-12)


def test_intervals_are_students_over_clusters():
    from scipy.stats import t

    rng = np.random.default_rng(1)
    group, scores = rng.choice(["a", "b"], 400), rng.normal(size=400)
    rows = rankings([10] * 40, group)
    users = np.repeat(np.arange(8), 50)
    by_list = er.measure(scores, rows, ["awrf@3(discount=log2)"], per_query=True)["awrf@3(discount=log2)"]
    for cluster, means in ((None, by_list), (users, by_list.reshape(8, 5).mean(axis=1))):
        (found,) = er.audit(scores, rows, [3], cluster=cluster).find("awrf(discount=log2)")
        error = means.std(ddof=1) / np.sqrt(len(means))
        reach = t.ppf(0.975, len(means) - 1) * error
        assert found.interval.estimate == pytest.approx(by_list.mean())
        assert (found.interval.low, found.interval.high) == pytest.approx(
            (by_list.mean() - reach, by_list.mean() + reach)
        )


def test_intervals_keep_to_the_range_of_the_measure():
    """Two lists that hardly differ from even ones."""
    rng = np.random.default_rng(5)
    rows = rankings([40] * 2, rng.choice(["a", "b"], 80))
    audit = er.audit(rng.normal(size=80), rows, [20])
    awrf, high, low = (audit.find(name)[0].interval for name in SHARES)
    assert awrf.high == 1.0
    assert high.low == 0.0
    assert low.high == 0.0


def said(*args, **options) -> str:
    return " ".join(er.audit(*args, **options).text().split())


def test_endless_skew_and_recurring_items_have_no_interval_and_it_is_said():
    rng = np.random.default_rng(2)
    group, scores = rng.choice(["a", "b"], 200), rng.normal(size=200)
    rows = rankings([5] * 40, group)
    text = said(scores, rows, [2])
    assert "−∞: the top k of some list has none of a group" in text
    assert "Items recur, so that lists" not in text
    # each list has both groups at every second place: none is left out of the top 2
    even = rankings([4] * 40, ["a", "b"] * 80)
    text = said(np.tile([4.0, 3, 2, 1], 40), even, [2])
    assert "−∞" not in text
    assert "lowest skew (0 is even) 0.000" in text
    again = rankings([5] * 40, np.tile(["a", "b", "a", "b", "a"], 40), items=np.tile(np.arange(5), 40))
    text = said(scores, again, [2])
    assert "Items recur, so that lists are not independent: there are no intervals." in text


def test_rows_with_weights_have_none():
    rng = np.random.default_rng(3)
    rows = rankings([5] * 40, rng.choice(["a", "b"], 200), weight=rng.uniform(1, 2, 200))
    assert not er.audit(rng.normal(size=200), rows, [2]).find("awrf(discount=log2)")
    assert "AWRF" not in said(rng.normal(size=200), rows, [2])


def test_a_log_without_labels_has_parity_exposure_awrf_and_skew_and_says_what_it_cannot_judge():
    rng = np.random.default_rng(4)
    rows = rankings([5] * 40, rng.choice(["a", "b"], 200))
    audit = er.audit(rng.normal(size=200), rows, [2], labelled=False)
    assert {finding.measure for finding in audit.findings} == {"demographic_parity", "exposure_gap", "four_fifths"}
    assert {finding.measure for finding in audit.shares} == set(SHARES)
    text = " ".join(audit.text().split())
    assert "Equal opportunity, equalized odds and the quality of the ranking cannot be judged" in text
    named = [share["measure"] for share in audit.to_dict()["shares"]]
    assert list(er.measure(np.zeros(200), rows, named)) == named  # every name is one of the registry


def test_intervals_with_unknown_groups_are_not_cut_at_0_and_missing_ones_say_why():
    """Two items of unknown group come first, so that a and b share two of the top four places."""
    rng = np.random.default_rng(0)
    lists = 40
    group = np.array([None, None, "a", "a", "b", "b"] * lists, object)
    scores = rng.random(6 * lists) + np.tile([5, 4, 0, 0, 0, 0], lists)
    data = er.RankingData.from_arrays(
        np.zeros((len(scores), 0)), np.zeros(len(scores)), group, np.repeat(np.arange(lists), 6)
    )
    report = er.audit(scores, data, [4], labelled=False)
    highest, lowest = (report.find(name)[0].interval for name in ("max_skew", "min_skew"))
    assert highest.estimate == pytest.approx(er.measure(scores, data, "max_skew@4")["max_skew@4"])
    assert highest.low < highest.estimate < highest.high < 0
    assert np.isnan(lowest.low)
    assert (lowest.method, lowest.reason) == ("none", "the value of some lists is infinite")
