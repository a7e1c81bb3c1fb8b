"""Ranks of features in their lists against counting by hand, and the method that trains on them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.linear.list_ranks import groupings_with_list_ranks, with_list_ranks
from evenrank.linear.selection_path import selection_path
from evenrank.methods.method import Task
from evenrank.methods.registry import METHODS


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), st.integers(0, 9)), min_size=1, max_size=20))
def test_ranks_are_the_part_of_the_list_below(rows):
    query, *columns = np.array(rows).T
    X = np.stack(columns, axis=1)
    data = er.RankingData.from_arrays(X, np.zeros(len(X)), None, query)
    wide = with_list_ranks(data)
    given_back = np.empty((len(X), 4))
    given_back[data.row_order] = wide.features
    assert given_back[:, :2].tolist() == X.tolist()
    for i, row in enumerate(X):
        mates = X[query == query[i]]
        for j in range(2):
            below = sum(mate[j] < row[j] for mate in mates) + sum(mate[j] == row[j] for mate in mates) / 2
            assert given_back[i, 2 + j] == pytest.approx(below / len(mates))


def test_groupings_share_the_columns_and_the_whole_data_set_gets_them_too():
    data = er.datasets.german_credit("age", lists=20)
    other = er.datasets.german_credit("sex", lists=20)
    half = np.arange(20) < 10
    one, two = groupings_with_list_ranks([data.take(half), other.take(half)])
    assert one.features is two.features
    assert two.group_names == other.group_names
    assert one.parent is not None
    assert one.parent.feature_names == one.feature_names
    assert len(set(one.feature_names)) == 2 * data.n_features
    # Whole lists are taken, so what stands below an item is the same.
    assert one.features.tolist() == one.parent.take(half).features.tolist()


@pytest.mark.parametrize("scale", ["train", "dataset", None])
def test_the_method_is_the_selection_path_on_ranks_making_up_for_all_of_random_order(scale):
    data = er.datasets.german_credit("age", lists=40)
    tested = np.arange(40) >= 30
    train, test = data.take(~tested), data.take(tested)
    method = METHODS["ranked_topk"]
    task = Task((train,), (test,), ("dp", "eop"), np.array([0.0, 1.0]), (3,), scale=scale)
    parts = {part.notion: part.scores for part in method.run(method, task)}
    wide, wide_test = with_list_ranks(train), with_list_ranks(test)
    for notion, scores in parts.items():
        path = selection_path(wide, notion, 3, [0.0, 1.0], makes_up=1.0, scale=scale)
        assert scores == pytest.approx(path.scores(wide_test), abs=1e-12)
    assert not method.sees.group_at_serving
    changed = test.with_group(["a", "b"] * (test.n_rows // 2) + ["a"] * (test.n_rows % 2))
    (blind, *_) = method.run(method, Task((train,), (changed,), ("dp",), np.array([0.0, 1.0]), (3,), scale=scale))
    assert blind.scores.tolist() == parts["dp"].tolist()
