"""What an audit says: each conclusion where it is true, and a case where it must not be printed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import evenrank as er
from evenrank.audits.notable import Tally, brackets
from evenrank.audits.words import CAUTION, told

pytestmark = pytest.mark.filterwarnings("ignore::evenrank.DataWarning")


def audited(lists, ks, **options):
    """Audit lists of group labels, best first."""
    group = [label for labels in lists for label in labels]
    qid = [f"q{number:05}" for number, labels in enumerate(lists) for _ in labels]
    score = np.concatenate([-np.arange(len(labels), dtype=float) for labels in lists])
    data = er.RankingData.from_arrays(np.zeros((len(group), 0)), np.zeros(len(group)), group, qid)
    return er.audit(score, data, ks, labelled=False, **options)


def shuffled(labels, rng):
    return [str(label) for label in rng.permutation(list(labels))]


def with_gaps(audit, question, **numbers):
    """The same audit with other numbers in each answer to a question."""
    pairs = [replace(pair, **{question: replace(getattr(pair, question), **numbers)}) for pair in audit.pairs]
    return replace(audit, pairs=tuple(pairs))


@pytest.fixture(scope="module")
def uneven():
    return audited([["a", "b"]] * 50 + [["b", "a"]] * 10, [1])


@pytest.fixture(scope="module")
def six():
    """f is nearly always last, and tiny has two items."""
    rng = np.random.default_rng(0)
    lists = [[*shuffled("aabbccddee", rng), "f", "f"] for _ in range(200)]
    for labels in lists[:2]:
        labels.append("tiny")
    return audited(lists, [1, 3, 4, 10])


def test_the_query_mix_is_blamed_only_if_the_ranker_cannot_have_done_most_of_it():
    rng = np.random.default_rng(4)
    mixed = []
    for number in range(300):
        labels = "aaab" if number % 2 else "aaabbbbbbbbb"
        mixed.append(shuffled(labels, rng))
    blamed = audited(mixed, [3])
    assert "it is the query mix, not the ranker" in told(blamed).answer
    wide = with_gaps(blamed, "within_query", low=-0.9, high=0.9)
    assert "not the ranker" not in told(wide).answer
    assert "How much of the clearest one is the ranker's cannot be told" in told(wide).answer


def test_the_mix_hides_a_gap_only_if_it_works_against_it(uneven):
    assert "pooled rates" not in told(uneven).answer
    hidden = with_gaps(uneven, "pooled", p=0.4, adjusted=0.6)
    assert "The pooled rates alone do not show it" in told(hidden).answer
    assert "hides it" not in told(hidden).answer
    against = replace(hidden, pairs=tuple(replace(pair, mix_part=-pair.ranker_part) for pair in hidden.pairs))
    assert "The pooled rates do not show it: the query mix hides it" in told(against).answer


def test_no_gap_at_all_is_said_only_if_the_pooled_rates_give_no_hint():
    even = audited([["a", "b"], ["b", "a"]] * 10, [1])
    assert told(even).answer.startswith("In short: no gap is shown in these 20 queries.")
    hint = with_gaps(even, "pooled", p=0.03, adjusted=0.2, difference=0.1)
    assert hint.verdict == {"pooled": "hints", "within_query": "none shown"}
    assert "no gap is shown in these" not in told(hint).answer
    assert "the pooled rates give a hint, nothing firm" in told(hint).answer


def test_a_small_group_is_not_named_where_it_shows_nothing(six):
    shown = {
        name
        for pair in six.pairs
        for question in ("pooled", "within_query")
        if getattr(pair, question).adjusted <= 0.05
        for name in (pair.a, pair.b)
    }
    words = told(six)
    assert "f" in shown
    sentences = [text for text in words.shown if not text.startswith("Four-fifths")]
    for name in ("a", "f", "tiny"):
        assert any(f'"{name}"' in text for text in sentences) == (name in shown)
    assert any('"tiny" 2 (' in text for text in words.untold)
    assert any(text.startswith("Small groups") for text in words.untold)
    # Where all groups are small, nothing is said of others.
    few = audited([["a", "b"]] * 6 + [["b", "a"]] * 3, [1])
    assert not [text for text in told(few).untold if text.startswith("Small groups")]


def test_six_groups_at_four_cut_offs_stay_readable(six):
    text = six.text()
    assert len(six.pairs) == 21 * 2 * 4
    assert len(text.splitlines()) < 190
    assert max(map(len, text.splitlines())) <= 80
    for sentence in told(six).shown:
        assert len(sentence) < 600
    assert "84 gaps (21 pairs of groups at 4 cut-offs)" in " ".join(told(six).shown)
    untold = sum(not pair.within_query.decidable for pair in six.pairs)
    assert f"{untold} gaps within queries cannot be told" in " ".join(told(six).untold)


def test_tallies_count_every_pair_once(six):
    for question in ("pooled", "within_query"):
        tally = Tally.of(six, six.pairs, question)
        verdicts = [row.verdict for row in six.verdicts if row.question == question]
        assert (tally.uneven, tally.hints, tally.none_shown, tally.cannot_tell) == tuple(
            verdicts.count(name) for name in ("uneven", "hints", "none shown", "cannot tell")
        )


def test_the_law_is_mentioned_where_re_ranking_is_and_nowhere_else(uneven):
    advice = " ".join(told(uneven).next)
    assert "evenrank rank" in advice
    assert CAUTION in advice
    for audit in (
        audited([["a", "b"], ["b", "a"]] * 10, [1]),
        audited([["a", "a", "a"]] * 40 + [["b"] * 9] * 40, [3]),
        with_gaps(uneven, "within_query", adjusted=0.2),
    ):
        assert "evenrank rank" not in " ".join(audit.conclusions())
        assert CAUTION not in audit.conclusions()


def test_hints_are_called_hints(uneven):
    hint = with_gaps(uneven, "within_query", adjusted=0.2)
    assert hint.verdict["within_query"] == "hints"
    (sentence,) = [text for text in told(hint).shown if text.startswith("Within queries, demographic parity")]
    assert "(a hint: not when corrected for the number of gaps)" in sentence
    assert "a hint" not in " ".join(told(uneven).shown)
    assert "a hint is a reason to look again" in " ".join(told(hint).next)


def test_the_lowest_ratio_names_its_groups_only_if_there_is_a_lower_one(uneven):
    def rule(audit):
        return next(text for text in told(audit).shown if text.startswith("Four-fifths"))

    assert 'at k = 1: "b" 10 of 60, "a" 50 of 60.' in rule(uneven)
    assert '"a"' not in rule(audited([["a", "b"], ["b", "a"]] * 10, [1]))


def test_numbers_of_a_sentence_are_those_of_the_data(uneven):
    inside, *_ = [text for text in told(uneven).shown if text.startswith("Within queries, demographic")]
    assert '"a" is ahead of "b" at k = 1.' in inside
    assert '"a" got 50 of the two groups\' 60 places in the top 1 (30 if every list were shared evenly)' in inside
    pooled, *_ = [text for text in told(uneven).shown if text.startswith("Pooled, demographic")]
    assert "50 of 60 against 10 of 60 in the top 1, 83.3% against 16.7%; difference 0.667" in pooled
    assert "query mix" not in pooled


def test_places_are_shared_out_as_a_loop_counts_them():
    rng = np.random.default_rng(5)
    lists = [shuffled("aab" if number % 3 else "abbbcccc", rng) for number in range(60)]
    parts = brackets(audited(lists, [1, 3]))
    assert [part.places for part in parts] == ["1", "2–3", "4 and below"]
    for part, places in zip(parts, ([0], [1, 2], range(3, 8)), strict=True):
        got = dict.fromkeys("abc", 0.0)
        even = dict.fromkeys("abc", 0.0)
        for labels in lists:
            for place in places:
                if place < len(labels):
                    got[labels[place]] += 1
                    for name in "abc":
                        even[name] += labels.count(name) / len(labels)
        assert part.items == sum(got.values())
        assert part.shares == pytest.approx({name: got[name] / sum(got.values()) for name in "abc"})
        assert part.expected == pytest.approx({name: even[name] / sum(even.values()) for name in "abc"})


def test_text_and_markdown_have_the_order_of_the_page(six):
    headings = ["What is shown", "What to do", "Impact ratios", "Within queries", "Pooled over", "What cannot be told"]
    for text in (six.text(), six.markdown()):
        places = [
            text.index(f"\n{mark}{heading}")
            for heading in headings
            for mark in ("## ", "")
            if f"\n{mark}{heading}" in text
        ]
        assert len(places) == len(headings)
        assert places == sorted(places)
        assert "within queries (the ranker) uneven; pooled (what the groups get) uneven" in " ".join(text.split())


def test_the_lists_are_blamed_only_where_the_query_mix_is_certain():
    filled = "look at how the lists are filled"
    apart = audited([["a", "a", "a"]] * 40 + [["b"] * 9] * 40, [3])
    assert apart.verdict == {"pooled": "uneven", "within_query": "cannot tell"}
    assert filled in " ".join(told(apart).next)
    # The same in every list, and few clusters: the gap is the ranker's or chance, never the query mix.
    lists = [["a", "a", "b", "b"]] * 30 + [["a", "b", "a", "b"]] * 10
    few = audited(lists, [2], cluster=np.repeat(np.arange(40) % 5, 4))
    unsure = with_gaps(few, "within_query", decidable=False, reason="Few are selected.")
    unsure = with_gaps(unsure, "pooled", decidable=True, p=1e-6, adjusted=1e-5)
    assert unsure.verdict == {"pooled": "uneven", "within_query": "cannot tell"}
    assert filled not in " ".join(told(unsure).next)
    assert "cannot be told from these data" in " ".join(told(unsure).next)


def test_no_plan_is_made_from_lists_that_say_nothing():
    groups = np.tile(["a", "a", "b", "b"], 10)
    data = er.RankingData.from_arrays(np.zeros((40, 0)), np.zeros(40), groups, np.repeat(np.arange(10), 4))
    tied = er.audit(np.zeros(40), data, [1, 2], labelled=False)
    assert tied.verdict["within_query"] == "cannot tell"
    assert told(tied).next == []
    assert "would show" in " ".join(told(audited([["a", "b"], ["b", "a"]] * 10, [1])).next)


def test_no_plan_speaks_of_a_gap_that_no_ranking_can_have():
    """At k = 2 of 60 no gap is larger than a few per cent, and five lists show none of that size."""
    rng = np.random.default_rng(0)
    few = audited([shuffled("a" * 12 + "b" * 48, rng) for _ in range(5)], [2])
    assert few.plans[0].smallest_gap > 2 / 12
    assert "these queries would show" not in " ".join(told(few).next)
    more = audited([shuffled("a" * 12 + "b" * 48, rng) for _ in range(400)], [2])
    said = " ".join(told(more).next)
    assert "these queries would show" in said
    # 0.05 is beyond what 2 places of 60 allow in favour of b, and within it in favour of a
    assert more.plans[0].smallest_gap < 0.05


def test_many_groups_are_named_in_part_and_counted_in_full():
    rng = np.random.default_rng(1)
    names = np.array([f"group {number:02}" for number in range(30)])
    audit = audited([list(names[rng.permutation(30)]) for _ in range(40)], [5])
    text = audit.text()
    assert " and 18 more" in text
    assert "Of 30 groups, the 6 with the lowest rates at k = 5" in " ".join(text.split())
    assert len(text.splitlines()) < 190
    assert len(audit.impact_ratios()) == 30
