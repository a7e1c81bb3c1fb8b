"""LETOR / SVMlight rows, ``2 qid:1 1:3 2:0.5 # docid = 7``: features named by their number, absent ones 0.

The columns are the feature numbers that occur: a number is a name and not a size, and ``999999999:1`` is one column.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.categories import numbered
from evenrank.data import RankingData
from evenrank.errors import DataError, DataWarning
from evenrank.frame_columns import refuse_contradiction
from evenrank.io.columns import Columns, MissingColumn
from evenrank.io.files import Text, load_text
from evenrank.io.letor_rows import MOST_INDEX, LetorRows, parse_rows
from evenrank.io.limits import byte_limit, too_large
from evenrank.io.values import labels, whole_ids
from evenrank.row_checks import listed

BLOCK_BYTES = 1 << 24
DOCID, PEEK = "docid", 1 << 16
WHOLE = re.compile("0|[1-9][0-9]{0,17}")


def read_letor(paths: Sequence[Path], columns: Columns) -> RankingData:
    """Read LETOR files. ``group``, ``sample_weight`` and ``score`` name a feature by its number.

    The format has no group column, so the default ``"group"`` means none. Item ids come from comments: ``item="docid"``
    takes them from ``# docid = GX008-86``, or from ``#GX008-86`` where the comment is one word; ``item=None`` takes
    ``docid`` where every row has one. Of several ``features`` asked for, those that never occur are 0.

    Parameters
    ----------
    paths : sequence of Path
        The files, read as one.
    columns : Columns
        The caller's choice of features.
    """
    columns.refuse_trec("a LETOR file")
    text = load_text(paths)
    blocks = [parse_rows(block, text, line) for block, line in _blocks(text.data)]
    if not any(len(block.relevance) for block in blocks):
        raise DataError(f"{text.name}: the file has no rows; at least one is needed.")
    lines = np.concatenate([block.lines for block in blocks])
    relevance = np.concatenate([block.relevance for block in blocks])
    queries = pl.Series([query for block in blocks for query in block.queries], dtype=pl.String)
    features, names = _matrix(blocks, text, columns.features or ())
    group = None if columns.group == "group" and "group" not in names else columns.group
    chosen = [columns.score] if columns.score is not None else columns.features
    if columns.features is not None and columns.score is None:
        chosen = list(dict.fromkeys([*columns.features, *columns.categorical]))
    refuse_contradiction(columns.categorical, columns.ignore)
    used = {name for name in (group, columns.sample_weight, *columns.ignore) if name is not None} - {
        *columns.categorical
    }
    position = {name: j for j, name in enumerate(names)}
    role = "score" if columns.score is not None else "features"
    parts = [("group", group), ("sample_weight", columns.sample_weight), *((role, name) for name in chosen or ())]
    parts += [("categorical", name) for name in columns.categorical]
    # One that never occurs may be 0 everywhere, unless it is beyond the last.
    parts += [
        ("ignore", name)
        for name in columns.ignore
        if name != columns.group and not (WHOLE.fullmatch(name) and names and int(name) <= int(names[-1]))
    ]
    for part, name in (*parts, *columns.labels.wanted):
        if name is not None and name not in position:
            gapless = bool(names) and int(names[-1]) - int(names[0]) + 1 == len(names)
            have = f"{names[0]} to {names[-1]}" if gapless else listed(names)
            fact = f"{text.name}: feature {name!r} is not in the data; it has {have}."
            raise MissingColumn(part, fact, f"Name a feature by its number with {part}=.", name)
    group_labels = None if group is None else _labels(features[:, position[group]])
    columns.labels.values.update({name: _labels(features[:, position[name]]) for _, name in columns.labels.wanted})
    weight = None if columns.sample_weight is None else features[:, position[columns.sample_weight]]
    if chosen is None and used:
        chosen = [name for name in names if name not in used]
    if chosen is not None:
        features = features[:, [position[name] for name in chosen]]
    categories = {}
    for name in columns.categorical if columns.score is None else ():
        column = list(chosen or names).index(name)
        features[:, column], categories[name] = numbered(_labels(features[:, column]))
    return RankingData.from_arrays(
        features,
        relevance,
        group_labels,
        labels(whole_ids(queries)),
        item_ids=_docids(text, lines, queries) if columns.item is None else _items(text, lines, columns.item),
        feature_names=chosen or names,
        relevance_threshold=columns.relevance_threshold,
        sample_weight=weight,
        categories=categories,
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


def _matrix(blocks: list[LetorRows], text: Text, wanted: Sequence[str]) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """The dense features, (n, d), in the order of their numbers."""
    occurring = np.unique(np.concatenate([np.zeros(0, np.int64), *(_numbers(block.index) for block in blocks)]))
    numbers = _with_absent(occurring, wanted)
    d, n = len(numbers), sum(len(block.relevance) for block in blocks)
    if n * d * 8 > byte_limit():
        raise too_large(text.name, f"{n} rows × {d} features need", n * d * 8, byte_limit())
    out = np.zeros((n, d))
    start = 0
    gapless = bool(d) and int(numbers[-1] - numbers[0]) + 1 == d
    for block in blocks:
        stop = start + len(block.relevance)
        if len(block.index) == (stop - start) * d:  # indices increase within a row, so a full row has all of them
            out[start:stop] = block.values.reshape(stop - start, d)
        else:
            column = block.index - numbers[0] if gapless else np.searchsorted(numbers, block.index)
            out[np.repeat(np.arange(start, stop), block.counts), column] = block.values
        start = stop
    return out, tuple(map(str, numbers.tolist()))


def _numbers(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different feature numbers of a block; counting is much faster than sorting where they are small."""
    if not len(index) or index.max() > len(index):
        return np.unique(index)
    return np.flatnonzero(np.bincount(index))


def _with_absent(occurring: NDArray[np.int64], wanted: Sequence[str]) -> NDArray[np.int64]:
    """Features of a model that no row of this file has: absent is 0 in this format, also in all rows."""
    numbers = {int(name) for name in wanted if WHOLE.fullmatch(name) and int(name) <= MOST_INDEX}
    absent = sorted(numbers - set(occurring.tolist()))
    if not absent or len(absent) == len(wanted):
        return occurring
    warnings.warn(f"features {listed(map(str, absent))} do not occur and are 0 in all rows", DataWarning, stacklevel=5)
    return np.union1d(occurring, np.array(absent, np.int64))


def _labels(values: NDArray[np.float64]) -> NDArray[Any]:
    """A feature as group labels: 0 and 1 rather than 0.0 and 1.0."""
    is_whole = (np.abs(values) < 2**53) & (values == np.trunc(values))
    return values.astype(np.int64) if is_whole.all() else values


def _docids(text: Text, lines: NDArray[np.int64], queries: pl.Series) -> NDArray[Any] | None:
    """Ids from comments where every row has a docid that is its query's only one; None elsewhere."""
    if not re.search(rb"#.*docid", text.data[:PEEK]):
        return None
    try:
        items = _items(text, lines, DOCID)
    except DataError:
        return None
    pairs = pl.DataFrame({"query": queries, "item": pl.Series(items.tolist(), dtype=pl.String, strict=False)})
    return items if pairs.n_unique() == len(pairs) else None


def _items(text: Text, lines: NDArray[np.int64], key: str) -> NDArray[Any]:
    """Ids from the comments at the end of the rows."""
    pattern = re.compile(rb"#.*?(?<!\w)" + re.escape(key.encode()) + rb"\s*[=:]\s*(\S+)|^[^#]*#\s*([^\s=:#]+)\s*$")
    written = text.data.split(b"\n")
    items = []
    for line in lines.tolist():
        match = pattern.search(written[line - 1])
        if match is None:
            raise DataError(
                f"{text.place(line)}: item {key!r} must be in the comment at the end of the row, "
                f"as in '# {key} = 7'; it is not there. Pass item=None to do without item ids."
            )
        items.append((match[1] or match[2]).decode())
    return labels(whole_ids(pl.Series(items, dtype=pl.String)))
