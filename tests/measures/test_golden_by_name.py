"""Golden cases of the field's measures as a user asks for them: rows, scores and names in `evenrank.measure`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.measures.lists import joint_membership
from golden import Case, agrees, golden

pytestmark = pytest.mark.filterwarnings("ignore::evenrank.errors.DataWarning")


def measured(
    data: er.RankingData, scores: Any, measures: dict[str, Any], *, per_query: bool = False, **options: Any
) -> None:
    """Assert that measures, by name, have the golden values."""
    values = er.measure(scores, data, list(measures), per_query=per_query, **options)
    for name, expected in measures.items():
        value = values[name]
        agrees(value[..., 0] if np.ndim(scores) == 3 else value, expected)


def rows(
    lists: Sequence[Any], relevance: Any = None, group: Any = None, items: Any = None, n_groups: int = 2
) -> er.RankingData:
    """Lists of rows, one after the other; groups are numbers, -1 unknown."""
    lengths = [len(part) for part in lists]
    n = sum(lengths)
    names = list(range(n_groups))
    labels = ["0"] * n if group is None else [None if code < 0 else str(code) for code in group]
    return er.RankingData.from_arrays(
        np.zeros((n, 0)),
        np.zeros(n) if relevance is None else relevance,
        labels,
        np.repeat(np.arange(len(lists)), lengths),
        item_ids=items,
        group_names=[str(name) for name in names],
    )


def by_rank(lists: Sequence[Any]) -> np.ndarray:
    return np.concatenate([-np.arange(len(part), dtype=float) for part in lists])


@golden("measures/awrf_fair_trec", "cases")
def test_awrf(case: Case) -> None:
    lists = [query["ranking"] for query in case["queries"]]
    tables = [joint_membership(query["membership"]) for query in case["queries"]]
    # Entry -1 takes a rank and has no category.
    member = np.concatenate(
        [np.vstack([table, 0 * table[:1]])[ranking] for table, ranking in zip(tables, lists, strict=True)]
    )
    names = list(range(member.shape[1]))
    data = rows(lists).with_membership(member, names)
    target = np.array([query["target"] for query in case["queries"]])
    measured(data, by_rank(lists), {"awrf": case["exact"]["awrf"]}, per_query=True, target=target)


@golden("measures/expected_exposure_fair_trec", "cases")
def test_expected_exposure_of_the_track(case: Case) -> None:
    """One ranking, no longer than the target; or several of the target's length, as samples."""
    rankings, length = case["rankings"], case["target_len"]
    member, relevance = joint_membership(case["membership"]), np.array(case["relevance"], float)
    if len(rankings) == 1 and len(rankings[0]) <= length:
        member, relevance = member[rankings[0]], relevance[rankings[0]]
        scores = by_rank(rankings)
    elif all(len(ranking) == length for ranking in rankings):
        table = np.full((len(member), 1, len(rankings)), -np.inf)
        for number, ranking in enumerate(rankings):
            table[ranking, 0, number] = by_rank([ranking])
        unranked = np.isinf(table)
        scores = np.where(unranked, -1e3 - np.arange(len(member))[:, None, None], table)
    else:
        pytest.skip("rankings of some items, of several lengths or beyond the target")
    data = rows([relevance], relevance).with_membership(member, list(range(member.shape[1])))
    for among, key in (("relevant", "relevant_only"), ("all", "all_items")):
        exact = case["expected"][key]["exact"]
        names = {f"ee_{part}@{length}": exact[f"EE{part.upper()}"] for part in "ldr"}
        if relevance.any():
            measured(data, scores, names, among=among, target=np.array(case["target"]), discount="log2_clipped")


@golden("measures/expected_exposure_browsing", "cases")
def test_expected_exposure_of_browsing_models(case: Case) -> None:
    options = {
        "discount": {"gerr": "err", "rbp": "rbp"}[case["user_model"]],
        "patience": case["patience"],
        "stop": case["utility"],
    }
    prefix = "item_" if case["level"] == "item" else ""
    options["among"] = "all" if case["complete"] else "relevant"
    for query, expected in zip(case["queries"], case["expected"], strict=True):
        if any(len(ranking) < len(query["relevance"]) for ranking in query["rankings"]):
            continue
        scores = np.empty((len(query["relevance"]), 1, len(query["rankings"])))
        for number, ranking in enumerate(query["rankings"]):
            scores[ranking, 0, number] = by_rank([ranking])
        data = rows([query["relevance"]], query["relevance"], query["group"], n_groups=case["n_groups"])
        raw = expected["raw"]
        measured(data, scores, {f"{prefix}ee_{part}": raw[f"EE{part.upper()}"] for part in "ldr"}, **options)


@golden("measures/group_exposure_fairranktune", "cases")
def test_ratios_of_exposure(case: Case) -> None:
    lists, expected = case["rankings"], case["expected"]
    if case["layout"] == "same_items":
        pytest.skip("exposure is summed over rankings of the same items there, not averaged")
    group, relevance = np.array(case["group"])[np.concatenate(lists)], np.concatenate(case["relevance_at_rank"])
    data = rows(lists, relevance, group, n_groups=case["n_groups"])
    names = {"exposure_ratio": expected["EXP"]["MinMaxRatio"]}
    if all(np.bincount(group, relevance, case["n_groups"]) > 0):
        names["dtr"] = expected["EXPU"]["MinMaxRatio"]
    measured(data, by_rank(lists), names)
    exact = expected["NDKL"]["exact"]
    if len(exact) == len(lists):
        # Without an item of a group its share is 0 on both sides.
        measured(data, by_rank(lists), {"ndkl": exact}, per_query=True)


@golden("measures/skew_ndkl_infeasible", "cases")
def test_skew_ndkl_and_infeasible(case: Case) -> None:
    at_rank, k, expected = case["group_at_rank"], case["k"], case["expected"]
    data = rows([at_rank], group=at_rank, n_groups=len(case["target"]))
    names = {
        f"min_skew@{k}": expected["min_skew_at_k"],
        f"max_skew@{k}": expected["max_skew_at_k"],
        "ndkl": expected["ndkl"],
        "infeasible_index": expected["infeasible_index"],
        "infeasible_count": expected["infeasible_count"],
    }
    given = dict(zip(data.group_names, case["target"], strict=True))
    measured(data, by_rank([at_rank]), names, target=given)
    lift = expected["lift_smoothed_skew_at_k_to_population"]
    names = {f"min_skew@{k}(smoothing=1)": min(lift), f"max_skew@{k}(smoothing=1)": max(lift)}
    measured(data, by_rank([at_rank]), names)


@golden("measures/rnd_rkl_rrd", "cases")
def test_differences_at_cut_points(case: Case) -> None:
    at_rank, expected = case["protected_at_rank"], case["expected"]
    names = {name.lower(): expected[name]["normalised"] for name in ("rND", "rKL", "rRD")}
    measured(rows([at_rank], group=at_rank), by_rank([at_rank]), names, step=case["step"], protected="1")


@golden("measures/pairwise", "cases")
def test_pairs(case: Case) -> None:
    lists = case["queries"]
    group, relevance, score = (
        np.concatenate([query[name] for query in lists]) for name in ("group", "relevance", "score")
    )
    data = rows([query["group"] for query in lists], relevance, group, n_groups=case["n_groups"])
    pooled = case["expected"]["pooled"]

    def gap(entries: list[float | None]) -> float | None:
        there = [value for value in entries if value is not None]
        return max(there) - min(there) if len(there) > 1 else None

    off = ~np.eye(case["n_groups"], dtype=bool)
    parity = np.array(case["expected"]["statistical_parity"], object)[off].tolist()
    names = {
        "pairwise_accuracy": pooled["overall"],
        "pairwise_gap": gap(np.array(pooled["accuracy"], object)[off].tolist()),
        "pairwise_intra_gap": gap(pooled["intra"]),
        "pairwise_inter_gap": gap(pooled["inter"]),
        "pairwise_marginal_gap": gap(pooled["marginal"]),
        "pairwise_parity": gap(parity),
    }
    measured(data, score, names)


@golden("measures/amortized_attention", "cases")
def test_inequity_of_attention(case: Case) -> None:
    name, k = case["attention"], 1 if case["attention"] == "singular" else case["k"]
    lists, scores = case["rankings"], []
    for ranking in lists:
        place = np.empty(len(ranking["items"]))
        place[ranking["ranking"]] = by_rank([ranking["ranking"]])
        scores.append(place)
    items = np.concatenate([ranking["items"] for ranking in lists]).astype(int)
    group = np.array(case["group"])
    data = rows(
        [ranking["items"] for ranking in lists],
        np.concatenate([ranking["relevance"] for ranking in lists]),
        group[items],
        items.astype(str),
        n_groups=int(group.max()) + 1,
    )
    cut = "" if k is None else f"@{k}"
    number, expected = len(lists), case["expected"]
    names = {
        f"iaa{cut}": expected["iaa_normalised"] / number,
        f"group_iaa{cut}": expected["iaa_group_normalised"] / number,
    }
    discount = "geometric" if name == "geometric" else "log2"
    measured(data, np.concatenate(scores), names, discount=discount, patience=case["p"])


@golden("measures/exposure_inequality", "cases")
def test_inequality_of_exposure(case: Case) -> None:
    """Items that no list shows stand below rank k of the first list."""
    k, n = case["k"], case["n_items"]
    lists = [ranking[:k] for ranking in case["rankings"]]
    if any(len(ranking) < k for ranking in lists):
        pytest.skip("lists shorter than k")
    unseen = sorted(set(range(n)) - set(np.concatenate(lists).astype(int).tolist()))
    lists[0] = [*lists[0], *unseen]
    items = np.concatenate(lists).astype(int).astype(str)
    data = rows(lists, items=items)
    exact, others = case["expected"]["exact"], case["expected"]["holisticai"]
    names = {
        f"gini@{k}(discount=none)": exact["list_gini"],
        f"gini@{k}(discount=rbp,patience={case['patience']})": exact["exposure_gini_geometric"],
        f"gini@{k}(discount=log2_clipped)": exact["exposure_gini_log2_clipped"],
        f"gini@{k}": exact["exposure_gini_log2_plus1"],
        f"gini_corrected@{k}(discount=none)": others["gini_index"],
        f"entropy@{k}(discount=none)": others["exposure_entropy"],
        f"aggregate_diversity@{k}": others["aggregate_diversity"],
        f"average_popularity@{k}": others["average_recommendation_popularity"],
    }
    measured(data, by_rank(lists), names)
