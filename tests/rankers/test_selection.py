"""Folds by query and scorers, alone and inside scikit-learn's search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import evenrank as er
from evenrank.errors import ConfigError
from linear_oracles import random_data


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def rows(seed: int = 0) -> dict[str, Any]:
    """X, y and the metadata, in mixed order of queries."""
    data = random_data(seed, n=300, queries=30)
    return {
        "X": data.to_caller(np.array(data.features)),
        "y": data.to_caller(np.array(data.relevance)),
        "qid": data.to_caller(data.query_ids[data.query_of_row]),
        "sensitive_features": np.array(["a", "b"])[data.to_caller(np.array(data.group))],
    }


# ---------------------------------------------------------------------- folds


def test_a_query_is_in_one_test_fold_and_every_row_in_one() -> None:
    qid = rows()["qid"]
    splits = list(er.QueryKFold(4, random_state=3).split(np.zeros((300, 1)), qid=qid))
    assert len(splits) == er.QueryKFold(4).get_n_splits() == 4
    assert sorted(np.concatenate([test for _, test in splits]).tolist()) == list(range(300))
    queries = [set(qid[test].tolist()) for _, test in splits]
    assert sum(map(len, queries)) == len(set().union(*queries)) == 30
    assert {len(each) for each in queries} == {7, 8}
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(300))
        assert not set(qid[train].tolist()) & set(qid[test].tolist())


def test_folds_go_by_query_and_seed_whatever_the_order() -> None:
    qid = rows()["qid"]
    order = np.random.default_rng(0).permutation(300)

    def fold_of(ids: Any, seed: int) -> dict[int, int]:
        splits = er.QueryKFold(4, random_state=seed).split(np.zeros((300, 1)), groups=ids)
        return {int(ids[row]): number for number, (_, test) in enumerate(splits) for row in test}

    assert fold_of(qid, 0) == fold_of(qid[order], 0)
    assert fold_of(qid, 0) != fold_of(qid, 1)


def test_folds_need_queries_enough() -> None:
    with pytest.raises(ConfigError, match="QueryKFold needs the query of each row"):
        next(er.QueryKFold(2).split(np.zeros((4, 1))))
    with pytest.raises(ConfigError, match="from 2 to the 2 queries; got 3"):
        next(er.QueryKFold(3).split(np.zeros((4, 1)), qid=[1, 1, 2, 2]))


# ---------------------------------------------------------------------- scorers


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize(("name", "sign"), [("ndcg@5", 1), ("precision@3", 1), ("eop@5", -1), ("dp@3", -1)])
def test_scorers_are_the_measures_higher_being_better(name: str, sign: int) -> None:
    own = rows()
    ranker = er.FairLinearRanker("dp", 0.1).fit(**own)
    data = er.RankingData.from_arrays(own["X"], own["y"], own["sensitive_features"], own["qid"])
    scorer = er.ranking_scorer(name)
    metadata = {key: own[key] for key in ("qid", "sensitive_features")}
    found = scorer(ranker, own["X"], own["y"], **metadata)
    assert found == pytest.approx(sign * er.measure(ranker.predict(data), data, [name])[name])
    assert found != 0


def test_scorers_need_routing_and_a_known_measure() -> None:
    with pytest.raises(ConfigError, match="enable_metadata_routing=True"):
        er.ranking_scorer("ndcg@5")
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(ConfigError, match="accuracy"):
        er.ranking_scorer("accuracy")


@pytest.mark.usefixtures("routing")
def test_scorers_see_relevance_at_the_threshold() -> None:
    own = rows()
    ranker = er.FairLinearRanker("dp", 0.1).fit(**own)
    metadata = {key: own[key] for key in ("qid", "sensitive_features")}
    graded = own["y"] * 2
    one = er.ranking_scorer("precision@3")(ranker, own["X"], own["y"], **metadata)
    two = er.ranking_scorer("precision@3", relevance_threshold=3)(ranker, own["X"], graded, **metadata)
    three = er.ranking_scorer("precision@3", relevance_threshold=2)(ranker, own["X"], graded, **metadata)
    assert one == three > two == 0


# ---------------------------------------------------------------------- search


@pytest.mark.usefixtures("routing")
def test_grid_search_is_the_loop_over_folds_and_strengths() -> None:
    own, alphas = rows(), [0.0, 0.05, 0.2, 1.0]
    ranker = er.FairLinearRanker("dp").set_fit_request(qid=True, sensitive_features=True)
    search = GridSearchCV(
        ranker,
        {"alpha": alphas},
        scoring={"quality": er.ranking_scorer("ndcg@5"), "fairness": er.ranking_scorer("dp@3")},
        refit="quality",
        cv=er.QueryKFold(3, random_state=1),
        error_score="raise",
    )
    search.fit(own["X"], own["y"], qid=own["qid"], sensitive_features=own["sensitive_features"])
    data = er.RankingData.from_arrays(own["X"], own["y"], own["sensitive_features"], own["qid"])
    fold = data.folds(3, 1)
    for number in range(3):
        train, test = data.take(fold != number), data.take(fold == number)
        scores = er.fairness_path(train, "dp", alphas).scores(test)
        expected = er.measure(scores, test, ["ndcg@5", "dp@3"])
        np.testing.assert_allclose(search.cv_results_[f"split{number}_test_quality"], expected["ndcg@5"])
        np.testing.assert_allclose(search.cv_results_[f"split{number}_test_fairness"], -expected["dp@3"])
    best = np.argmax(search.cv_results_["mean_test_quality"])
    assert search.best_params_ == {"alpha": alphas[best]}
    expected = er.fairness_path(data, "dp", [alphas[best]]).scores(data)[:, 0]
    np.testing.assert_allclose(search.predict(own["X"]), expected, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("routing")
def test_cross_validation_of_a_pipeline() -> None:
    own = rows()
    ranker = er.FairLinearRanker("dp", 0.1, scale=None).set_fit_request(qid=True, sensitive_features=True)
    pipeline = Pipeline([("scale", StandardScaler()), ("rank", ranker)])
    metadata = {key: own[key] for key in ("qid", "sensitive_features")}
    found = cross_validate(
        pipeline,
        own["X"],
        own["y"],
        cv=er.QueryKFold(3),
        scoring=er.ranking_scorer("ndcg@5"),
        params=metadata,
        error_score="raise",
    )["test_score"]
    data = er.RankingData.from_arrays(own["X"], own["y"], own["sensitive_features"], own["qid"])
    fold = data.folds(3)
    expected = [
        er.measure(
            er.fairness_path(data.take(fold != number), "dp", [0.1]).scores(data.take(fold == number))[:, 0],
            data.take(fold == number),
            ["ndcg@5"],
        )["ndcg@5"]
        for number in range(3)
    ]
    np.testing.assert_allclose(found, expected)


@pytest.mark.usefixtures("routing")
def test_group_aware_rankers_get_the_groups_at_prediction() -> None:
    own = rows()
    ranker = er.FairLinearRanker("dp", 0.02, group_aware=True)
    ranker.set_fit_request(qid=True, sensitive_features=True).set_score_request(qid=True, sensitive_features=True)
    metadata = {key: own[key] for key in ("qid", "sensitive_features")}
    found = cross_validate(ranker, own["X"], own["y"], cv=er.QueryKFold(3), params=metadata, error_score="raise")[
        "test_score"
    ]
    data = er.RankingData.from_arrays(own["X"], own["y"], own["sensitive_features"], own["qid"])
    fold = data.folds(3)
    path = er.fairness_path(data.take(fold != 0), "dp", [0.02], group_aware=True)
    test = data.take(fold == 0)
    assert found[0] == pytest.approx(er.measure(path.scores(test)[:, 0], test, ["ndcg"])["ndcg"])


@pytest.mark.usefixtures("routing")
def test_group_aware_rankers_are_given_the_groups() -> None:
    own = rows()
    metadata = {key: own[key] for key in ("qid", "sensitive_features")}
    data = er.RankingData.from_arrays(own["X"], own["y"], own["sensitive_features"], own["qid"])
    ranker = er.FairLinearRanker("dp", 0.3, group_aware=True).set_fit_request(qid=True, sensitive_features=True)
    fitted = er.FairLinearRanker("dp", 0.3, group_aware=True).fit(data)
    expected = er.measure(fitted.predict(data), data, ["ndcg@5"])["ndcg@5"]
    assert er.ranking_scorer("ndcg@5")(fitted, own["X"], own["y"], **metadata) == pytest.approx(expected)
    search = GridSearchCV(ranker, {"alpha": [0.3]}, scoring=er.ranking_scorer("ndcg@5"), cv=er.QueryKFold(2))
    search.set_params(error_score="raise", refit=False).fit(own["X"], own["y"], **metadata)
    asked = er.FairLinearRanker("dp", 0.3, group_aware=True, scale=None)
    asked.set_fit_request(qid=True, sensitive_features=True).set_predict_request(sensitive_features=True)
    pipeline = Pipeline([("scale", StandardScaler()), ("rank", asked)]).fit(own["X"], own["y"], **metadata)
    assert er.ranking_scorer("ndcg@5")(pipeline, own["X"], own["y"], **metadata) == pytest.approx(expected)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize(("name", "sign"), [("ndcg@5", 1), ("eop@5", -1)])
def test_a_limit_puts_every_ranking_above_it_below_every_one_within(name: str, sign: int) -> None:
    own = rows()
    metadata = {key: own[key] for key in ("qid", "sensitive_features")}
    data = er.RankingData.from_arrays(own["X"], own["y"], own["sensitive_features"], own["qid"])
    for alpha in (0.0, 0.05, 1.0):
        ranker = er.FairLinearRanker("dp", alpha).fit(data)
        values = er.measure(ranker.predict(data), data, [name, "dp@5"])
        for limit in (0.0, values["dp@5"], 1.0):
            found = er.ranking_scorer(name, max_violation=("dp@5", limit))(ranker, own["X"], own["y"], **metadata)
            if values["dp@5"] <= limit:
                assert found == pytest.approx(sign * values[name])
            else:
                assert found == pytest.approx(-1e9 - 1e6 * (values["dp@5"] - limit), rel=1e-12)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("dp@5", "max_violation must be a gap and its limit"),
        (("ndcg@5", 0.1), "max_violation must name a gap"),
        (("dp@5", -0.1), "the limit of max_violation"),
        (("dp", 0.1, 2), "max_violation must be a gap and its limit"),
    ],
)
def test_limits_are_checked(given: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        er.ranking_scorer("ndcg@5", max_violation=given)


@pytest.mark.usefixtures("routing")
def test_a_search_keeps_to_the_limit() -> None:
    own = rows()
    metadata = {key: own[key] for key in ("qid", "sensitive_features")}
    ranker = er.FairLinearRanker("dp").set_fit_request(qid=True, sensitive_features=True)
    alphas = [0.0, 0.02, 0.1, 1.0]
    whole = [(np.arange(300), np.arange(300))]

    def search(**options: Any) -> Any:
        scoring = {
            "score": er.ranking_scorer("ndcg@5", **options),
            "gap": er.ranking_scorer("dp@5"),
            "quality": er.ranking_scorer("ndcg@5"),
        }
        grid = GridSearchCV(ranker, {"alpha": alphas}, scoring=scoring, refit="score", cv=whole, error_score="raise")
        return grid.fit(own["X"], own["y"], **metadata)

    free = search()
    gaps, quality = -free.cv_results_["mean_test_gap"], free.cv_results_["mean_test_quality"]
    limit = float(np.sort(gaps)[1])
    within = np.flatnonzero(gaps <= limit)
    assert len(within) < len(alphas)
    assert search(max_violation=("dp@5", limit)).best_index_ == within[np.argmax(quality[within])]
    assert search(max_violation=("dp@5", 0.0)).best_index_ == np.argmin(gaps)


class Mixed(BaseEstimator):  # type: ignore[misc]
    """A ranker that learns nothing: a mix of two features."""

    __metadata_request__fit = {"qid": True, "sensitive_features": True}  # noqa: RUF012

    def __init__(self, share: float = 0.0) -> None:
        self.share = share

    def fit(self, X: Any, y: Any, **metadata: Any) -> Mixed:
        return self

    def predict(self, X: Any) -> Any:
        return X[:, 0] * (1 - self.share) + X[:, 1] * self.share


SHARES = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def leaning(queries: int = 80) -> dict[str, Any]:
    """Rows whose first feature tells merit and leans against group b; the second is noise."""
    rng = np.random.default_rng(3)
    qid = np.repeat(np.arange(queries), 10)
    b = rng.random(len(qid)) < 0.4
    merit = rng.normal(size=len(qid))
    X = np.stack([merit - 0.8 * b, rng.normal(size=len(qid))], axis=1)
    return {"X": X, "y": (merit > 0.5) * 1.0, "qid": qid, "sensitive_features": np.where(b, "b", "a")}


def by_fold(own: dict[str, Any], folds: int) -> tuple[Any, Any]:
    """NDCG@5 and dp@5, (shares, folds), one by one."""
    values = [
        [
            er.measure(
                Mixed(share).predict(own["X"][test]),
                relevance=own["y"][test],
                group=own["sensitive_features"][test],
                qid=own["qid"][test],
                measures=["ndcg@5", "dp@5"],
            )
            for _, test in er.QueryKFold(folds).split(own["X"], qid=own["qid"])
        ]
        for share in SHARES
    ]
    return tuple(np.array([[fold[name] for fold in row] for row in values]) for name in ("ndcg@5", "dp@5"))  # type: ignore[return-value]


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("folds", [2, 5, 10, 40])
def test_a_search_over_folds_keeps_to_the_limit_in_every_fold(folds: int) -> None:
    own = leaning()
    quality, gaps = by_fold(own, folds)
    limits = np.unique(np.concatenate([gaps.ravel() * (1 + 1e-12), gaps.ravel() * (1 - 1e-12)]))[:: max(1, folds // 2)]
    seen = set()
    for limit in limits:
        scoring = er.ranking_scorer("ndcg@5", max_violation=("dp@5", float(limit)))
        grid = GridSearchCV(
            Mixed(), {"share": SHARES}, scoring=scoring, cv=er.QueryKFold(folds), error_score="raise", refit=False
        )
        best = grid.fit(own["X"], own["y"], qid=own["qid"], sensitive_features=own["sensitive_features"]).best_index_
        over = (gaps > limit).sum(axis=1)
        assert over[best] == over.min()
        fewest = np.flatnonzero(over == over.min())
        if over.min() == 0:
            assert quality[best].mean() == pytest.approx(quality[fewest].mean(axis=1).max(), abs=1e-12)
        else:
            excess = np.clip(gaps - limit, 0, None).sum(axis=1)
            assert excess[best] == pytest.approx(excess[fewest].min(), abs=folds * 1e-6)
        seen.add(bool(over.min()))
    assert seen == {False, True}


@pytest.mark.usefixtures("routing")
def test_a_fold_that_lacks_a_group_is_scored_by_quality() -> None:
    own = leaning()
    one_list = np.where(own["qid"] == 0, "b", "a")
    scoring = er.ranking_scorer("ndcg@5", max_violation=("dp@5", 0.99))
    grid = GridSearchCV(Mixed(), {"share": SHARES}, scoring=scoring, cv=er.QueryKFold(4), error_score="raise")
    with pytest.warns(er.DataWarning, match=r"20 queries do not tell dp@5 \(their rows are all of group 'a'\)"):
        grid.fit(own["X"], own["y"], qid=own["qid"], sensitive_features=one_list)
    own["sensitive_features"] = np.where(own["qid"] % 2, "a", "b")  # all folds tell it
    quality, _ = by_fold(own, 4)
    np.testing.assert_allclose(grid.cv_results_["mean_test_score"], quality.mean(axis=1))
    irrelevant = np.where(one_list == "b", 0.0, own["y"])
    of_eop = er.ranking_scorer("ndcg@5", max_violation=("eop@5", 0.1))
    with pytest.warns(er.DataWarning) as said:
        found = of_eop(Mixed(), own["X"], irrelevant, qid=own["qid"], sensitive_features=one_list)
    assert "80 queries do not tell eop@5" in str(said[-1].message)
    assert 0 < found < 1
    with pytest.raises(er.DataError, match="the data has none"):
        scoring(Mixed(), own["X"], own["y"], qid=own["qid"])
