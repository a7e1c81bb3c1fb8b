"""`FairNeuralRanker` with a limit on queries outside training, and one that sees the group."""

from __future__ import annotations

import json
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import evenrank as er
from evenrank.errors import ConfigError, DataError, DataWarning
from model_mutations import written

pytestmark = pytest.mark.extras
torch = pytest.importorskip("torch", reason="installed by make test-extras")
et = import_module("evenrank.torch")
training = import_module("evenrank.torch.training")


def made(queries: int = 90, seed: int = 0, length: int = 8) -> er.RankingData:
    """Lists in which group b is disfavoured by an informative feature and shown by another."""
    rng = np.random.default_rng(seed)
    n = queries * length
    b = rng.random(n) < 0.4
    X = rng.normal(size=(n, 3))
    X[:, 0] -= 0.8 * b
    X[:, 1] += 2.0 * b
    relevance = X[:, 0] + 0.5 * rng.normal(size=n) > 0.3
    return er.RankingData.from_arrays(
        X, relevance.astype(int), np.where(b, "b", "a"), np.repeat(np.arange(queries), length)
    )


def quick(**options: Any) -> Any:
    return et.FairNeuralRanker(
        **{"notion": "dp", "alpha": 0.0, "epochs": 6, "hidden": (8,), "k": 3, "batch_queries": 10} | options
    )


@pytest.fixture(scope="module")
def data() -> er.RankingData:
    return made()


@pytest.fixture
def trained_on(monkeypatch: pytest.MonkeyPatch) -> list[er.RankingData]:
    """The rows of every training."""
    original, seen = training.train, []

    def noted(networks: Any, rows: er.RankingData, *args: Any, **options: Any) -> int:
        seen.append(rows)
        return int(original(networks, rows, *args, **options))

    monkeypatch.setattr(training, "train", noted)
    return seen


def upper_end(scores: Any, data: er.RankingData) -> float:
    """95 %, one-sided."""
    return er.interval(scores, data, "dp@3", confidence=0.9, method="analytic").high


def parts(data: er.RankingData, seen: er.RankingData) -> tuple[er.RankingData, er.RankingData]:
    """The rows that were trained on, and the others."""
    inside = np.isin(data.query_ids, seen.query_ids)
    return data.take(inside), data.take(~inside)


# ------------------------------------------------------------------ queries outside training


def test_queries_kept_aside_take_no_part_in_training(data: er.RankingData, trained_on: list[er.RankingData]) -> None:
    ranker = quick(max_violation=1.0, validation_fraction=0.3, impute="mean").fit(data)
    inside, held = parts(data, trained_on[0])
    assert held.n_queries == 27
    assert {len(rows.query_ids) for rows in trained_on} == {63}
    alone = quick(impute="mean").fit(inside)
    np.testing.assert_array_equal(ranker.predict(data), alone.predict(data))
    assert ranker.violation_ == alone.violation_ == er.measure(alone.predict(inside), inside, "dp@3")["dp@3"]
    # Not even by the scale of the features, or by what stands for a missing value.
    X = np.where(np.isin(data.query_of_row, held.query_ids)[:, None], 1e3 * data.features, data.features)
    group = np.array(data.group_names)[data.group]
    changed = er.RankingData.from_arrays(X, data.relevance, group, data.query_of_row)
    again = quick(max_violation=1.0, validation_fraction=0.3, impute="mean").fit(changed)
    with_gaps = np.array(inside.features)
    with_gaps[::5, 0] = np.nan
    np.testing.assert_array_equal(again.predict(with_gaps), ranker.predict(with_gaps))


@pytest.mark.parametrize("aware", [False, True])
def test_the_limit_is_kept_by_the_upper_end_of_the_interval(
    data: er.RankingData, trained_on: list[er.RankingData], aware: bool
) -> None:
    options: dict[str, Any] = {"validation_fraction": 0.4, "group_aware": aware}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        free = quick(max_violation=1.0, **options).fit(data)
    inside, held = parts(data, trained_on[0])
    scores = free.predict(held)
    gap, high = er.measure(scores, held, "dp@3")["dp@3"], upper_end(scores, held)
    assert free.tried_ == [(0.0, pytest.approx(high), pytest.approx(er.measure(scores, held, "ndcg@3")["ndcg@3"]))]
    # Strength 0 is within this limit but for chance.
    limit = (gap + high) / 2
    ranker = quick(max_violation=limit, **options).fit(data)
    assert ranker.alpha_ > 0
    found = upper_end(ranker.predict(held), held)
    assert gap < limit
    assert found <= limit
    gaps = {alpha: (high, ndcg) for alpha, high, ndcg in ranker.tried_}
    assert gaps[ranker.alpha_] == pytest.approx((found, er.measure(ranker.predict(held), held, "ndcg@3")["ndcg@3"]))
    assert gaps[ranker.alpha_][1] == max(ndcg for high, ndcg in gaps.values() if high <= limit)
    assert list(gaps) == sorted(gaps)
    assert ranker.violation_ == pytest.approx(er.measure(ranker.predict(inside), inside, "dp@3")["dp@3"])


@pytest.mark.parametrize("aware", [False, True])
def test_a_limit_that_is_not_reached_is_said(data: er.RankingData, aware: bool) -> None:
    advice = "Train longer, or allow" if aware else "Train longer, let the ranker see the group"
    with pytest.warns(DataWarning, match=rf"max_violation=0 was not reached: .* held-out queries may be .*{advice}"):
        ranker = quick(max_violation=0.0, validation_fraction=0.3, group_aware=aware, epochs=1).fit(data)
    assert len(ranker.tried_) <= 12  # each is one more chance to be within it by luck
    assert {alpha: gap for alpha, gap, _ in ranker.tried_}[ranker.alpha_] == min(g for _, g, _ in ranker.tried_)


def test_an_evaluation_set_comes_in_every_form(data: er.RankingData, trained_on: list[er.RankingData]) -> None:
    held, limit = made(40, seed=1), 0.2
    ranker = quick(max_violation=limit).fit(data, eval_set=[held])
    assert all(rows.n_queries == data.n_queries for rows in trained_on)
    assert upper_end(ranker.predict(held), held) <= limit
    assert ranker.alpha_ > 0
    shuffle = np.random.default_rng(0).permutation(held.n_rows)
    qid, labels = held.query_of_row[shuffle], np.array(held.group_names)[held.group][shuffle]
    X, y = np.array(held.features)[shuffle], held.relevance[shuffle]
    own, names = np.array(held.group_names)[held.group], ["u", "v", "w"]
    frame, part = pd.DataFrame(data.features, columns=names), pd.DataFrame(X, columns=names)[names[::-1]]
    known: dict[str, Any] = {"eval_qid": [qid], "eval_sensitive_features": [labels]}
    forms: list[tuple[Any, dict[str, Any]]] = [
        (None, {"eval_set": held}),
        (None, {"eval_set": [held.with_group(None)], "eval_sensitive_features": [own]}),
        (None, {"eval_set": [(X, y)], **known}),
        (data.features, {"eval_set": (X, y), **known}),
        (frame, {"eval_set": [(part, y)], **known}),
        (frame, {"eval_set": [held]}),
    ]
    rows = {"y": data.relevance, "qid": data.query_of_row, "sensitive_features": np.array(data.group_names)[data.group]}
    for of_training, given in forms:
        model = quick(max_violation=limit)
        again = model.fit(data, **given) if of_training is None else model.fit(of_training, **rows, **given)
        np.testing.assert_allclose(again.tried_, ranker.tried_, rtol=1e-9)
        assert again.alpha_ == ranker.alpha_


NO_GROUP: dict[str, Any] = {"eval_set": [made(4).with_group(None)]}
PAIR = (np.zeros((4, 3)), np.zeros(4))
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no limit": ({"validation_fraction": 0.3}, {}, "validation_fraction=0.3 is for max_violation, which is not set"),
    "all aside": ({"max_violation": 0.1, "validation_fraction": 1.0}, {}, "validation_fraction must be below 1"),
    "text": ({"max_violation": 0.1, "validation_fraction": "a"}, {}, "validation_fraction must be a finite number"),
    "within queries": (
        {"max_violation": 0.1, "validation_fraction": 0.3, "scope": "per_query"},
        {},
        "held-out queries is for gaps over all queries; got scope='per_query'",
    ),
    "masks": (
        {"max_violation": 0.1, "validation_fraction": 0.3, "notion": [np.ones(720)]},
        {},
        "needs a notion that other rows have too; got masks of these rows",
    ),
    "set without a limit": ({}, {"eval_set": [made(4)]}, "eval_set is for max_violation, which is not set"),
    "set and fraction": (
        {"max_violation": 0.1, "validation_fraction": 0.3},
        {"eval_set": [made(4)]},
        "got an eval_set and validation_fraction=0.3",
    ),
    "two sets": ({"max_violation": 0.1}, {"eval_set": [made(4), made(4)]}, "eval_set must be one set of rows.*; got 2"),
    "set without groups": ({"max_violation": 0.1}, NO_GROUP, "on an eval_set needs its groups.*; got none"),
    "queries twice": ({"max_violation": 0.1}, {"eval_set": [made(4)], "eval_qid": [[0] * 32]}, "leave out eval_qid"),
    "no queries": ({"max_violation": 0.1}, {"eval_set": [PAIR]}, r"pass eval_qid=\[…\]"),
    "no list": (
        {"max_violation": 0.1},
        {"eval_set": [PAIR], "eval_qid": [0, 0, 1, 1]},
        "eval_qid must be a list that holds one array, for the one eval_set; got a list of 4",
    ),
    "groups of no set": (
        {},
        {"eval_sensitive_features": [["a"]]},
        "eval_sensitive_features is for the rows of an eval",
    ),
    "aware of exposure": ({"group_aware": True, "target": "exposure"}, {}, "got target='exposure', scope='amortized'"),
    "aware within queries": (
        {"group_aware": True, "scope": "per_query"},
        {},
        "Set target='topk' and scope='amortized'",
    ),
}


@pytest.mark.parametrize(("options", "given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_one_clear_line(
    data: er.RankingData, options: Any, given: Any, message: str, trained_on: list[er.RankingData]
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        quick(**options).fit(data, **given)
    assert "\n" not in str(caught.value)
    assert not trained_on


def test_queries_that_do_not_tell_the_gap_are_refused_before_training(
    data: er.RankingData, trained_on: list[er.RankingData]
) -> None:
    held = made(4)
    labels = np.where(np.arange(held.n_rows) == 0, "b", "a")
    nothing = er.RankingData.from_arrays(held.features, np.zeros(held.n_rows), labels, held.query_of_row)
    for aware in (False, True):
        said = pytest.warns(DataWarning, match="relevant rows have no item of group")
        with said, pytest.raises(ConfigError, match="the queries kept aside or evaluated do not define"):
            quick(notion="eop", max_violation=0.1, group_aware=aware).fit(data, eval_set=[nothing])
    assert not trained_on


# ------------------------------------------------------------------ seeing the group


def by_hand(data: er.RankingData) -> dict[str, float]:
    """The exact offsets of scores that networks of half the queries give the other half."""
    half, others = data.folds(2, 0), np.empty(data.n_rows)
    for number in range(2):
        rest = (half == number)[data.query_of_row]
        others[rest] = quick().fit(data.take(half != number)).predict(data.features[rest])
    return er.GroupOffset("dp", 3, shrink=False).fit(others, data).offsets_


def test_what_is_added_is_a_part_of_the_exact_offset_of_scores_by_other_queries(data: er.RankingData) -> None:
    full, plain = by_hand(data), quick().fit(data).predict(data)
    assert full["a"] == 0 < full["b"]
    is_b = np.array(data.group_names)[data.group] == "b"
    for alpha in (0.0, 1.0, 3.0):
        ranker = quick(alpha=alpha, group_aware=True).fit(data)
        np.testing.assert_allclose(ranker.group_offset_, [0, full["b"] * alpha / (1 + alpha)], rtol=1e-9)
        np.testing.assert_allclose(ranker.predict(data), plain + is_b * full["b"] * alpha / (1 + alpha), rtol=1e-9)
        assert ranker.alpha_ == alpha
        assert ranker.violation_ == er.measure(ranker.predict(data), data, "dp@3")["dp@3"]
    assert quick(alpha=1.0).fit(data).group_offset_ is None


def test_a_sweep_trains_three_networks_for_all_strengths(
    data: er.RankingData, trained_on: list[er.RankingData]
) -> None:
    test, alphas = made(30, seed=1), [0.0, 0.3, 4.0]
    settings = {"epochs": 6, "hidden": (8,), "k": 3, "batch_queries": 10, "group_aware": True}
    together = et.train_scores(data, test, "dp", alphas, **settings)
    assert [rows.n_queries for rows in trained_on] == [90, 45, 45]
    for alpha, column in zip(alphas, together.T, strict=True):
        np.testing.assert_array_equal(quick(alpha=alpha, group_aware=True).fit(data).predict(test), column)
    for wrong, message in [
        ({"max_violation": 0.1}, "max_violation=0.1 is for fit"),
        ({"validation_fraction": 0.1}, "is for max_violation, which is not set"),
        ({"group_aware": True, "target": "score"}, "got target='score'"),
    ]:
        with pytest.raises(ConfigError, match=message):
            et.train_scores(data, test, "dp", alphas, **wrong)


def test_a_limit_costs_no_more_networks_where_the_group_is_seen(
    data: er.RankingData, trained_on: list[er.RankingData]
) -> None:
    for limit in (0.05, 0.01):
        trained_on.clear()
        ranker = quick(max_violation=limit, group_aware=True).fit(data)
        assert len(trained_on) == 3
        assert ranker.violation_ == er.measure(ranker.predict(data), data, "dp@3")["dp@3"] <= limit
        assert len(ranker.tried_) > 3
    trained_on.clear()
    quick(max_violation=0.2, group_aware=True, validation_fraction=0.3).fit(data)
    assert [rows.n_queries for rows in trained_on] == [63, 31, 32] or [r.n_queries for r in trained_on] == [63, 32, 31]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quick(max_violation=0.9, group_aware=True).fit(data).alpha_ == 0


def test_a_ranker_that_sees_the_group_asks_for_it(data: er.RankingData) -> None:
    ranker = quick(alpha=2.0, group_aware=True).fit(data)
    labels = np.array(data.group_names, object)[data.group]
    expected = ranker.predict(data)
    np.testing.assert_array_equal(ranker.predict(data.features, sensitive_features=labels), expected)
    np.testing.assert_array_equal(ranker.predict(data.with_group(None), labels), expected)
    for rows in (data.features, data.with_group(None)):
        with pytest.raises(ConfigError, match="group_aware: pass sensitive_features to predict, one label per row"):
            ranker.predict(rows)
    labels[0] = None
    unknown = ranker.predict(data.features, sensitive_features=labels)
    assert unknown[0] == pytest.approx(expected[0] - ranker.group_offset_[data.group[0]])
    np.testing.assert_array_equal(unknown[1:], expected[1:])
    labels[0] = "c"
    with pytest.raises(DataError, match="row 0: group 'c' was not in training"):
        ranker.predict(data.features, sensitive_features=labels)
    only_b = np.full(data.n_rows, "b")
    added = ranker.predict(data.features, only_b) - quick().fit(data).predict(data)
    np.testing.assert_allclose(added, ranker.group_offset_[1], rtol=1e-6)
    assert clone(ranker).get_params() == ranker.get_params()
    assert quick().set_params(group_aware=True, validation_fraction=0.2).validation_fraction == 0.2
    again = ranker.set_params(group_aware=False, alpha=0.0).fit(data)
    np.testing.assert_array_equal(again.predict(data.features), quick().fit(data).predict(data))


def test_groups_are_needed_to_see_them(data: er.RankingData) -> None:
    with pytest.raises(ConfigError, match="alpha=0 and group_aware needs groups"):
        quick(group_aware=True).fit(data.with_group(None))
    with pytest.raises(DataError, match="groups"):
        quick(group_aware=True).fit(data.with_group(np.full(data.n_rows, "a")))
    soft = data.with_membership(np.full((data.n_rows, 2), 0.5), ["a", "b"])
    with pytest.raises(ConfigError, match="groups known by probability"):
        quick(group_aware=True).fit(soft)


def test_one_query_alone_has_the_offsets_of_its_own_scores() -> None:
    data = made(1, length=30)
    ranker = quick(alpha=1.0, group_aware=True, batch_queries=1).fit(data)
    plain = quick(batch_queries=1).fit(data).predict(data)
    full = er.GroupOffset("dp", 3, shrink=False).fit(plain, data).offsets_
    np.testing.assert_allclose(ranker.group_offset_, [full["a"] / 2, full["b"] / 2])


# ------------------------------------------------------------------ model files


def test_a_model_file_keeps_the_offsets(data: er.RankingData, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    ranker = quick(max_violation=0.3, validation_fraction=0.3, group_aware=True).fit(data)
    ranker.save(path)
    again = er.load(path)
    np.testing.assert_array_equal(again.predict(data), ranker.predict(data))
    written_params = ranker.get_params() | {"hidden": [8], "notion": "demographic_parity"}
    assert again.get_params() == written_params
    assert (again.alpha_, again.group_offset_.tolist()) == (ranker.alpha_, ranker.group_offset_.tolist())
    with pytest.raises(ConfigError, match="pass sensitive_features"):
        again.predict(data.features)
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_files_from_before_there_were_offsets_are_loaded(data: er.RankingData, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    ranker = quick().fit(data)
    ranker.save(path)
    content = json.loads(path.read_text())
    assert content.pop("group_offset") is None
    for name in ("group_aware", "validation_fraction"):
        content["parameters"].pop(name)
    path.write_bytes(written(content))
    again = er.load(path)
    np.testing.assert_array_equal(again.predict(data.features), ranker.predict(data))
    assert (again.group_offset_, again.group_aware) == (None, False)


DAMAGE: dict[str, tuple[Any, str]] = {
    "one number": ({"group_offset": [1.0]}, "'group_offset' must hold 2 finite numbers"),
    "texts": ({"group_offset": ["0", "1"]}, "'group_offset' must hold 2 finite numbers"),
    "not a number": ({"group_offset": [float("nan"), 1.0]}, "'group_offset' must hold 2 finite numbers"),
    "true": ({"group_offset": [True, 1.0]}, "'group_offset' must hold 2 finite numbers"),
    "nested": ({"group_offset": [[0.0], [1.0]]}, "'group_offset' must hold 2 finite numbers"),
    "a text": ({"group_offset": "ab"}, "'group_offset' is missing or damaged; got 'ab'"),
    "a number": ({"group_offset": 3}, "'group_offset' is missing or damaged; got 3"),
    "none": ({"group_offset": None}, "'group_offset' is missing or damaged"),
    "other groups": ({"groups": ["a"]}, "'group_offset' must hold 1 finite numbers"),
}


@pytest.mark.parametrize(("change", "message"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_offsets_are_one_clear_line(
    change: dict[str, Any], message: str, data: er.RankingData, tmp_path: Path
) -> None:
    quick(alpha=1.0, group_aware=True, epochs=1).fit(data).save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_bytes(written(content | change))
    with pytest.raises(DataError, match=message) as caught:
        er.load(tmp_path / "model.json")
    assert "\n" not in str(caught.value)
