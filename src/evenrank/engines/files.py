"""Parquet files, folders of them and globs, checked by their footers before an engine reads them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path

from evenrank.engines.engine import Roles
from evenrank.errors import DataError
from evenrank.io.files import unreadable
from evenrank.io.parquet_footer import BadParquet, read_footer
from evenrank.row_checks import listed

PathLike = str | os.PathLike[str]


def parquet_files(path: PathLike | Sequence[PathLike]) -> tuple[list[Path], str]:
    """Find the Parquet files that a path, a folder, a glob, or several of these stand for.

    Parameters
    ----------
    path : str, path or sequence of them
        What was given.

    Returns
    -------
    files : list of Path
        Sorted, each once; hidden files and those whose name begins with an underscore, as Spark writes, are left out.
    title : str
        What an error calls them.
    """
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    found: list[Path] = []
    for each in given:
        place = Path(each)
        if place.is_dir():
            inside = sorted(place.rglob("*.parquet"))
            hidden = [any(part[0] in "._" for part in file.relative_to(place).parts) for file in inside]
            files = [file for file, skip in zip(inside, hidden, strict=True) if not skip]
            if not files:
                raise DataError(f"{place}: the folder holds no file that ends in .parquet. Check the path.")
        elif not place.exists() and has_magic(str(each)):
            files = [Path(name) for name in sorted(glob(str(each), recursive=True)) if Path(name).is_file()]
            if not files:
                raise DataError(f"{each}: no file matches. Check the path.")
        elif not place.exists():
            raise DataError(f"{place}: there is no such file. Check the path.")
        else:
            files = [place]
        found += files
    if not found:
        raise DataError("path must name at least one file; got none.")
    return list(dict.fromkeys(found)), str(given[0])


def checked_parts(paths: Sequence[Path], roles: Roles) -> int:
    """Check that each file is Parquet and has the columns that the first one has of those named; counts the rows."""
    named = {roles.query, roles.relevance, roles.group, roles.order, roles.item, roles.sample_weight, *roles.cluster}
    rows = 0
    wanted: set[str | None] = set()
    for number, path in enumerate(paths):
        try:
            footer = read_footer(path)
        except OSError as error:
            raise unreadable(path, error) from None
        except BadParquet as error:
            raise DataError(f"{path}: is not a Parquet file, or is damaged ({error}). Write it again.") from None
        wanted = wanted if number else named & set(footer.names)
        absent = wanted - set(footer.names)
        if absent:
            raise DataError(f"{path}: parts of one table must have the same columns; {listed(absent)} is missing here.")
        rows += footer.n_rows
    return rows
