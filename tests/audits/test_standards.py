"""Bias audits under Local Law 144: the rule's own example, plain twins, and what is said of hostile data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er

# From the example of 6 RCNY § 5-301 on scored applicants: category, applicants, scoring rate in %, impact ratio.
RULE_SEX = (("Male", 92, 54.3, 1.00), ("Female", 76, 44.7, 0.82))
RULE_RACE = (
    ("Hispanic or Latino", 28, 64.2, 1.00),
    ("White", 40, 37.5, 0.58),
    ("Black or African American", 32, 50.0, 0.78),
    ("Native Hawaiian or Pacific Islander", 8, 62.5, 0.97),
    ("Asian", 24, 41.7, 0.65),
)
RULE_UNKNOWN = 250
# Not from the rule: its last two categories, put together so that the numbers of the table of sex come out.
REST = ("others", 36, 20)


def lists_of(*lengths: int, relevance: float = 0.0, items: np.ndarray | None = None) -> er.RankingData:
    """Lists of these lengths."""
    query = np.repeat(np.arange(len(lengths)), lengths)
    n = len(query)
    return er.RankingData.from_arrays(np.zeros((n, 1)), np.full(n, relevance), None, query, item_ids=items)


@pytest.fixture(scope="module")
def example() -> er.BiasAudit:
    """Applicants with the numbers of the rule's example, and its 250 of unknown category."""
    race, above = [], []
    for name, number, percent, _ in RULE_RACE:
        hits = round(number * percent / 100)
        race += [name] * number
        above += [True] * hits + [False] * (number - hits)
    race += [REST[0]] * REST[1]
    above += [True] * REST[2] + [False] * (REST[1] - REST[2])
    above = np.array(above)
    # the first 50 above the median and the first 42 below it are men
    place = np.where(above, np.cumsum(above), np.cumsum(~above))
    sex = np.where(place <= np.where(above, 50, 42), "Male", "Female").tolist()
    scores = np.where(above, 1.0, -1.0) * np.arange(1, len(above) + 1)
    race += [None] * RULE_UNKNOWN
    sex += [None] * RULE_UNKNOWN
    scores = np.concatenate([scores, np.linspace(-1, 1, RULE_UNKNOWN)])
    return er.bias_audit(scores, lists_of(len(sex)), sex=sex, race=race, rate="scoring")


def test_the_example_of_the_rule(example):
    for table, rows in (("sex", RULE_SEX), ("race", RULE_RACE)):
        for name, number, percent, ratio in rows:
            row = example.find(table).of(name)
            assert row.number == number
            assert abs(100 * row.rate - percent) < 0.1  # the rule writes 64.28 % as 64.2 %
            assert round(row.ratio, 2) == ratio
        assert example.find(table).unknown == RULE_UNKNOWN
        assert example.find(table).applicants == 168
    assert example.find("intersectional").unknown == RULE_UNKNOWN
    assert sum(row.number for row in example.find("intersectional").categories) == 168
    text = example.text()
    assert "Female      76     34  44.7%   0.82" in text
    assert "sex categories 250, race/ethnicity categories 250, intersectional categories 250" in " ".join(text.split())


def test_four_fifths_and_tests_of_the_example(example):
    women, white = example.find("sex").of("Female"), example.find("race").of("White")
    assert not women.below_four_fifths
    assert white.below_four_fifths
    # C(84 of 168 fall on 92 and 76): by hand in test_fisher; here the numbers of the table
    assert women.deviations == pytest.approx((34 / 76 - 50 / 92) / math.sqrt(0.25 * (1 / 76 + 1 / 92)))
    assert white.deviations == pytest.approx((15 / 40 - 18 / 28) / math.sqrt(33 / 68 * 35 / 68 * (1 / 40 + 1 / 28)))
    assert white.beyond_two
    assert white.corrected_p == pytest.approx(min(1, 15 * white.fisher_p))  # six categories make 15 pairs
    said = " ".join(example.conclusions())
    assert '"White" 0.58, 37.5% (15 of 40), not significant' in said
    assert "legal advice" in said
    assert "no threshold" in said


# ---------------------------------------------------------------------- plain twins


def plain_ever(chances: list[float]) -> float:
    """The probability of at least one, over all outcomes."""
    total = 0.0
    for outcome in itertools.product((0, 1), repeat=len(chances)):
        p = math.prod(c if hit else 1 - c for c, hit in zip(chances, outcome, strict=True))
        total += p * any(outcome)
    return total


@given(st.data())
def test_tables_are_those_of_a_loop(data):
    lengths = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    n = sum(lengths)
    scores = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    people = [f"p{p}" for length in lengths for p in data.draw(st.permutations(range(6)))[:length]]
    sex_of = {f"p{j}": data.draw(st.sampled_from(["f", "m", "", "Unknown"])) for j in range(6)}
    k = data.draw(st.integers(1, 3))
    reduce = data.draw(st.sampled_from(["best", "mean", "rows"]))
    rows, start = [], 0
    for length in lengths:
        mine = scores[start : start + length]
        for j in range(length):
            over, same = sum(s > mine[j] for s in mine), sum(s == mine[j] for s in mine)
            rows.append((people[start + j], min(1.0, max(0.0, (k - over) / same))))
        start += length
    expected: dict[str, list[float]] = {}
    if reduce == "rows":
        for who, chance in rows:
            expected.setdefault(sex_of[who], []).append(chance)
    else:
        for who in dict.fromkeys(people):
            chances = [chance for name, chance in rows if name == who]
            value = plain_ever(chances) if reduce == "best" else sum(chances) / len(chances)
            expected.setdefault(sex_of[who], []).append(value)
    known = {name: values for name, values in expected.items() if name in ("f", "m")}
    sex = [sex_of[who] for who in people]
    rankings = lists_of(*lengths, items=np.array(people))
    if len(known) < 2:
        with pytest.raises(er.DataError, match=r"two categories|unknown"):
            er.bias_audit(scores, rankings, sex=sex, k=k, reduce=reduce)
        return
    table = er.bias_audit(scores, rankings, sex=sex, k=k, reduce=reduce).find("sex")
    highest = max(sum(values) / len(values) for values in known.values())
    for name, values in known.items():
        row = table.of(name)
        assert row.number == len(values)
        assert row.selected == pytest.approx(sum(values))
        if highest > 0:
            assert row.ratio == pytest.approx(sum(values) / len(values) / highest)
        else:
            assert row.ratio is None
    assert table.unknown == sum(len(values) for name, values in expected.items() if name not in known)


@given(st.permutations(range(12)))
def test_the_order_of_rows_changes_nothing(order):
    rng = np.random.default_rng(0)
    query, who = np.repeat([0, 1, 2], 4), np.tile(np.arange(6), 2)
    scores, sex = rng.normal(size=12), np.array(["f", "m"])[who % 2]
    order = list(order)

    def tables(some: list[int]) -> list:
        data = er.RankingData.from_arrays(np.zeros((12, 1)), np.zeros(12), None, query[some], item_ids=who[some])
        audit = er.bias_audit(scores[some], data, sex=sex[some], k=2)
        return audit.to_dict()["tables"]

    assert tables(order) == tables(list(range(12)))


def test_only_scores_above_the_median_count_and_ties_are_said():
    sex = ["f", "f", "f", "m", "m", "m"]
    audit = er.bias_audit([1.0, 2.0, 2.0, 2.0, 3.0, 4.0], lists_of(6), sex=sex, rate="scoring")
    assert audit.facts["median"] == 2
    assert [row.selected for row in audit.find("sex").categories] == [0, 2]
    assert "3 applicants (50.0%) have exactly the median score and count as not above it." in audit.conclusions()
    other = er.bias_audit([1.0, 2.0, 2.5, 3.0, 3.5, 4.0], lists_of(6), sex=sex, rate="scoring")
    assert "exactly the median" not in other.text()


# ---------------------------------------------------------------------- what is said, and what must not be


def audit_of(sex: list, scores: list[float], lengths: list[int], **settings) -> str:
    settings = {"k": 1} | settings if settings.get("rate") != "scoring" else settings
    items = settings.pop("items", None)
    data = lists_of(*lengths, items=None if items is None else np.array(items))
    return " ".join(er.bias_audit(scores, data, sex=sex, **settings).text().split())


PEOPLE = ["a", "b", "c", "d"]
TWICE = ["a", "b", "a", "b", "c", "d"]
SAID = {  # sentence → data for which it is true, data for which it must not be printed
    "Ties at place 1 leave open whether 2 applicants": (
        (list("fmfm"), [1, 1, 2, 1], [2, 2]),
        (list("fmfm"), [1, 2, 2, 1], [2, 2]),
    ),
    "50% of the lists have no more than 1 applicant,": (
        (list("fmf"), [1, 2, 1], [2, 1]),
        (list("fmfm"), [1, 2, 2, 1], [2, 2]),
    ),
    "Lists differ in length": ((list("fmfmf"), [1, 2, 1, 2, 3], [2, 3]), (list("fmfm"), [1, 2, 2, 1], [2, 2])),
    "People who share a list": ((list("fmfm"), [1, 2, 2, 1], [2, 2]), (list("fmfm"), [1, 2, 2, 1], [4])),
    "No impact ratio is below four fifths": ((list("fmfm"), [1, 2, 2, 1], [2, 2]), (list("ffmm"), [1, 2, 4, 5], [4])),
    "Below four fifths": ((list("ffmm"), [1, 2, 4, 5], [4]), (list("fmfm"), [1, 2, 2, 1], [2, 2])),
    "categories of all applicants are known": (
        (list("fmfm"), [1, 2, 2, 1], [4]),
        (["f", "m", None, "f"], [1, 2, 2, 1], [4]),
    ),
    "because their category is unknown": (
        (["f", "m", "f", None], [1, 2, 3, 4], [4]),
        (list("fmfm"), [1, 2, 2, 1], [4]),
    ),
    'count as unknown: "UNKNOWN"': (
        (["f", "m", "f", "UNKNOWN"], [1, 2, 3, 4], [4]),
        (["f", "m", "f", None], [1, 2, 3, 4], [4]),
    ),
    "no applicant of a known category is in the top 1": (
        (["f", "m", "f", None], [1, 2, 3, 4], [4]),
        (["f", "m", "f", None], [1, 2, 5, 4], [4]),
    ),
    "no column tells people apart": (
        (list("fmfm"), [1, 2, 2, 1], [4]),
        (list("fmfm"), [1, 2, 2, 1], [4], {"items": PEOPLE}),
    ),
    "rows is another person": (
        (list("fmfm"), [1, 2, 2, 1], [4], {"items": PEOPLE}),
        (list("fmfmfm"), [1, 2, 3, 4, 5, 6], [2, 4], {"items": TWICE}),
    ),
    '2 of 4 people, by "item", are in several rows': (
        (list("fmfmfm"), [1, 2, 3, 4, 5, 6], [2, 4], {"items": TWICE}),
        (list("fmfm"), [1, 2, 2, 1], [4], {"items": PEOPLE}),
    ),
    "Those in more lists have more chances": (
        (list("fmfmfm"), [1, 2, 3, 4, 5, 6], [2, 4], {"items": TWICE}),
        (list("fmfm"), [1, 2, 3, 4], [2, 2], {"items": ["a", "b", "a", "b"]}),
    ),
    "There are no tests": (
        (list("fmfmfm"), [1, 2, 3, 4, 5, 6], [2, 4], {"items": TWICE, "reduce": "rows"}),
        (list("fmfm"), [1, 2, 2, 1], [4], {"items": PEOPLE, "reduce": "rows"}),
    ),
    "Fisher's exact test": (
        (list("fmfm"), [1, 2, 2, 1], [4], {"items": PEOPLE, "reduce": "rows"}),
        (list("fmfmfm"), [1, 2, 3, 4, 5, 6], [2, 4], {"items": TWICE, "reduce": "rows"}),
    ),
    "counts that are not whole": ((list("fmfm"), [1, 1, 2, 1], [2, 2]), (list("fmfm"), [1, 2, 2, 1], [2, 2])),
    "There is one median for all 2 lists": (
        (list("fmfm"), [1, 2, 3, 4], [2, 2], {"rate": "scoring"}),
        (list("fmfm"), [1, 2, 3, 4], [4], {"rate": "scoring"}),
    ),
    "those of unknown category included": (
        (["f", "m", "f", None], [1, 2, 3, 4], [4], {"rate": "scoring"}),
        (list("fmfm"), [1, 2, 3, 4], [4], {"rate": "scoring"}),
    ),
    "with their highest score. Those in more": (
        (list("fmfmfm"), [1, 2, 3, 4, 5, 6], [2, 4], {"items": TWICE, "rate": "scoring"}),
        (list("fmfmfm"), [1, 2, 1, 2, 5, 6], [2, 4], {"items": TWICE, "rate": "scoring"}),
    ),
    "the sex is missing in some rows": (
        (["f", "m", None, "m", "f", "m"], [1, 2, 3, 4, 5, 6], [2, 4], {"items": TWICE}),
        (["f", "m", "f", "m", None, "m"], [1, 2, 3, 4, 5, 6], [2, 4], {"items": TWICE}),
    ),
    "No column of race/ethnicity was given": (
        (list("fmfm"), [1, 2, 2, 1], [4]),
        (list("fmfm"), [1, 2, 2, 1], [4], {"race": list("xxyy")}),
    ),
    "2 combinations of sex and race/ethnicity have no applicants": (
        (list("fmfm"), [1, 2, 2, 1], [4], {"race": list("xyxy")}),
        (list("fmfm"), [1, 2, 2, 1], [4], {"race": list("xxyy")}),
    ),
}


@pytest.mark.parametrize("sentence", SAID)
def test_sentences_are_said_where_they_are_true_and_only_there(sentence):
    for design, expected in zip(SAID[sentence], (True, False), strict=True):
        sex, scores, lengths, *more = design
        assert (sentence in audit_of(sex, scores, lengths, **(more[0] if more else {}))) is expected


def test_significance_is_said_of_small_corrected_p_values_only():
    many, few = ["f"] * 40 + ["m"] * 40, ["f"] * 4 + ["m"] * 4
    sure = audit_of(many, list(range(80)), [80], k=40)
    assert "for 1 of these Fisher's exact test is significant" in sure
    unsure = audit_of(few, list(range(8)), [8], k=3)
    assert "for none of these" in unsure
    assert ", not significant (" in unsure


def test_small_categories_are_marked_and_left_out_only_if_asked():
    race = ["a"] * 60 + ["b"] * 60 + ["tiny"]
    scores = [*range(120), 1000]
    marked = er.bias_audit(scores, lists_of(121), race=race, k=40)
    tiny = marked.find("race").of("tiny")
    assert (tiny.small, tiny.set_aside, tiny.ratio) == (True, False, 1.0)
    said = " ".join(marked.text().split())
    assert (
        'with less than 2% of the applicants, which the rule lets an auditor leave out of the impact ratios: "tiny"'
        in said
    )
    assert 'the highest rate, to which all ratios of the table are, is that of "tiny" with 1 applicant.' in said
    aside = er.bias_audit(scores, lists_of(121), race=race, k=40, min_share=0.02)
    tiny = aside.find("race").of("tiny")
    assert (tiny.small, tiny.set_aside, tiny.ratio, tiny.number, tiny.rate) == (True, True, None, 1, 1.0)
    assert aside.find("race").highest == "b"
    said = " ".join(aside.text().split())
    assert "left out of the impact ratios as asked" in said
    assert "justification" in said
    assert "the highest rate, to which all" not in said
    plain = er.bias_audit(range(120), lists_of(120), race=race[:-1], k=40).text()
    assert "less than" not in plain


def test_a_reference_of_one_person_is_said_first_and_exact_tests_decide(example):
    said = example.conclusions()
    assert '"Male & Native Hawaiian or Pacific Islander", which has 1 applicant (intersectional' in said[0]
    assert any("Fisher's test, which is exact, is the one to go by" in text for text in said)
    clear = er.bias_audit(range(80), lists_of(80), sex=["f"] * 40 + ["m"] * 40, k=40).conclusions()
    assert ", which has" not in clear[0]
    assert not any("the one to go by" in text for text in clear)


def test_labels_of_ones_own_that_mean_unknown():
    audit = er.bias_audit(
        [1, 2, 3], lists_of(3), sex=["f", "m", "prefer not to say"], k=2, unknown=["prefer not to say"]
    )
    assert [row.category for row in audit.find("sex").categories] == ["f", "m"]
    assert audit.find("sex").unknown == 1
    assert 'Labels of sex that count as unknown: "prefer not to say".' in audit.conclusions()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "needs sex=, race= or both"),
        ({"sex": list("fmfm"), "k": None}, "a selection rate needs k"),
        ({"sex": list("fmfm"), "rate": "scoring"}, "a scoring rate takes no k; got k = 1"),
        ({"sex": [None] * 4}, r"sex \(sex\): the category of all 4 applicants is unknown"),
        ({"sex": {"gender": list("ffff")}}, r"sex \(gender\): an impact ratio compares .* all 4 applicants .* \"f\""),
        ({"sex": list("fmfm"), "min_share": 0.1}, "min_share must be at most 0.02, .* got 0.1"),
        ({"sex": list("fmfm"), "rate": "hiring"}, "rate"),
        ({"sex": list("fmfm"), "reduce": "first"}, "reduce"),
        ({"sex": list("fmf")}, "one value for each of the 4 rows"),
        ({"sex": list("fmfm"), "person": [1, 2, 1, 1]}, '1 of 2 have several, such as person "1" with "f" and "m"'),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(settings, says):
    with pytest.raises((er.ConfigError, er.DataError), match=says) as error:
        er.bias_audit([1.0, 2.0, 3.0, 4.0], lists_of(4), **({"k": 1} | settings))
    assert "\n" not in str(error.value)


def test_ids_in_place_of_categories_are_refused():
    # A thousand times a thousand intersections would fill the memory before the first was counted.
    with pytest.raises(er.DataError, match=r"race \(who\): at most 1,000 categories .* found 1,001, such as \"0\""):
        er.bias_audit(np.arange(1001.0), lists_of(1001), race={"who": [str(j) for j in range(1001)]}, k=5)


@pytest.mark.parametrize("seed", range(5))
def test_equal_rates_have_the_same_reference_in_any_order_of_rows(seed):
    # Chances of 1/3 and 2/3 add up to other last digits in another order; halves of people are rounded to even.
    order = np.random.default_rng(seed).permutation(18)
    query, sex = np.repeat(np.arange(6), 3)[order], np.tile(list("abc"), 6)[order]
    data = er.RankingData.from_arrays(np.zeros((18, 0)), np.zeros(18), None, query)
    (table,) = er.bias_audit(np.zeros(18), data, sex=sex, k=1).tables
    assert table.highest == "a"
    assert [row.fisher_p for row in table.categories] == [None, 1.0, 1.0]


def test_the_tidy_table_has_each_category_once(example):
    frame = example.table()
    assert frame.height == sum(len(table.categories) for table in example.tables)
    assert frame.filter(category="White", table="race")["scoring_rate"].to_list() == [15 / 40]
    assert set(frame["unknown_category"]) == {RULE_UNKNOWN}


def test_the_page_has_the_tables_and_runs_nothing(example):
    page = example.html("Audit <b>")
    assert "Audit &lt;b&gt;" in page
    for table in example.tables:
        for row in table.categories:
            assert row.category.replace("&", "&amp;") in page
    assert "legal advice" in page
    assert "<script" not in page


def test_how_people_in_several_rows_are_counted_is_said_as_it_was_done():
    people = (list("fmfmfm"), [1, 2, 3, 4, 5, 6], [2, 4])
    once = "each person counts once, "
    ways = {
        "selected if in the top 1 of any list.": {},
        "with the share of their lists where they are in the top 1.": {"reduce": "mean"},
        "with their highest score.": {"rate": "scoring"},
        "with their mean score.": {"rate": "scoring", "reduce": "mean"},
    }
    for way, settings in ways.items():
        text = audit_of(*people, items=TWICE, **settings)
        assert [words for words in ways if once + words in text] == [way]
        assert "counts as one applicant, as asked" not in text
    rows = audit_of(*people, items=TWICE, reduce="rows")
    assert "each of the 6 rows counts as one applicant, as asked." in rows
    assert once not in rows
    assert "All 2 people" in audit_of(list("fmfm"), [1, 2, 3, 4], [2, 2], items=["a", "b", "a", "b"])


def test_exact_tests_are_preferred_only_where_the_two_disagree():
    sentence = "standard deviations and Fisher's p is above 0.05, Fisher's test, which is exact, is the one to go by."
    disagree = audit_of(["f"] * 4 + ["m"] * 4, [1, 2, 3, 4, 5, 6, 7, 8], [8], k=3)
    assert "2.2 standard deviations" in disagree
    assert sentence in disagree
    assert sentence not in audit_of(["f"] * 40 + ["m"] * 40, list(range(80)), [80], k=40)
    assert sentence not in audit_of(list("fmfm"), [1, 2, 2, 1], [4], k=2)
