"""Conclusions that few data lead to: each printed where it is true, and data for which it must not be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import evenrank as er
from evenrank.audits.method_words import METHODS, families, methods_used
from evenrank.audits.words import told

pytestmark = pytest.mark.filterwarnings("ignore::evenrank.DataWarning")


def audited(lists, ks, **options) -> er.Audit:
    """Audit lists of group labels, best first."""
    group = [label for labels in lists for label in labels]
    qid = [f"q{number:05}" for number, labels in enumerate(lists) for _ in labels]
    score = np.concatenate([-np.arange(len(labels), dtype=float) for labels in lists])
    data = er.RankingData.from_arrays(np.zeros((len(group), 0)), np.zeros(len(group)), group, qid)
    return er.audit(score, data, ks, labelled=False, **options)


def shuffled(labels, rng) -> list[str]:
    return [str(label) for label in rng.permutation(list(labels))]


def with_gaps(audit: er.Audit, question: str, **numbers) -> er.Audit:
    """The same audit with other numbers in each answer to a question."""
    pairs = [replace(pair, **{question: replace(getattr(pair, question), **numbers)}) for pair in audit.pairs]
    return replace(audit, pairs=tuple(pairs))


@pytest.fixture(scope="module")
def mixed() -> er.Audit:
    """A blind ranker; b stands in long lists, of which fewer are selected."""
    rng = np.random.default_rng(4)
    return audited([shuffled("aaab" if j % 2 else "aaabbbbbbbbb", rng) for j in range(300)], [3])


@pytest.fixture(scope="module")
def uneven() -> er.Audit:
    return audited([["a", "b"]] * 50 + [["b", "a"]] * 10, [1])


def test_whose_a_pooled_gap_is_cannot_be_told_where_nothing_within_queries_can(mixed):
    sentence = "Whether the clearest one is the ranker's or the query mix cannot be told"
    assert mixed.verdict == {"pooled": "uneven", "within_query": "none shown"}
    assert sentence not in told(mixed).answer
    # one pair that can be decided keeps the verdict, and the clearest pooled pair is none of them
    other = replace(mixed.pairs[0], k=5, pooled=replace(mixed.pairs[0].pooled, p=0.9, adjusted=0.9))
    closed = with_gaps(mixed, "within_query", decidable=False, reason="No list holds rows of both groups.")
    shown = replace(closed, pairs=(*closed.pairs, other), ks=(3, 5))
    shown.facts["whole_lists"][5] = 0.0
    assert shown.verdict == {"pooled": "uneven", "within_query": "none shown"}
    assert sentence in told(shown).answer


def test_pooled_rates_beside_a_hint_are_said_not_to_be_the_rankers(uneven, mixed):
    sentence = "from that alone the ranker's part is not shown"
    hint = with_gaps(mixed, "within_query", p=0.03, adjusted=0.2)
    assert hint.verdict == {"pooled": "uneven", "within_query": "hints"}
    assert sentence in told(hint).answer
    calm = with_gaps(hint, "pooled", p=0.4, adjusted=0.9)
    assert sentence not in told(calm).answer
    assert sentence not in told(uneven).answer


def test_no_pair_at_all_is_said_only_where_none_could_be_compared(uneven):
    sentence = "No pair of groups could be compared; see below why."
    assert sentence not in told(with_gaps(uneven, "within_query", decidable=False, reason="Why.")).answer
    empty = replace(uneven, pairs=())
    assert empty.verdict["within_query"] == "cannot tell"
    assert sentence in told(empty).answer


def test_bounds_of_some_gaps_and_of_other_cut_offs():
    audit = audited([["a", "b", "a"], ["b", "a", "b"]] * 200, [1, 2])
    some, elsewhere = "(the others are vacuous)", "nothing; the table below has other cut-offs"
    text = " ".join(told(audit).shown)
    assert "Certified for new queries at k = " in text
    assert some not in text
    assert elsewhere not in text
    main = [one for one in audit.certificates if one.measure.endswith(f"@{audit.main_k}")]
    rest = [one for one in audit.certificates if one not in main]
    part = replace(audit, certificates=(replace(main[0], bound=2.0), *main[1:], *rest))
    assert some in " ".join(told(part).shown)
    none = replace(audit, certificates=(*(replace(one, bound=2.0) for one in main), *rest))
    assert elsewhere in " ".join(told(none).shown)
    assert some not in " ".join(told(none).shown)
    vacuous = replace(audit, certificates=tuple(replace(one, bound=2.0) for one in audit.certificates))
    assert elsewhere not in " ".join(told(vacuous).shown)


def test_gaps_that_moved_are_counted_and_flips_named():
    lists = [["a", "b", "a", "b"]] * 60 + [["b", "a", "b", "a"]] * 20
    group = [label for labels in lists for label in labels]
    data = er.RankingData.from_arrays(
        np.zeros((len(group), 0)), np.zeros(len(group)), group, np.repeat(np.arange(len(lists)), 4)
    )
    score = np.tile(-np.arange(4.0), len(lists))

    def compared(other: np.ndarray, **options: object) -> str:
        audit = er.audit(score, data, [1], labelled=False, against=other, **options)
        return next(text for text in told(audit).shown if text.startswith("Compared with"))

    flipped = compared(-score)
    assert " gaps have moved more than chance, " in flipped
    assert "of them to the other group" in flipped
    assert "1 gap has moved" not in flipped
    assert "moved more than chance" not in compared(score)
    audit = er.audit(score, data, [1], labelled=False, against=-score)
    quiet = [replace(one, pairs=(), adjusted=0.9) for one in audit.comparison[1:]]
    single = replace(audit, comparison=(audit.comparison[0], *quiet))
    said = next(text for text in told(single).shown if text.startswith("Compared with"))
    assert "1 gap has moved more than chance" in said


def test_groups_beyond_those_that_are_listed_are_counted():
    rng = np.random.default_rng(0)
    names = "abcdefghij"
    leaning = audited([[*shuffled(names[:1] * 6, rng), *shuffled(names[1:], rng)] for _ in range(150)], [3])
    sentence = "more groups are behind some"
    assert any(sentence in text for text in told(leaning).shown)
    blind = audited([shuffled(names, rng) for _ in range(150)], [3])
    assert not any(sentence in text for text in told(blind).shown)


def test_too_many_pairs_are_said_only_of_many_groups():
    rng = np.random.default_rng(1)
    sentence = "groups make too many pairs: each is compared with the largest group only."
    few = audited([shuffled("aabbcc", rng) for _ in range(20)], [2])
    assert sentence not in " ".join(few.conclusions())
    labels = [f"g{j:03}" for j in range(70)]
    many = audited([["g000", *shuffled(labels, rng)] for _ in range(6)], [2])
    assert f"70 {sentence}" in " ".join(many.conclusions())


def test_methods_and_resampling_are_said_where_they_were_used(uneven):
    """The words of a method stand beside its pairs, and no other method's do."""
    used = {row.method for row in methods_used(uneven)}
    assert used == {getattr(pair, q).method for pair in uneven.pairs for q in ("pooled", "within_query")}
    text = " ".join(uneven.html().split())
    for method, words in METHODS.items():
        assert (words.replace("'", "&#39;") in text) is (method in used)
    assert used < set(METHODS)
    sentence = "Intervals of gaps, rates and quality in the tables by k are from resampled queries."
    assert sentence not in families(uneven)
    drawn = audited([["a", "b"]] * 30 + [["b", "a"]] * 10, [1], method="bootstrap", replicates=100)
    assert sentence in families(drawn)


def test_notes_beside_awrf_and_skew():
    again, endless = "Items recur, so that lists are not independent: there are no intervals.", "−∞: the top k of some"
    lists = [["a", "b"], ["b", "a"]] * 30
    one = " ".join(audited(lists, [1]).text().split())
    both = " ".join(audited(lists, [2]).text().split())
    assert endless in one
    assert endless not in both
    assert again not in one
    group = [label for labels in lists for label in labels]
    data = er.RankingData.from_arrays(
        np.zeros((120, 0)), np.zeros(120), group, np.repeat(np.arange(60), 2), item_ids=group
    )
    recurring = er.audit(np.tile([1.0, 0.0], 60), data, [1], labelled=False)
    assert again in " ".join(recurring.text().split())


def test_random_lists_are_further_from_even_the_smaller_k_is():
    """What the section says of AWRF and skew: not the length of the lists but k decides."""
    rng = np.random.default_rng(2)
    lists = [shuffled("ab" * 12, rng) for _ in range(300)]
    group = [label for labels in lists for label in labels]
    data = er.RankingData.from_arrays(
        np.zeros((len(group), 0)), np.zeros(len(group)), group, np.repeat(np.arange(300), 24)
    )
    values = er.measure(
        np.tile(-np.arange(24.0), 300), data, [f"{m}@{k}" for m in ("awrf", "max_skew") for k in (2, 6, 12)]
    )
    assert values["awrf@2"] < values["awrf@6"] < values["awrf@12"]
    assert values["max_skew@2"] > values["max_skew@6"] > values["max_skew@12"]
