"""Writes the rows of docs/bench.md's other data sets as Parquet files for `evenrank bench`.

FOLDER holds `engineering_students/` and `mslr_web_5k/`; neither may be part of the project. The files are
`students.parquet` (five years as lists; relevant is the best 30 % of a year), `students20.parquet` (each year dealt at
random into lists of about 20) and `mslr.parquet` (two groupings: the upper and the lower half by QualityScore2 and by
PageRank, both left out of the features).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

import evenrank as er

FEATURES = ("psu_math", "psu_lang", "psu_science", "gpa")
QUALITY, PAGERANK = "133", "130"  # of MSLR's features


def students(folder: Path) -> pl.DataFrame:
    gender, school = (pl.read_csv(folder / f"chileDataL2R_{name}_nosemi_full.txt") for name in ("gender", "highschool"))
    if not gender.drop("gender").equals(school.drop("highschool")):
        raise SystemExit("the two files of the students do not hold the same rows")
    best = pl.col("score") >= pl.col("score").quantile(0.7, "linear").over("entrance_year")
    return gender.select(
        pl.col("entrance_year").alias("qid"),
        best.cast(pl.Int64).alias("relevance"),
        pl.when(pl.col("gender") == 1).then(pl.lit("women")).otherwise(pl.lit("men")).alias("gender"),
        pl.Series("school", np.where(school["highschool"] == 1, "public", "other")),
        *FEATURES,
    )


def dealt(rows: pl.DataFrame, length: int = 20) -> pl.DataFrame:
    """Each list in parts of about ``length``, at random."""
    rng, new, number = np.random.default_rng(0), np.zeros(len(rows), np.int64), 0
    query = rows["qid"].to_numpy()
    for old in np.unique(query):
        members = rng.permutation(np.flatnonzero(query == old))
        for part in np.array_split(members, max(1, round(len(members) / length))):
            new[part], number = number, number + 1
    return rows.with_columns(qid=new)


def mslr(file: Path) -> pl.DataFrame:
    data = er.read(file, format="letor", group=None)
    values, names = np.asarray(data.features), list(data.feature_names)

    def half(name: str) -> np.ndarray:
        column = values[:, names.index(name)]
        return np.where(column > np.median(column), "upper", "lower")

    columns = {"qid": data.query_of_row, "relevance": data.relevance}
    columns |= {"quality": half(QUALITY), "pagerank": half(PAGERANK)}
    kept = {f"f{name}": values[:, j] for j, name in enumerate(names) if name not in (QUALITY, PAGERANK)}
    return pl.DataFrame(columns | kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    of_years = students(options.folder / "engineering_students")
    frames = {
        "students": of_years,
        "students20": dealt(of_years),
        "mslr": mslr(options.folder / "mslr_web_5k" / "msn1.fold1.train.5k.txt"),
    }
    for name, frame in frames.items():
        frame.write_parquet(options.out / f"{name}.parquet")
        print(f"{name}: {frame['qid'].n_unique()} lists, {len(frame)} rows")


if __name__ == "__main__":
    main()
