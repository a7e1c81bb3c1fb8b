"""Options that several commands share, defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenrank.errors import ConfigError

COLUMNS = "Columns of the file"

File = Annotated[
    list[Path],
    typer.Argument(help="The rows: .csv .tsv .jsonl .parquet .letor/.txt/.svm; several files are parts of one."),
]
Query = Annotated[str, typer.Option("--query", help="Column of the query id.", rich_help_panel=COLUMNS)]
Item = Annotated[
    str | None, typer.Option("--item", help="Column of the item id ('item' if there is one).", rich_help_panel=COLUMNS)
]
Relevance = Annotated[str, typer.Option("--relevance", help="Column of the relevance.", rich_help_panel=COLUMNS)]
Group = Annotated[str, typer.Option("--group", help="Column of the group; empty is unknown.", rich_help_panel=COLUMNS)]
Score = Annotated[
    str, typer.Option("--score", help="Column of the score; higher ranks first.", rich_help_panel=COLUMNS)
]
Features = Annotated[
    str | None,
    typer.Option(
        "--features",
        help="Feature columns, comma-separated; default: every other numeric column.",
        rich_help_panel=COLUMNS,
    ),
]
Threshold = Annotated[
    float, typer.Option("--threshold", help="Relevance at or above it counts as relevant.", rich_help_panel=COLUMNS)
]
Json = Annotated[bool, typer.Option("--json", help="Print machine-readable results instead of tables.")]
Ks = Annotated[str, typer.Option("--k", help="Cut-offs, comma-separated.")]


def cut_offs(text: str) -> list[int]:
    """Whole numbers from "1,3,5"."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"--k must be whole numbers ≥ 1, comma-separated; got {text!r}.")
    return sorted({int(part) for part in parts})


def names(text: str | None) -> list[str] | None:
    """Column names from "a,b,c"."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]
