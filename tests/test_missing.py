"""Missing values and categories: read from every table, refused where only numbers will do, filled on request."""

from __future__ import annotations

import warnings
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError, DataWarning

N = 240
RANDOM = np.random.default_rng(0)
COLOURS = RANDOM.choice(["red", "green", "blue"], N).tolist()
COLOURS[5] = None
PRICE = [None if RANDOM.random() < 0.2 else float(value) for value in RANDOM.normal(size=N)]
RELEVANCE = [
    int((colour == "green") + (price or 0) + RANDOM.normal() > 0.5)
    for colour, price in zip(COLOURS, PRICE, strict=True)
]
COLUMNS: dict[str, list[Any]] = {
    "qid": [row // 8 for row in range(N)],
    "relevance": RELEVANCE,
    "group": RANDOM.choice(["a", "b"], N).tolist(),
    "colour": COLOURS,
    "price": PRICE,
    "size": RANDOM.normal(size=N).tolist(),
}


def frame(**changes: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({**COLUMNS, **changes})


def categorical(**changes: list[Any]) -> pl.DataFrame:
    return frame(**changes).with_columns(pl.col("colour").cast(pl.Categorical))


@pytest.fixture(scope="module")
def data() -> er.RankingData:
    return er.RankingData.from_frame(categorical())


def plain_matrix() -> list[list[float]]:
    """The features by hand: numbers of sorted labels, NaN where nothing is written."""
    number = {"blue": 0.0, "green": 1.0, "red": 2.0, None: np.nan}
    return [
        [number[colour], np.nan if price is None else price, size]
        for colour, price, size in zip(COLOURS, PRICE, COLUMNS["size"], strict=True)
    ]


# ---------------------------------------------------------------------- reading


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet", "category.parquet"])
def test_every_table_gives_the_same_features(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows.{suffix}"
    if suffix == "category.parquet":
        categorical().write_parquet(path)
        options: dict[str, Any] = {}
    else:
        options = {"categorical": ["colour"]}
        write = {"csv": frame().write_csv, "jsonl": frame().write_ndjson, "parquet": frame().write_parquet}
        write.get(suffix, lambda name: frame().write_csv(name, separator="\t"))(path)
    rows = er.read(path, **options)
    assert rows.feature_names == ("colour", "price", "size")
    assert rows.categories == {"colour": ("blue", "green", "red")}
    assert rows.missing_features == ("colour", "price")
    np.testing.assert_allclose(rows.features, plain_matrix(), rtol=1e-12)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_the_type_of_a_frames_column_makes_it_a_category(kind: str) -> None:
    table = categorical()
    native = {"pandas": table.to_pandas, "polars": lambda: table, "pyarrow": table.to_arrow}[kind]()
    rows = er.RankingData.from_frame(native)
    assert rows.categories == {"colour": ("blue", "green", "red")}
    np.testing.assert_array_equal(rows.features, plain_matrix())
    assert er.RankingData.from_frame(native, ignore=["colour"]).categories == {}


def test_text_stays_out_unless_it_is_named() -> None:
    with pytest.warns(DataWarning, match="column 'colour' is not numeric and is left out .* categorical="):
        rows = er.RankingData.from_frame(frame())
    assert rows.feature_names == ("price", "size")
    rows = er.RankingData.from_frame(frame(), features=["size"], categorical=["colour"])
    assert rows.feature_names == ("size", "colour")
    assert rows.categories == {"colour": ("blue", "green", "red")}


def test_numbers_named_as_categories_are_sorted_as_numbers(tmp_path: Path) -> None:
    sizes = [[10, 9, 100][row % 3] for row in range(N)]
    path = tmp_path / "rows.csv"
    frame(size=sizes).drop("colour", "price").write_csv(path)
    rows = er.read(path, categorical=["size"])
    assert rows.categories == {"size": (9, 10, 100)}
    assert rows.features[:3, 0].tolist() == [1, 0, 2]


def test_letor_reads_nan_and_categories(tmp_path: Path) -> None:
    path = tmp_path / "rows.letor"
    path.write_text("1 qid:1 1:7 2:nan\n0 qid:1 1:3 2:0.5\n0 qid:1 2:NaN\n")
    rows = er.read(path, categorical=["1"])
    assert rows.categories == {"1": (0, 3, 7)}
    assert rows.features[:, 0].tolist() == [2, 1, 0]
    np.testing.assert_array_equal(rows.features[:, 1], [np.nan, 0.5, np.nan])
    assert rows.missing_features == ("2",)


def test_a_written_value_that_is_no_number_is_still_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("qid,relevance,group,x\n1,1,a,2\n1,0,b,n/a\n1,0,b,3\n")
    with pytest.raises(DataError, match=r"rows\.csv:3: feature 'x' must be a finite number; got 'n/a'"):
        er.read(path)


@pytest.mark.parametrize(
    ("X", "categories", "message"),
    [
        ([[0.0], [2.0]], {"x0": ["a", "b"]}, r"row 1: feature 'x0' must hold numbers of its 2 categories.*; got 2"),
        ([[0.0], [0.5]], {"x0": ["a", "b"]}, r"row 1: .*; got 0\.5"),
        ([[0.0], [-1.0]], {"x0": ["a", "b"]}, r"row 1: .*; got -1"),
        ([[0.0], [1.0]], {"y": ["a", "b"]}, r"categories must be of features; 'y' is not one of 'x0'"),
        ([[0.0], [1.0]], {"x0": ["a", "a"]}, r"the categories of 'x0' must differ"),
    ],
)
def test_categories_of_arrays_are_checked(X: Any, categories: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        er.RankingData.from_arrays(X, [0, 1], None, [1, 1], categories=categories)


def test_measures_and_takes_live_with_gaps(data: er.RankingData) -> None:
    scores = np.arange(N, dtype=float)
    complete = data.with_group([data.group_names[code] for code in data.to_caller(data.group)])
    assert er.measure(scores, data, ["ndcg@3", "dp@3"]) == er.measure(scores, complete, ["ndcg@3", "dp@3"])
    part = data.take([2, 0])
    assert part.categories == data.categories
    np.testing.assert_array_equal(part.features[:8], np.array(plain_matrix())[16:24])
    assert er.audit(scores, data, ks=[3]).verdict.keys() == {"pooled", "within_query"}


# ---------------------------------------------------------------------- models of numbers


def models(**options: Any) -> list[Any]:
    return [er.FairLinearRanker("dp", alpha=0.1, **options), er.DELTR(gamma=0.1, **options)]


@pytest.mark.parametrize("number", [0, 1])
def test_models_of_numbers_say_what_to_do(data: er.RankingData, number: int) -> None:
    ranker = models()[number]
    with pytest.raises(
        DataError, match=r"missing values \(NaN\) in 'colour', 'price', first in row 5, and categories in 'colour'\."
    ) as told:
        ranker.fit(data)
    assert "impute='median'" in str(told.value)
    assert "LightGBM" in str(told.value)
    table = categorical().to_pandas()
    fitted = {"qid": table["qid"], "sensitive_features": table["group"]}
    with pytest.raises(DataError, match="categories in 'colour'"):
        ranker.fit(table[["colour", "size"]], table["relevance"], **fitted)
    with pytest.raises(DataError, match=r"missing values \(NaN\) in 'price'"):
        ranker.fit(table[["price", "size"]], table["relevance"], **fitted)
    ranker.fit(table[["size"]], table["relevance"], **fitted)
    with pytest.raises(DataError, match=r"missing values \(NaN\) in 'size'"):
        ranker.predict(pd.DataFrame({"size": [1.0, np.nan]}))
    assert ranker.predict(data).shape == (N,)  # features it does not use may have gaps


def test_moments_and_paths_are_of_numbers(data: er.RankingData) -> None:
    for make in (er.Moments.of, er.fairness_path):
        with pytest.raises(DataError, match=r"a linear ranker takes numbers only; the data has missing values \(NaN\)"):
            make(data)


@pytest.mark.parametrize("rule", ["mean", "median"])
@pytest.mark.parametrize("number", [0, 1])
def test_imputed_scores_are_those_of_the_matrix_filled_by_hand(data: er.RankingData, number: int, rule: str) -> None:
    train, test = data.take(np.arange(30) < 20), data.take(np.arange(30) >= 20)
    typical = {"mean": mean, "median": median}[rule]
    fill = typical([price for price in PRICE[:160] if price is not None])

    def by_hand(rows: slice) -> list[list[float]]:
        return [
            [*(float(colour == label) for label in ("blue", "green", "red")), fill if price is None else price, size]
            for colour, price, size in zip(COLOURS[rows], PRICE[rows], COLUMNS["size"][rows], strict=True)
        ]

    plain = models()[number].fit(
        by_hand(slice(160)), RELEVANCE[:160], qid=COLUMNS["qid"][:160], sensitive_features=COLUMNS["group"][:160]
    )
    filled = models(impute=rule)[number].fit(train)
    assert filled.feature_names_ == ("colour=blue", "colour=green", "colour=red", "price", "size")
    assert list(filled.feature_names_in_) == ["colour", "price", "size"]
    np.testing.assert_allclose(filled.predict(test), plain.predict(by_hand(slice(160, N))), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("number", [0, 1])
def test_the_file_keeps_what_was_learned(data: er.RankingData, number: int, tmp_path: Path) -> None:
    ranker = models(impute="median")[number].fit(data)
    ranker.save(tmp_path / "model.json")
    again = er.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(data), ranker.predict(data))
    table = categorical()[["size", "colour", "price"]]
    frames = [table.to_pandas(), table]
    for given in frames:
        np.testing.assert_array_equal(again.predict(given), ranker.predict(data))


def test_a_damaged_imputer_is_refused(data: er.RankingData, tmp_path: Path) -> None:
    from evenrank.methods.load import _from_content
    from evenrank.rankers.content import read_content

    er.FairLinearRanker("dp", impute="mean").fit(data).save(tmp_path / "model.json")
    content = read_content(tmp_path / "model.json")
    for damage in (
        {"imputer": 3},
        {"imputer": content["imputer"] | {"fill": [1.0]}},
        {"imputer": content["imputer"] | {"fill": [0.0, float("nan"), 0.0]}},
        {"imputer": content["imputer"] | {"features": ["colour", "price", "weight"]}},
        {"imputer": content["imputer"] | {"categories": {"colour": ["blue", "green"]}}},
        {"imputer": content["imputer"] | {"categories": {"colour": ["blue", "blue", "red"]}}},
        {"imputer": content["imputer"] | {"categories": {"colour": "blue"}}},
        {"imputer": content["imputer"] | {"categories": [1]}},
    ):
        with pytest.raises(DataError, match=r"^model\.json: "):
            _from_content(content | damage, "model.json")


def test_new_and_missing_categories_are_in_no_column(data: er.RankingData) -> None:
    ranker = er.FairLinearRanker("dp", alpha=0.0, impute="mean").fit(data)
    weights = dict(zip(ranker.feature_names_, ranker.coef_, strict=True))
    rows = pl.DataFrame({"colour": ["violet", None, "green"], "price": [0.5] * 3, "size": [2.0] * 3})
    scores = ranker.predict(rows.with_columns(pl.col("colour").cast(pl.Categorical)))
    base = ranker.intercept_ + 0.5 * weights["price"] + 2 * weights["size"]
    assert scores == pytest.approx([base, base, base + weights["colour=green"]])


def test_labels_written_as_text_and_as_numbers_are_the_same(tmp_path: Path) -> None:
    """1 in a file of numbers only is '1' in a file that also has text."""
    mixed = ["1" if row % 2 else "other" for row in range(N)]
    rows = er.RankingData.from_frame(frame(colour=mixed), categorical=["colour"], ignore=["price"])
    ranker = er.FairLinearRanker("dp", alpha=0.0, impute="mean").fit(rows)
    only = er.RankingData.from_frame(frame(colour=[1] * N), categorical=["colour"], ignore=["price"])
    assert ranker.predict(only)[1::2] == pytest.approx(ranker.predict(rows)[1::2])


def test_other_kinds_of_a_feature_are_refused(data: er.RankingData) -> None:
    ranker = er.FairLinearRanker("dp", alpha=0.0, impute="mean").fit(data)
    numbers = er.RankingData.from_frame(frame(colour=[1.0] * N))
    with pytest.raises(DataError, match="feature 'colour' held categories in training and holds numbers here"):
        ranker.predict(numbers)
    ranker.fit(numbers)
    with pytest.raises(DataError, match="feature 'colour' held numbers in training and holds categories here"):
        ranker.predict(data)


def test_impute_is_mean_or_median(data: er.RankingData) -> None:
    with pytest.raises(ConfigError, match="impute must be one of mean, median; got 'zero'"):
        er.FairLinearRanker(impute="zero").fit(data)


def test_a_feature_that_training_never_saw_is_filled_with_zero() -> None:
    X = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, np.nan]])
    ranker = er.FairLinearRanker(alpha=0.0, impute="mean").fit(X, [0, 1, 1])
    assert ranker.predict([[2.0, 5.0], [np.nan, 0.0]])[1] == pytest.approx(ranker.predict([[2.0, 0.0]])[0])


def test_memmaps_are_filled_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.array(plain_matrix())[:, 1:]
    mapped = np.memmap(tmp_path / "x.bin", np.float64, "w+", shape=matrix.shape)
    mapped[:] = matrix
    arguments = (COLUMNS["relevance"], COLUMNS["group"], COLUMNS["qid"])
    whole = er.FairLinearRanker("dp", 0.1, impute="mean").fit(er.RankingData.from_arrays(matrix, *arguments))
    monkeypatch.setattr("evenrank.row_checks.BLOCK_BYTES", 8 * 2 * 7)
    rows = er.RankingData.from_arrays(mapped, *arguments)
    ranker = er.FairLinearRanker("dp", 0.1, impute="mean").fit(rows)
    np.testing.assert_allclose(ranker.predict(rows), whole.predict(matrix), rtol=1e-9)


# ---------------------------------------------------------------------- sweeps


def test_a_sweep_says_which_methods_cannot(data: er.RankingData) -> None:
    with pytest.raises(DataError, match=r"'amortized', 'fastar' cannot take .*; lightgbm, xgboost can\. Pass impute="):
        er.sweep(data, ["amortized", "fastar"], ["dp"], [0.1], [3])


@pytest.mark.parametrize("scale", ["train", "dataset"])
def test_a_sweep_fills_by_the_training_rows_of_each_split(data: er.RankingData, scale: str) -> None:
    folds = np.arange(30) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = er.sweep(data, ["amortized"], ["dp"], [0.1], [3], folds, impute="mean", scale=scale)
    for fold in (0, 1):
        train, test = data.take(folds != fold), data.take(folds == fold)
        ranker = er.FairLinearRanker("dp", alpha=0.1, impute="mean", scale=scale).fit(train)
        expected = er.measure(ranker.predict(test), test, ["ndcg@3", "dp@3"])
        trial = next(trial for trial in result if trial.fold == fold and trial.strength == 0.1)
        assert trial.values["ndcg@3"] == pytest.approx(expected["ndcg@3"])
        assert trial.values["demographic_parity@3"] == pytest.approx(expected["dp@3"])


def test_rerankers_and_groupings_share_filled_rows(data: er.RankingData, tmp_path: Path) -> None:
    groupings = {"one": data, "two": data.with_group(["x" if row % 3 else "y" for row in range(N)])}
    options: dict[str, Any] = {"impute": "median", "out": tmp_path / "run", "folds": 3}
    result = er.sweep(groupings, ["amortized", "offset", "deltr"], ["dp"], [0.5], [3], **options)
    again = er.sweep(groupings, ["amortized", "offset", "deltr"], ["dp"], [0.5], [3], **options)
    assert [trial.values for trial in result] == [trial.values for trial in again]
    assert {(trial.method, trial.grouping) for trial in result} >= {("offset", "two"), ("deltr", "one")}


def test_a_bench_fills_too(data: er.RankingData) -> None:
    with pytest.raises(DataError, match="'amortized' cannot take"):
        er.bench(data, ["fastar"], ["dp"], ks=[3], folds=3, seeds=1)
    result = er.bench(data, ["amortized"], ["dp"], ks=[3], folds=3, seeds=1, impute="mean")
    assert {standing.method for standing in result.standings()} == {"amortized", "noise_floor"}


# ---------------------------------------------------------------------- what errors advise


def test_a_path_and_a_trained_model_advise_what_they_can_do(data: er.RankingData) -> None:
    with pytest.raises(DataError, match=r"numbers only.*Fill them before.*or use FairLinearRanker or er\.sweep"):
        er.fairness_path(data, "dp")
    rows = er.RankingData.from_frame(frame(price=[1.0] * N), ignore=["colour"])
    model = er.FairLinearRanker("dp", 0).fit(rows)
    with pytest.raises(
        DataError, match="The model was trained without a rule for them: train it again with impute='me"
    ):
        model.predict(er.RankingData.from_frame(frame(), ignore=["colour"]))


@pytest.mark.parametrize("as_kind", [lambda table: table, lambda table: table.to_pandas()])
def test_text_among_features_is_named_by_its_column(as_kind: Any) -> None:
    X = as_kind(pl.DataFrame({"price": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]}))
    for model in (er.FairLinearRanker("dp", 0), er.DELTR(0), er.FairLinearRanker("dp", 0, impute="mean")):
        with pytest.raises(
            DataError, match=r"row 0: column 'colour' must be numeric; got 'red'. Leave it out, or give"
        ):
            model.fit(X, [1, 0, 1])
    with pytest.raises(DataError, match="X must be numeric: could not convert string to float: 'red'"):
        er.FairLinearRanker("dp", 0).fit(np.array([[1.0, "red"], [2.0, "blue"]], object), [1, 0])


def test_a_column_cannot_be_a_category_and_ignored() -> None:
    with pytest.raises(ConfigError, match="column 'colour' is in categorical= and in ignore="):
        er.RankingData.from_frame(frame(), categorical=["colour"], ignore=["colour"])
