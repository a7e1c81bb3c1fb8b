"""Moments: plain sums over rows, whatever the blocks and partitions they were summed in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
import evenrank.row_checks
from evenrank.data import RankingData
from evenrank.design_columns import contrast_rows
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.moments import Moments
from evenrank.notions import Notion, bind
from linear_oracles import STRATA, Gaps, group_columns, random_data, row_weights

pytestmark = pytest.mark.numeric


def slow_sums(data: RankingData, *, group_aware: bool = False) -> dict[str, Any]:
    """Row by row, about 0: every sum of the moments of the three notions."""
    X = np.array(data.features, float)
    X = np.hstack([X, group_columns(data)]) if group_aware else X
    d, weight = X.shape[1], row_weights(data)
    strata = [lambda r: True, lambda r: r >= 1, lambda r: r < 1, lambda r: r >= 1]
    sums: dict[str, Any] = {"weight": 0.0, "r": 0.0, "rr": 0.0}
    sums |= {"x": np.zeros(d), "xx": np.zeros((d, d)), "xr": np.zeros(d)}
    sums |= {"cell_weight": np.zeros((4, data.n_groups)), "cell_sum": np.zeros((4, data.n_groups, d))}
    for row in range(data.n_rows):
        w, x, r, g = weight[row], X[row], data.relevance[row], data.group[row]
        for name, term in {"weight": 1, "r": r, "rr": r * r, "x": x, "xx": np.outer(x, x), "xr": x * r}.items():
            sums[name] = sums[name] + w * term
        for number, inside in enumerate(strata):
            if g >= 0 and inside(r):
                sums["cell_weight"][number, g] += w
                sums["cell_sum"][number, g] += w * x
    return sums


def assert_same(one: Moments, two: Moments, *, rel: float = 1e-10) -> None:
    """Equal sums about a common origin."""
    two = two.about(one.origin)
    assert one.n_rows == two.n_rows
    assert one.group_names == two.group_names
    for name in ("weight", "r", "rr", "x", "xx", "xr", "cell_weight", "cell_sum"):
        a, b = np.asarray(getattr(one, name)), np.asarray(getattr(two, name))
        np.testing.assert_allclose(a, b, rtol=rel, atol=rel * (1 + np.abs(a).max(initial=0)), err_msg=name)


CASES = {
    "plain": {},
    "weighted": {"weighted": True},
    "four groups": {"groups": 4, "n": 200},
    "unknown groups": {"unknown": True, "weighted": True},
    "float32": {"dtype": np.float32},
}


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
@pytest.mark.parametrize("group_aware", [False, True])
@pytest.mark.parametrize("block_bytes", [1 << 25, 8 * 3 * 7])
def test_sums_are_those_over_the_rows(
    options: Any, group_aware: bool, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evenrank.row_checks, "BLOCK_BYTES", block_bytes)
    data = random_data(1, **options)
    found = Moments.of(data, group_aware=group_aware)
    assert found.n_rows == data.n_rows
    about_zero = found.about(np.zeros(len(found.x)))
    for name, expected in slow_sums(data, group_aware=group_aware).items():
        np.testing.assert_allclose(getattr(about_zero, name), expected, rtol=1e-11, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_mean_deviation_and_quadratic_are_of_the_rows(options: Any) -> None:
    data = random_data(2, **options)
    moments = Moments.of(data)
    X, weight = np.array(data.features, float), row_weights(data) / row_weights(data).sum()
    np.testing.assert_allclose(moments.mean, weight @ X, rtol=1e-12)
    deviation = np.sqrt(weight @ (X - weight @ X) ** 2)
    np.testing.assert_allclose(moments.deviation, deviation, rtol=1e-12)
    center, scale = np.array([0.3, -1, 2]), np.array([2.0, 0.5, 1])
    Z = np.hstack([(X - center) / scale, np.ones((len(X), 1))])
    second, cross = moments.quadratic(center, scale)
    np.testing.assert_allclose(second, (Z * weight[:, None]).T @ Z, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(cross, Z.T @ (weight * data.relevance), rtol=1e-11, atol=1e-12)


# ---------------------------------------------------------------------- merging


@given(
    seed=st.integers(0, 5),
    parts=st.lists(st.integers(0, 3), min_size=12, max_size=12),
    options=st.sampled_from(list(CASES.values())),
    random=st.randoms(use_true_random=False),
)
def test_any_partition_adds_up_to_the_whole(seed: int, parts: list[int], options: Any, random: Any) -> None:
    data = random_data(seed, queries=12, **options)
    part = np.array(parts)[: data.n_queries]
    pieces = [Moments.of(data.take(part == number)) for number in np.unique(part)]
    random.shuffle(pieces)
    assert_same(sum(pieces[1:], pieces[0]), Moments.of(data))


@given(seed=st.integers(0, 5), fold=st.integers(0, 3), options=st.sampled_from(list(CASES.values())))
def test_subtracting_a_part_leaves_the_rest(seed: int, fold: int, options: Any) -> None:
    data = random_data(seed, **options)
    folds = data.folds(4, seed)
    rest = Moments.of(data) - Moments.of(data.take(folds == fold))
    assert_same(rest, Moments.of(data.take(folds != fold)))


def test_a_group_that_is_subtracted_away_is_gone() -> None:
    group = np.array(["a", "b"] * 10 + ["c"] * 5)
    rng = np.random.default_rng(0)
    data = RankingData.from_arrays(
        rng.normal(size=(25, 2)),
        np.arange(25) % 3 > 0,
        group,
        np.repeat([0, 1, 2, 3, 4], 5),
        sample_weight=rng.uniform(0.1, 1, 25),
    )
    rest = Moments.of(data) - Moments.of(data.take([4]))
    assert (rest.cell_weight[:, 2] == 0).all()
    assert (rest.cell_sum[:, 2] == 0).all()
    with pytest.warns(DataWarning, match="no item of group 'c'"):
        rows, pairs = rest.contrasts("dp")
    expected, _ = Moments.of(data.take([0, 1, 2, 3]).with_group(group[:20])).contrasts("dp")
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-12)
    assert pairs.weight.tolist() == [1]


def test_a_feature_that_varies_only_in_the_subtracted_part_is_constant() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2))
    X[:20, 0] = 3.1
    data = RankingData.from_arrays(X, rng.integers(0, 2, 40), rng.choice(["a", "b"], 40), np.repeat([0, 1], 20))
    rest = Moments.of(data) - Moments.of(data.take([1]))
    assert rest.deviation[0] == 1
    assert rest.mean[0] == pytest.approx(3.1, rel=1e-14)
    assert rest.deviation[1] == pytest.approx(X[:20, 1].std(), rel=1e-10)
    second, cross = rest.quadratic(rest.mean, rest.deviation)
    assert (second[0] == 0).all()
    assert cross[0] == 0


def test_partitions_with_other_groups_merge_by_label() -> None:
    rng = np.random.default_rng(4)
    group = np.array(["b", "d", "b", "d", "a", "c", "a", "c", "c"])
    X, relevance = rng.normal(size=(9, 2)), np.array([0, 1, 1, 0, 1, 1, 0, 0, 1])
    query = np.array([0] * 4 + [1] * 5)
    whole = RankingData.from_arrays(X, relevance, group, query)
    parts = [
        RankingData.from_arrays(X[query == q], relevance[query == q], group[query == q], query[query == q])
        for q in (0, 1)
    ]
    assert_same(Moments.of(parts[0]) + Moments.of(parts[1]), Moments.of(whole))
    assert_same(Moments.of(parts[1]) + Moments.of(parts[0]), Moments.of(whole))


def test_labels_of_several_types_keep_the_data_s_order() -> None:
    rng = np.random.default_rng(5)
    group = [1, 2.5, 3, 2.5, 1, 3]
    data = RankingData.from_arrays(rng.normal(size=(6, 1)), [0, 1, 0, 1, 1, 1], group, [0, 0, 0, 1, 1, 1])
    assert data.group_names == (1, 2.5, 3)
    assert_same(Moments.of(data.take([1])) + Moments.of(data.take([0])), Moments.of(data))


@pytest.mark.parametrize("other", ["features", "names", "notions", "groups of a group-aware model"])
def test_moments_of_other_things_do_not_combine(other: str) -> None:
    data = random_data(0)
    mine, yours = Moments.of(data), Moments.of(data)
    if other == "features":
        yours = Moments.of(random_data(0, d=2))
    elif other == "names":
        named = RankingData.from_arrays(data.features, data.relevance, data.group, data.query_of_row, None, list("uvw"))
        yours = Moments.of(named)
    elif other == "notions":
        yours = Moments.of(data, ["dp"])
    else:
        mine = Moments.of(data, group_aware=True)
        yours = Moments.of(data.with_group(np.where(data.group == 0, "a", "c")), group_aware=True)
    for combine in (Moments.__add__, Moments.__sub__):
        with pytest.raises(DataError, match=r"moments to combine must share their (features|notions); got"):
            combine(mine, yours)


def test_more_rows_than_there_are_cannot_be_subtracted() -> None:
    data = random_data(0)
    with pytest.raises(DataError, match=f"cannot subtract the moments of {data.n_rows} rows"):
        Moments.of(data.take([0])) - Moments.of(data)
    with pytest.raises(TypeError):
        Moments.of(data) + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        Moments.of(data) - 1  # type: ignore[operator]


# ---------------------------------------------------------------------- digits


@pytest.mark.parametrize("parts", [1, 3])
def test_large_offsets_cost_no_digits(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evenrank.row_checks, "BLOCK_BYTES", 8 * 2 * 100)
    rng = np.random.default_rng(6)
    small = rng.normal(size=(900, 2))
    X = small + np.array([1e9, -3e8])
    data = RankingData.from_arrays(X, rng.integers(0, 2, 900), rng.choice(["a", "b"], 900), np.repeat([0, 1, 2], 300))
    pieces = [Moments.of(data.take(np.array_split(np.arange(3), parts)[i])) for i in range(parts)]
    moments = sum(pieces[1:], pieces[0])
    exact = (X - np.array([1e9, -3e8])).std(axis=0)  # X is 1e9 and a float's worth of digits of the small part
    np.testing.assert_allclose(moments.deviation, exact, rtol=1e-6)
    second, _ = moments.quadratic(moments.mean, moments.deviation)
    np.testing.assert_allclose(second[0, 1], np.corrcoef((X - X[0]).T)[0, 1], rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9, 1e-9, 1 / 3])
def test_a_constant_feature_has_deviation_one(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # Over so many rows and blocks rounding makes the mean differ from the value.
    monkeypatch.setattr(evenrank.row_checks, "BLOCK_BYTES", 8 * 2 * 99)
    X = np.column_stack([np.full(1003, value), np.arange(1003.0)])
    weight = np.random.default_rng(0).uniform(0.1, 1, 1003)
    for sample_weight in (None, weight):
        data = RankingData.from_arrays(X, np.ones(1003), None, np.arange(1003) % 5, sample_weight=sample_weight)
        moments = Moments.of(data)
        parts = Moments.of(data.take([0, 3])) + Moments.of(data.take([1, 2, 4]))
        for each in (moments, parts, moments - Moments.of(data.take([2]))):
            assert each.deviation[0] == 1
            assert each.deviation[1] > 200


def test_a_memmap_is_summed_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = random_data(7, n=500, dtype=np.float32, shuffled=False)
    file = np.memmap(tmp_path / "X", np.float32, "w+", shape=expected.features.shape)
    file[:] = expected.features
    names = np.array(expected.group_names)[expected.group]
    data = RankingData.from_arrays(file, expected.relevance, names, expected.query_of_row)
    assert isinstance(data.features, np.memmap)
    monkeypatch.setattr(evenrank.row_checks, "BLOCK_BYTES", 8 * 3 * 64)
    assert len(list(data.blocks())) == 8
    found = Moments.of(data)
    monkeypatch.undo()
    assert len(list(expected.blocks())) == 1
    assert_same(found, Moments.of(expected), rel=1e-12)


# ---------------------------------------------------------------------- contrasts


@pytest.mark.parametrize("notion", STRATA)
@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_contrasts_are_differences_of_group_means(notion: str, options: Any) -> None:
    data = random_data(8, **options)
    rows, pairs = Moments.of(data).contrasts(notion)
    gaps = Gaps.of(data, notion)
    np.testing.assert_allclose(rows, gaps.C @ np.array(data.features, float), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pairs.weight, gaps.weight, rtol=1e-14)
    bound = bind(notion, data, training=True)
    np.testing.assert_allclose(rows, contrast_rows(bound, data), rtol=1e-9, atol=1e-12)
    aware, _ = Moments.of(data, group_aware=True).contrasts(notion)
    wide = np.hstack([np.array(data.features, float), group_columns(data)])
    np.testing.assert_allclose(aware, gaps.C @ wide, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("notion", STRATA)
@pytest.mark.parametrize("group_aware", [False, True])
def test_per_query_contrasts_are_block_by_block(
    notion: str, group_aware: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = random_data(9, groups=3, unknown=True, weighted=True)
    monkeypatch.setattr(evenrank.row_checks, "BLOCK_BYTES", 8 * 3 * 11)
    contrast = bind(notion, data, scope="per_query", training=True)
    wide = np.hstack([data.features, group_columns(data)]) if group_aware else np.array(data.features)
    found = contrast_rows(contrast, data, group_aware=group_aware)
    np.testing.assert_allclose(found, Gaps.of(data, notion, "per_query").C @ wide, rtol=1e-9, atol=1e-12)


def test_a_notion_of_one_s_own_is_summed_and_an_absent_one_refused() -> None:
    data = random_data(10)
    high = Notion("high", lambda data: [data.column("x0") > 1])
    moments = Moments.of(data, ["dp", high])
    rows, _ = moments.contrasts(high)
    inside = data.features[:, 0] > 1
    means = [np.array(data.features)[inside & (data.group == code)].mean(axis=0) for code in (0, 1)]
    np.testing.assert_allclose(rows, [means[0] - means[1]], rtol=1e-10)
    with pytest.raises(ConfigError, match="these moments hold demographic_parity, high; got 'equal_opportunity'"):
        moments.contrasts("eop")
    with pytest.raises(ConfigError, match="must differ in name"):
        Moments.of(data, [high, Notion("high", lambda data: [data.column("x1") > 1])])


def test_data_without_groups_has_no_contrasts() -> None:
    moments = Moments.of(random_data(0).with_group(None))
    assert moments.notions == ()
    assert moments.cell_sum.shape == (0, 0, 3)
    with pytest.raises(ConfigError, match="hold no notion"):
        moments.contrasts("dp")


def test_features_too_large_to_square_are_refused_by_name():
    X = np.random.default_rng(0).normal(size=(20, 2)) * [1.0, 1e200]
    data = er.RankingData.from_arrays(
        X, [0, 1] * 10, ["a", "b"] * 10, np.repeat(range(5), 4), feature_names=["x", "big"]
    )
    with pytest.raises(er.DataError, match="feature 'big' has values too large to square"):
        er.fairness_path(data, alphas=[0.1])
