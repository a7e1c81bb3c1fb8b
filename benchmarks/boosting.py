"""Training time of the fair rankers against the libraries' own: the same rows, trees and one thread each.

Whole ``fit`` calls, so data preparation counts on both sides, and on ours the violation measured at the end. With
``--processor``, in processor seconds, for a machine that has other work.
"""

from __future__ import annotations

import time
from typing import Any

import lightgbm
import numpy as np
import xgboost

import evenrank as er
from common import Measured, best_of_each, parser, seconds, start, table
from curves import synthetic

ALPHA = 1.0


def libraries(trees: int) -> dict[str, tuple[Any, ...]]:
    """The native ranker, ours with a strength, ours asked for a violation, and ours that sees the group."""
    light = {"n_estimators": trees, "n_jobs": 1, "verbose": -1}
    extreme = {"n_estimators": trees, "n_jobs": 1, "learning_rate": 0.1}
    return {
        "lightgbm": (
            lightgbm.LGBMRanker(**light),
            er.lightgbm.FairLGBMRanker(notion="dp", alpha=ALPHA, **light),
            er.lightgbm.FairLGBMRanker(notion="dp", max_violation=0.02, **light),
            er.lightgbm.FairLGBMRanker(notion="dp", group_aware=True, **light),
        ),
        "xgboost": (
            xgboost.XGBRanker(**extreme),
            er.xgboost.FairXGBRanker(notion="dp", alpha=ALPHA, **extreme),
            er.xgboost.FairXGBRanker(notion="dp", max_violation=0.02, **extreme),
            er.xgboost.FairXGBRanker(notion="dp", group_aware=True, **extreme),
        ),
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--verbose", action="store_true", help="times as they are taken")
    options.add_argument("--processor", action="store_true", help="processor seconds instead of the clock's")
    given = options.parse_args()
    clock = time.process_time if given.processor else time.perf_counter
    start("Boosting: fair against native", ["lightgbm", "xgboost-cpu", "numba"], threads=1)
    lines = []
    for queries, trees, repeats in ((2500, 100, 2), *(() if given.quick else ((62_500, 10, 1),))):
        data = synthetic(queries, features=30)
        X, y, sizes, group = data.features, data.relevance, np.diff(data.query_ptr), data.group
        for name, (native, *ours) in libraries(trees).items():
            calls = [
                lambda native=native: native.fit(X, y, group=sizes),  # noqa: B023
                *(lambda fair=fair: fair.fit(X, y, group=sizes, sensitive_features=group) for fair in ours),  # noqa: B023
            ]
            times = best_of_each(calls, repeats, clock)
            print(name, data.n_rows, times, flush=True) if given.verbose else None
            ratios = [Measured.of(each / times[0], f"{each / times[0]:.2f}×") for each in times[1:]]
            lines.append([f"{name}, {data.n_rows:,} rows, {trees} trees", *map(seconds, times), *ratios])
    columns = [f"alpha={ALPHA:g}", "max_violation", "group_aware"]
    table(["", "native", *columns, *(f"{column}, ratio" for column in columns)], lines)


if __name__ == "__main__":
    main()
