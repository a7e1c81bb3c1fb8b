"""DELTR against its definition written out, finite differences, and the published package's reference outputs."""

from math import exp, log

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import evenrank as er
from evenrank.linear.deltr_path import deltr_path
from evenrank.linear.exposure_objective import ExposureObjective
from golden import golden


def random_data(seed=0, queries=12, groups=("a", "b"), unknown=0.1):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, queries)
    n = lengths.sum()
    group = np.array([*groups, None], dtype=object)[rng.choice(3, n, p=[0.6, 0.4 - unknown, unknown])]
    relevance = rng.integers(0, 3, n).astype(float)
    return er.RankingData.from_arrays(rng.normal(size=(n, 4)), relevance, group, np.repeat(np.arange(queries), lengths))


def plain_loss(data, theta, gamma, protected, weighting):
    """Query by query, from the definition."""
    total = 0.0
    for start, end in zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True):
        scores = [float(x @ theta) for x in data.features[start:end]]
        chance = [exp(s) / sum(map(exp, scores)) for s in scores]
        target = [exp(r) / sum(map(exp, data.relevance[start:end])) for r in data.relevance[start:end]]
        loss = -sum(y * log(p) for y, p in zip(target, chance, strict=True)) / log(data.n_rows)
        group = data.group[start:end]
        ours = [p for p, g in zip(chance, group, strict=True) if g == protected]
        others = [p for p, g in zip(chance, group, strict=True) if g not in (protected, -1)]
        if ours and others:
            gap = sum(others) / len(others) / log(2) - sum(ours) / len(ours) / log(2)
            loss += gamma * max(0.0, gap) ** 2
        total += loss * ((end - start) if weighting == "rows" else 1 / data.n_queries)
    return total


@pytest.mark.parametrize("weighting", ["queries", "rows"])
def test_loss_is_the_definition_and_gradient_meets_finite_differences(weighting):
    data = random_data()
    gammas = np.array([0.0, 1.0, 30.0])
    theta = np.random.default_rng(1).normal(size=(3, 4))
    objective = ExposureObjective(data.features, data, gammas, 1, weighting=weighting)
    value, slope = objective(theta, np.arange(3))
    for model, gamma in enumerate(gammas):
        assert value[model] == pytest.approx(plain_loss(data, theta[model], gamma, 1, weighting), rel=1e-12)
        for j in range(4):
            step = np.zeros_like(theta)
            step[model, j] = 1e-6
            up, down = (objective(theta + sign * step, np.arange(3))[0][model] for sign in (1, -1))
            assert slope[model, j] == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-8)


def as_numbers(values):
    """NaN where the file has null."""
    return np.array([np.nan if value is None else value for value in values], float)


def published(case):
    """Features, relevance, query ids and protected flags of a golden case."""
    rows = np.array(case["rows"])
    flag = rows[:, case["columns"].index(case["params"]["protected_feature"])]
    return rows[:, 2:-1], rows[:, -1], rows[:, 0], flag


@golden("deltr", "cases")
def test_published_runs(case):
    X, y, qid, flag = published(case)
    params = case["params"]
    ranker = er.DELTR(
        gamma=params["gamma"],
        protected=1.0,
        reference=True,
        max_iter=params["number_of_iterations"],
        learning_rate=params["learning_rate"],
        standardize=params["standardize"],
        init=case["omega_init"],
    ).fit(X, y, qid=qid, sensitive_features=flag)
    np.testing.assert_allclose(ranker.coef_, as_numbers(case["omega"]), atol=1e-9, equal_nan=True)
    for entry in case["log"]:
        (expected,) = as_numbers([entry["loss"]])
        np.testing.assert_allclose(ranker.loss_curve_[entry["step"]], expected, atol=1e-9, equal_nan=True)
    if not params["standardize"]:
        scores = ranker.predict(X)
        items = np.array(case["rows"])[np.argsort(-scores, kind="stable"), 1]
        assert np.isnan(scores).any() or items.tolist() == case["rank"]["doc_id"]
        expected = as_numbers(case["rank"]["judgement"])
        np.testing.assert_allclose(np.sort(scores)[::-1], expected, atol=1e-9, equal_nan=True)


@golden("deltr", "cases")
def test_we_reach_a_loss_no_higher_than_the_published(case):
    X, y, qid, flag = published(case)
    ours = er.DELTR(gamma=case["params"]["gamma"], protected=1.0, weighting="rows").fit(
        X, y, qid=qid, sensitive_features=flag
    )
    assert np.isfinite(ours.coef_).all()
    if case["log"][-1]["loss"] is not None:
        assert ours.loss_ <= case["log"][-1]["loss"]


def test_path_is_the_rankers_one_by_one_and_stationary():
    data = er.datasets.german_credit("age", lists=60)
    gammas = [0.0, 10.0, 1000.0]
    path, value = deltr_path(data, gammas)
    for i, gamma in enumerate(gammas):
        one = er.DELTR(gamma=gamma).fit(data)
        np.testing.assert_allclose(one.predict(data), path.scores(data)[:, i], atol=1e-5)
        assert one.loss_ == pytest.approx(value[i], rel=1e-9)
        spread = data.features.std(axis=0)
        X = (data.features - data.features.mean(axis=0)) / spread
        slope = ExposureObjective(X, data, np.array([gamma]), 0, weighting="queries")(
            path.coef[i : i + 1] * spread, np.array([0])
        )[1]
        assert np.abs(slope).max() < 2e-8


def test_gd_of_the_original_goes_the_same_way():
    data = random_data(3)
    slow = er.DELTR(gamma=2.0, solver="gd", learning_rate=0.5, max_iter=20_000).fit(data)
    fast = er.DELTR(gamma=2.0).fit(data)
    assert fast.loss_ <= slow.loss_ + 1e-12
    np.testing.assert_allclose(fast.coef_, slow.coef_, atol=1e-4)


def test_more_gamma_less_disparate_exposure():
    data = er.datasets.german_credit("age", lists=100)
    path, _ = deltr_path(data, np.logspace(-1, 5, 13))
    objective = ExposureObjective(data.features, data, np.array([1.0]), 0, weighting="queries")
    plain = ExposureObjective(data.features, data, np.array([0.0]), 0, weighting="queries")
    each = np.zeros(1, dtype=int)
    gap = [float(objective(c[None], each)[0][0] - plain(c[None], each)[0][0]) for c in path.coef]
    assert (np.diff(gap) <= 1e-12).all()
    assert gap[-1] < 0.05 * gap[0]


def test_chilean_students(shared_data):
    folder = shared_data("engineering_students")
    for name in ("gender", "highschool"):
        rows = np.genfromtxt(folder / f"chileDataL2R_{name}_nosemi_full.txt", delimiter=",", skip_header=1)
        X, y, qid, flag = rows[:, 2:6], rows[:, 6], rows[:, 0], rows[:, 1]
        data = er.RankingData.from_arrays(X, y - y.min(), flag, qid)
        path, _ = deltr_path(data, np.append(0, np.logspace(0, 6, 13)), protected=1.0)
        chance = np.exp(path.scores(data))
        total = np.add.reduceat(chance, data.query_ptr[:-1])
        chance = chance / total[data.query_of_row]
        exposure = [
            np.add.reduceat(chance * (flag == g)[:, None], data.query_ptr[:-1])
            / np.add.reduceat(flag == g, data.query_ptr[:-1])[:, None]
            for g in (0, 1)
        ]
        gap = (np.maximum(exposure[0] - exposure[1], 0) ** 2).sum(axis=0)
        assert (np.diff(gap) <= 1e-12 * gap[0]).all()
        negative = er.DELTR(gamma=10.0, protected=1.0).fit(X, y, qid=qid, sensitive_features=flag)
        np.testing.assert_allclose(negative.coef_, er.DELTR(gamma=10.0, protected=1.0).fit(data).coef_, atol=1e-7)


def test_reference_standardisation_keeps_the_protected_column():
    rng = np.random.default_rng(0)
    flag = (rng.random(30) < 0.4).astype(float)
    X = np.column_stack([rng.normal(5, 3, 30), flag, rng.normal(size=30)])
    y, qid = rng.random(30), np.repeat([0, 1, 2], 10)
    ranker = er.DELTR(gamma=1.0, protected=1.0, reference=True, max_iter=20, init=[0.01, 0.02, 0.03]).fit(
        X, y, qid=qid, sensitive_features=flag
    )
    Z = (X - X.mean()) / X.std()
    Z[:, 1] = flag
    np.testing.assert_allclose(ranker.predict(X), Z @ ranker.coef_, atol=1e-12)
    plain = er.DELTR(gamma=1.0, protected=1.0, reference=True, max_iter=20, init=[0.01, 0.02, 0.03], standardize=False)
    np.testing.assert_allclose(plain.fit(Z, y, qid=qid, sensitive_features=flag).coef_, ranker.coef_, atol=1e-12)
    with pytest.raises(er.DataError, match="one column equal to the protected flag"):
        clone(ranker).fit(X[:, [0, 2]], y, qid=qid, sensitive_features=flag)


def test_group_aware_sees_the_group():
    data = random_data(5, queries=40, unknown=0.05)
    ranker = er.DELTR(gamma=50.0, protected="b", group_aware=True).fit(data)
    assert ranker.group_offset_[0] == 0
    assert ranker.group_offset_[1] != 0
    assert ranker.loss_ <= er.DELTR(gamma=50.0, protected="b").fit(data).loss_ + 1e-12


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d: er.DELTR(gamma=-1).fit(d), "gamma must be"),
        (lambda d: er.DELTR(protected="z").fit(d), "protected must be one of"),
        (lambda d: er.DELTR(weighting="items").fit(d), "weighting must be one of"),
        (lambda d: er.DELTR(solver="newton").fit(d), "solver must be one of"),
        (lambda d: er.DELTR(max_iter=0).fit(d), "max_iter must be"),
        (lambda d: er.DELTR().fit(d.with_group(None)), "needs groups"),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(er.ConfigError, match=message):
        make(random_data())


def test_no_convergence_is_said():
    with pytest.warns(UserWarning, match="did not converge in 1 iterations"):
        er.DELTR(max_iter=1).fit(random_data())


@parametrize_with_checks([er.DELTR(gamma=0.0)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_gd_starts_and_scales_as_asked():
    data = random_data(6)
    start = np.array([0.5, -0.5, 0.25, 0.0])
    ranker = er.DELTR(2.0, "b", solver="gd", max_iter=3, learning_rate=0.1, standardize=False, init=start).fit(data)
    objective = ExposureObjective(data.features, data, np.array([2.0]), 1, weighting="queries")
    theta = start[None]
    for _ in range(3):
        theta = theta - 0.1 * objective(theta, np.array([0]))[1]
    np.testing.assert_allclose(ranker.coef_, theta[0], atol=1e-14)
    for bad in ([1.0, 2.0], "abc", [np.nan] * 4):
        with pytest.raises(er.ConfigError, match="init must be 4 finite numbers"):
            er.DELTR(init=bad).fit(data)
    with pytest.raises(er.ConfigError, match="learning_rate must be"):
        er.DELTR(solver="gd", learning_rate=-1).fit(data)
