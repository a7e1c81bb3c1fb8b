"""Time and memory of moments streamed from a Parquet file of 20 million rows × 64 features, beside their bare parts.

The bare parts, in the same run: decoding every column of the file with polars, group of rows by group of rows, and
numpy's X.T @ X in float64 of as many rows, in blocks that stay in the processor's cache. Ours does both, and forms
means, labels' sums and the group sums of three notions. Each side has a process of its own, two times in turn, of
which the faster counts; memory is anonymous (RssAnon). The file is made in a temporary folder and removed, or in one
that is named and left there.
"""

from __future__ import annotations

import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

import common
import evenrank as er
from evenrank.io.stream_moments import stream_moments

FEATURES, ITEMS, GROUP_ROWS, BLOCK = 64, 10, 1 << 17, 1 << 14
SIDES = ("decode", "product", "evenrank")


def write_rows(path: Path, n: int, dtype: type) -> None:
    """Rows in groups of rows that were made before them, so that no more than one is in memory."""
    from polars.io.plugins import register_io_source

    def part(start: int, rows: int) -> pl.DataFrame:
        rng = np.random.default_rng(start)
        X = 3 + rng.standard_normal((FEATURES, rows), np.float32)
        columns = {f"f{j}": x.astype(dtype) for j, x in enumerate(X)}
        ids = {"qid": (start + np.arange(rows)) // ITEMS, "relevance": rng.integers(0, 2, rows).astype(np.int8)}
        return pl.DataFrame(
            ids | {"group": pl.Series(rng.integers(0, 2, rows)).replace_strict({0: "a", 1: "b"})} | columns
        )

    def source(columns, predicate, n_rows, batch_size):
        for start in range(0, n, GROUP_ROWS):
            yield part(start, min(GROUP_ROWS, n - start))

    schema = part(0, 1).schema
    register_io_source(source, schema=schema).sink_parquet(
        path, compression="lz4", row_group_size=GROUP_ROWS, engine="streaming"
    )


def decode(path: Path, n: int) -> int:
    rows = 0
    for begin, end in pairwise([*range(0, n, GROUP_ROWS), n]):
        rows += pl.scan_parquet(path).slice(begin, end - begin).collect().height
    return rows


def product(n: int) -> float:
    rng = np.random.default_rng(0)
    blocks = [rng.standard_normal((BLOCK, FEATURES)) for _ in range(8)]
    total = np.zeros((FEATURES, FEATURES))
    for number in range(-(-n // BLOCK)):
        block = blocks[number % len(blocks)]
        total += block.T @ block
    return float(total[0, 0])


def one_run(path: Path, n: int, side: str, threads: int) -> tuple[float, float, float]:
    """Seconds, seconds of the processors, and growth of the anonymous memory in MB."""
    common.cap_threads(threads)
    files = er.scan(path)
    work = {
        "decode": lambda: decode(path, n),
        "product": lambda: product(n),
        "evenrank": lambda: stream_moments(files),
    }[side]
    with common.watch_memory() as peak:
        began, busy = time.perf_counter(), time.process_time()
        work()
        took, busy = time.perf_counter() - began, time.process_time() - busy
    return took, busy, peak.growth


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--float32", action="store_true", help="features of 4 bytes instead of 8")
    parser.add_argument("--folder", type=Path, help="where the file is made, and left for another run")
    args = parser.parse_args()
    n = 1_000_000 if args.quick else 20_000_000
    kind = np.float32 if args.float32 else np.float64
    name = np.dtype(kind).name
    common.start(f"Moments from Parquet, {n:,} rows × {FEATURES} {name}", ["polars"], threads=args.threads)
    with tempfile.TemporaryDirectory() as temporary:
        path = (args.folder or Path(temporary)) / f"rows-{n}-{name}.parquet"
        if not path.exists():
            write_rows(path, n, kind)
        size = path.stat().st_size / (1 << 20)
        runs = {side: [common.in_fresh_process(one_run, path, n, side, args.threads)] for side in SIDES}
        for side, found in runs.items():
            found.append(common.in_fresh_process(one_run, path, n, side, args.threads))
    took, busy = ({side: min(run[j] for run in found) for side, found in runs.items()} for j in (0, 1))
    growth = {side: max(run[2] for run in found) for side, found in runs.items()}
    for times in (took, busy):
        times["both"] = times["decode"] + times["product"]
    lines = []
    for side, words in {
        "decode": "decoding",
        "product": "numpy product",
        "both": "both",
        "evenrank": "evenrank",
    }.items():
        ratios = [
            common.times(times[side] / times["both"]) if side in ("both", "evenrank") else "" for times in (took, busy)
        ]
        row = [words, common.seconds(took[side]), ratios[0], common.seconds(busy[side]), ratios[1]]
        lines.append([*row, f"{growth[side]:.0f}" if side in growth else ""])
    common.table(["", "time", "ratio", "processor", "ratio", "RssAnon growth, MB"], lines)
    common.note(f"The file has {size:,.0f} MB. Bar: time within 1.3 times both.")


if __name__ == "__main__":
    main()
