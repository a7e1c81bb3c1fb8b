"""The method `deltr_published` against the published package's formulas, written out row by row."""

from __future__ import annotations

import math

import numpy as np
import pytest

import evenrank as er
from evenrank.methods.method import Task
from evenrank.methods.registry import METHODS

STEPS, RATE = 5, 0.05


def trained_by_hand(X, relevance, flag, query, gamma, start):
    """Its steps as ../shared/golden/README.md states them; rows of lists with both groups, the flag among X."""
    omega = list(start)
    width, rows = len(omega), len(X)
    for _ in range(STEPS):
        slope = [0.0] * width
        for name in sorted(set(query)):
            members = [i for i in range(rows) if query[i] == name]
            powers = [math.exp(sum(X[i][f] * omega[f] for f in range(width))) for i in members]
            wanted = [math.exp(relevance[i]) for i in members]
            chance = dict(zip(members, [power / sum(powers) for power in powers], strict=True))
            target = dict(zip(members, [power / sum(wanted) for power in wanted], strict=True))
            of_group = [[i for i in members if flag[i] == g] for g in (0, 1)]
            mass = [sum(chance[i] for i in part) for part in of_group]
            exposure = [mass[g] / (len(of_group[g]) * math.log(2)) for g in (0, 1)]
            unfair = max(0.0, exposure[0] - exposure[1])
            all_features = sum(chance[j] * X[j][f] for j in members for f in range(width))
            for f in range(width):
                slope_of_group = [
                    (sum(chance[i] * X[i][f] for i in of_group[g]) - mass[g] / len(of_group[g]) * all_features)
                    / math.log(2)
                    for g in (0, 1)
                ]
                listnet = sum(X[i][f] * (chance[i] - target[i]) for i in members) / math.log(rows)
                slope[f] += len(members) * (listnet + 2 * gamma * unfair * (slope_of_group[0] - slope_of_group[1]))
        omega = [weight - RATE * step for weight, step in zip(omega, slope, strict=True)]
    return omega


@pytest.mark.parametrize("scale", ["dataset", "train", None])
def test_it_is_the_package_on_features_scaled_one_by_one(scale):
    rng = np.random.default_rng(4)
    query = np.repeat(np.arange(8), 5)
    group = np.where(rng.random(40) < 0.4, "few", "many")
    group[query == 2] = "many"  # a list of one group: the package would train to NaN on it
    X = np.column_stack([rng.normal(size=40), rng.normal(3, 0.1, size=40)])
    relevance = rng.integers(0, 2, size=40)
    data = er.RankingData.from_arrays(X, relevance, group, query)
    tested = np.arange(8) >= 6
    train, test = data.take(~tested), data.take(tested)
    gammas = np.array([0.0, 3.0])
    task = Task(
        (train,),
        (test,),
        ("dp",),
        gammas,
        (1,),
        scale=scale,
        seed=9,
        settings={"max_iter": STEPS, "learning_rate": RATE},
    )
    method = METHODS["deltr_published"]
    (part,) = method.run(method, task)

    learned = query < 6
    source = X if scale == "dataset" else X[learned]
    center, spread = (source.mean(axis=0), source.std(axis=0)) if scale else (np.zeros(2), np.ones(2))
    names, counts = np.unique(group[learned], return_counts=True)
    flag = (group == names[np.argmin(counts)]).astype(float)
    features = np.column_stack([(X - center) / spread, flag])
    used = learned & (query != 2)
    start = np.random.RandomState(9).rand(3) * 0.01
    for column, gamma in enumerate(gammas):
        omega = trained_by_hand(features[used].tolist(), relevance[used], flag[used], query[used], gamma, start)
        assert part.scores[:, column] == pytest.approx(features[~learned] @ omega, abs=1e-12)
    assert scale is None or not np.allclose(part.scores[:, 0], part.scores[:, 1], atol=1e-3)
