"""Time and memory of `Moments.of` over a memmap of float32 rows × 128 features as the rows grow 1×, 2×, 4×.

The peer loads the rows and takes X.T @ X in memory, in float32 and, as ours does, in float64; it forms no means and no
group sums. Every run has a process of its own; memory is anonymous (RssAnon), without the pages of the mapped file, and
for ours it includes making the `RankingData`, which the time does not.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import common
import evenrank as er

FEATURES, ITEMS = 128, 10
MB = 1 << 20


def write_rows(path: Path, n: int) -> None:
    rng = np.random.default_rng(0)
    X = np.memmap(path, np.float32, "w+", shape=(n, FEATURES))
    for start in range(0, n, 100_000):
        X[start : start + 100_000] = 3 + rng.standard_normal((min(100_000, n - start), FEATURES), np.float32)
    X.flush()


def open_rows(path: Path, n: int) -> np.memmap:
    return np.memmap(path, np.float32, "r", shape=(n, FEATURES))


def in_memory(X: np.memmap, dtype: type) -> np.ndarray:
    rows = np.array(X, dtype)
    return rows.T @ rows


def one_run(path: Path, n: int, side: str, repeats: int, threads: int) -> tuple[float, float, np.ndarray]:
    """Best seconds, growth of the anonymous memory in MB, and XᵀX."""
    common.cap_threads(threads)
    X = open_rows(path, n)
    with common.watch_memory() as peak:
        if side == "evenrank":
            rng = np.random.default_rng(1)
            relevance, group = rng.integers(0, 2, n), rng.integers(0, 2, n)
            data = er.RankingData.from_arrays(X, relevance, group, np.arange(n) // ITEMS)
            function = partial(er.Moments.of, data)
            xx = function().about(np.zeros(FEATURES)).xx
        else:
            function = partial(in_memory, X, np.dtype(side.split()[1]).type)
            xx = function()
    return common.best(function, repeats, warm_up=False), peak.growth, xx


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--large", action="store_true", help="2, 4 and 8 million rows (a file of up to 4 GB)")
    args = parser.parse_args()
    rows = 100_000 if args.quick else 2_000_000 if args.large else 500_000
    common.start(f"Moments of a memmap, {FEATURES} features", [], threads=args.threads)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for n in (rows, 2 * rows, 4 * rows):
            path = Path(folder) / "rows"
            write_rows(path, n)
            sides = ("evenrank", "numpy float32", "numpy float64")
            runs = {side: common.in_fresh_process(one_run, path, n, side, 3, args.threads) for side in sides}
            own, _, exact = runs["evenrank"]
            for side, (took, grown, xx) in runs.items():
                gap = np.abs(xx - exact).max() / np.abs(exact).max()
                ratio = "" if side == "evenrank" else common.times(took / own)
                difference = "" if side == "evenrank" else f"{gap:.0e}"
                file = f"{n * FEATURES * 4 / MB:.0f}" if side == "evenrank" else ""
                size = f"{n:,}" if side == "evenrank" else ""
                lines.append([side, size, file, common.seconds(took), ratio, f"{grown:.0f}", difference])
    columns = ["", "rows", "file, MB", "time", "ratio", "RssAnon growth, MB", "difference in XᵀX"]
    common.table(columns, lines)


if __name__ == "__main__":
    main()
