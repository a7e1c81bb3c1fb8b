"""What "DELTR as published" gives on TREC 2019 under each reading of what the paper leaves open (docs/reproduction.md).

The paper names the authors' package and says that its features are those of the paper's own method, each standardised
over the data set. It does not give the number of steps, which group is protected, what became of lists with one group
(on which the package's weights become NaN), or whether the flag was scaled. Each line changes one of these. Numbers:
the reduction of the gap, max/mean over the γ that do not lose NDCG@k significantly, averaged over k = 1 … 5, folds of
seed 0, notion by notion.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import common
import evenrank as er
from evenrank.data import RankingData
from evenrank.experiment.curves import Curve
from evenrank.linear.deltr_published import Scaling, first_weights, train_published
from evenrank.methods.method import larger_group
from evenrank.rankers.matching import protected_code

NOTIONS = ("eop", "dp", "eod")
KS = (1, 2, 3, 4, 5)
PAPER = {"t=3": "39/23 55/36 48/31", "t=4": "2/-8 12/6 9/4", "t=5": "18/7 26/14 21/12"}


@dataclass(frozen=True)
class Reading:
    """One way of calling the published package."""

    name: str
    features: str = "each"  # standardised one by one over the data set, or "raw"
    standardize: bool = False  # the package's own: one mean and deviation for the whole matrix
    flag: str = "raw"  # the protected column: "raw", "scaled" or "none"
    larger: bool = False
    steps: int = 3000
    rate: float = 0.001
    lists: str = "both"  # train on lists that have both groups, or "all": a list of one group has no exposure term
    seed: int = 0
    base: str = "own"  # strength 0 is its own γ = 0, or "linear": the paper's method at α = 0


READINGS = (
    Reading("as the paper says: features one by one, package's defaults"),
    Reading("raw features, package's standardize=True (what was run before)", "raw", standardize=True),
    Reading("features one by one, then standardize=True", standardize=True),
    Reading("flag standardised too", flag="scaled"),
    Reading("no flag", flag="none"),
    Reading("larger group protected", larger=True),
    Reading("lists of one group kept", lists="all"),
    Reading("100 steps", steps=100),
    Reading("300 steps", steps=300),
    Reading("1000 steps", steps=1000),
    Reading("the paper's steps: 1500 of 0.003", steps=1500, rate=0.003),
    Reading("another start (seed 1)", seed=1),
    Reading("against the linear ranker without mitigation", base="linear"),
)


def scaled(X: np.ndarray) -> np.ndarray:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def scores(data: RankingData, fold: np.ndarray, number: int, reading: Reading) -> np.ndarray:
    """Of the test rows of a fold, in stored order, (n, strengths)."""
    raw = np.asarray(data.features, float)
    X = scaled(raw) if reading.features == "each" else raw
    inside = fold == number
    outer = data.take(~inside)
    protected = larger_group(outer) if reading.larger else None
    code = protected_code(outer, protected)
    flag = (data.group == code).astype(float)
    columns = {"raw": [flag[:, None]], "scaled": [scaled(flag[:, None])], "none": []}[reading.flag]
    rows = replace(
        data, features=np.hstack([X, *columns]), feature_names=tuple(map(str, range(X.shape[1] + len(columns))))
    )
    train, test = rows.take(~inside), rows.take(inside)
    members = np.add.reduceat(train.group == code, train.query_ptr[:-1])
    both = (members > 0) & (members < train.lengths)
    scaling = Scaling.of(np.asarray(train.features), train.group == code) if reading.standardize else None
    start = first_weights(reading.seed, train.n_features)
    options = {"learning_rate": reading.rate, "max_iter": reading.steps}
    if reading.lists == "both":
        theta, _ = train_published(train.take(both), er.strength_grid(), code, start, scaling, **options)
    else:
        theta = train_with_all(train, er.strength_grid(), code, start, scaling, both, **options)
    features = np.asarray(test.features, float)
    return (features if scaling is None else scaling.scale(features)) @ theta.T


def train_with_all(train, gammas, code, start, scaling, both, *, learning_rate, max_iter):
    """As `train_published`, with lists of one group in ListNet's loss alone."""
    from evenrank.linear.exposure_objective import ExposureObjective, descend

    X = np.asarray(train.features, float) if scaling is None else scaling.scale(np.asarray(train.features, float))
    objective = ExposureObjective(X, train, gammas, code, weighting="rows", reference=True)
    rows = both[train.query_of_row][:, None]
    objective.contrast = np.where(rows, objective.contrast, 0.0)
    objective.side = np.where(rows, objective.side, 0.0)
    theta = np.tile(start, (len(gammas), 1))
    return descend(objective, theta, learning_rate=learning_rate, max_iter=max_iter)[0]


def curves(data: RankingData, reading: Reading) -> dict[tuple[str, int], Curve]:
    fold, grid = data.folds(5, 0), er.strength_grid()
    values: dict[str, list] = {}
    names = [f"{name}@{k}" for k in KS for name in ("ndcg", *NOTIONS)]
    for number in range(5):
        test = data.take(fold == number)
        found = scores(data, fold, number, reading)
        if reading.base == "linear":
            path = er.fairness_path(data.take(fold != number), "dp", [0.0])
            found = np.column_stack([test.to_stored(path.scores(test)), found[:, 1:]])
        measured = er.measure(test.to_caller(np.nan_to_num(found, nan=0.0, posinf=1e300, neginf=-1e300)), test, names)
        for name in names:
            values.setdefault(name, []).append(np.asarray(measured[name]))
    made = {}
    for notion in NOTIONS:
        for k in KS:
            quality, gap = (np.stack(values[f"{name}@{k}"]) for name in ("ndcg", notion))
            errors = [each.std(axis=0, ddof=1) / np.sqrt(5) for each in (quality, gap)]
            made[notion, k] = Curve(
                "deltr",
                notion,
                f"ndcg@{k}",
                f"{notion}@{k}",
                grid,
                quality.mean(axis=0),
                errors[0],
                gap.mean(axis=0),
                errors[1],
            )
    return made


def main() -> None:
    made = common.parser(__doc__)
    made.add_argument("--data", type=Path, default=Path(__file__).parents[1] / ".." / "shared/data/trec_fair_2019")
    args = made.parse_args()
    common.start("DELTR as published, reading by reading", [], threads=args.threads)
    if not args.data.is_dir():
        sys.exit(f"{args.data}: there is no such folder. Name the data with --data.")
    groupings = er.datasets.trec_fair_2019_groupings(args.data)
    lines = [["the paper", *PAPER.values()]]
    for reading in READINGS[:2] if args.quick else READINGS:
        cells = []
        for data in groupings.values():
            of = curves(data, reading)
            each = []
            for notion in NOTIONS:
                most, mean = (
                    np.mean([getattr(of[notion, k], f"{which}_reduction") for k in KS]) for which in ("max", "mean")
                )
                each.append(f"{100 * most:.0f}/{100 * mean:.0f}")
            cells.append(" ".join(each))
        lines.append([reading.name, *cells])
        print(lines[-1], flush=True)
    common.table(["reading (eop dp eod)", *groupings], lines)


if __name__ == "__main__":
    main()
