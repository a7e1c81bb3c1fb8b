"""The exact path: an independent convex solver, descent, and what holds at and beyond α*."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import linprog, minimize

import evenrank as er
from evenrank.errors import ConfigError
from evenrank.linear import boxqp
from evenrank.notions import bind
from linear_oracles import CONIC, STRATA, Gaps, Rows, convex, objective, random_data, sigmoid

pytestmark = pytest.mark.numeric

SCOPES = ("amortized", "per_query")


@cache
def german(group: str, lists: int = 500) -> er.RankingData:
    return er.datasets.german_credit(group, lists=lists)


@cache
def made(name: str) -> er.RankingData:
    """Data by name, small where the contrasts are many."""
    return {
        "random": lambda: random_data(0, weighted=True),
        "4 groups, some unknown": lambda: random_data(1, n=200, groups=4, unknown=True),
        "german age": lambda: german("age", 40),
        "german sex+age": lambda: german("sex+age", 40),
    }[name]()


DATA = ("random", "4 groups, some unknown", "german age", "german sex+age")


def stored_scores(path: Any, data: er.RankingData) -> Any:
    return data.to_stored(path.scores(data))


def gamma(path: Any, data: er.RankingData, notion: str, scope: str = "amortized") -> Any:
    """Γ of training for each model."""
    return bind(notion, data, scope=scope, training=True).violation(stored_scores(path, data))


# ---------------------------------------------------------------------- it is the minimiser


def assert_minimiser(path: Any, data: er.RankingData, notion: str, scope: str, **options: Any) -> None:
    """Against a conic solver, which comes within `CONIC` of the least value.

    The mean of squares makes the objective strongly convex in the scores: scores whose value is ε above the least
    differ from the minimiser's by √ε in the weighted mean square, and that is as far as the solver's may be off.
    """
    rows, gaps = Rows.of(data, **options), Gaps.of(data, notion, scope)
    ridge = options.get("ridge", 0.0)
    expected = convex(data, notion, path.alphas, scope, **options)
    # Scores that are rounded to a step have gaps of up to one where the minimiser has none.
    rounded = 1e-13 + 2 * path.alphas * path.resolution
    scored = zip(path.alphas, rounded, stored_scores(path, data).T, expected.T, strict=True)
    for alpha, rounding, ours, theirs in scored:
        values = [objective(rows, gaps, rows.weights(scores), alpha, ridge=ridge) for scores in (ours, theirs)]
        above = values[1] - values[0]
        assert -rounding <= above <= 2 * CONIC
        assert rows.weight @ (ours - theirs) ** 2 <= above + rounding


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("notion", STRATA)
def test_scores_are_those_of_a_conic_solver(name: str, scope: str, notion: str) -> None:
    data, alphas = made(name), [0.0, 0.03, 0.2, 3.0]
    path = er.fairness_path(data, notion, alphas, scope=scope)
    assert path.residual.max() <= 1e-10
    assert_minimiser(path, data, notion, scope)


OPTIONS: dict[str, dict[str, Any]] = {
    "no intercept": {"fit_intercept": False},
    "ridge": {"ridge": 0.3},
    "ridge, no intercept": {"ridge": 0.3, "fit_intercept": False},
    "not scaled": {"scale": None},
    "not scaled, ridge": {"scale": None, "ridge": 0.05},
    "not scaled, ridge, no intercept": {"scale": None, "ridge": 0.05, "fit_intercept": False},
    "group-aware": {"group_aware": True},
    "group-aware, ridge": {"group_aware": True, "ridge": 0.1},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", ["random", "4 groups, some unknown"])
@pytest.mark.parametrize("scope", SCOPES)
def test_options_mean_what_they_say(options: dict[str, Any], name: str, scope: str) -> None:
    data, alphas = made(name), [0.0, 0.05, 0.5]
    path = er.fairness_path(data, "eod", alphas, scope=scope, **options)
    assert path.residual.max() <= 1e-10
    twin = {
        "ridge": options.get("ridge", 0.0),
        "scaled": options.get("scale", "train") is not None,
        "intercept": options.get("fit_intercept", True),
        "group_aware": options.get("group_aware", False),
    }
    assert_minimiser(path, data, "eod", scope, **twin)


@pytest.mark.parametrize("name", [*DATA, "german age, whole", "german sex+age, whole"])
@pytest.mark.parametrize("notion", STRATA)
def test_the_objective_is_never_above_descent_s(name: str, notion: str) -> None:
    whole = name.endswith(", whole")
    data = german(name.split()[1].rstrip(",")) if whole else made(name)
    for scope in SCOPES[:1] if whole else SCOPES:
        exact = er.fairness_path(data, notion, scope=scope)
        descent = er.fairness_path(data, notion, solver="gd", scope=scope)
        assert len(exact) == len(descent) == 26
        assert exact.residual.max() <= 1e-10
        rows, gaps = Rows.of(data), Gaps.of(data, notion, scope)
        values = [
            [
                objective(rows, gaps, theta, alpha)
                for alpha, theta in zip(path.alphas, rows.weights(stored_scores(path, data)).T, strict=True)
            ]
            for path in (exact, descent)
        ]
        assert (np.array(values[0]) <= np.array(values[1]) + 1e-12).all()


def test_scaling_changes_no_score_without_a_ridge() -> None:
    data = made("german sex+age")
    one, two = (er.fairness_path(data, "eod", scale=scale).scores(data) for scale in ("train", None))
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-10)


@pytest.mark.parametrize("notion", ["dp", "eop"])
def test_long_descent_arrives_there_below_alpha_star(notion: str) -> None:
    data = random_data(3, n=300, d=4)
    star = er.fairness_path(data, notion, [1.0]).alpha_star[0]
    alphas = star * np.array([0, 0.1, 0.5, 0.9])
    exact = er.fairness_path(data, notion, alphas)
    descent = er.fairness_path(data, notion, alphas, "gd", max_iter=4000, learning_rate=0.1)
    np.testing.assert_allclose(descent.scores(data), exact.scores(data), rtol=0, atol=1e-5)
    assert np.abs(exact.scores(data)[:, 1:] - exact.scores(data)[:, :1]).max(axis=0).min() > 1e-3


def test_a_wrong_solution_shows_in_the_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data(0)
    right = boxqp.solve
    assert er.fairness_path(data, "dp", [0.1]).residual[0] <= 1e-10
    # Stationary, but with a multiplier that does not fit the gap's sign.
    monkeypatch.setattr(boxqp, "solve", lambda F, y, beta: (np.array([y]), np.zeros((1, 1))))
    assert er.fairness_path(data, "dp", [0.1]).residual[0] > 1e-3

    def moved(F: Any, y: Any, beta: Any) -> Any:
        x, u = right(F, y, beta)
        return x + 1e-6, u

    monkeypatch.setattr(boxqp, "solve", moved)
    assert er.fairness_path(data, "dp", [0.1]).residual[0] > 1e-7


# ---------------------------------------------------------------------- α*


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("notion", STRATA)
def test_alpha_star_is_where_the_last_gap_closes(name: str, scope: str, notion: str) -> None:
    data = made(name)
    fractions = [0.5, 0.999, 1.0, 1.001, 2.0, 100.0]
    path = er.fairness_path(data, notion, fractions, scope=scope, relative=True)
    np.testing.assert_allclose(path.alphas, np.array(fractions) * path.alpha_star[0], rtol=1e-12)
    gaps = gamma(path, data, notion, scope)
    assert gaps[0] > gaps[1] > 1e-7
    assert gaps[2:].max() <= 1e-11
    scores = path.scores(data)
    np.testing.assert_allclose(scores[:, 3:], scores[:, [2]] * np.ones(3), rtol=0, atol=1e-9)
    assert path.residual.max() <= 1e-10
    absolute = er.fairness_path(data, notion, path.alphas, scope=scope)
    np.testing.assert_allclose(absolute.scores(data), scores, rtol=0, atol=1e-12)


def test_alpha_star_of_two_groups_is_written_down() -> None:
    # One contrast c: θ = H⁻¹(b − α/2 c), so the gap cᵀθ is 0 at α* = 2 |cᵀH⁻¹b| / cᵀH⁻¹c.
    data = random_data(5)
    rows, gaps = Rows.of(data), Gaps.of(data, "dp")
    H, b, c = rows.Z.T @ rows.Z / len(rows.Z), rows.Z.T @ rows.target / len(rows.Z), (gaps.C @ rows.Z)[0]
    expected = 2 * abs(c @ np.linalg.solve(H, b)) / (c @ np.linalg.solve(H, c))
    assert er.fairness_path(data, "dp", [1.0]).alpha_star == pytest.approx([expected], rel=1e-10)


@pytest.mark.parametrize("notion", ["dp", "eod"])
def test_alpha_star_of_many_groups_is_that_of_the_plain_problem(notion: str) -> None:
    """435 pairs of 30 groups: the least t with multipliers within ±t that balance the loss, as a linear program."""
    rng = np.random.default_rng(0)
    n, d, groups = 1500, 5, 30
    group = rng.integers(0, groups, n)
    X = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((groups, d))[group]
    relevance = (X[:, 0] + rng.standard_normal(n) > 0).astype(float)
    data = er.RankingData.from_arrays(X, relevance, group, np.arange(n) // 10)
    path = er.fairness_path(data, notion, [1.0])
    strata = [np.ones(n, bool)] if notion == "dp" else [relevance == 0, relevance == 1]
    means = [np.array([X[mask & (group == g)].mean(axis=0) for g in range(groups)]) for mask in strata]
    one, two = np.triu_indices(groups, 1)
    contrasts = np.concatenate([of[one] - of[two] for of in means])
    weight = 1 / len(contrasts)
    # Stationary with all gaps 0: the loss' slope there is a combination of the contrasts.
    Z = np.column_stack([X, np.ones(n)])
    C = np.column_stack([contrasts, np.zeros(len(contrasts))])
    basis = null_space(C)
    flat = basis @ np.linalg.solve(basis.T @ Z.T @ Z @ basis, basis.T @ Z.T @ relevance)
    slope = 2 * Z.T @ (Z @ flat - relevance) / n
    J = len(C)
    plain = linprog(
        np.append(np.zeros(J), 1.0),
        A_ub=np.block([[np.eye(J), -np.ones((J, 1))], [-np.eye(J), -np.ones((J, 1))]]),
        b_ub=np.zeros(2 * J),
        A_eq=np.column_stack([weight * C.T, np.zeros(d + 1)]),
        b_eq=-slope,
        bounds=(None, None),
    )
    assert path.alpha_star[0] == pytest.approx(plain.fun, rel=1e-6)
    closed, open_ = er.fairness_path(data, notion, plain.fun * np.array([1 + 1e-6, 0.99])).scores(data).T
    assert er.violation(closed, data, notion) < 1e-12 < er.violation(open_, data, notion)


def test_alpha_star_is_one_a_notion_and_grouping() -> None:
    data = made("random")
    other = data.with_group(np.where(np.arange(data.n_rows) % 3, "u", "v"))
    path = er.fairness_path([data, other], ["dp", "eop"], [0.5, 1.0], relative=True)
    alone = [er.fairness_path(each, n, [1.0]).alpha_star[0] for each in (data, other) for n in ("dp", "eop")]
    np.testing.assert_allclose(path.alpha_star, alone, rtol=1e-12)
    np.testing.assert_allclose(path.alphas, np.repeat(alone, 2) * [0.5, 1, 0.5, 1, 0.5, 1, 0.5, 1], rtol=1e-12)


@pytest.mark.parametrize(
    "options", [{"solver": "gd"}, {"loss": "logistic", "ridge": 0.1}, {"alphas": [0.0]}], ids=["gd", "logistic", "0"]
)
def test_alpha_star_is_refused_where_it_is_unknown(options: dict[str, Any]) -> None:
    path = er.fairness_path(random_data(0), **{"alphas": [0.1]} | options)
    with pytest.raises(ConfigError, match="alpha_star is known for"):
        _ = path.alpha_star


# ---------------------------------------------------------------------- difficult features


def test_features_that_say_the_same_twice_change_no_score() -> None:
    data = random_data(6, n=400, d=3)
    X = np.array(data.features)
    wide = np.column_stack([X, X[:, 0], 3 * X[:, 1] - X[:, 2] + 7, np.full(len(X), 4.2), X[:, 2] * 1e6])
    again = er.RankingData.from_arrays(wide, data.relevance, data.group, data.query_of_row, group_names=["a", "b"])
    for scope in SCOPES:
        one = stored_scores(er.fairness_path(data, "eod", scope=scope), data)
        path = er.fairness_path(again, "eod", scope=scope)
        np.testing.assert_allclose(stored_scores(path, again), one, rtol=0, atol=1e-9)
        assert path.residual.max() <= 1e-10
    assert np.abs(path.coef[:, 5]).max() <= 1e-15


def test_more_features_than_rows() -> None:
    data = random_data(7, n=20, d=40, queries=4)
    path = er.fairness_path(data, "dp", [0.0, 0.1, 100.0])
    np.testing.assert_allclose(stored_scores(path, data)[:, 0], data.relevance, rtol=0, atol=1e-9)
    assert path.residual.max() <= 1e-10
    assert gamma(path, data, "dp")[2] <= 1e-10


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("shift", [0.0, 1e5])
def test_weights_without_a_direction_left_are_zero(loss: str, shift: float) -> None:
    """More gaps than features: at a high strength every score is the same, and rounding must not rank the rows."""
    rng = np.random.default_rng(3)
    group, qid = rng.integers(0, 2, 600), np.repeat(np.arange(30), 20)
    X = rng.normal(size=(600, 4)) + np.outer(group, [0, 1, 0, 0])
    y = (X[:, 0] + X[:, 1] + rng.normal(size=600) > 0.7).astype(float)
    data = er.RankingData.from_arrays(X + shift, y, group, qid)
    path = er.fairness_path(data, notion="dp", alphas=[0, 10, 1e5, 1e300], scope="per_query", loss=loss)
    assert path.coef[0].all()
    assert not path.coef[1:].any()
    even = er.measure(np.zeros(600), data, ["ndcg@5"])["ndcg@5"]
    np.testing.assert_allclose(er.measure(path.scores(data), data, ["ndcg@5"])["ndcg@5"][1:], even)


def test_no_gap_to_close() -> None:
    # Both groups have the same rows, so every contrast is 0 and every strength gives the same ranker.
    half = random_data(8, n=60)
    X = np.vstack([half.features, half.features])
    data = er.RankingData.from_arrays(
        X, np.tile(half.relevance, 2), np.repeat(["a", "b"], 60), np.tile(half.query_of_row, 2)
    )
    path = er.fairness_path(data, "dp", [0.0, 1.0, 10.0])
    assert path.alpha_star.tolist() == [0]
    assert er.fairness_path(data, "dp", [0.0, 1.0], group_aware=True).alpha_star.tolist() == [0]
    np.testing.assert_allclose(path.scores(data), path.scores(data)[:, [0]] * np.ones(3), rtol=0, atol=1e-12)


# ---------------------------------------------------------------------- logistic loss


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", ["random", "4 groups, some unknown", "german age"])
def test_logistic_is_the_minimiser(name: str, scope: str) -> None:
    data, ridge = made(name), 0.01
    alphas = np.array([0.0, 0.02, 0.2, 2.0])
    path = er.fairness_path(data, "eod", alphas, scope=scope, loss="logistic", ridge=ridge)
    assert path.residual.max() <= 1e-8
    descent = er.fairness_path(data, "eod", alphas, "gd", scope, loss="logistic", ridge=ridge, max_iter=300)
    rows, gaps = Rows.of(data), Gaps.of(data, "eod", scope)
    rng = np.random.default_rng(0)
    options: dict[str, Any] = {"ridge": ridge, "loss": "logistic"}
    found, other = (rows.weights(stored_scores(each, data)).T for each in (path, descent))
    for alpha, theta, reached in zip(alphas, found, other, strict=True):
        here = objective(rows, gaps, theta, alpha, **options)
        assert here <= objective(rows, gaps, reached, alpha, **options) + 1e-12
        for size in (1e-5, 1e-3, 0.1):
            for _ in range(5):
                near = theta + size * rng.normal(size=theta.shape)
                assert here <= objective(rows, gaps, near, alpha, **options) + 1e-13


def test_logistic_without_a_fairness_term_is_that_of_scipy() -> None:
    data = made("random")
    rows = Rows.of(data)
    path = er.fairness_path(data, alphas=[0.0], loss="logistic", ridge=0.02)

    def value(theta: Any) -> Any:
        scores = rows.Z @ theta
        slope = rows.Z.T @ (rows.weight * (sigmoid(scores) - rows.target)) + 0.04 * rows.penalised * theta
        return rows.weight @ (np.logaddexp(0, scores) - rows.target * scores) + 0.02 * rows.penalised @ theta**2, slope

    best = minimize(value, np.zeros(rows.Z.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    np.testing.assert_allclose(stored_scores(path, data)[:, 0], rows.Z @ best, rtol=0, atol=1e-7)


def test_logistic_is_scikit_learn_s_regression_with_the_ridge_mapped() -> None:
    from sklearn.linear_model import LogisticRegression

    data, ridge = random_data(9, n=300), 0.02
    rows = Rows.of(data, intercept=False)
    # scikit-learn's C Σ loss + ½‖θ‖² is n C times our mean loss + ‖θ‖² / (2 n C).
    peer = LogisticRegression(C=1 / (2 * len(rows.Z) * ridge), tol=1e-10, max_iter=1000)
    expected = peer.fit(rows.Z, rows.target).decision_function(rows.Z)
    path = er.fairness_path(data, alphas=[0.0], loss="logistic", ridge=ridge)
    np.testing.assert_allclose(stored_scores(path, data)[:, 0], expected, rtol=0, atol=1e-5)


def test_logistic_gaps_close_too() -> None:
    data = random_data(0)
    path = er.fairness_path(data, "dp", [0.0, 0.01, 5.0], loss="logistic", ridge=0.01)
    gaps = gamma(path, data, "dp")
    assert gaps[0] > gaps[1] > 1e-4
    assert gaps[2] <= 1e-12


def test_separable_data_needs_a_ridge() -> None:
    X = np.concatenate([np.linspace(-2, -1, 10), np.linspace(1, 2, 10)])[:, None]
    data = er.RankingData.from_arrays(X, X[:, 0] > 0, np.tile(["a", "b"], 10), np.arange(20) % 4)
    with pytest.warns(UserWarning, match="logistic loss did not converge at 1 of 1 strengths .*set ridge > 0"):
        er.fairness_path(data, alphas=[0.0], loss="logistic")
    path = er.fairness_path(data, alphas=[0.0, 0.1], loss="logistic", ridge=1e-3)
    assert path.residual.max() <= 1e-8


def test_logistic_sees_relevance_at_the_threshold() -> None:
    data = random_data(0)
    graded = er.RankingData.from_arrays(
        data.features, data.relevance * 3, data.group, data.query_of_row, group_names=["a", "b"], relevance_threshold=2
    )
    one, two = (er.fairness_path(each, "dp", [0.0, 0.1], loss="logistic", ridge=0.1) for each in (data, graded))
    np.testing.assert_allclose(one.coef, two.coef, rtol=1e-9)
