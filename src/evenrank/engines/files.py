"""Parquet files, folders of them and globs, checked by their footers before an engine reads them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from evenrank.engines.engine import Roles
from evenrank.errors import DataError
from evenrank.io.files import need_utf8_name, unreadable
from evenrank.io.parquet import refuse_other_ids
from evenrank.io.parquet_footer import BadParquet, read_footer
from evenrank.io.row_files import parquet_parts
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
        As `evenrank.scan` finds them.
    title : str
        What an error calls them.
    """
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    files = parquet_parts(given)
    for file in files:
        if not file.exists():
            raise DataError(f"{file}: there is no such file. Check the path.")
        need_utf8_name(file)
    return files, str(given[0])


def checked_parts(paths: Sequence[Path], roles: Roles) -> int:
    """Check that each file is Parquet and has the columns that the first one has of those named; counts the rows."""
    named = {roles.query, roles.relevance, roles.group, roles.order, roles.item, roles.sample_weight, *roles.cluster}
    footers = []
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
        for name in wanted:
            alike = [other for other in footer.names if other != name and other.lower() == str(name).lower()]
            if alike:
                raise DataError(
                    f"{path}: columns {name!r} and {alike[0]!r} differ in case alone, which an engine does not tell "
                    "apart. Rename one."
                )
        footers.append(footer)
    if roles.query in wanted:
        refuse_other_ids(paths, footers, roles.query)
    return sum(footer.n_rows for footer in footers)
