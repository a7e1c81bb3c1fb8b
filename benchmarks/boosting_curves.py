"""Not a race: what boosted rankers pay for fairness, by library, notion and what is regularised.

5 folds by query; the violation is pooled over the rankings of held-out queries, NDCG@5 is the mean over folds with its
standard error. A strength is *free* if its mean NDCG is below strength 0's by no more than the sum of both errors.

    python benchmarks/boosting_curves.py --trec FOLDER    # the TREC 2019 Fair Ranking files; else synthetic data only
    python benchmarks/boosting_curves.py --targets        # all four targets instead of the default one
    python benchmarks/boosting_curves.py --constraint     # max_violation instead of strengths
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import evenrank as er
from common import note, parser, start, table, timed
from curves import COLUMNS, FOLDS, K, random_ranking, summary, synthetic
from evenrank.targets import TARGETS

LIBRARIES = {"lightgbm": er.lightgbm, "xgboost": er.xgboost}
# TREC has 3,183 rows of which half stand in lists longer than 5: trees are kept small.
SMALL = {
    "lightgbm": {"num_leaves": 4, "min_child_samples": 50, "reg_lambda": 5.0, "learning_rate": 0.05},
    "xgboost": {"max_depth": 2, "min_child_weight": 5.0, "reg_lambda": 5.0, "learning_rate": 0.1},
}
PLAIN = {
    "lightgbm": {"num_leaves": 8, "min_child_samples": 200, "reg_lambda": 5.0},
    "xgboost": {"max_depth": 3, "min_child_weight": 20.0, "reg_lambda": 5.0, "learning_rate": 0.1},
}


def curve(library: str, data: er.RankingData, notion: str, alphas: Any, **settings: Any) -> tuple[Any, Any, Any]:
    """Violation, NDCG and its error, (strengths,) each."""
    fold = data.folds(FOLDS, 0)
    scores, quality = np.empty((data.n_rows, len(alphas))), []
    for number in range(FOLDS):
        training, test = data.take(fold != number), data.take(fold == number)
        train = LIBRARIES[library].train_scores
        found = np.stack([train(training, test, notion, alpha, k=K, **settings) for alpha in alphas], axis=1)
        scores[(fold == number)[data.query_of_row]] = test.to_stored(found)
        quality.append(er.measure(found, test, [f"ndcg@{K}"])[f"ndcg@{K}"])
    violation = er.measure(data.to_caller(scores), data, [f"{notion}@{K}"])[f"{notion}@{K}"]
    return violation, np.mean(quality, axis=0), np.std(quality, axis=0, ddof=1) / np.sqrt(FOLDS)


def compare(title: str, data: er.RankingData, notions: list[str], targets: list[str], alphas: Any, trees: Any) -> None:
    for notion in notions:
        note(f"{title}, {notion}@{K}; {random_ranking(data, notion)}")
        lines, curves = [], []
        for library in LIBRARIES:
            for target in targets:
                seconds, found = timed(lambda: curve(library, data, notion, alphas, target=target, **trees[library]))  # noqa: B023
                lines.append(summary(f"{library} {target}", alphas, *found))
                points = zip(alphas, found[1], found[0], strict=True)
                curves.append(
                    f"{library} {target} ({seconds:.0f} s), α: NDCG/violation  "
                    + "  ".join(f"{alpha:.3g}: {quality:.3f}/{gap:.3f}" for alpha, quality, gap in points)
                )
        table(COLUMNS, lines)
        note("\n".join(curves) + "\n")


def constraint(title: str, data: er.RankingData, notions: list[str], trees: Any) -> None:
    """What is asked for, and what is had on the training rows and on held-out queries."""
    rankers = {"lightgbm": er.lightgbm.FairLGBMRanker, "xgboost": er.xgboost.FairXGBRanker}
    silent = {"lightgbm": {"verbose": -1}, "xgboost": {}}
    lines = []
    for notion in notions:
        fold = data.folds(FOLDS, 0)
        for library, kind in rankers.items():
            for asked in (0.2, 0.05, 0.02, 0.01):
                scores, reached, found = np.empty(data.n_rows), [], []
                for number in range(FOLDS):
                    ranker = kind(
                        notion=notion, max_violation=asked, k=K, n_jobs=1, **silent[library], **trees[library]
                    )
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", er.DataWarning)
                        ranker.fit(data.take(fold != number))
                    reached.append(ranker.violation_)
                    found.append(ranker.alpha_)
                    test = data.take(fold == number)
                    scores[(fold == number)[data.query_of_row]] = test.to_stored(ranker.predict(test))
                held_out = er.measure(data.to_caller(scores), data, [f"{notion}@{K}", f"ndcg@{K}"])
                lines.append(
                    [
                        f"{library} {notion} ≤ {asked:g}",
                        f"{np.mean(reached):.4f}",
                        f"{np.max(reached):.4f}",
                        f"{np.median(found):.2g}",
                        f"{held_out[f'{notion}@{K}']:.4f}",
                        f"{held_out[f'ndcg@{K}']:.3f}",
                    ]
                )
    note(f"{title}, max_violation")
    table(["", "training, mean", "largest of 5", "median α", "held out", "NDCG"], lines)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--trec", metavar="FOLDER", help="the folder of the TREC 2019 Fair Ranking files")
    options.add_argument("--targets", action="store_true", help="all four targets")
    options.add_argument("--constraint", action="store_true", help="max_violation instead of strengths")
    options.add_argument("--only", choices=["trec", "synthetic"])
    given = options.parse_args()
    start("Boosted rankers: quality against fairness", ["lightgbm", "xgboost-cpu", "numba"], threads=1)
    targets = list(TARGETS) if given.targets else ["topk"]
    if given.trec and given.only != "synthetic":
        data = er.datasets.trec_fair_2019(given.trec)
        if given.constraint:
            constraint("TREC", data, ["dp"], SMALL)
        else:
            alphas = er.strength_grid(6 if given.quick else 25)
            compare("TREC", data, ["dp"], targets, alphas, SMALL)
    if given.only != "trec":
        data = synthetic(300 if given.quick else 2000)
        if given.constraint:
            constraint("synthetic", data, ["dp", "eop", "eod"], PLAIN)
        else:
            compare("synthetic", data, ["dp", "eop", "eod"], targets, er.strength_grid(4 if given.quick else 10), PLAIN)


if __name__ == "__main__":
    main()
