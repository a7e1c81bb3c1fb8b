"""Not a race: NDCG of the fair LightGBM along strengths on the engineer's notebook data, over many splits.

On the notebook's one split NDCG rises with the strength. Beside the strengths: the plain model with fewer trees, and
strength 3 with groups dealt to the training applicants at random, which holds back trees and evens out nothing real.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import evenrank as er
from common import note, parser, start, table

SHAPE: dict[str, Any] = {"n_estimators": 40, "num_leaves": 8, "n_jobs": 1, "verbose": -1}
STRENGTHS = (0.0, 0.3, 1.0, 3.0, 10.0)


def ranked(train: er.RankingData, test: er.RankingData, **options: Any) -> tuple[list[float], list[float]]:
    """NDCG@5 and dp@5 of the test lists and of the training lists."""
    model = er.lightgbm.FairLGBMRanker(notion="dp", **{**SHAPE, **options}).fit(train)
    found = [er.measure(model.predict(rows), rows, ["ndcg@5", "dp@5"]) for rows in (test, train)]
    return [each["ndcg@5"] for each in found], [each["dp@5"] for each in found]


def dealt(data: er.RankingData, seed: int) -> er.RankingData:
    """The same rows with the applicants' groups in random order."""
    _, row = np.unique(data.item_ids, return_inverse=True)
    first = np.unique(row, return_index=True)[1]
    shuffled = np.random.default_rng(seed).permutation(data.group[first])
    return data.with_group(data.to_caller(np.array(data.group_names)[shuffled[row]]))


def main() -> None:
    given = parser(__doc__).parse_args()
    start("The fair LightGBM on splits of German Credit", ["lightgbm", "numba"], threads=1)
    warnings.simplefilter("ignore", er.DataWarning)
    quality: dict[str, list[Any]] = {}
    gaps: dict[str, list[Any]] = {}
    for seed in range(1 if given.quick else 4):
        data = er.datasets.german_credit("age", seed=seed)
        fold = er.datasets.german_credit_folds(data)
        for number in range(fold.max() + 1):
            train, test = data.take(fold != number), data.take(fold == number)
            runs: dict[str, Any] = {f"α = {alpha:g}": (train, {"alpha": alpha}) for alpha in STRENGTHS}
            runs["α = 0, 10 trees"] = (train, {"alpha": 0.0, "n_estimators": 10})
            runs["α = 3, groups at random"] = (dealt(train, seed * 10 + number), {"alpha": 3.0})
            for name, (rows, options) in runs.items():
                ndcg, gap = ranked(rows, test, **options)
                quality.setdefault(name, []).append(ndcg)
                gaps.setdefault(name, []).append(gap)
    plain = np.array(quality["α = 0"])
    lines = []
    for name, values in quality.items():
        change = np.array(values) - plain
        error = change[:, 0].std(ddof=1) / np.sqrt(len(change))
        means = [
            *np.mean(values, axis=0),
            change[:, 0].mean(),
            error,
            (change[:, 0] > 0).mean(),
            *np.mean(gaps[name], 0),
        ]
        lines.append([name, *(f"{value:+.4f}" if at in (2, 3) else f"{value:.3f}" for at, value in enumerate(means))])
    note(f"{len(plain)} splits by applicant; errors over splits (those of one seed share applicants in training)")
    columns = ["", "NDCG@5, test", "training", "change, test", "error", "share of splits that rise"]
    table([*columns, "dp@5, test", "training"], lines)
    note("the first split, the notebook's: " + ", ".join(f"{n} {v[0][0]:.3f}" for n, v in quality.items()))


if __name__ == "__main__":
    main()
