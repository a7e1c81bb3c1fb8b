"""`predict` of one list of 100 items × 50 features beside the libraries' own call, and every engine's top-10 lists."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import common
import evenrank as er

ITEMS, FEATURES, QUERIES = 100, 50, 50
BATCH = 20  # calls between two looks at the clock


def rows(queries: int = QUERIES) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features (n, d), relevance, query and group of each row, (n,)."""
    rng = np.random.default_rng(0)
    n = queries * ITEMS
    features = rng.normal(size=(n, FEATURES)).astype(np.float32).astype(np.float64)
    relevance = (features @ rng.normal(size=FEATURES) + 3 * rng.normal(size=n) > 0).astype(float)
    return features, relevance, np.repeat(np.arange(queries), ITEMS), np.where(rng.random(n) < 0.3, "a", "b")


def batch(call: Callable[[], Any]) -> Callable[[], None]:
    def several() -> None:
        for _ in range(BATCH):
            call()

    return several


def pairs(one: np.ndarray) -> list[tuple[str, Any, Callable[[], Any], Callable[[], Any] | None, str]]:
    """Name, the model, our call, the library's own call on the same trees, and the library's name."""
    features, relevance, qid, group = rows()
    given = {"qid": qid, "sensitive_features": group}
    linear = er.FairLinearRanker("dp", alpha=0.1).fit(features, relevance, **given)
    found: list[tuple[str, Any, Callable[[], Any], Callable[[], Any] | None, str]] = [
        ("linear", linear, lambda: linear.predict(one), None, "")
    ]
    settings = {"notion": "dp", "alpha": 0.1, "n_estimators": 100, "n_jobs": 1}
    if (lightgbm := common.peer("lightgbm")) is not None:
        ours = er.lightgbm.FairLGBMRanker(verbose=-1, **settings).fit(features, relevance, **given)
        sizes = np.full(QUERIES, ITEMS)
        theirs = lightgbm.LGBMRanker(n_estimators=100, n_jobs=1, verbose=-1).fit(features, relevance, group=sizes)
        theirs._Booster = ours.booster_  # the same trees
        found.append(("LightGBM", ours, lambda: ours.predict(one), lambda: theirs.predict(one), "LGBMRanker.predict"))
    if (xgboost := common.peer("xgboost")) is not None:
        fair = er.xgboost.FairXGBRanker(**settings).fit(features, relevance, **given)
        plain = xgboost.XGBRanker(n_estimators=100, n_jobs=1).fit(features, relevance, qid=qid)
        plain._Booster = fair.get_booster()
        found.append(("XGBoost", fair, lambda: fair.predict(one), lambda: plain.predict(one), "XGBRanker.predict"))
    if common.peer("torch") is not None:
        network = er.torch.FairNeuralRanker("dp", alpha=0.1, hidden=(32,), epochs=3).fit(features, relevance, **given)
        found.append(("network", network, lambda: network.predict(one), None, ""))
    return found


def main() -> None:
    options = common.parser(__doc__).parse_args()
    common.start("Serving", ["lightgbm", "xgboost-cpu"], threads=1)
    repeats = 5 if options.quick else 100
    one = rows()[0][:ITEMS].copy()
    models, lines = [], []
    for name, model, ours, theirs, label in pairs(one):
        models.append((name, model))
        if theirs is None:
            took = common.best(batch(ours), repeats) / BATCH
            lines.append([name, f"{1e6 * took:.1f}", "", "", ""])
            continue
        assert (np.asarray(ours()) == np.asarray(theirs())).all()
        mine, native = (seconds / BATCH for seconds in common.best_of_each([batch(ours), batch(theirs)], repeats))
        lines.append([name, f"{1e6 * mine:.1f}", f"{1e6 * native:.1f}", common.times(mine / native), label])
    common.table([f"one list of {ITEMS} × {FEATURES}", "µs", "library µs", "ratio", "library's call"], lines)
    lists(models, queries=100 if options.quick else 1000)


def lists(models: list[tuple[str, Any]], queries: int) -> None:
    """Every engine's scores and top-10 lists against `predict`."""
    features, relevance, qid, group = rows(queries)
    data = er.RankingData.from_arrays(features, relevance, group, qid)
    lines = []
    for name, model in models:
        for engine, write in er.export.WRITERS.items():
            if engine == "onnx" and common.peer("onnxruntime") is None:
                continue
            try:
                exported = write(model, missing="zero", rename="plain")
            except er.ConfigError:
                continue
            seconds, checked = common.timed(partial(er.export.check, exported, model, data, [10]))
            row = [name, engine, f"{checked.largest_difference:.2g}", f"{checked.lists[10]} of {queries}"]
            lines.append([*row, f"{checked.largest_swap:.1g}", common.seconds(seconds)])
    common.table(["model", "engine", "largest difference", "top-10 lists that differ", "largest swap", "check"], lines)


if __name__ == "__main__":
    main()
