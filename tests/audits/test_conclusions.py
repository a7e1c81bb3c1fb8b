"""Every conclusion that an audit can print, with the data for which it is true and those for which it must not stand.

Each design has a known truth. A conclusion is printed for exactly the designs that are listed with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import evenrank as er

pytestmark = pytest.mark.filterwarnings("ignore::evenrank.DataWarning")


def audited(lengths, group, scores, ks=(3,), *, relevance=0.5, items=None, seed=9, **options) -> er.Audit:
    """Audit lists of these lengths; relevance is drawn with a probability, or given."""
    query = np.repeat(np.arange(len(lengths)), lengths)
    rng = np.random.default_rng(seed)
    relevant = rng.random(len(query)) < relevance
    data = er.RankingData.from_arrays(np.zeros((len(query), 1)), relevant, group, query, item_ids=items)
    return er.audit(scores, data, ks, **options)


def drawn(n: int, share: float = 0.5, seed: int = 0) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(n) < share, "a", "b")


def noise(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


SIXES = [6] * 100
PAIR = drawn(600)
ABOVE = 2.0 * (PAIR == "a")


def one_query() -> er.Audit:
    return audited([30], drawn(30), noise(30))


def two_queries() -> er.Audit:
    return audited([10, 10], drawn(20), noise(20))


def fair() -> er.Audit:
    return audited(SIXES, PAIR, noise(600))


def uneven() -> er.Audit:
    return audited(SIXES, PAIR, noise(600) + ABOVE)


def hint() -> er.Audit:
    """A lean that these lists hardly show, at three cut-offs."""
    return audited(SIXES, PAIR, noise(600, 3) + 0.13 * ABOVE, [1, 2, 3])


def uneven_by_relevance() -> er.Audit:
    """Relevant items of b are last, irrelevant ones of a: neither group is behind as a whole."""
    relevant = np.random.default_rng(9).random(600) < 0.5
    return audited(SIXES, PAIR, noise(600) + 3.0 * np.where(relevant, PAIR == "a", PAIR == "b"))


def tied() -> er.Audit:
    """The scores order no list."""
    return audited(SIXES, PAIR, np.zeros(600))


def nothing_relevant() -> er.Audit:
    return audited(SIXES, PAIR, noise(600) + ABOVE, relevance=0.0)


def unlabelled() -> er.Audit:
    return audited(SIXES, PAIR, noise(600) + ABOVE, labelled=False)


def half_unknown() -> er.Audit:
    group = PAIR.astype(object)
    group[np.random.default_rng(5).random(600) < 0.5] = None
    return audited(SIXES, group, noise(600))


def set_aside() -> er.Audit:
    """c has 5 % of the items and is not compared."""
    return audited(SIXES, np.where(drawn(600, 0.05, 3) == "a", "c", PAIR), noise(600), min_share=0.1)


def third_without_relevant() -> er.Audit:
    """Three groups, of which c has no relevant items."""
    group = np.where(drawn(600, 0.15, 3) == "a", "c", PAIR)
    return audited(SIXES, group, noise(600), relevance=np.where(group == "c", 0.0, 0.5))


def tiny_third() -> er.Audit:
    """Three groups, of which c has five items."""
    group = PAIR.copy()
    group[::120] = "c"
    return audited(SIXES, group, noise(600))


def taken_whole() -> er.Audit:
    """No list is cut."""
    return audited(SIXES, PAIR, noise(600), [10])


def apart() -> er.Audit:
    """The groups never meet in a list."""
    return audited(SIXES, np.repeat(drawn(100), 6), noise(600))


def query_mix() -> er.Audit:
    """A blind ranker; b is in long lists."""
    lengths = [4, 12] * 150
    group = np.concatenate([["a"] * 3 + ["b"] if length == 4 else ["a"] * 3 + ["b"] * 9 for length in lengths])
    return audited(lengths, group, noise(len(group)))


def simpson() -> er.Audit:
    """a is last in every list, but in short ones."""
    lengths = [4, 20] * 100
    group = np.concatenate([["a"] * 3 + ["b"] if length == 4 else ["a"] + ["b"] * 19 for length in lengths])
    return audited(lengths, group, noise(len(group)) - 10.0 * (group == "a"))


def rare() -> er.Audit:
    """a has 12 items."""
    group = np.array(["b"] * 600)
    group[::50] = "a"
    return audited(SIXES, group, noise(600))


def recurring() -> er.Audit:
    """Twelve items in 100 lists, always with the same score."""
    rng = np.random.default_rng(2)
    items = np.concatenate([rng.permutation(12)[:6] for _ in SIXES])
    return audited(SIXES, np.array(["a", "b"])[items % 2], noise(12)[items], items=items)


def strayed() -> er.Audit:
    """Ids that are places in the list."""
    return audited(SIXES, PAIR, noise(600), items=np.tile(np.arange(6), 100))


def few_users() -> er.Audit:
    """Ten users with ten queries each."""
    return audited(SIXES, PAIR, noise(600), cluster={"user": np.repeat(np.arange(10), 60)})


def copies() -> er.Audit:
    """Every list four times."""
    return audited(SIXES, np.tile(PAIR[:150], 4), np.tile(noise(150), 4), relevance=np.tile(drawn(150) == "a", 4))


def better() -> er.Audit:
    """The other ranking is even."""
    return audited(SIXES, PAIR, noise(600) + ABOVE, against=noise(600, 3))


def flipped() -> er.Audit:
    """The other ranking favours the other group as much."""
    return audited(SIXES, PAIR, noise(600) + ABOVE, against=noise(600, 3) - ABOVE)


def same() -> er.Audit:
    """The other ranking is another fair one."""
    return audited(SIXES, PAIR, noise(600), against=noise(600, 3))


DESIGNS: dict[str, Callable[[], er.Audit]] = {
    make.__name__: make
    for make in (
        one_query,
        two_queries,
        fair,
        uneven,
        hint,
        uneven_by_relevance,
        tied,
        nothing_relevant,
        unlabelled,
        half_unknown,
        set_aside,
        third_without_relevant,
        tiny_third,
        taken_whole,
        apart,
        query_mix,
        simpson,
        rare,
        recurring,
        strayed,
        few_users,
        copies,
        better,
        flipped,
        same,
    )
}
ALL = set(DESIGNS)
UNEVEN = {"uneven", "uneven_by_relevance", "nothing_relevant", "unlabelled", "simpson", "better", "flipped"}
MET = {"fair", "uneven_by_relevance", "tied", "set_aside", "apart", "strayed", "few_users", "copies", "same"}
NOT_MET = UNEVEN - {"uneven_by_relevance"} | {"query_mix"}
NONE_SHOWN = ALL - UNEVEN - {"one_query", "tied", "apart", "hint", "query_mix"}
VACUOUS = {"one_query", "two_queries", "half_unknown"}

# A conclusion → the designs that it is true of.
CONCLUSIONS: dict[str, set[str]] = {
    # the answer
    "In short: one query alone cannot show how sure": {"one_query"},
    "In short: cannot tell whether the ranker is even": {"tied", "apart"},
    "In short: uneven.": UNEVEN,
    "In short: hints, nothing firm": {"hint"},
    "In short: no gap is shown in these": NONE_SHOWN,
    "the pooled rates differ, but no gap within queries is shown": {"query_mix"},
    "it is the query mix, not the ranker": {"query_mix"},
    "The pooled rates point the other way: the query mix favours": {"simpson"},
    # notion by notion
    "(a hint: not when corrected for the number of gaps)": {"hint"},
    "could go unnoticed.": ALL - UNEVEN - {"one_query", "tied"} | {"uneven_by_relevance"},
    "gap is shown at k = 3: the two are the same": {"tied", "apart"},
    '"b" is ahead of "a"': {"uneven_by_relevance", "simpson"},
    "equal opportunity: ": ALL - {"one_query", "unlabelled", "nothing_relevant", "copies", "taken_whole"},
    "irrelevant items: ": ALL - {"one_query", "unlabelled", "copies", "taken_whole"},
    # four fifths
    "highest's): met at k": MET,
    "highest's): not met at k": NOT_MET,
    "highest's): cannot be told at k": ALL - MET - NOT_MET - {"one_query", "taken_whole"},
    # another ranking
    "Compared with the other ranking: none of 8 differences is more than chance": {"same"},
    "more than chance (other minus this)": {"better"},
    "no measure is larger or smaller for certain": {"flipped"},
    "the lead flips from": {"flipped"},
    # new queries
    "Certified for new queries at k = ": ALL - VACUOUS - {"few_users"},
    "Certified for new queries: vacuous": VACUOUS,
    "the intervals, which approximate, are all there is": VACUOUS - {"one_query"},
    'Certified for new queries: nothing. That needs independent queries, and those of the same "user"': {"few_users"},
    "The bounds need independent queries": {"few_users"},
    "as items recur: for new lists of the same items": {"recurring"},
    # what cannot be told
    "Equal opportunity: cannot be computed": {"nothing_relevant", "copies"},
    "No list holds rows of both groups": {"third_without_relevant", "tiny_third", "apart"},
    "all rows are treated alike": {"tied"},
    "from one query or cluster, and one says nothing": {"tiny_third"},
    "The sample is small and comes from 10 clusters": {"few_users"},
    "gaps within queries cannot be told; the groups": {"third_without_relevant", "tiny_third"},
    "Small groups, items: ": {"tiny_third", "rare"},
    "What is said of others does not rest on them": {"tiny_third"},
    # what was done to the data, and its limits
    'Set aside, as asked (below 0.1 of the items): "c"': {"set_aside"},
    "Copies: 75 of 100 lists": {"copies"},
    'Clusters: 100 queries of 10 "user"': {"few_users"},
    "Items recur: 12 items stand in 50 lists each": {"recurring"},
    "the ids are not taken to name items": {"strayed"},
    "Without relevance labels": {"unlabelled"},
    "No item counts as relevant": {"nothing_relevant"},
    "an item of the rarest group": {"two_queries", "tiny_third", "rare"},
    "of the lists have no more than k items and are taken whole": {"taken_whole"},
    "of the items have no group label": {"half_unknown"},
    "Each interval is for one number alone: about 5% of such intervals miss": ALL - {"one_query"},
    "or whether the labels are fair": ALL - {"unlabelled"},
    "Quality ───": ALL - {"unlabelled"},
    # what to do
    "look at the queries that weigh most, below": UNEVEN - {"simpson"},
    "`evenrank train --notion dp` on rows with features, or": {"uneven", "simpson", "better", "flipped"},
    "`evenrank train --notion dp` on rows with features and relevance labels": {"nothing_relevant", "unlabelled"},
    "`evenrank train --notion eop`": {"uneven_by_relevance"},
    "Caution: re-ranking that sees the group": UNEVEN,
    "a hint is a reason to look again": {"hint"},
    "look at how the lists are filled": {"query_mix"},
    "with a probability of 80%, these queries would show": (NONE_SHOWN | {"hint"}) - {"taken_whole", "recurring"},
    "smaller groups need more": {"third_without_relevant", "tiny_third"},
    "Collect them before calling these rankings": (NONE_SHOWN | {"hint"}) - {"taken_whole", "recurring"},
    "More queries with the same items would not settle it": {"recurring"},
}


@cache
def said(design: str) -> str:
    return " ".join(DESIGNS[design]().text().split())


@pytest.mark.parametrize("conclusion", CONCLUSIONS)
def test_a_conclusion_is_printed_where_it_is_true_and_nowhere_else(conclusion):
    assert CONCLUSIONS[conclusion] < ALL  # there are data for which it must not be printed
    assert {design for design in DESIGNS if conclusion in said(design)} == CONCLUSIONS[conclusion]


def test_groups_set_aside_are_not_called_unknown():
    assert "groups: a 44%, b 52%, set aside 5%" in said("set_aside")
    assert "unknown" not in said("set_aside")


def test_what_cannot_be_told_has_the_groups_own_numbers():
    """c has 94 items, of which none is relevant."""
    assert '"c" (94 items) 2' in said("third_without_relevant")


def test_cells_without_an_answer_do_not_say_none_shown():
    """At k = 6 every list is taken whole: nobody can be favoured."""
    text = audited(SIXES, PAIR, noise(600) + ABOVE, [3, 6]).text()
    favoured = [line.split()[1:] for line in text.splitlines() if line.split()[:1] == ["favoured"]]
    assert ["a", "–"] in favoured
    assert "none" not in {word for words in favoured for word in words}


@pytest.mark.parametrize("design", DESIGNS)
def test_the_page_says_what_the_text_says(design):
    audit = DESIGNS[design]()
    page = audit.html()
    for sentence in audit.conclusions()[1:]:
        words = sentence.split("`")[0].replace("&", "&amp;").replace("'", "&#39;").replace('"', "&#34;")
        assert words in page


def test_what_is_said_of_further_measures_is_true_of_the_data():
    independent = "These intervals take queries as independent of each other."
    again = "Items recur here, so that the intervals are for new lists of the same items."
    endless = "min_skew@3 has no interval: the value of some queries is infinite."

    def text(scores, **settings):
        found = audited(SIXES, PAIR, scores, **settings).text()
        return " ".join(found.partition("Further measures")[2].split())

    assert text(noise(600)) == ""
    apart = text(noise(600) + ABOVE, measures=["ndkl@3", "min_skew@3"])
    assert independent in apart
    assert endless in apart
    assert again not in apart
    some = text(noise(600) + ABOVE, measures=["ndkl@3"])
    assert independent in some
    assert endless not in some
    none = text(noise(600) + ABOVE, measures=["min_skew@3"])
    assert independent not in none
    assert endless in none
    rng = np.random.default_rng(2)
    items = np.concatenate([rng.permutation(12)[:6] for _ in SIXES])
    found = audited(SIXES, np.array(["a", "b"])[items % 2], noise(12)[items], items=items, measures=["ndkl@3"])
    assert again in " ".join(found.text().split())
    assert again in found.html()
    assert again not in audited(SIXES, PAIR, noise(600), measures=["ndkl@3"]).html()


def test_numbers_beside_no_favoured_group_say_whose_they_are():
    for design, named in (("fair", True), ("uneven", False)):
        lines = [line.split() for line in DESIGNS[design]().text().splitlines()]
        parity = lines.index(next(line for line in lines if line[:2] == ["demographic", "parity"]))
        rows = {line[0]: line[1:] for line in lines[parity : parity + 8] if line}
        assert ("of" in rows) == named
        if named:
            assert set(rows["of"]) <= {"a", "b"}
            assert rows["favoured"] == ["none", "shown"]
