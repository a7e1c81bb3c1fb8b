"""Tab-separated tables against Python's own csv module."""

from __future__ import annotations

from fuzz.csv_files import run_table

NAME = "tsv"
EXTRA = None


def run(n: int, seed: int) -> list[str]:
    return list(run_table(n, seed, NAME, "\t"))
