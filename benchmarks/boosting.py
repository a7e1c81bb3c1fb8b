"""Training time of the fair rankers against the libraries' own: the same rows, trees and one thread each.

Whole ``fit`` calls, so data preparation counts on both sides, and on ours the violation measured at the end.
"""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import xgboost

import evenrank as er
from common import Measured, best_of_each, parser, seconds, start, table
from curves import synthetic

ALPHA = 1.0


def libraries(trees: int) -> dict[str, tuple[Any, Any, Any]]:
    """The native ranker, ours with a strength, and ours asked for a violation."""
    light = {"n_estimators": trees, "n_jobs": 1, "verbose": -1}
    extreme = {"n_estimators": trees, "n_jobs": 1, "learning_rate": 0.1}
    return {
        "lightgbm": (
            lightgbm.LGBMRanker(**light),
            er.lightgbm.FairLGBMRanker(notion="dp", alpha=ALPHA, **light),
            er.lightgbm.FairLGBMRanker(notion="dp", max_violation=0.02, **light),
        ),
        "xgboost": (
            xgboost.XGBRanker(**extreme),
            er.xgboost.FairXGBRanker(notion="dp", alpha=ALPHA, **extreme),
            er.xgboost.FairXGBRanker(notion="dp", max_violation=0.02, **extreme),
        ),
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--verbose", action="store_true", help="times as they are taken")
    given = options.parse_args()
    start("Boosting: fair against native", ["lightgbm", "xgboost-cpu", "numba"], threads=1)
    lines = []
    for queries, trees, repeats in ((2500, 100, 3), *(() if given.quick else ((62_500, 10, 1),))):
        data = synthetic(queries, features=30)
        X, y, sizes, group = data.features, data.relevance, np.diff(data.query_ptr), data.group
        for name, (native, fair, asked) in libraries(trees).items():
            calls = [
                lambda native=native: native.fit(X, y, group=sizes),  # noqa: B023
                lambda fair=fair: fair.fit(X, y, group=sizes, sensitive_features=group),  # noqa: B023
                lambda asked=asked: asked.fit(X, y, group=sizes, sensitive_features=group),  # noqa: B023
            ]
            times = best_of_each(calls, repeats)
            print(name, data.n_rows, times, flush=True) if given.verbose else None
            lines.append(
                [
                    f"{name}, {data.n_rows:,} rows, {trees} trees",
                    *map(seconds, times),
                    Measured.of(times[1] / times[0], f"{times[1] / times[0]:.2f}×"),
                    Measured.of(times[2] / times[0], f"{times[2] / times[0]:.2f}×"),
                ]
            )
    table(["", "native", f"alpha={ALPHA:g}", "max_violation", "alpha", "max_violation"], lines)


if __name__ == "__main__":
    main()
