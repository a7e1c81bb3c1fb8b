"""In which format an audit is written, and where to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenrank.audits.layout import made_as
from evenrank.checks import choose
from evenrank.cli import show
from evenrank.cli.provenance import provenance
from evenrank.errors import ConfigError
from evenrank.extras import require
from evenrank.io.files import write_whole

FORMATS = {"text": ".txt", "json": ".json", "md": ".md", "html": ".html", "csv": ".csv", "xlsx": ".xlsx"}


def shape_of(format: str | None, out: Path | None, as_json: bool) -> str:
    """Settle the format by what was asked for, else by the name of the file; what it needs is there."""
    shape = _shape(format, out, as_json)
    if shape == "xlsx":
        if out is None:
            raise ConfigError("--format xlsx makes a workbook, which must go to a file; got none. Name it with -o.")
        require("xlsxwriter")  # before the work, not after it
    return shape


def _shape(format: str | None, out: Path | None, as_json: bool) -> str:
    if format is not None:
        choose(format, FORMATS, what="--format")
        if as_json and format != "json":
            raise ConfigError(f"--json and --format {format} ask for different outputs; give one of them.")
        return format
    if as_json:
        return "json"
    by_suffix = {suffix: name for name, suffix in FORMATS.items()}
    return by_suffix.get(out.suffix.lower(), "text") if out is not None else "text"


def made_for(shape: str, out: Path | None, files: Sequence[Path]) -> dict[str, Any]:
    """Note how the numbers were made, if the output says so: what is printed as text depends on the rows alone."""
    return provenance(files) if out is not None or shape in ("json", "html") else {}


def give(content: str | bytes, shape: str, out: Path | None, made: dict[str, Any]) -> None:
    """Print an audit, or write it to a file; text and Markdown of a file end with how the numbers were made."""
    if out is None:
        assert isinstance(content, str)
        sys.stdout.write(content)
        return
    if shape in ("text", "md") and isinstance(content, str):
        content += made_as(made, markdown=shape == "md")
    write_whole(out, content)
    show.line(f"The audit: {out}")
