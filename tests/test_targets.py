"""Targets: values are the definitions, derivatives meet finite differences, units do not matter."""

from __future__ import annotations

from math import exp, log2, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.notions import SCOPES, bind
from evenrank.targets import TARGETS, FairnessTerm, bind_target

pytestmark = pytest.mark.numeric

targets = pytest.mark.parametrize("name", TARGETS)
notions = pytest.mark.parametrize("notion", ["dp", "eop", "eod"])
scopes = pytest.mark.parametrize("scope", SCOPES)
K = 2


def rows(seed: int = 0, queries: int = 9, groups: int = 2) -> RankingData:
    """Ragged lists of 1 to 7 items, in no order."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(queries), 1 + np.arange(queries) % 7))
    n = len(qid)
    return RankingData.from_arrays(np.zeros((n, 1)), rng.integers(0, 2, n), rng.integers(0, groups, n), qid)


def spread_out(data: RankingData, models: int | None = None, seed: int = 1) -> np.ndarray:
    """Scores with no two near each other, so that a small step changes no order."""
    rng = np.random.default_rng(seed)
    count = models or 1
    table = np.stack([rng.permutation(data.n_rows) for _ in range(count)], axis=1) / 7
    table += rng.uniform(0, 0.05, table.shape)
    return table if models else table[:, 0]


# ------------------------------------------------------------------ plain twins


def twin(name: str, scores: list[float], k: int, temperature: float) -> list[float]:
    """v of one list, from the definitions."""
    if name == "score":
        return scores
    if name == "centered":
        return [s - sum(scores) / len(scores) for s in scores]
    if name == "probability":
        return [1 / (1 + exp(-s)) for s in scores]
    count = len(scores)
    mean = sum(scores) / count
    width = temperature * sqrt(sum((s - mean) ** 2 for s in scores) / count)
    if name == "topk":
        if count <= k:
            return [1.0] * count
        order = sorted(scores, reverse=True)
        if width == 0:
            return [k / count] * count
        threshold = (order[k - 1] + order[k]) / 2
        return [1 / (1 + exp(-(s - threshold) / width)) for s in scores]
    ranks = []
    for i, own in enumerate(scores):
        others = [(s - own) / (pi / sqrt(6) * width) if width else 0.0 for j, s in enumerate(scores) if j != i]
        ranks.append(1 + sum(1 - exp(-x) / 2 if x > 0 else exp(x) / 2 for x in others))
    return [1 / log2(1 + rank) for rank in ranks]


@targets
@pytest.mark.parametrize("temperature", [0.2, 1.0])
def test_values_are_the_definitions(name: str, temperature: float) -> None:
    data = rows()
    scores = spread_out(data)
    scores[data.query_ptr[6] : data.query_ptr[7]] = 0.5  # a list of equal scores
    expected = []
    for start, end in zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True):
        expected += twin(name, scores[start:end].tolist(), K, temperature)
    bound = bind_target(name, data.query_ptr, k=K, temperature=temperature)
    np.testing.assert_allclose(bound.value(scores), expected, rtol=1e-12)


@notions
@scopes
@targets
def test_without_smoothing_the_term_is_the_violation_of_the_value(name: str, notion: str, scope: str) -> None:
    data = rows(groups=3)
    scores, contrast, bound = spread_out(data, 2), bind(notion, data, scope=scope, training=True), None
    bound = bind_target(name, data.query_ptr, k=K)
    np.testing.assert_array_equal(FairnessTerm(contrast, bound).value(scores), contrast.violation(bound.value(scores)))


def test_smoothing_is_the_hyperbola() -> None:
    data = rows()
    contrast, scores = bind("dp", data), spread_out(data)
    gap = float(contrast.gaps(scores)[0])
    term = FairnessTerm(contrast, bind_target("score", data.query_ptr), 0.3)
    assert float(term.value(scores)) == pytest.approx(sqrt(gap**2 + 0.3**2) - 0.3, rel=1e-12)


# ------------------------------------------------------------------ derivatives


@targets
@notions
@scopes
@pytest.mark.parametrize("smoothing", [0.0, 0.03])
@pytest.mark.parametrize("groups", [2, 3])
def test_gradient_meets_finite_differences(name: str, notion: str, scope: str, smoothing: float, groups: int) -> None:
    data = rows(groups=groups)
    scores = spread_out(data)
    term = FairnessTerm(
        bind(notion, data, scope=scope, training=True), bind_target(name, data.query_ptr, k=K), smoothing
    )
    step = 1e-6 * np.eye(data.n_rows)
    slopes = (term.value(scores[:, None] + step) - term.value(scores[:, None] - step)) / 2e-6
    value, gradient = term.value_and_gradient(scores)
    assert np.abs(gradient).max() > 1e-3
    np.testing.assert_allclose(gradient, slopes, atol=1e-8)
    np.testing.assert_array_equal(term.gradient(scores), gradient)
    np.testing.assert_array_equal(term.derivatives(scores), [gradient, term.hessian_diagonal(scores)])
    assert float(value) == float(term.value(scores))


@pytest.mark.parametrize("name", ["topk", "exposure"])
def test_gradient_with_a_floor_under_the_spread(name: str) -> None:
    data = rows()
    scores = spread_out(data) / 10
    scores[data.query_ptr[6] : data.query_ptr[7]] = 0.5 + 1e-4 * np.arange(4)
    term = FairnessTerm(bind("dp", data), bind_target(name, data.query_ptr, k=K, floor=0.3), 0.03)
    step = 1e-6 * np.eye(data.n_rows)
    slopes = (term.value(scores[:, None] + step) - term.value(scores[:, None] - step)) / 2e-6
    np.testing.assert_allclose(term.gradient(scores), slopes, atol=1e-8)
    assert np.abs(slopes).max() > 1e-3
    # Far above the floor it does not matter, far below it only the scale of the scores does.
    bound, free = (bind_target(name, data.query_ptr, k=K, floor=floor) for floor in (0.3, 0.0))
    np.testing.assert_allclose(bound.value(1e9 * scores), free.value(1e9 * scores), rtol=1e-9)
    assert np.ptp(bound.value(1e-9 * scores)[data.query_ptr[6] : data.query_ptr[7]]) < 1e-6


@targets
def test_steepness_is_the_derivative_with_the_list_held(name: str) -> None:
    """In a long list one row hardly moves the threshold and the spread, so the whole derivative is near its own."""
    data = RankingData.from_arrays(np.zeros((4000, 1)), np.zeros(4000), None, np.zeros(4000))
    rng = np.random.default_rng(3)
    scores = rng.normal(size=4000)
    bound = bind_target(name, data.query_ptr, k=400)
    first, second = (part / (2 if name == "exposure" else 1) for part in bound.steepness(scores))
    for row in (5, 50, 500):
        unit = np.zeros(4000)
        unit[row] = 1
        step = 1e-3
        up, mid, down = (bound.value(scores + d * unit)[row] for d in (step, 0.0, -step))
        assert first[row] == pytest.approx(abs(up - down) / (2 * step), rel=0.02, abs=2e-4)
        assert second[row] == pytest.approx(abs(up - 2 * mid + down) / step**2, rel=0.05, abs=5e-3)


@pytest.mark.parametrize("name", ["score", "probability"])
@notions
@scopes
def test_the_diagonal_bounds_the_hessian(name: str, notion: str, scope: str) -> None:
    data = rows(groups=3)
    scores = spread_out(data, seed=4)
    term = FairnessTerm(bind(notion, data, scope=scope, training=True), bind_target(name, data.query_ptr), 0.03)
    step = 1e-5 * np.eye(data.n_rows)
    hessian = (term.gradient(scores[:, None] + step) - term.gradient(scores[:, None] - step)) / 2e-5
    bound = np.diag(term.hessian_diagonal(scores))
    assert np.linalg.eigvalsh(bound - (hessian + hessian.T) / 2).min() > -1e-7


@targets
@notions
def test_a_step_of_all_rows_lowers_the_term_and_does_not_overshoot(name: str, notion: str) -> None:
    data = rows(seed=2, queries=60)
    term = FairnessTerm(bind(notion, data, training=True), bind_target(name, data.query_ptr, k=K), 0.01)
    scores = np.random.default_rng(5).normal(size=data.n_rows) + data.group
    for _ in range(3):
        gap = term.contrast.gaps(term.target.value(scores))
        bound = term.hessian_diagonal(scores)
        moved = scores - np.divide(term.gradient(scores), bound, out=np.zeros_like(scores), where=bound > 0)
        assert term.value(moved) < max(term.value(scores), 1e-12)
        scores = moved
    after = term.contrast.gaps(term.target.value(scores))
    assert (after * gap > -1e-12).all()


def test_one_step_closes_the_gap_of_the_scores() -> None:
    data = rows()
    term = FairnessTerm(bind("dp", data), bind_target("score", data.query_ptr))
    scores = spread_out(data)
    moved = scores - term.gradient(scores) / term.hessian_diagonal(scores)
    assert float(term.value(moved)) == pytest.approx(0, abs=1e-12)


# ------------------------------------------------------------------ shapes, precision, edges


@targets
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_models_are_columns_and_the_precision_stays(name: str, dtype: type) -> None:
    data = rows()
    scores = spread_out(data, 3).astype(dtype)
    term = FairnessTerm(bind("eod", data, training=True), bind_target(name, data.query_ptr, k=K), 0.03)
    slope = np.random.default_rng(0).normal(size=scores.shape).astype(dtype)
    whole = [term.target.value(scores), term.target.pull_back(scores, slope), *term.target.steepness(scores)]
    whole += [term.gradient(scores), term.hessian_diagonal(scores)]
    for model in range(3):
        one, u = scores[:, model], slope[:, model]
        alone = [term.target.value(one), term.target.pull_back(one, u), *term.target.steepness(one)]
        alone += [term.gradient(one), term.hessian_diagonal(one)]
        for many, single in zip(whole, alone, strict=True):
            assert many.dtype == single.dtype == dtype
            np.testing.assert_allclose(many[:, model], single, rtol=2e-4 if dtype == np.float32 else 1e-12, atol=1e-6)
    assert term.value(scores).shape == (3,)


@targets
@scopes
@pytest.mark.parametrize("level", [0.0, 0.1, -3e8, 1e-300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_scores_are_finite(name: str, scope: str, level: float, dtype: type) -> None:
    data = rows()
    scores = np.full(data.n_rows, level, dtype)
    for smoothing in (0.0, 0.03):
        term = FairnessTerm(
            bind("dp", data, scope=scope, training=True), bind_target(name, data.query_ptr, k=K), smoothing
        )
        for part in (term.value(scores), term.gradient(scores), term.hessian_diagonal(scores)):
            assert np.isfinite(part).all()


@pytest.mark.parametrize("temperature", [0.5, 1e-3])
@pytest.mark.parametrize("length", [2, 50, 700])
def test_exposure_of_scores_far_apart(temperature: float, length: int) -> None:
    """Widths beyond the exponents of floating point: the ranks are those of the hard order, and slopes stay finite."""
    rng = np.random.default_rng(6)
    scores = rng.permutation(np.concatenate([[1e9], rng.normal(size=length - 1)]))
    bound = bind_target("exposure", np.array([0, length]), temperature=temperature)
    value, pull_back = bound.at(scores)
    np.testing.assert_allclose(value, twin("exposure", scores.tolist(), K, temperature), rtol=1e-9)
    assert value[scores.argmax()] == pytest.approx(1, abs=0.3)
    slope = pull_back(rng.normal(size=length))
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(slope.sum(), 0, atol=1e-9 * np.abs(slope).sum())


@pytest.mark.parametrize("name", ["topk", "exposure"])
@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_scores_at_the_ends_of_floating_point(name: str, scale: float) -> None:
    data = rows()
    bound = bind_target(name, data.query_ptr, k=K)
    scores = spread_out(data)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        np.testing.assert_allclose(bound.value(scale * scores), bound.value(scores), rtol=1e-9)
        slope = bound.pull_back(scale * scores, np.ones(data.n_rows))
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("name", ["topk", "exposure"])
def test_equal_scores_get_what_random_order_gives(name: str) -> None:
    bound = bind_target(name, np.array([0, 2, 6]), k=1)
    values = bound.value(np.full(6, 0.7))
    expected = {"topk": [1 / 2] * 2 + [1 / 4] * 4, "exposure": [1 / log2(2.5)] * 2 + [1 / log2(3.5)] * 4}
    np.testing.assert_allclose(values, expected[name])
    assert not bound.pull_back(np.full(6, 0.7), np.arange(6.0)).any()


def test_short_lists_are_all_in_the_top_k() -> None:
    bound = bind_target("topk", np.array([0, 2, 4]), k=2)
    scores = np.array([1.0, 2.0, 3.0, 0.0])
    assert bound.value(scores).tolist() == [1, 1, 1, 1]
    assert not bound.pull_back(scores, np.arange(4.0)).any()
    assert not np.any(bound.steepness(scores))


def test_a_low_temperature_is_the_selection() -> None:
    data = rows(queries=20)
    scores = spread_out(data)
    from evenrank.ranking import Ranking

    value = bind_target("topk", data.query_ptr, k=3, temperature=1e-4).value(scores)
    np.testing.assert_allclose(value, Ranking(scores, data.query_ptr).top(3), atol=1e-12)
    value = bind_target("exposure", data.query_ptr, temperature=1e-4).value(scores)
    np.testing.assert_allclose(value, Ranking(scores, data.query_ptr).exposure(), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "rank"}, "target must be one of score, centered, probability, topk, exposure; got 'rank'"),
        ({"k": 0}, "k must be a whole number ≥ 1; got 0"),
        ({"temperature": 0.0}, "temperature must be a finite number > 0; got 0.0"),
        ({"floor": -0.1}, "floor must be a finite number ≥ 0; got -0.1"),
        ({"temperature": "hot"}, "temperature must be a finite number > 0; got 'hot'"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        bind_target(**{"name": "topk", "query_ptr": np.array([0, 2]), **options})


def test_smoothing_must_be_a_number() -> None:
    data = rows()
    with pytest.raises(ConfigError, match="smoothing must be a finite number ≥ 0; got -1"):
        FairnessTerm(bind("dp", data), bind_target("score", data.query_ptr), -1)


def test_names_are_the_keys() -> None:
    assert all(name == target.name for name, target in TARGETS.items())
    assert [target.uses_k for target in TARGETS.values()] == [False, False, False, True, False]
    assert [target.listwise for target in TARGETS.values()] == [False, True, False, True, True]
    assert [target.linear for target in TARGETS.values()] == [True, True, False, False, False]


# ------------------------------------------------------------------ invariances

numbers = st.floats(-4, 4, width=16)


@given(
    scores=st.lists(numbers, min_size=12, max_size=12),
    scale=st.sampled_from([0.001, 0.5, 8.0, 1000.0]),
    shift=st.floats(-5, 5),
    name=st.sampled_from(["topk", "exposure"]),
)
def test_scale_and_shift_of_a_list_do_not_matter(scores: list[float], scale: float, shift: float, name: str) -> None:
    s = np.array(scores)
    bound = bind_target(name, np.array([0, 5, 9, 12]), k=2)
    each = np.repeat([scale, 1.0, 1 / scale], [5, 4, 3])
    moved = s * each + np.repeat([shift, 0.0, -shift], [5, 4, 3])
    # Differences below rounding of the shifted scores are lost with it, and such lists are told apart no more.
    if min(np.ptp(s[:5]), np.ptp(s[9:])) < 1e-3 and np.ptp(s):
        return
    np.testing.assert_allclose(bound.value(moved), bound.value(s), rtol=1e-6)
    slope = np.linspace(-1, 1, 12)
    gradient = bound.pull_back(s, slope)
    # A scale-free value has no slope along the scores, nor along a shift of them.
    starts = [0, 5, 9]
    size = 1 + np.abs(gradient).max()
    np.testing.assert_allclose(np.add.reduceat(gradient, starts) / size, 0, atol=1e-9)
    np.testing.assert_allclose(np.add.reduceat(gradient * s, starts) / size, 0, atol=1e-8)


@given(
    scores=st.lists(st.sampled_from([-1.5, 0.0, 0.25, 3.0]), min_size=12, max_size=12),
    seed=st.integers(0, 1000),
    name=st.sampled_from(list(TARGETS)),
)
def test_the_order_of_rows_does_not_matter(scores: list[float], seed: int, name: str) -> None:
    order = np.random.default_rng(seed).permutation(12)
    qid, group = np.repeat([0, 1, 2], [5, 4, 3]), np.tile([0, 1], 6)
    results = []
    for rows_now in (np.arange(12), order):
        data = RankingData.from_arrays(np.zeros((12, 1)), group[rows_now], group[rows_now], qid[rows_now])
        term = FairnessTerm(bind("dp", data), bind_target(name, data.query_ptr, k=2), 0.03)
        stored = data.to_stored(np.array(scores)[rows_now])
        value, gradient = term.value_and_gradient(stored)
        back = np.empty(12)
        back[rows_now] = data.to_caller(gradient)
        results.append((value, back))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-12)
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-12)
