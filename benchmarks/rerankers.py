"""DetRanker against aif360 and `reranking`, and ExposureRanker against a linear program over all placements (HiGHS).

10,000 lists of 100 items are re-ranked to 50 by ours at once; the packages, which take one list at a time, are timed on
some of them, and their time is scaled to as many. Lists on which a package fails do not count for it.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, vstack

import common
import evenrank as er

ITEMS, PLACES = 100, 50
RULES = {
    "greedy": ("Greedy", "det_greedy"),
    "cons": ("Conservative", "det_cons"),
    "relaxed": ("Relaxed", "det_relaxed"),
    "const_sort": ("Constrained", "det_const_sort"),
}
TARGET = {0: 0.6, 1: 0.4}


def lists_of(number: int) -> tuple[np.ndarray, np.ndarray, er.RankingData]:
    rng = np.random.default_rng(0)
    n = number * ITEMS
    group = (rng.random(n) < 0.4).astype(int)
    score = rng.random(n) - 0.2 * group
    query = np.repeat(np.arange(number), ITEMS)
    return score, group, er.RankingData.from_arrays(np.zeros((n, 0)), np.zeros(n), group, query)


def aif360(module: Any, rule: str, score: np.ndarray, group: np.ndarray) -> None:
    import pandas as pd

    frame = pd.DataFrame({"score": score, "g": group})
    data = module.datasets.RegressionDataset(
        frame, dep_var_name="score", protected_attribute_names=["g"], privileged_classes=[[0]]
    )
    ranker = module.algorithms.postprocessing.DeterministicReranking([{"g": 0}], [{"g": 1}])
    ranker.fit_predict(data, rec_size=PLACES, target_prop=[TARGET[1], TARGET[0]], rerank_type=rule)


def reranking(module: Any, rule: str, score: np.ndarray, group: np.ndarray) -> None:
    by_score = group[np.argsort(-score)].tolist()
    module.rerank(by_score, TARGET, k_max=PLACES, algorithm=rule)


def per_list(call: Any, lists: list[tuple[np.ndarray, np.ndarray]], seconds: float) -> tuple[float, int, int]:
    """Mean seconds of the lists that did not fail, and how many did not, of how many tried."""
    took, good, tried, began = 0.0, 0, 0, time.perf_counter()
    for score, group in lists:
        tried += 1
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call(score, group)
        except Exception:
            pass
        else:
            took += time.perf_counter() - start
            good += 1
        if time.perf_counter() - began > seconds:
            break
    return took / max(good, 1), good, tried


def program(merit: np.ndarray, group: np.ndarray) -> float:
    """The optimum over doubly stochastic matrices, n² variables, exposure parity of all groups."""
    n = len(merit)
    weights = 1 / np.log2(np.arange(2, n + 2))
    item, place = np.divmod(np.arange(n * n), n)
    ones = np.ones(n * n)
    mean = [(group == code) / (group == code).sum() for code in np.unique(group)]
    rows = [
        coo_array((ones, (item, np.arange(n * n)))),
        coo_array((ones, (place, np.arange(n * n)))),
        *(coo_array(np.outer(share - mean[0], weights).ravel()[None, :]) for share in mean[1:]),
    ]
    right = np.r_[np.ones(2 * n), np.zeros(len(mean) - 1)]
    return float(-linprog(-np.outer(merit, weights).ravel(), A_eq=vstack(rows).tocsr(), b_eq=right).fun)


def main() -> None:
    options = common.parser(__doc__).parse_args()
    fairness360, other = common.peer("aif360"), common.peer("reranking")
    if fairness360 is not None:
        common.peer("aif360.algorithms.postprocessing")
        common.peer("aif360.datasets")
    common.start("Re-rankers", ["aif360", "reranking", "scipy"], threads=options.threads)
    number = 1000 if options.quick else 10_000
    score, group, data = lists_of(number)
    some = list(zip(score.reshape(-1, ITEMS)[:200], group.reshape(-1, ITEMS)[:200], strict=True))
    rows = []
    for rule, names in RULES.items():
        ranker = er.DetRanker(rule, TARGET)
        mine = common.best(lambda ranker=ranker: ranker.rerank(score, data, PLACES), 3)
        rows.append([f"ours, {rule}", common.seconds(mine), "", ""])
        for label, module, call, name in (
            ("aif360", fairness360, aif360, names[0]),
            ("reranking", other, reranking, names[1]),
        ):
            if module is None:
                rows.append([f"{label}, {rule}", common.MISSING, "", ""])
                continue
            took, good, tried = per_list(
                lambda s, g, call=call, module=module, name=name: call(module, name, s, g),
                some,
                2 if options.quick else 10,
            )
            ended = f"{good} of {tried}"
            time_of = common.seconds(took * number) if good else "no list ended"
            rows.append([f"{label}, {rule}", time_of, common.times(took * number / mine) if good else "", ended])
    common.table([f"{number:,} lists, {ITEMS} → {PLACES}", "time", "ours is faster", "lists that ended"], rows)

    rng = np.random.default_rng(1)
    rows = []
    for n, groups in ((50, 2), (50, 3)) if options.quick else ((50, 2), (100, 2), (200, 2), (200, 3), (200, 5)):
        merit, sides = rng.random(n), rng.integers(0, groups, n)
        mine = common.best(lambda m=merit, g=sides: er.ExposureRanker("parity").solve(m, g), 5)
        mixture = er.ExposureRanker("parity").solve(merit, sides)
        took, optimum = common.timed(lambda m=merit, g=sides: program(m, g))
        gap = f"{abs(mixture.quality - optimum):.0e}"
        rows.append(
            [
                f"{n} items, {groups} groups",
                common.seconds(mine),
                common.seconds(took),
                common.times(took / mine),
                gap,
            ]
        )
    common.table(["exposure parity", "ours", "HiGHS", "ours is faster", "optima differ by"], rows)
    rows = []
    for groups in (2, 3, 5, 10):
        merit, sides = rng.random(1000), rng.integers(0, groups, 1000)
        cells = [
            common.seconds(common.best(lambda c=c, m=merit, g=sides: er.ExposureRanker(c).solve(m, g), 3))
            for c in ("parity", "disparate_treatment", "disparate_impact", "individual")
        ]
        rows.append([f"{groups} groups", *cells])
    common.table(["1,000 items", "parity", "treatment", "impact", "individual"], rows)


if __name__ == "__main__":
    main()
