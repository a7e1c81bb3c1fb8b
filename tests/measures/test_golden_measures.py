"""The field's measures against golden cases: exact values of the formulas, and what published code prints."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenrank.measures import cut_points, exposure_shares, fair_trec, group_values, item_exposure, pairs, prefixes
from evenrank.measures.lists import group_sums, joint_membership, one_hot, ranked_exposure
from evenrank.ranking import Ranking
from golden import Case, agrees, golden


def one_list(n: int) -> np.ndarray:
    return np.array([0, n])


# ---------------------------------------------------------------------- exposure and its shares


@golden("measures/awrf_fair_trec", "cases")
def test_awrf(case: Case) -> None:
    for number, query in enumerate(case["queries"]):
        member = joint_membership(query["membership"])
        relevant = np.array(query["relevance"], float)
        exposure = ranked_exposure([query["ranking"]], len(member), discount="log2_clipped")
        by_group = group_sums(exposure, member, one_list(len(member)))
        value = exposure_shares.awrf(by_group, np.array(query["target"]))
        agrees(value[0], case["exact"]["awrf"][number])
        agrees(value[0], case["reference"]["awrf"][number], rel=2e-6)
        ideal = ranked_exposure([np.argsort(-relevant)], len(member), discount="log2_clipped", k=500)
        agrees(exposure @ relevant / (ideal @ relevant), case["exact"]["ndcg"][number])


@golden("measures/expected_exposure_fair_trec", "cases")
def test_expected_exposure_of_the_track(case: Case) -> None:
    member, relevant = joint_membership(case["membership"]), np.array(case["relevance"]) > 0
    ptr = one_list(len(member))
    exposure = ranked_exposure(case["rankings"], len(member), discount="log2_clipped")
    full = ranked_exposure([range(case["target_len"])], case["target_len"], discount="log2_clipped").sum()
    for among, key in (("relevant", "relevant_only"), ("all", "all_items")):
        expected = case["expected"][key]
        by_group = exposure_shares.track_exposure(exposure, member, relevant, ptr, among=among)
        agrees(by_group[0], expected["group_exposure"])
        value = exposure_shares.group_expected_exposure(by_group, np.array(case["target"]) * full)
        for part, name in ((value.loss, "EEL"), (value.disparity, "EED"), (value.relevance, "EER")):
            agrees(part[0], expected["exact"][name])


@golden("measures/expected_exposure_browsing", "cases")
def test_expected_exposure_of_browsing_models(case: Case) -> None:
    user = {
        "discount": {"gerr": "err", "rbp": "rbp"}[case["user_model"]],
        "patience": case["patience"],
        "stop": case["utility"],
    }
    among = "all" if case["complete"] else "relevant"
    for query, expected in zip(case["queries"], case["expected"], strict=True):
        relevance = np.array(query["relevance"], float)
        ptr, relevant = one_list(len(relevance)), relevance > 0
        exposure = ranked_exposure(query["rankings"], len(relevance), relevant=relevant, **user)
        target = exposure_shares.ideal_exposure(relevance, ptr, among=among, **user)
        if case["level"] == "item":
            value = exposure_shares.item_expected_exposure(exposure, target, ptr)
            agrees(exposure, expected["exposure"])
            agrees(target, expected["target"])
        else:
            member = one_hot(query["group"], case["n_groups"])
            counted = exposure if case["complete"] else exposure * relevant
            by_group, wanted = group_sums(counted, member, ptr), group_sums(target, member, ptr)
            agrees(by_group[0], expected["exposure"])
            agrees(wanted[0], expected["target"])
            value = exposure_shares.group_expected_exposure(by_group, wanted)
        for part, name in ((value.loss, "EEL"), (value.disparity, "EED"), (value.relevance, "EER")):
            agrees(part[0], expected["raw"][name])


@golden("measures/targets_fair_trec", "cases")
def test_targets_of_the_track(case: Case) -> None:
    dimensions = [np.array(part) for part in case["relevant_items"]["membership"]]
    sizes = [part.shape[1] for part in dimensions]
    level = np.array(case["relevant_items"]["work_level"])
    member, ptr = joint_membership(dimensions), one_list(len(level))
    work = fair_trec.work_exposure(level, ptr)
    expected = case["expected"]
    for weight, key in ((None, "task1"), (work, "task2")):
        shares = fair_trec.relevant_shares(member, ptr, weight)
        agrees(fair_trec.mixed_with_background(shares, sizes, case["background"])[0], expected[key])
    for number, value in enumerate(expected["task2_item_exposure_by_level"]):
        if value is not None:
            agrees(work[level == number], [value] * int((level == number).sum()))
    alone = fair_trec.relevant_shares(dimensions[0], ptr)
    agrees(fair_trec.mixed_with_background(alone, sizes[:1], case["background"][:1])[0], expected["first_dim_task1"])


# ---------------------------------------------------------------------- values of groups

FORMS = {
    "MinMaxRatio": "min_max_ratio",
    "MaxMinRatio": "max_min_ratio",
    "MaxMinDiff": "max_min_difference",
    "MaxAbsDiff": "max_deviation",
    "MeanAbsDev": "mean_deviation",
    "LTwo": "norm",
    "Variance": "variance",
}


def favoured_shares(ranking: list[int], group: np.ndarray, n_groups: int) -> np.ndarray:
    """The share of pairs with an item of another group in which the group's item stands higher."""
    places = Ranking(-np.arange(len(ranking)), one_list(len(ranking)))
    member = one_hot(group[ranking], n_groups)
    counts = pairs.all_pairs(places.first, places.size, member, places.query_ptr)
    return pairs.marginal_accuracies(counts, "inter")[0]


@golden("measures/group_exposure_fairranktune", "cases")
def test_group_exposure(case: Case) -> None:
    group, n_groups = np.array(case["group"]), case["n_groups"]
    member, ptr = one_hot(group, n_groups), one_list(len(group))
    size = member.sum(axis=0)

    def summed(**discount: Any) -> np.ndarray:
        exposure = len(case["rankings"]) * ranked_exposure(case["rankings"], len(group), **discount)
        return group_sums(exposure, member, ptr)[0]

    at_rank = np.concatenate([group[ranking] for ranking in case["rankings"]])
    ranked = [one_hot(at_rank, n_groups), one_list(len(at_rank))]
    relevance = group_sums(np.concatenate(case["relevance_at_rank"]), *ranked)[0]
    clicks = group_sums(np.concatenate(case["ctr_at_rank"]), *ranked)[0]
    decayed = (1 - case["decay"]) * summed(discount="rbp", patience=case["decay"])
    values = {
        "EXP": group_values.per_unit(summed(), size),
        "EXPU": group_values.per_unit(summed(), relevance),
        "EXPRU": group_values.per_unit(clicks, relevance),
        "AWRF": 100 * group_values.per_unit(summed(discount="geometric", patience=case["awrf_p"]), size),
        "ERBE": decayed,
        "ERBP": group_values.per_unit(decayed, size),
        "ERBR": group_values.per_unit(decayed, relevance),
    }
    for name, expected in case["expected"].items():
        if name == "ARP":
            values[name] = sum(favoured_shares(ranking, group, n_groups) for ranking in case["rankings"])
        if name in values and expected is not None:
            agrees(values[name], expected["group_values"])
            for form, how in FORMS.items():
                agrees(group_values.combine(values[name], how), expected[form])
    for ranking, exact in zip(case["rankings"], case["expected"]["NDKL"]["exact"], strict=False):
        counts = prefixes.counts_of(group[ranking], n_groups)
        agrees(prefixes.ndkl(counts, counts[-1] / len(ranking)), exact)


@golden("measures/exposure_ratios_two_groups", "cases")
def test_exposure_ratios(case: Case) -> None:
    user: Case = {"discount": case["weight"]} | ({} if case["parameter"] is None else {"patience": case["parameter"]})
    sums = {name: np.zeros(3) for name in ("exposure", "clicks", "relevance", "size", "score")}
    share = case["target_minor_share"]
    for query, expected in zip(case["queries"], case["expected"]["per_query"], strict=True):
        group, relevance = np.array(query["group"]), np.array(query["relevance"], float)
        member, ptr = one_hot(group, 3), one_list(len(group))
        exposure = ranked_exposure([query["ranking"]], len(group), **user)
        columns = {
            "exposure": exposure,
            "clicks": exposure * relevance,
            "relevance": relevance,
            "size": np.ones(len(group)),
            "score": np.array(query["score"]),
        }
        here = {name: group_sums(values, member, ptr)[0] for name, values in columns.items()}
        sums = {name: sums[name] + here[name] for name in sums}
        agrees(group_values.share_distance(here["exposure"], share), expected["awrf_binomial"])
        agrees(group_values.share_distance(here["exposure"], 0.5), expected["awrf_equal"])
        counts = prefixes.counts_of(group[query["ranking"]], 3)
        agrees(prefixes.fair_prefix(counts[:, 1], share), expected["fair_prefix"])
    agrees(group_values.attention_gap(sums["exposure"], sums["score"]), case["expected"]["iaa_group"])
    right = case["expected"]["right"]
    for name in ("exposure", "clicks", "relevance", "size"):
        agrees(sums[name], right[f"group_{name}"])
    agrees(group_values.log_ratio(sums["exposure"], sums["size"]), right["log_exposure_ratio"])
    agrees(group_values.log_ratio(sums["exposure"], sums["relevance"]), right["log_DTR"])
    agrees(group_values.log_ratio(sums["clicks"], sums["relevance"]), right["log_DIR"])


# ---------------------------------------------------------------------- the first ranks


@golden("measures/skew_ndkl_infeasible", "cases")
def test_skew_ndkl_and_infeasible(case: Case) -> None:
    target, k, expected = np.array(case["target"]), case["k"], case["expected"]
    counts = prefixes.counts_of(case["group_at_rank"], len(target))
    top = counts[min(k, len(counts)) - 1]
    skews = prefixes.skew(top, min(k, len(counts)), target)
    agrees(skews, expected["skew_at_k"])
    lowest, highest = prefixes.extremes(skews)
    agrees(lowest, expected["min_skew_at_k"])
    agrees(highest, expected["max_skew_at_k"])
    agrees(prefixes.ndkl(counts, target), expected["ndkl"])
    index, count = prefixes.infeasible(counts, target)
    assert (index, count) == (expected["infeasible_index"], expected["infeasible_count"])
    known = counts[-1].sum()
    agrees(prefixes.smoothed_skew(top, known, counts[-1] / known), expected["lift_smoothed_skew_at_k_to_population"])


@golden("measures/rnd_rkl_rrd", "cases")
def test_differences_at_cut_points(case: Case) -> None:
    at_rank, step = np.array(case["protected_at_rank"]), case["step"]
    protected, length = np.cumsum(at_rank).astype(float), len(at_rank)
    names = {"rND": "rnd", "rKL": "rkl", "rRD": "rrd", "rRD_poster": "rrd_shortfall"}
    for key, name in names.items():
        expected = case["expected"][key]
        sums = {}
        for log, suffix in (("log2_i_plus_1", ""), ("log2_i", "_log2_i")):
            raw = cut_points.cut_point_sum(name, protected, step=step, log=log)
            largest = cut_points.largest_sum(name, np.array([at_rank.sum()]), length, step=step, log=log)
            agrees(raw, expected[f"raw{suffix}"])
            agrees(largest[0], expected[f"max{suffix}"])
            sums[suffix] = raw, largest
        agrees(cut_points.normalised(*sums[""])[0], expected["normalised"])
    several = case["several_groups"]
    counts = prefixes.counts_of(several["group_at_rank"], max(several["group_at_rank"]) + 1)
    agrees(cut_points.group_divergence_sum(counts, step=step), several["rKL_raw"])


# ---------------------------------------------------------------------- pairs


@golden("measures/pairwise", "cases")
def test_pairs(case: Case) -> None:
    lists, n_groups, expected = case["queries"], case["n_groups"], case["expected"]
    ptr = np.cumsum([0, *(len(query["group"]) for query in lists)])
    group, relevance, score = (
        np.concatenate([query[name] for query in lists]) for name in ("group", "relevance", "score")
    )
    member, ranking = one_hot(group, n_groups), Ranking(score, ptr)
    each = pairs.relevance_pairs(ranking.first, ranking.size, relevance, member, ptr)
    counts = each.pooled()
    for name in ("pairs", "wins", "ties"):
        assert getattr(counts, name)[0].tolist() == expected[name]
    pooled, accuracy = expected["pooled"], pairs.accuracies(counts)
    agrees(accuracy[0], pooled["accuracy"])
    kinds = {kind: pairs.marginal_accuracies(counts, kind) for kind in ("marginal", "intra", "inter")}
    for kind, values in kinds.items():
        agrees(values[0], pooled[kind])
    agrees(pairs.overall_accuracy(counts)[0], pooled["overall"])
    agrees(pairs.spread(pairs.between_groups(accuracy))[0], pooled["gap_cross_group"])
    for gap, kind in (("gap_within_group", "intra"), ("gap_marginal", "marginal"), ("gap_inter", "inter")):
        agrees(pairs.spread(kinds[kind])[0], pooled[gap])
    per_list = pairs.accuracies(each)
    counted = ~np.isnan(per_list)
    with np.errstate(invalid="ignore"):
        mean = np.where(counted, per_list, 0).sum(axis=0) / counted.sum(axis=0)
    agrees(mean, expected["mean_over_queries_accuracy"])
    parity = pairs.accuracies(pairs.all_pairs(ranking.first, ranking.size, member, ptr).pooled())
    agrees(parity[0], expected["statistical_parity"])
    if "fare" in case:
        fare, exact = case["fare"], case["fare"]["exact"]
        group, ranked = (
            np.array(fare["group"]),
            Ranking(-np.array(fare["ranked_at"], float), one_list(len(fare["group"]))),
        )
        places = (ranked.first, ranked.size)
        by_rank = pairs.relevance_pairs(
            *places, -np.array(fare["true_rank"], float), one_hot(group, 2), ranked.query_ptr
        )
        agrees(pairs.rank_equality(by_rank)[0], exact["rank_equality"])
        agrees(pairs.rank_calibration(by_rank)[0], exact["rank_calibration"])
        every = pairs.all_pairs(*places, one_hot(group, 2), ranked.query_ptr)
        agrees(pairs.marginal_accuracies(every, "inter")[0], exact["rank_parity"])


# ---------------------------------------------------------------------- items


@golden("measures/exposure_inequality", "cases")
def test_inequality_of_exposure(case: Case) -> None:
    k, n, lists = case["k"], case["n_items"], [ranking[: case["k"]] for ranking in case["rankings"]]
    exact, items = case["expected"]["exact"], np.concatenate(lists).astype(int)
    ptr = np.cumsum([0, *map(len, lists)])
    shown = item_exposure.item_totals(np.ones(len(items)), items, n)
    agrees(item_exposure.gini(shown), exact["list_gini"])
    for discount, name in (("rbp", "geometric"), ("log2_clipped", "log2_clipped"), ("log2", "log2_plus1")):
        exposure = ranked_exposure(lists, n, discount=discount, patience=case["patience"], k=k)
        agrees(item_exposure.gini(exposure), exact[f"exposure_gini_{name}"])
    others = case["expected"]["holisticai"]
    audiences = [
        item_exposure.item_totals(np.ones(len(part)), part, n)
        for value in (1, 0)
        for part in [items[np.repeat(np.array(case["list_group"]) == value, np.diff(ptr))]]
    ]
    values = {
        "gini_index": item_exposure.gini(shown, corrected=True),
        "exposure_entropy": item_exposure.entropy(shown),
        "exposure_total_variation": item_exposure.total_variation(*audiences),
        "exposure_kl": item_exposure.audience_divergence(*audiences),
        "aggregate_diversity": item_exposure.aggregate_diversity(np.ones(len(items)), items, n),
        "average_recommendation_popularity": item_exposure.average_popularity(
            np.ones(len(items)), items, n, ptr
        ).mean(),
    }
    for name, value in values.items():
        agrees(value, others[name])


@golden("measures/amortized_attention", "cases")
def test_inequity_of_attention(case: Case) -> None:
    name, n, expected = case["attention"], case["n_items"], case["expected"]
    user: Case = {"discount": "geometric" if name == "geometric" else "log2", "patience": case["p"]}
    k = 1 if name == "singular" else case["k"]
    items, relevance, attention = [], [], []
    for ranking in case["rankings"]:
        items.append(ranking["items"])
        relevance.append(ranking["relevance"])
        attention.append(ranked_exposure([ranking["ranking"]], len(ranking["items"]), k=k, **user))
    ptr = np.cumsum([0, *map(len, items)])
    item, due, given = (np.concatenate(part) for part in (items, relevance, attention))
    for normalise, key in ((False, "iaa_raw"), (True, "iaa_normalised")):
        value = item_exposure.inequity_of_attention(given, due, ptr, item, n, normalise=normalise)
        agrees(value, expected[key])
    for number, after in enumerate(expected["after_each_ranking"], start=1):
        end = ptr[number]
        value = item_exposure.inequity_of_attention(given[:end], due[:end], ptr[: number + 1], item[:end], n)
        agrees(value, after)
    for values, key in ((given, "attention"), (due, "relevance")):
        agrees(item_exposure.item_totals(item_exposure.attention_shares(values, ptr)[0], item, n), expected[key])
    group = np.array(case["group"])
    value = item_exposure.inequity_of_attention(given, due, ptr, group[item], int(group.max()) + 1)
    agrees(value, expected["iaa_group_normalised"])
