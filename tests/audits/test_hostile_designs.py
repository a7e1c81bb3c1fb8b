"""Designs with a known truth that once made an audit say the opposite: what its words and its JSON say now."""

from __future__ import annotations

import numpy as np
import pytest

import evenrank as er

pytestmark = pytest.mark.filterwarnings("ignore::evenrank.DataWarning")


def rows(lists, relevance=None):
    """Rows of lists of group labels, best first."""
    group = [label for one in lists for label in one]
    qid = [f"q{number:05}" for number, one in enumerate(lists) for _ in one]
    score = np.concatenate([-np.arange(len(one), dtype=float) for one in lists])
    labels = np.zeros(len(group)) if relevance is None else np.concatenate(relevance)
    return score, er.RankingData.from_arrays(np.zeros((len(group), 0)), labels, group, qid)


def audited(lists, ks, **options):
    return er.audit(*rows(lists), ks, labelled=False, **options)


def pair_of(audit, k, a, b, measure="demographic_parity"):
    (pair,) = [one for one in audit.pairs if (one.measure, one.k) == (measure, k) and {one.a, one.b} == {a, b}]
    return pair if pair.a == a else pair.turned()


def shuffled(groups, rng):
    return [str(label) for label in rng.permutation(groups)]


def test_a_tiny_group_silences_nobody():
    """Six groups, one of them 2 applicants; f is selected at 13 % against 42 %."""
    rng = np.random.default_rng(0)
    lists = []
    for number in range(200):
        pool = shuffled(list("aabbccddee"), rng)
        chosen = rng.random(2) < 0.13
        lists.append([*(["f"] * chosen.sum()), *pool, *(["f"] * (~chosen).sum())])
        if number < 2:
            lists[-1].append("tiny")
    audit = audited(lists, [4])
    words = audit.conclusions()
    assert words[0].startswith("In short: uneven.")
    assert 'over "f"' in words[0]
    assert audit.verdict == {"pooled": "uneven", "within_query": "uneven"}
    assert audit.four_fifths() == {4: "not met"}
    for name in "abcde":
        pair = pair_of(audit, 4, "f", name)
        assert (pair.within_query.verdict(0.05), pair.pooled.verdict(0.05)) == ("uneven", "uneven")
        assert pair.pooled.high < 0
    small = [text for text in words if text.startswith("Small groups")]
    assert '"tiny" 2 (' in small[0]
    (tiny,) = [row for row in audit.impact_ratios() if row["category"] == "tiny"]
    assert tiny["number"] == 2
    told = [one for one in audit.to_dict()["verdicts"] if "tiny" in (one["a"], one["b"])]
    assert {one["verdict"] for one in told} <= {"cannot tell", "none shown"}
    # The gap is that of a group that shows it, not of the two items with the lowest rate of all.
    assert tiny["rate"] == 0
    gaps = [one for one in audit.to_dict()["findings"] if one["shown"]]
    assert {one["measure"] for one in gaps} == {"demographic_parity", "exposure_gap"}
    assert {one["other"] for one in gaps} == {"f"}
    assert "tiny" not in {one["favoured"] for one in gaps}
    # Set aside with a note, never silently.
    without = audited(lists, [4], min_count=10)
    assert without.verdict["within_query"] == "uneven"
    assert not [one for one in without.pairs if "tiny" in (one.a, one.b)]
    assert 'Set aside, as asked (fewer than 10 items): "tiny" (2 items).' in " ".join(without.conclusions())
    (tiny,) = [row for row in without.impact_ratios() if row["category"] == "tiny"]
    assert (tiny["number"], tiny["ratio"], tiny["set_aside"]) == (2, None, True)
    by_share = audited(lists, [4], min_share=0.02)
    assert [row["category"] for row in by_share.impact_ratios() if row["set_aside"]] == ["tiny"]


def test_none_of_25_by_chance_is_no_finding_and_no_interval_of_width_zero():
    """A rare group, one item in each of 25 of 300 lists of 20, none of them first."""
    lists = [["b"] * 10 + ["rare"] + ["b"] * 9 if number < 25 else ["b"] * 20 for number in range(300)]
    audit = audited(lists, [1])
    assert audit.verdict["within_query"] in ("none shown", "cannot tell")
    assert audit.verdict["pooled"] in ("none shown", "cannot tell")
    assert not audit.conclusions()[0].startswith("In short: uneven")
    pair = pair_of(audit, 1, "rare", "b")
    assert (pair.selected_a, pair.count_a) == (0, 25)
    assert pair.pooled.low < pair.pooled.difference < pair.pooled.high
    assert pair.within_query.high > 0.05
    (gap,) = audit.find("demographic_parity")
    assert gap.interval.low == 0 < gap.interval.estimate < gap.interval.high


@pytest.mark.parametrize("carrying", [10, 25, 60])
def test_a_rare_group_is_seldom_called_uneven_by_chance(carrying):
    """Rates: at most 5 % of random orders, and 3 standard errors of 30 of them."""
    rng = np.random.default_rng(carrying)
    uneven = 0
    for _ in range(30):
        place = rng.integers(0, 10, carrying)
        lists = [["b"] * 10 for _ in range(120)]
        for number, at in enumerate(place):
            lists[number][at] = "rare"
        uneven += audited(lists, [1, 3]).verdict["within_query"] == "uneven"
    assert uneven <= 30 * 0.05 + 3 * np.sqrt(30 * 0.05 * 0.95)


def test_a_group_never_in_the_top_of_long_lists_is_uneven_by_its_ratio():
    """60 lists of 200 with 21 women each, none ever in the top 10."""
    rng = np.random.default_rng(1)
    lists = [["man"] * 10 + shuffled(["man"] * 169 + ["woman"] * 21, rng) for _ in range(60)]
    audit = audited(lists, [10])
    words = audit.conclusions()[0]
    assert words.startswith("In short: uneven.")
    assert 'which favours "man" over "woman"' in words
    pair = pair_of(audit, 10, "woman", "man")
    assert (pair.selected_a, pair.count_a, pair.observed) == (0, 1260, 0)
    assert pair.expected == pytest.approx(60 * 10 * 21 / 200)
    assert pair.pooled.ratio == 0
    assert pair.pooled.ratio_high < 0.1
    assert audit.four_fifths() == {10: "not met"}
    assert audit.find("four_fifths")[0].interval.high < 0.8


def test_three_of_1261_against_297_of_10929_is_told():
    """Fisher's test has p = 7e-11; one list holds 300 selected of 12,190."""
    lists = []
    women, men = np.full(100, 12), np.full(100, 109)
    women[:61] += 1
    men[:29] += 1
    taken = np.zeros(100, int)
    taken[:3] = 1
    for number in range(100):
        top = ["woman"] * taken[number] + ["man"] * (3 - taken[number])
        rest = ["woman"] * (women[number] - taken[number]) + ["man"] * (men[number] - 3 + taken[number])
        lists.append(top + rest)
    audit = audited(lists, [3])
    pair = pair_of(audit, 3, "woman", "man")
    assert (pair.selected_a, pair.count_a, pair.selected_b, pair.count_b) == (3, 1261, 297, 10929)
    assert audit.four_fifths() == {3: "not met"}
    assert pair.pooled.ratio == pytest.approx(3 / 1261 / (297 / 10929))
    assert 0 < pair.pooled.ratio_low < 0.03
    assert 0.2 < pair.pooled.ratio_high < 0.35
    assert pair.pooled.p < 1e-4
    assert "not met at k = 3" in " ".join(audit.conclusions())


def blind(rng):
    """Random orders; a stands mostly in short lists, b in long ones."""
    lists = []
    for number in range(300):
        length, share = (4, 0.75) if number % 2 else (12, 0.25)
        mine = int(length * share)
        lists.append(shuffled(["a"] * mine + ["b"] * (length - mine), rng))
    return lists


def test_a_blind_ranker_with_lists_of_different_length_is_query_mix():
    audit = audited(blind(np.random.default_rng(2)), [3])
    assert audit.verdict == {"pooled": "uneven", "within_query": "none shown"}
    words = audit.conclusions()
    assert words[0].startswith("In short: the pooled rates differ, but no gap within queries is shown")
    assert "it is the query mix, not the ranker" in words[0]
    pair = pair_of(audit, 3, "a", "b")
    assert pair.ranker_part + pair.mix_part == pytest.approx(pair.pooled.difference, abs=1e-12)
    assert abs(pair.ranker_part) < 0.05 < pair.mix_part
    assert "how the lists are filled" in words[-1]
    assert not [text for text in words if "evenrank rank" in text]


def test_blind_rankers_are_seldom_called_uneven_within_queries():
    rng = np.random.default_rng(3)
    uneven = [audited(blind(rng), [1, 3]).verdict["within_query"] == "uneven" for _ in range(30)]
    assert sum(uneven) <= 30 * 0.05 + 3 * np.sqrt(30 * 0.05 * 0.95)


def test_numbers_of_relevant_items_that_differ_are_query_mix():
    """A blind ranker; a's relevant items stand in lists with few relevant ones."""
    rng = np.random.default_rng(4)
    lists, relevance = [], []
    for number in range(400):
        few = number % 2
        groups = np.array(list("aaaaaabb" if few else "aabbbbbb"))
        relevant = np.zeros(8)
        relevant[rng.permutation(8)[: 2 if few else 6]] = 1
        score = rng.normal(size=8) + 3 * relevant  # it sees relevance, not the group
        order = np.argsort(-score)
        lists.append(list(groups[order]))
        relevance.append(relevant[order])
    audit = er.audit(*rows(lists, relevance), [2])
    pair = pair_of(audit, 2, "a", "b", "equal_opportunity")
    assert pair.pooled.verdict(0.05) == "uneven"
    assert pair.within_query.verdict(0.05) == "none shown"
    assert pair.mix_part > 0.1
    assert audit.verdict["within_query"] != "uneven"


def simpson(a_behind_in_pool):
    """a is last or nearly so in every list, and stands mostly in lists where the top k takes nearly all."""
    short = [["b", "a", "a", "a"]] * 150
    long = [["b"] * 11 + ["a"]] * (20 if a_behind_in_pool else 100)
    return short + long


def test_a_ranker_that_puts_a_last_everywhere_is_uneven_though_the_pool_says_otherwise():
    audit = audited(simpson(False), [3])
    pair = pair_of(audit, 3, "a", "b")
    assert pair.pooled.difference > 0.1  # a fares better, by its lists
    assert pair.ranker_part < 0 < pair.mix_part
    assert audit.verdict["within_query"] == "uneven"
    words = audit.conclusions()[0]
    assert words.startswith("In short: uneven.")
    assert 'which favours "b" over "a"' in words
    assert 'The pooled rates point the other way: the query mix favours "a"' in words
    (verdict,) = [
        one
        for one in audit.to_dict()["verdicts"]
        if (one["measure"], one["question"]) == ("demographic_parity", "within_query")
    ]
    assert (verdict["verdict"], verdict["favoured"]) == ("uneven", "b")


def test_a_ranker_that_penalises_a_in_every_list_is_uneven_where_pooled_rates_are_even():
    """150 lists where 2 of 3 a are taken and 100 where none of a is: pooled rates are about even."""
    rng = np.random.default_rng(5)
    lists = []
    for number in range(300):
        if number % 2:
            lists.append(["b", "b", "a", "b"] if rng.random() < 0.5 else ["b", "a", "b", "b"])
        else:
            lists.append(["a", "b", "a", "a", "a", "a"] if rng.random() < 0.4 else ["b", "a", "a", "a", "a", "a"])
    audit = audited(lists, [2])
    pair = pair_of(audit, 2, "a", "b")
    assert pair.ranker_part < 0
    if pair.pooled.verdict(0.05) == "none shown":
        assert "The pooled rates do not show it: the query mix hides it" in audit.conclusions()[0]
    assert audit.conclusions()[0].startswith("In short: uneven.")
    assert 'over "a"' in audit.conclusions()[0]


def users(rng, lean):
    """40 users with 10 queries each; each user's lists lean to one group, by chance."""
    lists, user = [], []
    for number in range(40):
        towards = lean * rng.normal()
        for _ in range(10):
            groups = np.array(list("aaaabbbb"))
            score = rng.normal(size=8) + towards * (groups == "a")
            lists.append(list(groups[np.argsort(-score)]))
            user += [f"u{number:02}"] * 8
    return lists, user


def test_users_with_many_queries_are_clusters():
    rng = np.random.default_rng(6)
    uneven = {"plain": 0, "cluster": 0}
    for _ in range(25):
        lists, user = users(rng, 1.0)
        uneven["plain"] += audited(lists, [3]).verdict["within_query"] == "uneven"
        audit = audited(lists, [3], cluster=user)
        uneven["cluster"] += audit.verdict["within_query"] == "uneven"
    assert uneven["cluster"] <= 25 * 0.05 + 3 * np.sqrt(25 * 0.05 * 0.95)
    assert uneven["plain"] > uneven["cluster"]  # the design is hostile to a test that does not know the users
    assert "Clusters: 400 queries of 40" in " ".join(audit.conclusions())
    assert pair_of(audit, 3, "a", "b").clusters == 40


def recurring(rng):
    """60 items recur in all lists; each has a quality of its own, and no group is favoured."""
    group = np.array(["a", "b"])[rng.permutation(60) % 2]
    quality = rng.normal(size=60)
    lists, ids, groups, qid = [], [], [], []
    for number in range(100):
        chosen = rng.permutation(60)[:12]
        lists.append(quality[chosen] + 0.5 * rng.normal(size=12))
        ids += list(chosen)
        groups += list(group[chosen])
        qid += [number] * 12
    zeros = np.zeros((len(qid), 0))
    return np.concatenate(lists), er.RankingData.from_arrays(zeros, np.zeros(len(qid)), groups, qid, item_ids=ids)


def test_items_that_recur_are_noticed_and_said():
    rng = np.random.default_rng(7)
    uneven = {True: 0, False: 0}
    pooled = 0
    for _ in range(25):
        scores, data = recurring(rng)
        for items in uneven:
            audit = er.audit(scores, data, [3], labelled=False, items=items)
            uneven[items] += audit.verdict["within_query"] == "uneven"
            pooled += items and audit.verdict["pooled"] == "uneven"
            said = "Items recur: 60 items stand in 20 lists each on average." in " ".join(audit.conclusions())
            assert said == items
    allowed = 25 * 0.05 + 3 * np.sqrt(25 * 0.05 * 0.95)
    assert uneven[True] <= allowed
    assert pooled <= allowed
    assert uneven[False] > allowed


def test_row_numbers_are_not_taken_for_items():
    """Ids that count the rows of each list name no items: their groups change."""
    lists = [["a", "b", "a", "b"], ["b", "a", "b", "a"]] * 30
    scores, data = rows(lists)
    ids = np.tile(np.arange(4), 60)
    counted = er.RankingData.from_arrays(
        data.features, data.relevance, np.array(data.group_names)[data.group], data.query_ids[data.query_of_row], ids
    )
    assert "Items recur" not in " ".join(er.audit(scores, counted, [1], labelled=False).conclusions())


def test_few_clusters_that_carry_a_rare_group_cannot_tell():
    rng = np.random.default_rng(8)
    lists, user = [], []
    for number in range(60):
        for _ in range(5):
            groups = ["rare" if number < 14 and place == 0 else "b" for place in range(6)]
            lists.append(shuffled(groups, rng))
            user += [number] * 6
    audit = audited(lists, [1], cluster=user)
    assert audit.verdict["within_query"] == "cannot tell"
    assert audit.conclusions()[0].startswith("In short: cannot tell whether the ranker is even.")
    assert "14 clusters of several lists" in audit.conclusions()[0]


def test_groups_that_never_meet_cannot_be_told_within_queries():
    audit = audited([["a", "a", "a"]] * 40 + [["b"] * 9] * 40, [3])
    assert audit.verdict == {"pooled": "uneven", "within_query": "cannot tell"}
    words = audit.conclusions()
    assert words[0].startswith("In short: cannot tell whether the ranker is even. No list holds rows of both groups.")
    assert "from that alone the ranker's part is not shown" in words[0]
    untold = [text for text in words if text.startswith("Cannot be told within queries")]
    assert '"a" and "b" (120 and 360 items), demographic parity at k = 3' in untold[0]


def copied(times, rng, **more):
    """Twenty lists of a fair ranker, each logged several times under other query ids."""
    groups = [shuffled(list("aaaabbbb"), rng) for _ in range(20)] * times
    scores = np.tile(rng.normal(size=160), times)
    qid = np.repeat(np.arange(20 * times), 8)
    labels = [label for one in groups for label in one]
    return scores, er.RankingData.from_arrays(np.zeros((len(qid), 0)), np.zeros(len(qid)), labels, qid, **more)


def test_copies_of_lists_are_noticed_and_said():
    rng = np.random.default_rng(9)
    scores, data = copied(6, rng)
    audit = er.audit(scores, data, [3], labelled=False)
    (note,) = [text for text in audit.to_dict()["notes"] if text.startswith("Copies")]
    assert note.startswith("Copies: 100 of 120 lists have the same scores, labels and groups as another one")
    assert note in audit.conclusions()
    # What they share is named, or is known by the items: nothing is left to warn of.
    named = er.audit(scores, data, [3], labelled=False, cluster=np.tile(np.repeat(np.arange(20), 8), 6))
    known = er.audit(*copied(6, rng, item_ids=np.tile(np.arange(160), 6)), [3], labelled=False)
    # Lists that differ, and lists of places, which may be alike by chance, are no copies.
    single = er.audit(*copied(1, rng), [3], labelled=False)
    places = audited([["a", "b", "a", "b"]] * 40, [1])
    for other in (named, known, single, places):
        assert not [text for text in other.notes if text.startswith("Copies")]


def test_copies_in_several_parts_are_noticed_in_any_order_of_rows():
    rng = np.random.default_rng(10)
    scores, data = copied(2, rng)
    half = data.query_ids < 20
    order = rng.permutation(data.n_rows)
    mixed = er.RankingData.from_arrays(
        data.features[order],
        data.relevance[order],
        np.array(data.group_names)[data.group][order],
        data.query_ids[data.query_of_row][order],
    )
    parts = [
        er.audits.Summary.of(data.to_stored(scores)[mask[data.query_of_row]], data.take(mask), [3], labelled=False)
        for mask in (half, ~half)
    ]
    assert [part.copies for part in parts] == [(0, 20), (0, 20)]
    assert parts[1].merge(parts[0]).copies == (20, 40)
    assert er.audits.Summary.of(scores[order], mixed, [3], labelled=False).copies == (20, 40)


def two_rankings(leans, queries=150):
    """Two rankers of the same lists that lean to x by as much as is said."""
    rng = np.random.default_rng(11)
    group = np.tile(list("xxxxyyyy"), queries)
    quality = rng.normal(size=len(group))
    scores = [quality + rng.normal(size=len(group)) + lean * (group == "x") for lean in leans]
    qid = np.repeat(np.arange(queries), 8)
    return *scores, er.RankingData.from_arrays(np.zeros((len(group), 0)), np.zeros(len(group)), group, qid)


def compared_words(audit):
    (sentence,) = [text for text in audit.conclusions() if text.startswith("Compared with the other ranking")]
    return sentence


def test_a_lead_that_flips_is_said_where_its_size_stays():
    """Equal gaps of opposite sign: "none is more than chance"."""
    this, other, data = two_rankings((1.0, -1.0))
    audit = er.audit(this, data, [3], labelled=False, against=other)
    words = compared_words(audit)
    assert "no measure is larger or smaller for certain." in words
    assert 'the lead flips from "x" to "y"' in words
    (line,) = [one for one in audit.to_dict()["comparison"] if one["measure"] == "demographic_parity@3"]
    (pair,) = line["pairs"]
    assert pair["direction"] == 'the lead flips from "x" to "y"'
    assert line["adjusted"] > 0.05 >= pair["adjusted"]
    assert pair["a"] > 0.1 > -0.1 > pair["b"]
    assert line["low"] <= 0 <= line["high"]
    assert pair["high"] < 0
    # A gap that falls is told by its size, and no lead flips; the same ranking twice tells nothing.
    assert "flips" not in compared_words(er.audit(this, data, [3], labelled=False, against=this / 2))
    fallen = two_rankings((1.5, 0.5))
    falls = compared_words(er.audit(fallen[0], fallen[2], [3], labelled=False, against=fallen[1]))
    assert "more than chance (other minus this): demographic parity gap at 3 -0." in falls
    assert "flips" not in falls


def test_a_plan_says_its_power_in_words_and_in_json():
    """ "About 201 queries are needed" was noticed in 49 % of simulations."""
    this, _, data = two_rankings((0.0, 0.0))
    audit = er.audit(this, data, [3], labelled=False)
    (plan,) = audit.to_dict()["plans"]
    assert (plan["power"], plan["gap"], plan["queries"]) == (0.8, 0.05, 150)
    assert plan["power_now"] < 0.8
    (sentence,) = [text for text in audit.conclusions() if text.startswith("What now: with a probability of 80%")]
    assert f"of {plan['smallest_gap']:.3f} at k = 3, looked at alone" in sentence
    assert f"to notice one of 0.05, about {plan['queries_needed']:,} queries like these are needed" in sentence
    # Each list has 4 items of each group and takes 3: by hand, 7.85 standard errors² over the gap², nearly.
    assert plan["queries_needed"] == pytest.approx(7.85 * 2 * (3 / 8 * 5 / 8) / 4 * 8 / 7 / 0.05**2, rel=0.1)
