"""What users of LightGBM and XGBoost bring along: a column of query ids, and their libraries' NDCG."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import evenrank as er
from evenrank.errors import ConfigError

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
