"""Not a race: what a neural ranker pays for fairness, by what is regularised; and how biased a batch's gap is.

5 folds by query; the violation is pooled over the rankings of held-out queries, NDCG@5 is the mean over folds with its
standard error. A strength is *free* if its mean NDCG is below strength 0's by no more than the sum of both errors.

    python benchmarks/neural_targets.py --trec FOLDER    # the TREC 2019 Fair Ranking files; else synthetic data only
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import evenrank as er
import evenrank.torch as et
from common import Measured, note, parser, start, table, timed
from curves import COLUMNS, FOLDS, K, hard_synthetic, random_ranking, summary, synthetic
from evenrank.torch.losses import LOSSES
from evenrank.torch.network import Networks, train

TARGETS = ("score", "probability", "topk", "exposure")


def curve(data: er.RankingData, notion: str, alphas: Any, seeds: int, **settings: Any) -> tuple[Any, Any, Any]:
    """Violation (strengths,), NDCG (strengths,) and its error (strengths,), averaged over seeds of training."""
    fold = data.folds(FOLDS, 0)
    violations, qualities = [], []
    for seed in range(seeds):
        scores, quality = np.empty((data.n_rows, len(alphas))), []
        for number in range(FOLDS):
            training, test = data.take(fold != number), data.take(fold == number)
            found = et.train_scores(training, test, notion, alphas, k=K, random_state=seed, **settings)
            scores[(fold == number)[data.query_of_row]] = found
            quality.append(er.measure(found, test, [f"ndcg@{K}"])[f"ndcg@{K}"])
        violations.append(er.measure(data.to_caller(scores), data, [f"{notion}@{K}"])[f"{notion}@{K}"])
        qualities.append(quality)
    quality = np.mean(qualities, axis=0)
    return np.mean(violations, axis=0), quality.mean(axis=0), quality.std(axis=0, ddof=1) / np.sqrt(FOLDS)


def batch_bias(data: er.RankingData, target: str) -> None:
    """|gap| of batches, and of their running mean, against that of all rows, for one trained network."""
    networks = Networks.fresh(data, (64, 32), 1, seed=0)
    options = {"learning_rate": 0.003, "weight_decay": 0.0, "epochs": 10, "batch_queries": 100, "seed": 0}
    train(networks, data, LOSSES["listnet"](), None, np.zeros(1), **options)
    scores = torch.from_numpy(networks.score_data(data)[:, 0])
    relevance, group, qid = (torch.tensor(v) for v in (data.relevance, data.group.astype(np.int64), data.query_of_row))
    rows_of = []
    for queries in (10, 30, 100):
        whole = et.FairnessLoss("dp", target=target, k=K)(scores, relevance, group, qid).item()
        cells = [f"{queries}", f"{whole:.4f}"]
        for momentum in (None, 0.9, 0.97):
            loss = et.FairnessLoss("dp", target=target, k=K, momentum=momentum)
            sampler = et.QueryBatchSampler(data, queries, seed=1)
            values = [
                loss(scores[rows], relevance[rows], group[rows], qid[rows]).item()
                for _ in range(10)
                for rows in sampler
            ]
            values = values[len(values) // 5 :]  # the running mean needs some batches to settle
            cells.append(f"{np.mean(values):.4f} ± {np.std(values):.4f}")
        rows_of.append(cells)
    note(f"|gap| of {target}, mean ± standard deviation over batches")
    table(["queries a batch", "all rows", "batch", "momentum 0.9", "momentum 0.97"], rows_of)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--trec", help="folder of the TREC 2019 Fair Ranking files")
    options.add_argument("--seeds", type=int, default=3, help="trainings averaged (default: 3)")
    options.add_argument("--bias", type=float, nargs="*", default=[0.3], help="of the hard synthetic data (0.3)")
    options.add_argument("--targets", nargs="*", default=TARGETS, help="what to compare (default: all)")
    options.add_argument("--curves", action="store_true", help="print every strength of the chosen target")
    given = options.parse_args()
    start("What a neural ranker pays for fairness", ["torch"], threads=given.threads)
    alphas = er.strength_grid(7 if given.quick else 25)
    seeds = 1 if given.quick else given.seeds
    queries = 200 if given.quick else 2000
    sets = {"synthetic": (synthetic(queries), 1)}
    sets |= {f"hard synthetic, bias {bias}": (hard_synthetic(queries, bias), 1) for bias in given.bias}
    if given.trec:
        sets = {"TREC": (er.datasets.trec_fair_2019(given.trec, threshold=3), seeds), **sets}
    for name, (data, times) in sets.items():
        for notion in ("dp", "eop", "eod"):
            note(f"{name}: {notion}@{K}, {times} seed(s); {random_ranking(data, notion)}")
            rows = []
            for target in given.targets:
                seconds, found = timed(lambda: curve(data, notion, alphas, times, target=target))  # noqa: B023
                rows.append([*summary(target, alphas, *found), Measured.of(seconds, f"{seconds:.0f} s")])
                if given.curves and target == "exposure":
                    for alpha, *values in zip(alphas, *found, strict=True):
                        note(f"  α {alpha:7.3f}: violation {values[0]:.4f}, NDCG {values[1]:.4f} ± {values[2]:.4f}")
            if notion == "dp":
                for label, settings in {
                    "exposure, |gap| itself": {"smoothing": 0.0},
                    "exposure, momentum 0.9": {"momentum": 0.9},
                    "exposure, |gap|, momentum": {"smoothing": 0.0, "momentum": 0.9},
                }.items():
                    seconds, found = timed(lambda: curve(data, notion, alphas, times, **settings))  # noqa: B023
                    rows.append([*summary(label, alphas, *found), Measured.of(seconds, f"{seconds:.0f} s")])
            table([*COLUMNS, "trained in"], rows)
        for target in ("score", "topk"):
            batch_bias(data, target)


if __name__ == "__main__":
    main()
