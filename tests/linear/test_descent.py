"""Full-batch descent against a loop over one model's rows, also on the real TREC rows."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank as er
import linear_oracles as oracle
from linear_oracles import STRATA, random_data

pytestmark = pytest.mark.numeric

SCOPES = ("amortized", "per_query")


@cache
def german() -> er.RankingData:
    return er.datasets.german_credit("sex+age", lists=15)


def stored_scores(path: Any, data: er.RankingData) -> Any:
    return data.to_stored(path.scores(data))


# ---------------------------------------------------------------------- the twin


@pytest.mark.parametrize("notion", STRATA)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", ["weighted, some unknown", "german"])
def test_descent_is_the_loop_over_rows(notion: str, scope: str, name: str) -> None:
    data = german() if name == "german" else random_data(0, weighted=True, unknown=True)
    alphas = [0.0, 0.05, 2.0]
    path = er.fairness_path(data, notion, alphas, "gd", scope)
    assert path.steps == 1500
    for alpha, scores in zip(alphas, stored_scores(path, data).T, strict=True):
        np.testing.assert_allclose(scores, oracle.gd(data, notion, alpha, scope), rtol=0, atol=1e-10)


OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no intercept": ({"fit_intercept": False}, {"intercept": False}),
    "ridge": ({"ridge": 0.3}, {"ridge": 0.3}),
    "not scaled": ({"scale": None}, {"scaled": False}),
    "group-aware": ({"group_aware": True}, {"group_aware": True}),
    "rate and steps": ({"learning_rate": 0.05, "max_iter": 77}, {"rate": 0.05, "steps": 77}),
    "logistic": ({"loss": "logistic"}, {"loss": "logistic"}),
    "logistic, ridge": ({"loss": "logistic", "ridge": 0.1}, {"loss": "logistic", "ridge": 0.1}),
    "pairwise": ({"loss": "pairwise"}, {"loss": "pairwise"}),
    "centered": ({"target": "centered"}, {"target": "centered"}),
    "centered, pairwise": ({"target": "centered", "loss": "pairwise"}, {"target": "centered", "loss": "pairwise"}),
    "largest pair": ({"across": "max"}, {"across": "max"}),
}


@pytest.mark.parametrize(("options", "twin"), OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("scope", SCOPES)
def test_options_mean_what_they_say(options: dict[str, Any], twin: dict[str, Any], scope: str) -> None:
    data = random_data(1, groups=3, unknown=True, weighted=True)
    alphas = [0.03, 1.0]
    path = er.fairness_path(data, "eod", alphas, "gd", scope, **{"max_iter": 300} | options)
    for alpha, scores in zip(alphas, stored_scores(path, data).T, strict=True):
        expected = oracle.gd(data, "eod", alpha, scope, **{"steps": 300} | twin)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-10)


def test_options_change_the_scores() -> None:
    data = random_data(1, groups=3, unknown=True, weighted=True)
    plain = er.fairness_path(data, "eod", [1.0], "gd", max_iter=300).scores(data)
    for options, _ in OPTIONS.values():
        other = er.fairness_path(data, "eod", [1.0], "gd", **{"max_iter": 300} | options).scores(data)
        assert np.abs(plain - other).max() > 1e-3


def test_several_notions_and_groupings_train_together_as_alone() -> None:
    data = random_data(2)
    other = data.with_group(np.random.default_rng(0).choice(["u", "v", "w"], data.n_rows))
    for across in ("mean", "max"):
        options: dict[str, Any] = {"alphas": [0.0, 0.3], "solver": "gd", "max_iter": 100, "across": across}
        path = er.fairness_path([data, other], ["dp", "eod"], **options)
        assert path.notions == ("demographic_parity",) * 2 + ("equalized_odds",) * 2 + path.notions[:4]
        alone = [er.fairness_path(each, notion, **options) for each in (data, other) for notion in ("dp", "eod")]
        np.testing.assert_allclose(path.coef, np.vstack([each.coef for each in alone]), rtol=0, atol=1e-13)
        np.testing.assert_allclose(
            path.intercept, np.concatenate([each.intercept for each in alone]), rtol=0, atol=1e-13
        )


# ---------------------------------------------------------------------- trouble


@pytest.mark.parametrize("steps", [1, 50, 120])
def test_progress_reaches_one(steps: int) -> None:
    seen: list[float] = []
    er.fairness_path(random_data(0), "dp", [0.1], "gd", max_iter=steps, progress=seen.append)
    assert seen == sorted(set(seen))
    assert seen[-1] == 1
    assert len(seen) == -(-steps // 50)


def test_ctrl_c_keeps_the_weights_so_far() -> None:
    data = random_data(0)

    def stop(done: float) -> None:
        if done >= 0.2:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted after 100 of 500 steps; the weights so far are kept"):
        path = er.fairness_path(data, "dp", [0.1], "gd", max_iter=500, progress=stop)
    assert path.steps == 100
    expected = er.fairness_path(data, "dp", [0.1], "gd", max_iter=100)
    assert (path.coef == expected.coef).all()


# ---------------------------------------------------------------------- TREC


FEATURES = "title_score abstract_score entities_score venue_score authors_score year inCitations outCitations qlength"


def trec_rows(folder: Path) -> tuple[Any, ...]:
    """Papers with features and an author of known group, in queries that keep two: X, relevance, mean gid, query."""

    def table(name: str) -> list[dict[str, str]]:
        with (folder / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    gid = {row["author_id"]: int(row["gid"]) for row in table("fair-TREC-sample-author-groups.csv")}
    authors = defaultdict(list)
    for row in table("corpus-subset-for-queries.paper_authors.csv"):
        if row["corpus_author_id"] in gid:
            authors[row["paper_sha"]].append(gid[row["corpus_author_id"]])
    features = {
        (row["qid"], row["doc_id"]): [float(row[name]) for name in FEATURES.split()]
        for row in table("es-features-bonart-training.csv")
    }
    rows = []
    for line in (folder / "fair-TREC-training-sample.json").read_text(encoding="utf-8").splitlines():
        query = json.loads(line)
        papers = [
            (features[key], paper["relevance"], float(np.mean(authors[key[1]])), query["qid"])
            for paper in query["documents"]
            if (key := (str(query["qid"]), paper["doc_id"])) in features and authors[key[1]]
        ]
        rows += papers if len(papers) >= 2 else []
    X, relevance, level, qid = zip(*rows, strict=True)
    return np.array(X), np.array(relevance), np.array(level), np.array(qid)


def test_trec_path_is_that_of_plain_loops(shared_data: Any) -> None:
    X, relevance, level, qid = trec_rows(shared_data("trec_fair_2019"))
    assert len(X) == 3183
    assert len(set(qid.tolist())) == 547
    data = er.RankingData.from_arrays(X, relevance, level > 3, qid, feature_names=FEATURES.split())
    groupings = [data.with_group(level > t) for t in (3, 4, 5)]
    path = er.fairness_path(groupings, list(STRATA), solver="gd")
    assert path.coef.shape == (3 * 3 * 26, 9)
    found = path.scores(data).reshape(-1, 3, 3, 26)
    strengths = er.strength_grid()
    names = [f"{name}@{k}" for name in ("ndcg", *STRATA) for k in (1, 3, 5)]
    for number, grouping in enumerate(groupings):
        for place, notion in enumerate(STRATA):
            # Each grouping and notion gets other strengths, so that all 26 are met.
            some = np.arange(3 * number + place, 26, 9)
            twin = [data.to_caller(trec_twin(grouping, notion, strengths[i])) for i in some]
            mine = er.measure(found[:, number, place, some], grouping, names)
            theirs = er.measure(np.array(twin).T, grouping, names)
            for name in names:
                np.testing.assert_allclose(mine[name], theirs[name], rtol=0, atol=1e-6, err_msg=f"{notion} {name}")


def trec_twin(data: er.RankingData, notion: str, alpha: float) -> Any:
    """Stored scores after 1500 steps of 0.003 on the rows: nothing but sums over rows, written out for two groups."""
    X, r = np.array(data.features), np.array(data.relevance)
    Z = np.hstack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones((len(X), 1))])
    strata = {"dp": [r >= 0], "eop": [r == 1], "eod": [r == 0, r == 1]}[notion]
    lines = [
        np.where(stratum & (data.group == 1), 1 / (stratum & (data.group == 1)).sum(), 0)
        - np.where(stratum & (data.group == 0), 1 / (stratum & (data.group == 0)).sum(), 0)
        for stratum in strata
    ]
    theta = np.zeros(Z.shape[1])
    for _ in range(1500):
        scores = Z @ theta
        slope = 2 * (scores - r) / len(r)
        for line in lines:
            slope = slope + alpha / len(lines) * np.sign(line @ scores) * line
        theta = theta - 0.003 * (slope @ Z)
    return Z @ theta
