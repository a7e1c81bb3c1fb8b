"""Write the bundled German Credit lists as files, as an engineer or an auditor would have them.

    python tools/example_rows.py log log.csv          logged rankings: qid, item, score, relevance, age, sex
    python tools/example_rows.py rows rows.parquet    rows to train on: qid, item, relevance, group and features

The documentation's examples, the live demo and the pictures run on these.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

import evenrank as er


def labels(data: er.RankingData) -> np.ndarray:
    """Each row's group by name."""
    return np.array(data.group_names, dtype=object)[data.group]


def log(lists: int = 500) -> pl.DataFrame:
    """Rankings as a service logs them: scores of a ranker that was trained for quality alone, on other applicants."""
    data = er.datasets.german_credit("age", lists=lists)
    folds = np.asarray(er.datasets.german_credit_folds(data))
    scores = np.zeros(data.n_rows)
    for fold in np.unique(folds):
        ranker = er.FairLinearRanker(alpha=0.0).fit(data.take(folds != fold))
        rows = folds[data.query_of_row] == fold
        scores[rows] = ranker.predict(data.take(folds == fold))
    return pl.DataFrame(
        {
            "qid": [f"list-{name}" for name in data.query_ids[data.query_of_row].tolist()],
            "item": [f"applicant-{name}" for name in data.item_ids.tolist()],
            "score": scores.round(4),
            "relevance": data.relevance.astype(int),
            "age": labels(data).tolist(),
            "sex": labels(er.datasets.german_credit("sex", lists=lists)).tolist(),
        }
    )


def rows(lists: int = 500) -> pl.DataFrame:
    """Rows to train on."""
    data = er.datasets.german_credit("age", lists=lists)
    columns = {
        "qid": data.query_ids[data.query_of_row].tolist(),
        "item": data.item_ids.tolist(),
        "relevance": data.relevance.astype(int),
        "group": labels(data).tolist(),
    }
    features = {name: data.features[:, j] for j, name in enumerate(data.feature_names)}
    return pl.DataFrame(columns | features)


def write(frame: pl.DataFrame, path: Path) -> None:
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path)


if __name__ == "__main__":
    kinds = {"log": log, "rows": rows}
    write(kinds[sys.argv[1]](), Path(sys.argv[2]))
