"""Scores whose digits are the row's own: identical rows score alike, and shuffled rows keep their scores to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenrank as er
from evenrank.rankers.row_products import row_products
from linear_oracles import random_data

DTYPES = st.sampled_from([np.float32, np.float64])


@settings(max_examples=200)
@given(st.integers(1, 70), st.integers(1, 130), st.integers(1, 30), DTYPES, DTYPES, st.sampled_from("CF"), st.data())
def test_a_row_s_products_are_its_own(n, d, models, kind, sum_kind, order, draw):
    rng = np.random.default_rng(draw.draw(st.integers(0, 2**32 - 1)))
    rows = np.array(rng.normal(size=(n, d)), kind, order=order)
    weights = rng.normal(size=(models, d)).astype(sum_kind)
    together = row_products(rows, weights)
    assert (together.dtype, together.shape) == (sum_kind, (n, models))
    np.testing.assert_allclose(together, rows.astype(float) @ weights.T, rtol=0, atol=d * 20 * np.finfo(sum_kind).eps)
    shuffled = rng.permutation(n)
    np.testing.assert_array_equal(row_products(rows[shuffled], weights), together[shuffled])
    np.testing.assert_array_equal(row_products(np.asfortranarray(rows), weights), together)
    chosen, model = rng.integers(n), rng.integers(models)
    np.testing.assert_array_equal(row_products(rows[[chosen]], weights), together[[chosen]])
    np.testing.assert_array_equal(row_products(rows, weights[[model]])[:, 0], together[:, model])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), DTYPES, st.sampled_from("CF"))
def test_identical_and_shuffled_rows_through_the_linear_scorers(seed, d, kind, order):
    rng = np.random.default_rng(seed)
    qid, group = np.repeat(np.arange(6), 8), rng.choice(["a", "b"], 48)
    group[:2] = "a", "b"
    X = np.array(rng.normal(size=(12, d))[rng.integers(12, size=48)], kind, order=order)  # most rows occur again
    y = rng.integers(0, 2, 48)
    y[:2] = 1
    shuffled = rng.permutation(48)
    data = er.RankingData.from_arrays(X, y, group, qid)
    mixed = er.RankingData.from_arrays(X[shuffled], y[shuffled], group[shuffled], qid[shuffled])
    path = er.fairness_path(data, "dp", [0.0, 0.01, 0.1], ridge=0.1)
    scores = path.scores(data)
    np.testing.assert_array_equal(path.scores(mixed), scores[shuffled])
    aware = er.fairness_path(data, "dp", [0.0, 0.1], ridge=0.1, group_aware=True)
    np.testing.assert_array_equal(aware.scores(mixed), aware.scores(data)[shuffled])
    linear = er.FairLinearRanker("dp", 0.01, ridge=0.1).fit(data)
    deltr = er.DELTR(gamma=1.0, max_iter=3, solver="gd").fit(data)
    _, first, again = np.unique(X, axis=0, return_index=True, return_inverse=True)
    for ranker in (linear, deltr):
        before = ranker.predict(data)
        np.testing.assert_array_equal(ranker.predict(mixed), before[shuffled])
        np.testing.assert_array_equal(ranker.predict(X[shuffled]), before[shuffled])
        np.testing.assert_array_equal(ranker.predict(X[5:6]), before[5:6])
        np.testing.assert_array_equal(before, before[first][again.ravel()])
    np.testing.assert_array_equal(scores, scores[first][again.ravel()])


def test_rows_of_a_mapped_file_score_as_in_memory(tmp_path: Path) -> None:
    data = random_data(0)
    path = er.fairness_path(data, "dp", [0.0, 0.1])
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=data.features.shape)
    mapped[:] = data.features
    on_disk = er.RankingData.from_arrays(mapped, data.relevance, None, data.query_ids[data.query_of_row])
    np.testing.assert_array_equal(path.scores(on_disk), data.to_stored(path.scores(data)))


def test_features_the_model_does_not_know_are_left_aside() -> None:
    data = random_data(1)
    X, qid = np.array(data.features), data.query_ids[data.query_of_row]
    names = [f"f{j}" for j in range(data.n_features)]
    own = er.RankingData.from_arrays(X, data.relevance, data.group, qid, feature_names=names)
    path, ranker = er.fairness_path(own, "dp", [0.1]), er.FairLinearRanker("dp", 0.1).fit(own)
    more = er.RankingData.from_arrays(
        np.column_stack([qid, X[:, ::-1]]), data.relevance, None, qid, feature_names=["other", *names[::-1]]
    )
    np.testing.assert_array_equal(path.scores(more), path.scores(own))
    np.testing.assert_array_equal(ranker.predict(more), ranker.predict(own))
    fewer = er.RankingData.from_arrays(X[:, 1:], data.relevance, None, qid, feature_names=names[1:])
    with pytest.raises(er.DataError, match=r"the data lacks 'f0'\. Name them with features= if its table has them\.$"):
        path.scores(fewer)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_a_frame_that_the_model_does_not_know_are_left_aside(library: str) -> None:
    frames = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    columns = {"price": rng.normal(size=30), "stars": rng.normal(size=30)}
    y, group = rng.integers(0, 2, 30), np.tile(["a", "b"], 15)
    ranker = er.FairLinearRanker("dp", 0.1).fit(frames.DataFrame(columns), y, sensitive_features=group)
    expected = ranker.predict(frames.DataFrame(columns))
    turned = {"name": list("ab") * 15, "stars": columns["stars"], "score": y, "price": columns["price"]}
    np.testing.assert_array_equal(ranker.predict(frames.DataFrame(turned)), expected)
    with pytest.raises(ValueError, match="price"):
        ranker.predict(frames.DataFrame({"stars": columns["stars"], "score": y, "rank": y}))
