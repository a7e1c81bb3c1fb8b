"""`er.audit` says nothing that `er.measure`, `er.interval`, `er.compare` and `er.bounds` do not."""

from __future__ import annotations

import json
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

import evenrank as er

# Rows of `simple` are all relevant, so equalized odds is not defined on them.
pytestmark = pytest.mark.filterwarnings("ignore:equalized_odds. irrelevant rows have no item")
HOSTILE = "<script>alert('&')</script>|**x**\x1b[31m\n"


@pytest.fixture(scope="module")
def data():
    return er.datasets.german_credit("age", lists=60)


@pytest.fixture(scope="module")
def scores(data):
    return er.FairLinearRanker(alpha=0.0).fit(data).predict(data)


@pytest.fixture(scope="module")
def four():
    return er.datasets.german_credit("sex+age", lists=80)


def simple(lists, labels=("a", "b"), relevance=None):
    """Lists of group labels, best first."""
    group = [label for one in lists for label in one]
    qid = [q for q, one in enumerate(lists) for _ in one]
    score = np.concatenate([-np.arange(len(one), dtype=float) for one in lists])
    relevance = np.ones(len(group)) if relevance is None else relevance
    return score, er.RankingData.from_arrays(np.zeros((len(group), 0)), relevance, group, qid)


@pytest.mark.parametrize("method", ["bootstrap", "analytic"])
def test_numbers_are_those_of_interval(data, scores, method):
    """By default gaps and rates have the intervals of their pairs of groups, which `er.interval` knows nothing of."""
    found = er.audit(scores, data, [1, 5], method=method, confidence=0.9)
    assert len(found.findings) == 2 * 8
    for one in found.findings:
        expected = er.interval(scores, data, f"{one.measure}@{one.k}", 0.9, method)
        same = method == "bootstrap" or one.measure in ("ndcg", "precision", "recall")
        numbers = tuple(one.interval) if same else (one.interval.estimate,)
        assert numbers == pytest.approx(tuple(expected)[: len(numbers)], abs=1e-12)
        assert one.interval.queries == expected.queries


def test_gaps_have_the_intervals_of_their_pairs(data, scores, four):
    for one in er.audit(scores, data, [5]).findings:
        if one.measure in ("demographic_parity", "equal_opportunity", "exposure_gap"):
            (pair,) = [pair for pair in er.audit(scores, data, [5]).pairs if pair.measure == one.measure]
            assert (one.interval.low, one.interval.high) == pytest.approx((-pair.pooled.high, -pair.pooled.low))
    audit = er.audit(four.features[:, 0], four, [5])
    (largest,) = audit.find("demographic_parity")
    pairs = [pair for pair in audit.pairs if pair.measure == "demographic_parity"]
    assert len(pairs) == 6
    assert largest.interval.estimate == pytest.approx(max(abs(pair.pooled.difference) for pair in pairs))
    # wide enough for all pairs at once
    assert largest.interval.high >= max(max(-pair.pooled.low, pair.pooled.high) for pair in pairs)


def test_estimates_are_those_of_measure_and_largest_pairs_come_too(four):
    scores = four.features[:, 0]
    found = er.audit(scores, four, [5]).to_dict()
    names = [f"{name}@5" for name in ("ndcg", "precision", "recall", "dp", "eop", "eod", "exposure_gap", "four_fifths")]
    values = er.measure(scores, four, names)
    assert list(found["measures"].values()) == pytest.approx(list(values.values()), abs=1e-12)
    largest = er.measure(scores, four, names[3:7], across="max")
    assert list(found["largest_pair"].values()) == pytest.approx(list(largest.values()), abs=1e-12)
    rates = er.selection_rates(scores, four, 5)
    (parity,) = er.audit(scores, four, [5]).find("demographic_parity")
    assert parity.across == "max"
    assert (parity.favoured, parity.other) == (max(rates, key=rates.get), min(rates, key=rates.get))


def test_direction_is_the_sign_of_the_signed_gap(data, scores):
    first, second = data.group_names
    for one in er.audit(scores, data, [3, 10]).findings:
        if one.leads and one.measure != "equalized_odds":
            signed = er.interval(scores, data, f"{one.measure}@{one.k}", signed=True)
            assert one.favoured == (first if signed.estimate > 0 else second)
    upside_down = er.audit(-scores, data, [5]).find("demographic_parity")[0]
    assert upside_down.favoured == "25 or younger"
    assert er.audit(scores, data, [5]).find("demographic_parity")[0].favoured == "over 25"


def test_selection_rates_by_stratum(data, scores):
    for rate in er.audit(scores, data, [5]).rates:
        among = rate.stratum.removesuffix(" rows")
        assert rate.interval.estimate == pytest.approx(er.selection_rates(scores, data, 5, among=among)[rate.group])


def test_bounds_are_the_certified_ones_and_vacuous_is_not_a_number(data, scores):
    found = er.audit(scores, data, [5])
    for made in found.certificates:
        expected = er.bounds.certified(scores, data, made.measure)
        assert (made.bound, made.delta) == pytest.approx((expected.bound, 0.05), abs=1e-12)
    few, rows = simple([["a", "b"], ["b", "a"], ["a", "b", "b"]])
    small = er.audit(few, rows, [1])
    assert all(made.vacuous for made in small.certificates)
    assert {entry["bound"] for entry in small.to_dict()["certified"]} == {None}
    assert "Certified for new queries: vacuous." in " ".join(small.text().split())
    assert "≤" not in small.text()


def test_queries_that_weigh_most_are_those_whose_absence_helps(data, scores):
    found = er.audit(scores, data, [5])
    shown = [one for one in found.influences if one.measure == "demographic_parity@5"]
    ids = [str(query) for query in data.query_ids]
    stored = data.to_stored(scores)
    without = {}
    for i, query in enumerate(ids):
        rest = np.arange(data.n_queries) != i
        kept = rest[data.query_of_row]
        without[query] = er.measure(stored[kept], data.take(rest), "dp@5")["dp@5"]
    assert [one.without for one in shown] == pytest.approx(sorted(without.values())[:5], abs=1e-12)
    assert all(one.without == pytest.approx(without[one.query], abs=1e-12) for one in shown)


def test_what_random_orders_would_leave():
    # a stands in short lists only, so it is in the top 1 more often whatever the order.
    scores, data = simple([["a", "b"]] * 10 + [["b", "b", "b", "b"]] * 10)
    (parity,) = er.audit(scores, data, [1]).find("demographic_parity")
    assert parity.leads[0].highest == pytest.approx(1.0)
    assert parity.chance == pytest.approx(1 / 2 - (10 * 1 / 2 + 40 * 1 / 4) / 50)
    assert parity.chance == pytest.approx(er.measure(np.zeros(60), data, "dp@1")["dp@1"])
    (pair,) = [pair for pair in er.audit(scores, data, [1]).pairs if pair.measure == "demographic_parity"]
    assert pair.ranker_part + pair.mix_part == pytest.approx(parity.leads[0].highest - parity.leads[0].lowest)
    assert "query mix" in er.audit(scores, data, [1]).text()
    level, even = simple([["a", "b"]] * 10)
    assert "query mix" not in er.audit(level, even, [1]).text()


@pytest.mark.parametrize(
    ("lists", "verdict"),
    [
        ([["a", "b"]] * 60, "not met"),
        ([["a", "b"], ["b", "a"]] * 1000, "met"),
        ([["a", "b"], ["b", "a"], ["a", "b"]] * 4, "cannot be told"),
    ],
)
def test_four_fifths_verdict(lists, verdict):
    scores, data = simple(lists)
    assert er.audit(scores, data, [1]).four_fifths() == {1: verdict}


def test_words_for_a_gap_and_for_none():
    scores, data = simple([["a", "b"]] * 50 + [["b", "a"]] * 10)
    shown = " ".join(er.audit(scores, data, [1]).conclusions())
    assert 'Items of "a" are more often in the top 1 than those of "b" (83.3% against 16.7%)' in shown
    assert "In short: uneven." in shown
    scores, data = simple([["a", "b"], ["b", "a"]] * 10)
    audit = er.audit(scores, data, [1])
    told = " ".join(audit.conclusions())
    (gap,) = audit.find("demographic_parity")
    assert "In short: no gap is shown in these 20 queries. That is not proof of evenness" in told
    assert f"no gap is shown at k = 1, where one of up to {gap.interval.high:.3f} would go unnoticed" in told
    assert "about" in told.partition("What now")[2]
    assert "In short: uneven" not in told


def test_one_gap_barely_shown_among_many_is_a_hint_only():
    # 15 of 20 lists have a first: the sign test has p = 0.041, and ten independent cut-offs besides show nothing.
    scores, data = simple([["a", "b"]] * 15 + [["b", "a"]] * 5)
    alone = er.audit(scores, data, [1], labelled=False)
    assert {round(pair.within_query.p, 3) for pair in alone.pairs} == {0.041}
    rng = np.random.default_rng(0)
    lists = [[*first, *"".join(rng.permutation(list("aaabbb")))] for first in [["a", "b"]] * 15 + [["b", "a"]] * 5]
    scores, data = simple(lists)
    audit = er.audit(scores, data, [1, 3, 4, 5], labelled=False)
    assert audit.verdict["within_query"] == "hints"
    told = audit.conclusions()
    shown = sum(pair.within_query.p <= 0.05 for pair in audit.pairs)
    assert told[0].startswith(f"In short: hints, nothing firm. Within queries {shown} of {len(audit.pairs)} gaps")
    scores, data = simple([["a", "b"]] * 60 + [["b", "a"]] * 20, relevance=np.tile([1.0, 0.0, 0.0, 1.0], 40))
    assert er.audit(scores, data, [1]).conclusions()[0].startswith("In short: uneven.")


def test_words_on_what_the_data_cannot_tell():
    scores, data = simple([["a", "b"]] * 4 + [["b", "b"]] * 20)
    told = " ".join(er.audit(scores, data, [1, 2]).conclusions())
    assert "Only 4 queries have an item of the rarest group" in told
    assert "At k = 2 100% of the lists have no more than k items" in told
    unknown = data.with_group([None if i % 4 == 3 else "ab"[i % 2] for i in range(48)])
    assert "25% of the items have no group label" in " ".join(er.audit(scores, unknown, [1]).conclusions())
    bare = er.audit(scores, data, [1], labelled=False)
    assert {one.measure for one in bare.findings} == {"demographic_parity", "exposure_gap", "four_fifths"}
    assert "Without relevance labels" in " ".join(bare.conclusions())


def test_one_query_and_nothing_relevant():
    scores, data = simple([["a", "b", "b"]])
    one = er.audit(scores, data, [1])
    assert np.isnan([found.interval.low for found in one.findings]).all()
    assert one.find("demographic_parity")[0].interval.estimate == 1.0
    assert "one query alone" in one.conclusions()[0]
    scores, data = simple([["a", "b"]] * 12, relevance=np.zeros(24))
    with pytest.warns(er.DataWarning, match="relevant rows have no item"):
        empty = er.audit(scores, data, [1])
    assert "No item counts as relevant" in empty.text().replace("\n  ", " ")
    assert "Equal opportunity: cannot be computed" in empty.text()
    assert json.dumps(empty.frame().to_dicts())


def test_comparison_is_that_of_compare(data, scores):
    other = er.FairLinearRanker("dp", 0.5).fit(data).predict(data)
    found = er.audit(scores, data, [5], against=other)
    names = [one.measure for one in found.comparison]
    assert len(names) == 8
    assert list(found.comparison) == er.compare(scores, other, data, names)
    assert "Compared with the other ranking" in found.text()
    assert "Compared" not in er.audit(scores, data, [5]).text()


def test_order_of_rows_changes_nothing(data, scores):
    order = np.random.default_rng(0).permutation(data.n_rows)
    stored = data.to_stored(scores)
    labels = np.array(data.group_names)[data.group]
    qid = data.query_ids[data.query_of_row]
    mixed = er.RankingData.from_arrays(
        data.features[order], data.relevance[order], labels[order], qid[order], data.item_ids[order]
    )
    assert er.audit(stored[order], mixed, [3]).text() == er.audit(scores, data, [3]).text()


def test_frame_and_text_have_room(data, scores, four):
    frame = er.audit(scores, data, [1, 3]).frame()
    assert frame.columns[:3] == ["measure", "k", "across"]
    assert frame["favoured"].null_count() == 8
    for text in (er.audit(scores, data).text(), er.audit(four.features[:, 0], four).text()):
        assert max(map(len, text.splitlines())) <= 80


def test_groups_are_needed_and_options_checked(data, scores):
    with pytest.raises(er.DataError, match="needs at least two; the data has 0"):
        er.audit(scores, data.with_group(None))
    with pytest.raises(er.ConfigError, match="confidence must be between 0 and 1"):
        er.audit(scores, data, confidence=1.5)
    with pytest.raises(er.ConfigError, match="method must be one of"):
        er.audit(scores, data, method="jackknife")


class Tags(HTMLParser):
    """Opens and closes, to see that a page is whole and has nothing that was not asked for."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_hostile_names_stay_text_in_every_format():
    labels = {"a": HOSTILE, "b": "b"}
    scores, data = simple([[labels["a"], "b"]] * 12)
    audit = er.audit(scores, data, [1])
    for page in (audit.html(f"Audit of {HOSTILE}"), audit._repr_html_()):
        tags = Tags()
        tags.feed(page)
        assert tags.open == []
        kinds = {tag for tag, _ in tags.seen}
        assert not kinds & {"script", "link", "img", "iframe"}
        assert not [value for _, given in tags.seen for name, value in given.items() if name in ("src", "href")]
        assert any("<script>alert('&')</script>|**x**" in text for text in tags.text)
    assert "\x1b" not in audit.text()
    assert "\x1b" not in audit.markdown()
    rows = [line for line in audit.markdown().splitlines() if line.startswith("|")]
    widths = {line.replace("\\|", "").count("|") for line in rows}
    assert len(widths) <= 3
    assert "<script" not in audit.markdown().replace("\\<", "")


def test_page_draws_each_interval(data, scores):
    audit = er.audit(scores, data, [5])
    page = audit.html()
    assert page.count('class="track"') == 4
    for one in audit.findings:
        if one.leads:
            assert f"{one.interval.estimate:.3f} ({one.interval.low:.3f}–{one.interval.high:.3f})" in page


def test_audit_is_silent_about_what_is_ordinary(data, scores):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        er.audit(scores, data)


def test_a_sentinel_flips_no_audit():
    """Items without a score are often given one far below all others, which once tied those: the gap was gone."""
    rng = np.random.default_rng(0)
    qid, group = np.repeat(np.arange(150), 5), np.tile(["a", "a", "b", "b", "a"], 150)
    scores = np.where(group == "a", 1.0, 0.0) + rng.normal(size=750)
    scores[4::5] = -6.0
    relevance = rng.integers(0, 2, 750)
    data = er.RankingData.from_arrays(np.zeros((750, 0)), relevance, group, qid)
    plain = er.audit(scores, data, [1, 2])
    assert plain.find("demographic_parity")[0].interval.low > 0.05
    for sentinel, kind in ((-1e13, float), (-1e30, float), (-1e9, np.float32)):
        given = np.where(scores == -6.0, sentinel, scores.astype(kind)).astype(kind)
        assert er.audit(given, data, [1, 2]).to_dict() == plain.to_dict()
