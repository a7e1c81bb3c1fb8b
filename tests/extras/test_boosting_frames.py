"""Frames, sparse matrices and weights as users bring them to the boosted rankers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import evenrank as er
from evenrank.errors import ConfigError, DataError

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore")]

N, QUERIES = 240, 12
RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame(RANDOM.normal(size=(N, 3)), columns=["a", "b", "c"])
GRADE = np.clip(np.round(FRAME["a"] + RANDOM.normal(size=N)), 0, 3).to_numpy()
QID = np.repeat(np.arange(QUERIES), N // QUERIES)
GROUP = RANDOM.choice(["x", "y"], N)
COLOURED = FRAME.assign(colour=pd.Categorical(np.where(GRADE > 1, "red", RANDOM.choice(["blue", "green"], N))))
ROWS: dict[str, Any] = {"qid": QID, "sensitive_features": GROUP}
KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pl.from_pandas(frame).to_arrow(),
}
LIBRARIES = ["lightgbm", "xgboost"]


def ranker(library: str, **options: Any) -> Any:
    options = {"n_estimators": 4, "n_jobs": 1, "notion": "dp", "alpha": 0.5, **options}
    if library == "lightgbm":
        return er.lightgbm.FairLGBMRanker(verbose=-1, min_child_samples=5, **options)
    return er.xgboost.FairXGBRanker(**options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_are_found_by_name_in_any_order(library: str, kind: str, tmp_path: Any) -> None:
    as_kind = KINDS[kind]
    trained = ranker(library).fit(as_kind(FRAME), GRADE, **ROWS)
    trained.save(tmp_path / "model.json")
    expected = ranker(library).fit(FRAME.to_numpy(), GRADE, **ROWS).predict(FRAME.to_numpy())
    assert trained.feature_names_ == ("a", "b", "c")
    for model in (trained, er.load(tmp_path / "model.json")):
        np.testing.assert_array_equal(model.predict(as_kind(FRAME[["c", "a", "b"]])), expected)
        with pytest.raises(DataError, match=r"trained on 3 features \('a', 'b', 'c'\); the data lacks 'b'"):
            model.predict(as_kind(FRAME.rename(columns={"b": "other"})))


@pytest.mark.parametrize("library", LIBRARIES)
def test_query_ids_may_be_a_column_of_an_arrow_table(library: str) -> None:
    table = pl.from_pandas(FRAME.assign(qid=QID)).to_arrow()
    inside = ranker(library).fit(table, GRADE, sensitive_features=GROUP)
    np.testing.assert_array_equal(inside.predict(table), ranker(library).fit(FRAME, GRADE, **ROWS).predict(FRAME))


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_categories_of_other_frames_do_not_end_the_process(kind: str) -> None:
    """LightGBM 4.7 aborts over an Arrow dictionary."""
    expected = ranker("lightgbm").fit(COLOURED, GRADE, **ROWS).predict(COLOURED)
    frame = KINDS[kind](COLOURED)
    model = ranker("lightgbm").fit(frame, GRADE, **ROWS, eval_set=[(frame, GRADE)], eval_qid=[QID])
    np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_categories_of_a_frame_are_known_by_their_labels_everywhere(library: str, kind: str, tmp_path: Any) -> None:
    """Other rows have other numbers for the same categories, and a category that training had not is missing."""
    as_kind = KINDS[kind]
    colours = ["green", "red", "blue"]  # the numbers of training are not those of sorted labels
    trained = ranker(library).fit(
        as_kind(COLOURED.assign(colour=COLOURED.colour.cat.set_categories(colours))), GRADE, **ROWS
    )
    trained.save(tmp_path / "model.json")
    expected = trained.predict(COLOURED)
    assert len(np.unique(expected)) > 1
    new = COLOURED.assign(
        colour=pd.Categorical(np.where(COLOURED.colour == "red", "violet", COLOURED.colour.astype(str)))
    )
    lacking = COLOURED.assign(colour=COLOURED.colour.cat.remove_categories(["red"]))
    of_lacking = trained.predict(lacking)
    assert (of_lacking != expected).any()
    COLOURED.assign(qid=QID).to_csv(tmp_path / "rows.csv", index=False)
    rows = er.RankingData.from_frame(COLOURED.assign(qid=QID), relevance=None, group=None)
    read = er.read(tmp_path / "rows.csv", relevance=None, group=None, categorical=["colour"])
    for model in (trained, er.load(tmp_path / "model.json")):
        assert set(model.categories_["colour"]) == set(colours)
        for X in (as_kind(COLOURED), rows, read):
            np.testing.assert_array_equal(model.predict(X), expected)
        for X in (as_kind(new), as_kind(lacking)):
            np.testing.assert_array_equal(model.predict(X), of_lacking)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_with_categories_trains_as_its_rows_do(library: str) -> None:
    rows = er.RankingData.from_frame(COLOURED.assign(qid=QID, relevance=GRADE, group=GROUP))
    expected = ranker(library).fit(rows).predict(rows)
    np.testing.assert_array_equal(ranker(library).fit(COLOURED, GRADE, **ROWS).predict(COLOURED), expected)


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_evaluation_set_may_have_new_categories(library: str) -> None:
    held = COLOURED.assign(colour=COLOURED.colour.cat.add_categories(["amber"]).fillna("amber"))
    held.loc[:9, "colour"] = "amber"
    lacking = held.assign(colour=held.colour.cat.remove_categories(["amber"]))
    sets = {
        "eval_set": [(held, GRADE), (lacking, GRADE)],
        "eval_qid": [QID] * 2,
        "eval_sensitive_features": [GROUP] * 2,
    }
    model = ranker(library).fit(COLOURED, GRADE, **ROWS, **sets)
    history = model.evals_result_ if library == "lightgbm" else model.evals_result()
    of_new, of_lacking = history.values()
    assert of_new == of_lacking


@pytest.mark.parametrize("training", [*KINDS, "data"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_an_evaluation_set_is_the_same_in_every_form(library: str, training: str) -> None:
    """Its columns stand in another order, and it has other numbers for the categories, one of which is new."""
    train = COLOURED.assign(whole=np.arange(N) % 7)
    colours = np.where(train.colour == "blue", "amber", train.colour.astype(str))
    held = train.assign(colour=pd.Categorical(colours, ["red", "amber", "green"]))[["colour", "whole", "c", "a", "b"]]
    named = {"qid": QID, "relevance": GRADE, "group": GROUP}
    data = er.RankingData.from_frame(held.assign(**named))
    rows = ROWS | {"y": GRADE} if training in KINDS else {}
    X = KINDS[training](train) if rows else er.RankingData.from_frame(train.assign(**named))
    pairs = [(as_kind(held), GRADE) for as_kind in KINDS.values()]
    groups = [GROUP] * 3
    of_pairs = ranker(library).fit(X, **rows, eval_set=pairs, eval_qid=[QID] * 3, eval_sensitive_features=groups)
    of_data = ranker(library).fit(X, **rows, eval_set=[data])
    of_each = [
        result
        for model in (of_pairs, of_data)
        for result in (model.evals_result_ if library == "lightgbm" else model.evals_result()).values()
    ]
    assert len(of_each) == 4
    assert of_each[1:] == of_each[:-1]
    expected = er.measure(np.asarray(of_data.predict(held), np.float64), data, ["dp@5"])["dp@5"]
    assert of_each[0]["dp@5"][-1] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_that_are_called_by_numbers_and_empty_categories(library: str) -> None:
    table = COLOURED.assign(colour=COLOURED.colour.cat.rename_categories({"blue": ""}))
    table.columns = [10, 11, 12, 13]
    missing = table.copy()
    missing[13] = table[13].cat.remove_categories([""])
    model = ranker(library).fit(table, GRADE, **ROWS)
    scores = model.predict(missing)
    np.testing.assert_array_equal(model._raw_scores(missing), scores)
    for X in (table, table[[13, 12, 10, 11]]):
        np.testing.assert_array_equal(model.predict(X), scores)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_takes_the_places_of_features_without_names(library: str) -> None:
    colour = COLOURED.colour.cat
    X, categories = np.column_stack([FRAME, colour.codes]), {"x3": list(colour.categories)}
    data = er.RankingData.from_arrays(X, GRADE, GROUP, QID, categories=categories)
    model = ranker(library).fit(data, eval_set=[(COLOURED, GRADE)], eval_qid=[QID])
    np.testing.assert_array_equal(model.predict(COLOURED), model.predict(data))
    with pytest.raises(DataError, match="trained on 4 features; the data has 3"):
        model.predict(COLOURED[["a", "b", "colour"]])


def test_xgboost_says_in_a_line_which_category_is_new() -> None:
    model = ranker("xgboost", enable_categorical=True).fit(COLOURED, GRADE, **ROWS)
    model.categories_ = {}  # a file that an earlier version wrote does not have them
    with pytest.raises(DataError, match=r"`violet`\. Make it missing") as caught:
        model.predict(COLOURED.assign(colour=pd.Categorical(["violet"] * N)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", [scipy.sparse.coo_matrix, scipy.sparse.bsr_matrix])
@pytest.mark.parametrize("library", LIBRARIES)
def test_sparse_matrices_of_any_form(library: str, form: Any) -> None:
    dense, sparse = FRAME.to_numpy(), form(FRAME.to_numpy())
    expected = ranker(library).fit(dense, GRADE, **ROWS).predict(dense)
    np.testing.assert_array_equal(ranker(library).fit(sparse, GRADE, **ROWS).predict(sparse), expected)


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_without_features_and_groups_of_other_rows(library: str) -> None:
    with pytest.raises(DataError, match="at least one feature; the data has none"):
        ranker(library).fit(np.zeros((N, 0)), GRADE, **ROWS)
    model = ranker(library, group_aware=True).fit(FRAME, GRADE, **ROWS)
    with pytest.raises(DataError, match="one value for each of the 240 rows; got shape"):
        model.predict(FRAME, sensitive_features=GROUP[:3])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(QUERIES), "every weight is 0"),
        (np.full(QUERIES, -1.0), "query 0: sample_weight must be a finite number ≥ 0; got -1"),
        (np.full(QUERIES, np.nan), "query 0: sample_weight must be a finite number ≥ 0; got nan"),
        (np.ones(N), r"each of the 12 queries.*got shape \(240,\)"),
    ],
)
def test_weights_of_queries_are_checked(weight: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        ranker("xgboost").fit(FRAME, GRADE, **ROWS, sample_weight=weight)


def test_bagging_by_query_is_refused_where_it_would_grow_no_tree() -> None:
    options = {"bagging_by_query": True, "bagging_fraction": 0.5, "bagging_freq": 1}
    with pytest.raises(ConfigError, match="bagging_by_query grows no trees"):
        ranker("lightgbm", **options).fit(FRAME, GRADE, **ROWS)
    assert np.ptp(ranker("lightgbm", alpha=0.0, **options).fit(FRAME, GRADE, **ROWS).predict(FRAME)) > 0


def test_grades_as_each_library_has_them() -> None:
    large = np.where(GRADE > 1, 31, 0)
    ours = ranker("xgboost", alpha=1e-12).fit(FRAME, large, **ROWS).predict(FRAME)
    native = ranker("xgboost", alpha=0.0).fit(FRAME, large, **ROWS).predict(FRAME)
    np.testing.assert_allclose(ours, native, atol=1e-5)
    with pytest.raises(
        DataError, match=r"rank:ndcg needs relevance in whole numbers from 0 to 31; got 32.*ndcg_exp_gain"
    ):
        ranker("xgboost").fit(FRAME, np.where(GRADE > 1, 32, 0), **ROWS)
    with pytest.raises(DataError, match=r"from 0 to 30; got 31.*label_gain"):
        ranker("lightgbm").fit(FRAME, large, **ROWS)
    with pytest.raises(DataError, match="rank:map needs relevance 0 or 1; got"):
        ranker("xgboost", objective="rank:map").fit(FRAME, GRADE, **ROWS)


@pytest.mark.parametrize("library", LIBRARIES)
def test_limits_without_effect_are_refused(library: str) -> None:
    sets = {"eval_set": [(FRAME, GRADE)], "eval_qid": [QID]}
    with pytest.raises(ConfigError, match=r"validation_fraction=0.3 is for max_violation"):
        ranker(library, validation_fraction=0.3).fit(FRAME, GRADE, **ROWS)
    with pytest.raises(ConfigError, match=r"validation_fraction must be a finite number > 0; got 'x'"):
        ranker(library, validation_fraction="x", max_violation=0.1).fit(FRAME, GRADE, **ROWS)
    with pytest.raises(ConfigError, match=r"eval_max_violation=0.1 needs eval_sensitive_features"):
        ranker(library).fit(FRAME, GRADE, **ROWS, **sets, eval_max_violation=0.1)
    with pytest.raises(ConfigError, match=r"eval_max_violation must be a finite number ≥ 0; got -1"):
        ranker(library).fit(FRAME, GRADE, **ROWS, **sets, eval_sensitive_features=[GROUP], eval_max_violation=-1)
    few = ranker(library, max_violation=0.1, validation_fraction=1e-9).fit(FRAME, GRADE, **ROWS)
    assert few.tried_  # two queries are kept aside, the fewest of an interval


def test_a_strange_objective_is_refused_before_anything_is_trained() -> None:
    model = ranker("lightgbm", objective="binary", max_violation=1.0)
    with pytest.raises(ConfigError, match="objective must be one of lambdarank, rank_xendcg"):
        model.fit(FRAME, GRADE, **ROWS)
    assert not hasattr(model, "alpha_")


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_same_rows_by_two_attributes(library: str) -> None:
    """Libraries tell a metric the labels only, which are those of both sets here."""
    other = np.where(RANDOM.integers(0, 2, N) == QID % 2, "p", "q")
    model = ranker(library).fit(
        FRAME, GRADE, **ROWS, eval_set=[(FRAME, GRADE)] * 2, eval_qid=[QID] * 2, eval_sensitive_features=[GROUP, other]
    )
    history = model.evals_result_ if library == "lightgbm" else model.evals_result()
    scores = np.asarray(model.predict(FRAME), np.float64)
    for result, group in zip(history.values(), (GROUP, other), strict=True):
        expected = er.measure(scores, relevance=GRADE, group=group, qid=QID, measures=["dp@5"])["dp@5"]
        assert result["dp@5"][-1] == pytest.approx(expected, abs=1e-5)


def test_xgboost_is_given_query_ids_in_one_way() -> None:
    both = FRAME.assign(qid=QID)
    with pytest.raises(
        ConfigError, match=r"X has a column 'qid', which XGBoost takes for the query ids, and qid= is giv"
    ):
        ranker("xgboost").fit(both, GRADE, **ROWS)
    with pytest.raises(ConfigError, match=r"X has a column 'qid'.* and group= is given too"):
        ranker("xgboost").fit(both, GRADE, group=[N], sensitive_features=GROUP)
    with pytest.raises(ConfigError, match=r"an eval_set has a column 'qid'.* and eval_qid= is given too"):
        ranker("xgboost").fit(FRAME, GRADE, **ROWS, eval_set=[(both, GRADE)], eval_qid=[QID])


@pytest.mark.parametrize("objective", ["lambda", "binary:logistic", None])
def test_an_objective_that_xgboost_does_not_rank_by_lists_those_that_work(objective: Any) -> None:
    with pytest.raises(
        ConfigError, match="objective must be one of rank:ndcg, lambdarank, rank:pairwise, rank:map, squ"
    ):
        ranker("xgboost", objective=objective)
