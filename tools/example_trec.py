"""Write a small folder in the form of TREC Fair Ranking 2019, for what must run where the real one is not at hand.

    python tools/example_trec.py FOLDER

Queries, papers, authors and features are random numbers: the files have the real names and columns, and nothing can be
learnt from their numbers. `evenrank reproduce trec --data FOLDER --quick` runs on it in seconds.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np

from evenrank.datasets import trec_fair_files as names


def write(folder: Path, queries: int = 40, papers: int = 7, seed: int = 0) -> None:
    """Write the five files that `reproduce` needs.

    Parameters
    ----------
    folder : Path
        Where they go; it must exist.
    queries, papers : int
        How many queries, and judged papers per query.
    seed : int
        Of the random numbers.
    """
    rng = np.random.default_rng(seed)
    authors = range(1, 61)
    asked, features, written = [], [], []
    for query in range(queries):
        ids = [f"paper-{query}-{paper}" for paper in range(papers)]
        relevance = rng.permutation(np.arange(papers) % 2).tolist()
        judged = [{"doc_id": one, "relevance": label} for one, label in zip(ids, relevance, strict=True)]
        asked.append({"qid": query, "query": f"query {query}", "frequency": 0.1, "documents": judged})
        for one, label in zip(ids, relevance, strict=True):
            numbers = rng.normal(size=len(names.FEATURE_NAMES)) + 0.5 * label
            features.append([query, *numbers.round(4).tolist(), one])
            chosen = rng.choice(authors, size=rng.integers(1, 3), replace=False).tolist()
            written += [[one, author, position] for position, author in enumerate(chosen, 1)]
    lines = "".join(json.dumps(one) + "\n" for one in asked)
    (folder / names.TRAINING).write_text(lines, encoding="utf-8")
    groups = [[author, 1 + author % 8] for author in authors]
    _table(folder / names.AUTHOR_GROUPS, ["author_id", "gid"], groups)
    _table(folder / names.FEATURES, ["qid", *names.FEATURE_NAMES, "doc_id"], features)
    titles = [[row[-1], f"Title of {row[-1]}", 2015, "", 0, 0] for row in features]
    columns = ["paper_sha", "paper_title", "paper_year", "paper_venue", "n_key_citations", "n_citations"]
    _table(folder / names.PAPERS, columns, titles)
    _table(folder / names.PAPER_AUTHORS, ["paper_sha", "corpus_author_id", "position"], written)


def _table(path: Path, header: list[str], rows: list[list[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    write(target)
