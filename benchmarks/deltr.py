"""DELTR, time an iteration: ours against the published package (fairsearchdeltr 1.0.2), the same problem and weights.

Both run the published algorithm (ours by ``reference=True``) for the same number of iterations from the same start, and
must end at the same weights. Then growth with rows, and the optimiser that converges: 390 models of a TREC-sized grid.
(The published package hashes the text of its arrays; below 1,000 numbers numpy prints them whole: slower still.)
"""

from __future__ import annotations

import contextlib
import io

import numpy as np

import common
import evenrank as er
from evenrank.linear.deltr_path import deltr_path

RATE = 0.001


def problem(queries: int, items: int, features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows by query and falling judgement (the published package wants them so); every query has both groups."""
    rng = np.random.default_rng(0)
    n = queries * items
    flag = (np.arange(n) % items < max(1, items // 3)).astype(float)
    X = np.column_stack([flag, rng.normal(size=(n, features - 1))])
    y = np.sort(rng.random((queries, items)), axis=1)[:, ::-1].ravel()
    return X, y, np.repeat(np.arange(1, queries + 1), items), flag


def ours(X: np.ndarray, y: np.ndarray, qid: np.ndarray, flag: np.ndarray, start: np.ndarray, steps: int) -> np.ndarray:
    ranker = er.DELTR(1.0, 1.0, reference=True, max_iter=steps, learning_rate=RATE, standardize=False, init=start)
    return ranker.fit(X, y, qid=qid, sensitive_features=flag).coef_


def published(deltr, X: np.ndarray, y: np.ndarray, qid: np.ndarray, seed: int, steps: int) -> np.ndarray:
    import pandas as pd

    frame = pd.DataFrame({"q": qid, "d": np.arange(len(y))})
    for j in range(X.shape[1]):
        frame["prot" if j == 0 else f"f{j}"] = X[:, j]
    frame["judgment"] = y
    np.random.seed(seed)  # noqa: NPY002 - the published package draws its start from the global generator
    with contextlib.redirect_stdout(io.StringIO()):
        return np.asarray(deltr.Deltr("prot", 1.0, steps, RATE).train(frame))


def main() -> None:
    options = common.parser(__doc__).parse_args()
    deltr = common.peer("fairsearchdeltr.deltr")
    common.start("DELTR", ["fairsearchdeltr", "pandas"], threads=options.threads)
    start = np.random.RandomState(7).rand(9) * 0.01
    steps = 1 if options.quick else 2
    rows = []
    for queries in (100,) if options.quick else (100, 200):
        X, y, qid, flag = problem(queries, 20, 9)
        data = er.RankingData.from_arrays(X, y, flag, qid)
        many = 200
        ranker = er.DELTR(1.0, 1.0, reference=True, max_iter=many, learning_rate=RATE, standardize=False, init=start)
        mine = common.best(lambda ranker=ranker, data=data: ranker.fit(data), 3) / many
        theirs, ratio, difference = common.MISSING, "", ""
        if deltr is not None:
            took, weights = common.timed(lambda X=X, y=y, qid=qid: published(deltr, X, y, qid, 7, steps))
            theirs, ratio = common.seconds(took / steps), common.times(took / steps / mine)
            difference = f"{np.abs(weights - ours(X, y, qid, flag, start, steps)).max():.1e}"
        rows.append([f"{queries} × 20 × 9", common.seconds(mine), theirs, ratio, difference])
    common.table(["queries × items × features", "ours", "published", "ratio", "weights differ by"], rows)

    rows = []
    for queries in (1000, 2000, 4000):
        X, y, qid, flag = problem(queries, 20, 9)
        data = er.RankingData.from_arrays(X, y, flag, qid)
        ranker = er.DELTR(1.0, 1.0, reference=True, max_iter=20, learning_rate=RATE, standardize=False, init=start)
        rows.append([f"{queries * 20:,}", common.seconds(common.best(lambda r=ranker, d=data: r.fit(d), 3) / 20)])
    common.table(["rows", "ours, an iteration"], rows)

    X, y, qid, flag = problem(522, 7, 9)
    data = er.RankingData.from_arrays(X, y, flag, qid)
    folds = 1 if options.quick else 15
    took, _ = common.timed(lambda: [deltr_path(data, er.strength_grid()) for _ in range(folds)])
    common.note(f"to convergence: {26 * folds} models of 522 queries × 7 items × 9 features in {common.seconds(took)}")


if __name__ == "__main__":
    main()
