"""A program on Spark Connect, in a process of its own: one that has a session of the other kind cannot have this one.

It takes a folder with rows and with features, and prints what it finds as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import evenrank as er
from evenrank.methods.reranked import RerankedRanker


def main(folder: Path, features: list[str]) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[2]")
    for name, value in (("spark.sql.shuffle.partitions", "2"), ("spark.ui.enabled", "false")):
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    assert type(session).__module__.startswith("pyspark.sql.connect")
    logs, rows = (session.read.parquet(str(folder / name)) for name in ("logs", "rows"))
    path = er.spark.fit(rows, "dp", [0.0, 0.1], features=features)
    within = er.spark.fit(rows, "dp", [0.1], features=features, target="centered")
    offset = er.spark.offset(rows, "dp", 3, shrink=False, score="f0")
    ranked = er.spark.rank(rows, RerankedRanker(path.ranker(0.1), offset), top=2).toArrow()
    found = {
        "audit": er.spark.audit(logs, [3]).to_dict(),
        "measures": er.spark.measure(logs, ["ndcg@3", "dp@3"]),
        "coef": path.coef.tolist(),
        "centered": within.coef.tolist(),
        "offsets": offset.offsets_,
        "ranked": sorted(zip(*(ranked[name].to_pylist() for name in ("qid", "rank", "item")), strict=True)),
        "left": [table.name for table in session.catalog.listTables()],
    }
    print(json.dumps(found))
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
