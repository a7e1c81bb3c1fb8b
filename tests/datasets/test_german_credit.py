"""German Credit: the bundled file, the lists drawn from it, and the folds that keep applicants apart."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from evenrank import datasets
from evenrank.data import RankingData
from evenrank.datasets import german_credit, german_credit_folds
from evenrank.errors import ConfigError, DataError

FOLDER = files("evenrank.datasets") / "data" / "german_credit"
# Attributes are numbered from 1 in the documentation, so a record begins with a dummy.
RECORDS = [["", *line.split(" ")] for line in (FOLDER / "german.data").read_text().splitlines()]


@pytest.fixture(scope="module")
def data() -> RankingData:
    return german_credit()


def rows_by_list(data: RankingData) -> list[list[int]]:
    return [data.item_ids[a:b].tolist() for a, b in zip(data.query_ptr, data.query_ptr[1:], strict=False)]


def members_by_pool(data: RankingData) -> dict[int, set[int]]:
    members: dict[int, set[int]] = {}
    for query, items in zip(data.query_ids, rows_by_list(data), strict=True):
        members.setdefault(int(query.split("/")[0]), set()).update(items)
    return members


# ---------------------------------------------------------------------- the file


def test_file_has_the_documented_counts_and_the_stated_hash() -> None:
    assert len(RECORDS) == 1000
    assert Counter(record[21] for record in RECORDS) == {"1": 700, "2": 300}
    assert sum(record[9] in ("A92", "A95") for record in RECORDS) == 310
    digest = hashlib.sha256((FOLDER / "german.data").read_bytes()).hexdigest()
    assert digest in (FOLDER / "ATTRIBUTION.txt").read_text(encoding="utf-8")


def test_attribution_says_what_the_licence_asks() -> None:
    text = (FOLDER / "ATTRIBUTION.txt").read_text(encoding="utf-8")
    for part in ("Hans Hofmann", "UCI Machine Learning Repository", "10.24432/C5NC77", "CC BY 4.0", "Changes"):
        assert part in text


# ---------------------------------------------------------------------- the rows


def test_default_shapes(data: RankingData) -> None:
    assert (data.n_queries, data.n_rows) == (500, 12_500)
    assert (data.lengths == 25).all()
    assert data.features.dtype == np.float64
    assert data.row_order is None
    assert data.query_ids[[0, 1, 4, 5, 499]].tolist() == ["0/000", "1/000", "4/000", "0/001", "4/099"]
    assert set(data.relevance.tolist()) == {0.0, 1.0}
    assert callable(datasets.german_credit)


def test_rows_are_those_of_the_file(data: RankingData) -> None:
    columns = {name: data.column(name) for name in data.feature_names}
    for row in range(0, data.n_rows, 7):
        record = RECORDS[data.item_ids[row] - 1]
        assert data.relevance[row] == (record[21] == "1")
        assert columns["duration in months"][row] == int(record[2])
        assert columns["credit amount in DM"][row] == int(record[5])
        assert columns["dependants"][row] == int(record[18])
        assert columns["purpose=radio/television"][row] == (record[4] == "A43")
        assert columns["purpose=others"][row] == (record[4] == "A410")
        assert columns["job=unskilled, resident"][row] == (record[17] == "A172")
        assert columns["foreign worker=no"][row] == (record[20] == "A202")


def test_features_are_every_attribute_but_sex_and_age(data: RankingData) -> None:
    """Each documented attribute gives its number, or a column for each code that occurs except the first."""
    expected = 0
    for attribute in set(range(1, 21)) - {9, 13}:
        values = {record[attribute] for record in RECORDS}
        expected += len(values) - 1 if min(values).startswith("A") else 1
    assert data.n_features == expected
    for word in ("sex", "age", "male", "married"):
        assert not any(word in name.replace("=", " ").split() for name in data.feature_names)


def test_features_identify_the_attributes_and_are_well_conditioned() -> None:
    everyone = german_credit(pools=2, lists=2, items=500)
    assert sorted(everyone.item_ids.tolist()) == list(range(1, 1001))
    X = everyone.features
    assert np.linalg.matrix_rank(np.column_stack([np.ones(len(X)), (X - X.mean(0)) / X.std(0)])) == X.shape[1] + 1
    kept = [attribute for attribute in range(1, 21) if attribute not in (9, 13)]
    raw = {tuple(RECORDS[i - 1][a] for a in kept) for i in everyone.item_ids}
    assert len(np.unique(X, axis=0)) == len(raw)


# ---------------------------------------------------------------------- the groups


@pytest.mark.parametrize(
    ("applicant", "sex", "age"),
    [
        (1, "male", "over 25"),
        (2, "female", "25 or younger"),
        (11, "female", "25 or younger"),
        (15, "female", "over 25"),
    ],
)
def test_groups_of_applicants_read_by_hand(applicant: int, sex: str, age: str) -> None:
    for group, label in (("sex", sex), ("age", age), ("sex+age", f"{sex}, {age}")):
        everyone = german_credit(group, pools=2, lists=2, items=500)
        row = everyone.item_ids.tolist().index(applicant)
        assert everyone.group_names[everyone.group[row]] == label


def test_groups_of_all_applicants() -> None:
    both = german_credit("sex+age", pools=2, lists=2, items=500)
    labels = [both.group_names[code] for code in both.group]
    for item, label in zip(both.item_ids, labels, strict=True):
        record = RECORDS[item - 1]
        sex = "female" if record[9] in ("A92", "A95") else "male"
        assert label == f"{sex}, " + ("over 25" if int(record[13]) > 25 else "25 or younger")
    for group, count in (("sex", 310), ("age", 190)):
        assert np.count_nonzero(german_credit(group, pools=2, lists=2, items=500).group == 0) == count


def test_lists_do_not_depend_on_the_grouping(data: RankingData) -> None:
    for group in ("age", "sex+age"):
        np.testing.assert_array_equal(german_credit(group).item_ids, data.item_ids)


def test_group_names_are_complete_even_where_a_group_is_not_drawn() -> None:
    tiny = german_credit("sex+age", lists=2, items=1, pools=2)
    assert len(tiny.group_names) == 4
    assert list(tiny.group_names) == sorted(tiny.group_names)


# ---------------------------------------------------------------------- the draw


@pytest.mark.parametrize(("lists", "items", "pools"), [(500, 25, 5), (211, 25, 7), (40, 333, 3), (6, 1, 2)])
def test_lists_have_different_applicants_of_one_pool(lists: int, items: int, pools: int) -> None:
    data = german_credit(lists=lists, items=items, pools=pools)
    assert all(len(set(members)) == items for members in rows_by_list(data))
    assert all(members == sorted(members) for members in rows_by_list(data))
    by_pool = members_by_pool(data)
    assert sorted(by_pool) == list(range(pools))
    assert sum(map(len, by_pool.values())) == len(set().union(*by_pool.values()))
    per_pool = np.bincount(german_credit_folds(data))
    assert per_pool.max() - per_pool.min() <= 1


def test_seed_decides_everything(data: RankingData) -> None:
    again, other = german_credit(seed=0), german_credit(seed=np.int64(1))
    np.testing.assert_array_equal(again.item_ids, data.item_ids)
    np.testing.assert_array_equal(again.features, data.features)
    assert (other.item_ids != data.item_ids).any()
    assert members_by_pool(other) != members_by_pool(data)


def test_more_lists_begin_with_the_same_lists(data: RankingData) -> None:
    more = german_credit(lists=6000)
    np.testing.assert_array_equal(more.item_ids[: data.n_rows], data.item_ids)
    assert more.query_ids[: data.n_queries].tolist() == data.query_ids.tolist()
    assert more.query_ids[-1] == "4/1199"


def good_in_a_list(good: int, bad: int, items: int) -> list[float]:
    """The distribution of the creditworthy in a list drawn one by one in proportion to the weights of those left."""
    chance = [1.0] + [0.0] * items
    for drawn in range(items):
        after = [0.0] * (items + 1)
        for g in range(drawn + 1):
            weight_good, weight_bad = 0.4 * (good - g), 0.6 * (bad - (drawn - g))
            if chance[g] > 0:
                p = weight_good / (weight_good + weight_bad)
                after[g + 1] += chance[g] * p
                after[g] += chance[g] * (1 - p)
        chance = after
    return chance


@pytest.mark.parametrize("items", [1, 25, 150])
def test_draws_follow_the_weights(items: int) -> None:
    data = german_credit(lists=5000, items=items)
    folds = german_credit_folds(data)
    drawn = data.relevance.reshape(-1, items).sum(axis=1)
    # Pools are the same whatever the lists, and long lists show all of them.
    for pool, members in members_by_pool(german_credit(lists=5, items=200)).items():
        good = sum(RECORDS[item - 1][21] == "1" for item in members)
        chance = np.array(good_in_a_list(good, len(members) - good, items))
        counts = np.arange(items + 1)
        mean = counts @ chance
        variance = (counts - mean) ** 2 @ chance
        mine = drawn[folds == pool]
        assert abs(mine.mean() - mean) < 4 * np.sqrt(variance / len(mine))
        assert mine.var() == pytest.approx(variance, rel=0.25)


def test_default_lists_are_less_one_sided_than_the_data(data: RankingData) -> None:
    assert 0.59 < data.relevance.mean() < 0.65
    assert not {0.0, 1.0} & set(data.relevance.reshape(-1, 25).mean(axis=1).tolist())


# ---------------------------------------------------------------------- folds


def test_folds_share_no_applicant(data: RankingData) -> None:
    folds = german_credit_folds(data)
    assert folds.shape == (500,)
    assert folds.dtype == np.int64
    for fold in range(5):
        test, train = data.take(folds == fold), data.take(folds != fold)
        assert test.n_queries == 100
        assert not set(test.item_ids.tolist()) & set(train.item_ids.tolist())


def test_folds_follow_queries_that_were_taken(data: RankingData) -> None:
    assert german_credit_folds(data.take([499, 3, 0])).tolist() == [4, 3, 0]


@pytest.mark.parametrize("query", ["q1", 7, "1/2/3"])
def test_folds_of_other_data(query: Any) -> None:
    other = RankingData.from_arrays([[1.0]], [1], ["a"], [query])
    with pytest.raises(DataError, match=r"pool/list.*got '"):
        german_credit_folds(other)


# ---------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group": "race"}, r"group must be one of sex, age, sex\+age; got 'race'"),
        ({"group": None}, "group must be one of"),
        ({"group": ["sex"]}, "group must be one of"),
        ({"pools": 1}, "pools must be a whole number from 2 to 1000; got 1"),
        ({"pools": 1001}, "pools must be .* got 1001"),
        ({"pools": 2.0}, "pools must be .* got 2.0"),
        ({"lists": 4}, "lists must be a whole number of at least 5, one per pool; got 4"),
        ({"lists": "many"}, "lists must be .* got 'many'"),
        ({"lists": True, "pools": 2}, "lists must be .* got True"),
        ({"items": 201}, "items must be .* from 1 to 200, the size of the smallest of 5 pools; got 201"),
        ({"items": 143, "pools": 7}, "items must be .* from 1 to 142"),
        ({"items": 0}, "items must be .* got 0"),
        ({"items": None}, "items must be .* got None"),
        ({"seed": -1}, "seed must be a whole number of at least 0; got -1"),
        ({"seed": 0.5}, "seed must be .* got 0.5"),
    ],
)
def test_unusable_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        german_credit(**options)


def test_import_needs_numpy_alone() -> None:
    code = "import sys, evenrank.datasets; print(*{'pandas', 'polars', 'sklearn', 'scipy'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""
