"""An audit of Parquet files larger than the memory that DuckDB may take, beside the bare SQL and polars in memory.

The rows are made here, in a temporary folder that is removed (or in one that is named, and left there): lists of 20
items in eight files, each list spread over all of them, with two columns that an audit does not need. The bare SQL
ranks the rows and sums the top k and the exposure by list, group and label, with the same limit on memory; it checks
nothing, resolves no ties and has no intervals. polars does the same in memory. Each run is a process of its own; one in
DuckDB is ended when its resident memory is more than it is allowed, which is less than the larger table's files have.
Memory is all that is resident at its highest (VmHWM).
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common

LENGTH, PARTS, KS = 20, 8, (1, 3, 5, 10)
LIMIT = "900MB"  # what DuckDB may take
ALLOWED = 2 << 30  # what its process may take; less than the larger table's files
MAKE = """
    COPY (
        SELECT i // {length} AS qid, CASE WHEN g < 3 THEN 'new' WHEN g < 9 THEN 'old' END AS "group",
            u + CASE WHEN g < 3 THEN -0.01 ELSE 0 END AS score, CAST(hash(i * 7 + 1) % 5 = 0 AS INTEGER) AS relevance,
            CAST(1767225600000000 + hash(i * 11) % 86400000000 AS BIGINT) AS time, hash(i * 5) / 1e15 AS price
        FROM (SELECT i, hash(i * 3 + 1) % 10 AS g, hash(i) / 18446744073709551616.0 AS u
            FROM (SELECT j * {parts} + {part} AS i FROM range({rows} // {parts}) t(j)) r) s
    ) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 500000)"""
BARE = """
    SELECT "group", relevance, count(*), {totals} FROM (
        SELECT qid, "group", relevance, count(*) AS number, {sums} FROM (
            SELECT qid, "group", relevance, rank() OVER (PARTITION BY qid ORDER BY score DESC) AS place FROM {source}
        ) r GROUP BY qid, "group", relevance
    ) lists GROUP BY "group", relevance"""


def bare_sql(source: str) -> str:
    sums, totals = [], []
    for k in KS:
        for name, value in (("top", "1.0"), ("seen", "1 / log2(1 + place)")):
            sums.append(f"sum(CASE WHEN place <= {k} THEN {value} ELSE 0 END) AS {name}{k}")
            sums.append(f"sum(CASE WHEN place <= {k} THEN {value} * {value} ELSE 0 END) AS {name}{k}_squares")
            totals += [f"sum({name}{k})", f"sum({name}{k}_squares)"]
    return BARE.format(sums=", ".join(sums), totals=", ".join(totals), source=source)


def bare(folder: str, memory: str) -> Any:
    import duckdb

    with tempfile.TemporaryDirectory() as spill:
        settings = {"memory_limit": memory, "temp_directory": spill, "preserve_insertion_order": False, "threads": 2}
        connection = duckdb.connect(config=settings)
        return len(connection.sql(bare_sql(f"read_parquet('{folder}/*.parquet')")).fetchall())


def ours(folder: str, memory: str) -> Any:
    import evenrank as er

    return er.duckdb.audit(folder, KS, memory=memory, threads=2).verdict


def in_polars(folder: str, memory: str) -> Any:
    import polars as pl

    place = pl.col("score").rank("min", descending=True).over("qid")
    rows = pl.read_parquet(f"{folder}/*.parquet").with_columns(place=place)
    values = []
    for k in KS:
        for name, value in (("top", pl.lit(1.0)), ("seen", 1 / (1 + pl.col("place")).log(2))):
            inside = pl.when(pl.col("place") <= k).then(value).otherwise(0.0)
            values += [inside.sum().alias(f"{name}{k}"), (inside**2).sum().alias(f"{name}{k}_squares")]
    lists = rows.group_by("qid", "group", "relevance").agg(pl.len(), *values)
    return len(lists.group_by("group", "relevance").agg(pl.exclude("qid").sum()))


RUNS = {"bare SQL": bare, "audit": ours, "polars, in memory": in_polars}


def run(name: str, folder: Path, memory: str) -> dict[str, float]:
    """One run in a process of its own."""
    command = [sys.executable, __file__, "--run", name, str(folder), memory]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            if "polars" not in name and resident(process.pid) > ALLOWED:
                process.kill()
                raise MemoryError(f"{name} took more than {ALLOWED / 1e9:.1f} GB")
            time.sleep(0.02)
        assert process.stdout is not None
        said = process.stdout.read()
    if process.returncode:
        raise RuntimeError(f"{name} failed")
    return json.loads(said.splitlines()[-1])


def resident(process: int) -> int:
    """The bytes that a process holds in memory; 0 of one that has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
    return 0


def one(name: str, folder: str, memory: str) -> None:
    started = time.perf_counter()
    answer = RUNS[name](folder, memory)
    took = time.perf_counter() - started
    peak = next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    print(json.dumps({"seconds": took, "cpu": time.process_time(), "peak": int(peak) / 1024**2, "said": str(answer)}))


def make(folder: Path, rows: int) -> float:
    """Write the files; gives their size in GB."""
    import duckdb

    folder.mkdir(exist_ok=True, parents=True)
    for part in range(PARTS):
        path = folder / f"part-{part}.parquet"
        if path.exists():
            continue
        duckdb.connect().execute(MAKE.format(length=LENGTH, parts=PARTS, part=part, rows=rows, path=path))
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e9


def main() -> None:
    options = common.parser(__doc__)
    options.add_argument("--folder", type=Path, help="where the tables are made, and left for another run")
    arguments = options.parse_args()
    common.start("Audits larger than memory", ["duckdb", "polars", "pyarrow", "numpy"], threads=arguments.threads)
    sizes = (1_000_000, 10_000_000) if arguments.quick else (10_000_000, 100_000_000)
    temporary = Path(tempfile.mkdtemp(prefix="evenrank-scale-"))
    folder = arguments.folder or temporary
    found: dict[tuple[str, int], dict[str, float]] = {}
    rows = []
    try:
        for number in sizes:
            size = make(folder / str(number), number)
            allowed = f"{ALLOWED / 1e9:.1f} GB"
            for name in RUNS if number == sizes[0] else ("bare SQL", "audit"):
                result = found[name, number] = run(name, folder / str(number), LIMIT)
                rows.append(
                    [
                        f"{number:,}",
                        name,
                        f"{size:.2f} GB",
                        "–" if "polars" in name else allowed,
                        common.seconds(result["seconds"]),
                        common.seconds(result["cpu"]),
                        f"{number / result['seconds']:,.0f}",
                        f"{result['peak']:.2f} GB",
                    ]
                )
                print(*rows[-1], flush=True)
            if arguments.folder is None:
                shutil.rmtree(folder / str(number))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    common.table(["rows", "", "files", "allowed", "time", "processor", "rows/s", "peak"], rows)
    small, large = sizes
    growth = {name: found[name, large]["seconds"] / found[name, small]["seconds"] for name in ("bare SQL", "audit")}
    ratio = growth["audit"] / growth["bare SQL"]
    common.note(
        f"From {small:,} to {large:,} rows the audit grows {ratio:.2f} times as much as the bare SQL (at most 1.2)."
    )
    for number in sizes:
        times = found["audit", number]["seconds"] / found["bare SQL", number]["seconds"]
        busy = found["audit", number]["cpu"] / found["bare SQL", number]["cpu"]
        common.note(
            f"{number:,} rows: {times:.2f} times the bare SQL's time (at most 3), {busy:.2f} times its processor time; "
            f"{number / found['audit', number]['seconds']:,.0f} rows/s. Verdict: {found['audit', number]['said']}."
        )


if __name__ == "__main__":
    if "--run" in sys.argv:
        one(*sys.argv[sys.argv.index("--run") + 1 :])
    else:
        main()
