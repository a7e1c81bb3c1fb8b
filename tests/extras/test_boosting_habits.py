"""What users of LightGBM and XGBoost bring along: a column of query ids, and their libraries' NDCG."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError

pytestmark = pytest.mark.extras

N = 200
RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"a": RANDOM.normal(size=N), "b": RANDOM.normal(size=N), "qid": RANDOM.permutation(np.repeat(np.arange(10), 20))}
)
GRADE = np.clip(np.round(FRAME["a"] + RANDOM.normal(size=N)), 0, 3).to_numpy()
GROUP = RANDOM.choice(["x", "y"], N)


def ranker(library: str, **options: Any) -> Any:
    options = {"n_estimators": 4, "n_jobs": 1, "notion": "dp", "alpha": 0.05, **options}
    if library == "lightgbm":
        return er.lightgbm.FairLGBMRanker(verbose=-1, **options)
    return er.xgboost.FairXGBRanker(**options)


@pytest.mark.filterwarnings("ignore")  # LightGBM's, of its older names
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_query_ids_may_be_a_column(library: str, kind: str) -> None:
    frame = FRAME if kind == "pandas" else pl.from_pandas(FRAME)
    alone = FRAME[["a", "b"]] if kind == "pandas" else frame[["a", "b"]]
    inside = ranker(library).fit(frame, GRADE, sensitive_features=GROUP, eval_set=[(frame, GRADE)])
    apart = ranker(library).fit(
        alone,
        GRADE,
        qid=FRAME["qid"],
        sensitive_features=GROUP,
        eval_set=[(alone, GRADE)],
        eval_qid=[FRAME["qid"]],
    )
    assert inside.feature_names_ == ("a", "b")
    np.testing.assert_array_equal(inside.predict(frame), apart.predict(alone))
    with pytest.raises(ConfigError, match="every eval_set, or none, must have a column 'qid'"):
        ranker(library).fit(frame, GRADE, sensitive_features=GROUP, eval_set=[(frame, GRADE), (alone, GRADE)])


@pytest.mark.filterwarnings("ignore")
def test_exponential_gain_is_that_of_both_libraries() -> None:
    order = np.argsort(FRAME["qid"], kind="stable")
    X, y, qid = FRAME[["a", "b"]].to_numpy()[order], GRADE[order], FRAME["qid"].to_numpy()[order]
    assert (np.maximum.reduceat(y, np.arange(0, N, 20)) > 0).all()  # a query with nothing relevant counts 1 for them
    sets = {"eval_set": [(X, y)], "eval_qid": [qid]}
    light = ranker("lightgbm", alpha=0.0).fit(X, y, qid=qid, **sets, eval_at=[5])
    extreme = ranker("xgboost", alpha=0.0, eval_metric="ndcg@5").fit(X, y, qid=qid, **sets)
    theirs = [light.best_score_, extreme.evals_result()]
    numbers = [float(np.ravel(next(iter(part.values()))["ndcg@5"])[-1]) for part in theirs]
    for model, number in zip((light, extreme), numbers, strict=True):
        columns: dict[str, Any] = {"relevance": y, "qid": qid, "measures": "ndcg@5", "ties": "input"}
        assert er.measure(model.predict(X), **columns, gain="exponential")["ndcg@5"] == pytest.approx(number, abs=1e-6)
        assert abs(er.measure(model.predict(X), **columns)["ndcg@5"] - number) > 1e-3


MODES: list[dict[str, Any]] = [{"alpha": 0.0}, {"alpha": 1.0}, {"group_aware": True}, {"max_violation": 0.5}]
REFUSED = [
    ("xgboost", {"objective": "rank:map"}, GRADE, "rank:map needs relevance 0 or 1; got 2"),
    ("xgboost", {}, GRADE + 0.5, "rank:ndcg needs relevance in whole numbers from 0 to 31; got 0.5"),
    ("xgboost", {"lambdarank_pair_method": "topk"}, GRADE * 16, "rank:ndcg needs relevance .* got 32"),
    ("lightgbm", {}, GRADE + 0.5, "lambdarank needs relevance in whole numbers from 0 to 30; got 0.5"),
    ("lightgbm", {"label_gain": [0, 1]}, GRADE, "lambdarank needs relevance in whole numbers from 0 to 1; got 2"),
    ("lightgbm", {"objective": "rank_xendcg"}, GRADE + 0.5, "LightGBM's NDCG needs relevance in whole numbers"),
    ("lightgbm", {"objective": "squared"}, GRADE * 25, "LightGBM's NDCG needs relevance in whole numbers"),
]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize(("library", "options", "grade", "message"), REFUSED)
def test_labels_that_a_loss_does_not_take_are_refused_in_one_line(
    library: str, options: dict[str, Any], grade: Any, message: str, mode: dict[str, Any]
) -> None:
    with pytest.raises(DataError, match=message) as refused:
        ranker(library, **options, **mode).fit(FRAME[["a", "b"]], grade, qid=FRAME["qid"], sensitive_features=GROUP)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize(
    ("library", "options", "grade", "message"),
    [
        ("xgboost", {"objective": "rank:map"}, GRADE, "XGBoost's MAP needs relevance 0 or 1"),
        ("xgboost", {"objective": "rank:pairwise"}, GRADE + 0.5, "XGBoost's NDCG needs relevance in whole numbers"),
        ("xgboost", {}, GRADE * 16, "XGBoost's NDCG needs relevance of at most 31"),
        ("lightgbm", {}, GRADE - 1, "LightGBM's NDCG needs relevance in whole numbers"),
        ("lightgbm", {}, GRADE * 16, "LightGBM's NDCG needs relevance in whole numbers"),
    ],
)
def test_labels_that_a_metric_does_not_take_are_refused_in_one_line(
    library: str, options: dict[str, Any], grade: Any, message: str, alpha: float
) -> None:
    X, qid = FRAME[["a", "b"]], FRAME["qid"]
    with pytest.raises(DataError, match=message) as refused:
        ranker(library, alpha=alpha, **options).fit(
            X, (GRADE > 1) * 1.0, qid=qid, sensitive_features=GROUP, eval_set=[(X, grade)], eval_qid=[qid]
        )
    assert "\n" not in str(refused.value)


def test_labels_that_no_part_refuses_are_taken() -> None:
    rows = {"qid": FRAME["qid"], "sensitive_features": GROUP}
    for options in (
        {"lambdarank_pair_method": "mean", "alpha": 0.0},
        {"objective": "squared"},
        {"ndcg_exp_gain": False},
    ):
        grade = GRADE if "alpha" in options else GRADE + 0.5
        ranker("xgboost", **options).fit(FRAME[["a", "b"]], grade, **rows)
    for objective in ("squared", "rank_xendcg"):
        ranker("lightgbm", objective=objective, metric="None").fit(FRAME[["a", "b"]], GRADE + 0.5, **rows)
