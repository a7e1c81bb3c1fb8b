"""LETOR / SVMlight rows, ``2 qid:1 1:3 2:0.5 # docid = 7``: features named by their number, absent ones 0."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.io.columns import Columns, MissingColumn, labels, whole_ids
from evenrank.io.files import Text, load_text
from evenrank.io.letor_rows import LetorRows, parse_rows

BLOCK_BYTES = 1 << 24
MOST_CELLS = 1 << 33


def read_letor(paths: Sequence[Path], columns: Columns) -> RankingData:
    """Rows of one or more files. ``group``, ``sample_weight`` and ``score`` name a feature by its number.

    The format has no group column, so the default ``"group"`` means none; ``item="docid"`` takes ids from
    comments such as ``# docid = GX008-86``.
    """
    columns.refuse_trec("a LETOR file")
    text = load_text(paths)
    blocks = [parse_rows(block, text, line) for block, line in _blocks(text.data)]
    if not any(len(block.relevance) for block in blocks):
        raise DataError(f"{text.name}: the file has no rows; at least one is needed.")
    lines = np.concatenate([block.lines for block in blocks])
    relevance = np.concatenate([block.relevance for block in blocks])
    queries = pl.Series([query for block in blocks for query in block.queries], dtype=pl.String)
    features, names = _matrix(blocks, text)
    group = None if columns.group == "group" and "group" not in names else columns.group
    chosen = [columns.score] if columns.score is not None else columns.features
    used = {name for name in (group, columns.sample_weight, *columns.ignore) if name is not None}
    position = {name: j for j, name in enumerate(names)}
    role = "score" if columns.score is not None else "features"
    for part, name in (("group", group), ("sample_weight", columns.sample_weight), *((role, c) for c in chosen or ())):
        if name is not None and name not in position:
            have = f"{names[0]} to {names[-1]}" if names else "none"
            fact = f"{text.name}: feature {name!r} is not in the data; it has {have}."
            raise MissingColumn(part, fact, f"Name a feature by its number with {part}=.")
    group_labels = None if group is None else _labels(features[:, position[group]])
    weight = None if columns.sample_weight is None else features[:, position[columns.sample_weight]]
    if chosen is None and used:
        chosen = [name for name in names if name not in used]
    if chosen is not None:
        features = features[:, [position[name] for name in chosen]]
    return RankingData.from_arrays(
        features,
        relevance,
        group_labels,
        labels(whole_ids(queries)),
        item_ids=None if columns.item is None else _items(text, lines, columns.item),
        feature_names=chosen or names,
        relevance_threshold=columns.relevance_threshold,
        sample_weight=weight,
        locate=lambda row: text.place(int(lines[row])),
    )


def _blocks(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Pieces of whole lines, and the number of lines before each: parsing needs several times a piece's size."""
    start = line = 0
    while start < len(data):
        stop = data.find(b"\n", start + BLOCK_BYTES) + 1 or len(data)
        yield data[start:stop], line
        line += data.count(b"\n", start, stop)
        start = stop


def _matrix(blocks: list[LetorRows], text: Text) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """The dense features, (n, d); features are counted from 0 if any row has a feature 0, else from 1."""
    filled = [block.index for block in blocks if len(block.index)]
    first = int(min((index.min() for index in filled), default=1) > 0)
    last = int(max((index.max() for index in filled), default=first - 1))
    d, n = last - first + 1, sum(len(block.relevance) for block in blocks)
    if n * d > MOST_CELLS:
        raise DataError(
            f"{text.name}: {n} rows × {d} features need {n * d >> 27} GB as a table; "
            f"the largest feature number is {last}. Renumber or drop features."
        )
    out = np.zeros((n, d))
    start = 0
    for block in blocks:
        stop = start + len(block.relevance)
        if len(block.index) == (stop - start) * d:  # indices increase within a row, so a full row has all of them
            out[start:stop] = block.values.reshape(stop - start, d)
        else:
            out[np.repeat(np.arange(start, stop), block.counts), block.index - first] = block.values
        start = stop
    return out, tuple(str(j) for j in range(first, last + 1))


def _labels(values: NDArray[np.float64]) -> NDArray[Any]:
    """A feature as group labels: 0 and 1 rather than 0.0 and 1.0."""
    whole = (np.abs(values) < 2**53) & (values == np.trunc(values))
    return values.astype(np.int64) if whole.all() else values


def _items(text: Text, lines: NDArray[np.int64], key: str) -> NDArray[Any]:
    """Ids from the comments at the end of the rows."""
    pattern = re.compile(rb"#.*?(?<!\w)" + re.escape(key.encode()) + rb"\s*[=:]\s*(\S+)")
    written = text.data.split(b"\n")
    items = []
    for line in lines.tolist():
        found = pattern.search(written[line - 1])
        if found is None:
            raise DataError(
                f"{text.place(line)}: item {key!r} must be in the comment at the end of the row, "
                f"as in '# {key} = 7'; it is not there. Pass item=None to do without item ids."
            )
        items.append(found[1].decode())
    return labels(whole_ids(pl.Series(items, dtype=pl.String)))
