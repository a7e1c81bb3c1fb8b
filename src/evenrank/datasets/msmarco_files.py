"""The layouts of MS MARCO's question-answering files, each read as a stream of records, one per query."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenrank.datasets.json_scan import CHUNK, JsonScanner
from evenrank.errors import DataError
from evenrank.features.spool import TextSpool
from evenrank.io.files import need_utf8_name, unreadable
from evenrank.io.parquet_footer import BadParquet, read_footer
from evenrank.io.parquet_pages import refuse_odd_pages
from evenrank.row_checks import listed

NEEDED = ("passages", "query", "query_id")
PASSAGE = ("is_selected", "passage_text", "url")
PARQUET_ROWS = 5000
_PEEK = 1 << 12
# Columns as the outermost keys, their values keyed by row number: {"answers": {"0": …
_COLUMNS = re.compile(r'\{\s*(?:"\w+"\s*:\s*\{\s*\}\s*,\s*)*"\w+"\s*:\s*\{\s*"\d+"\s*:')


class Passage(NamedTuple):
    """A passage of a query.

    Attributes
    ----------
    selected : bool
        Whether it was selected for the answer.
    text : str
        What it says.
    url : str or None
        The address it came from, if known.
    """

    selected: bool
    text: str
    url: str | None


class Record(NamedTuple):
    """A query and its passages.

    Attributes
    ----------
    query_id : int or str
        Its id.
    query : str
        Its text.
    passages : list of Passage
        In the order of the file.
    """

    query_id: int | str
    query: str
    passages: list[Passage]


def read_records(
    path: Path, *, limit: int | None = None, chunk: int = CHUNK, folder: Path | None = None
) -> Iterator[Record]:
    """Read the records of a file of any layout, in the order of the file's passages.

    The content decides what the layout is: Parquet; an object of columns keyed by row number (the official files,
    whose passages wait in a temporary file until their queries come); an array of records; records one after the other
    (JSON lines). All but Parquet may be gzip.

    Parameters
    ----------
    path : Path
        The file.
    limit : int, optional
        Stop after this number of records.
    chunk : int
        Bytes of JSON read at a time.
    folder : Path, optional
        Where temporary files are made; None is the system's folder for them.

    Yields
    ------
    Record
        One per query.
    """
    if limit == 0:
        return
    reader = _parquet(path) if _begins(path) == b"PAR1" else _json(path, limit, chunk, folder)
    for number, record in enumerate(reader, 1):
        yield record
        if number == limit:
            return


def _begins(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as error:
        raise unreadable(path, error) from None


# ---------------------------------------------------------------------- JSON


def _json(path: Path, limit: int | None, chunk: int, folder: Path | None) -> Iterator[Record]:
    with JsonScanner(path, chunk=chunk) as scanner:
        first = scanner.peek()
        if not first:
            raise DataError(f"{path}: the file is empty; at least one query is needed.")
        if first == "[":
            yield from _array(scanner)
        elif first != "{":
            raise scanner.wrong(f"an object or an array is needed; got {first!r}")
        elif _COLUMNS.match(scanner.ahead(_PEEK)):
            with TextSpool(folder) as passages, TextSpool(folder) as queries, TextSpool(folder) as ids:
                yield from _columns(scanner, limit, {"passages": passages, "query": queries, "query_id": ids})
        else:
            while scanner.peek():
                yield _next_record(scanner)


def _array(scanner: JsonScanner) -> Iterator[Record]:
    scanner.take("[")
    if scanner.taken("]"):
        return
    while True:
        yield _next_record(scanner)
        if not scanner.taken(","):
            scanner.take("]")
            return


def _next_record(scanner: JsonScanner) -> Record:
    place = f"{scanner.path}:{scanner.line}"
    return _record(scanner.value(), place)


def _columns(scanner: JsonScanner, limit: int | None, spools: Mapping[str, TextSpool]) -> Iterator[Record]:
    keys: dict[str, array[int]] = {}
    names: list[str] = []
    for name in scanner.keys():  # noqa: SIM118
        names.append(name)
        if name in keys:
            raise scanner.wrong(f"column {name!r} occurs twice")
        rows = keys.setdefault(name, array("q")) if name in NEEDED else array("q")
        for key in scanner.keys():  # noqa: SIM118
            if name not in NEEDED or (name == "passages" and len(rows) == limit):
                scanner.value()
                continue
            if not key.isdecimal():
                raise scanner.wrong(f"a row number is needed as the key in column {name!r}; got {key!r}")
            rows.append(int(key))
            spools[name].append(scanner.source())
    if scanner.peek():
        raise scanner.wrong("nothing may follow the object of columns")
    absent = [name for name in NEEDED if name not in keys]
    if absent:
        raise DataError(f"{scanner.path}: column {absent[0]!r} is needed; the file has {listed(names)}.")
    places = {name: np.array(rows, np.int64) for name, rows in keys.items()}
    matches = {name: _match(scanner.path, places["passages"], places[name], name) for name in ("query", "query_id")}
    for number, row in enumerate(places["passages"].tolist()):
        fields = {name: json.loads(spools[name][int(at[number])]) for name, at in matches.items()}
        yield _record(fields | {"passages": json.loads(spools["passages"][number])}, f"{scanner.path}: row {row}")


def _match(path: Path, wanted: NDArray[np.int64], rows: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    """Where each wanted row stands among a column's rows."""
    order = np.argsort(rows, kind="stable")
    places = np.searchsorted(rows, wanted, sorter=order)
    at = order[np.minimum(places, len(rows) - 1)] if len(rows) else np.zeros(len(wanted), np.int64)
    lost = rows[at] != wanted if len(rows) else np.ones(len(wanted), bool)
    if lost.any():
        raise DataError(f"{path}: row {wanted[np.argmax(lost)]} is in column 'passages' but not in {name!r}.")
    return at


# ---------------------------------------------------------------------- Parquet


def _parquet(path: Path) -> Iterator[Record]:
    import polars as pl

    need_utf8_name(path)
    try:
        footer = read_footer(path)
        refuse_odd_pages(path, [chunk for chunk in footer.chunks if chunk.column in NEEDED])
    except BadParquet:
        raise _damaged(path) from None
    names = footer.names
    for name in NEEDED:
        if name not in names:
            raise DataError(f"{path}: column {name!r} is needed; the file has {listed(names)}.")
    table = pl.scan_parquet(path, glob=False, hive_partitioning=False).select(NEEDED)
    start = 0
    while True:
        try:
            part = table.slice(start, PARQUET_ROWS).collect()
        except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError):
            raise _damaged(path) from None
        for row, fields in enumerate(part.iter_rows(named=True), start):
            yield _record(fields, f"{path}: row {row}")
        start += part.height
        if part.height < PARQUET_ROWS:
            return


def _damaged(path: Path) -> DataError:
    return DataError(f"{path}: is not a Parquet file, or is damaged or cut short. Write or download it again.")


# ---------------------------------------------------------------------- checks


def _record(fields: Any, place: str) -> Record:
    if not isinstance(fields, Mapping):
        raise DataError(f"{place}: each record must be an object; got {_shown(fields)}.")
    for name in NEEDED:
        if fields.get(name) is None:
            state = "empty" if name in fields else f"absent; the record has {listed(fields)}"
            raise DataError(f"{place}: {name!r} is needed and is {state}.")
    query_id, query = fields["query_id"], fields["query"]
    if isinstance(query_id, bool) or not isinstance(query_id, int | str) or query_id == "":
        raise DataError(f"{place}: 'query_id' must be a whole number or a text; got {_shown(query_id)}.")
    if not isinstance(query, str):
        raise DataError(f"{place}: 'query' must be a text; got {_shown(query)}.")
    return Record(query_id, query, [_passage(*values, place) for values in _passages(fields["passages"], place)])


def _passages(content: Any, place: str) -> Iterator[tuple[Any, Any, Any]]:
    """Selected, text and url of each passage, from a list of objects or an object of lists."""
    if isinstance(content, Mapping):
        _refuse_absent(content, place)
        selected, texts = content["is_selected"], content["passage_text"]
        urls = content.get("url")
        urls = [None] * len(texts) if urls is None else urls
        for name, values in zip(PASSAGE, (selected, texts, urls), strict=True):
            if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != len(texts):
                raise DataError(f"{place}: {name!r} of the passages must be a list with one value per passage.")
        yield from zip(selected, texts, urls, strict=True)
        return
    if not isinstance(content, list):
        raise DataError(f"{place}: 'passages' must be a list of passages or an object of lists; got {_shown(content)}.")
    for passage in content:
        if not isinstance(passage, Mapping):
            raise DataError(f"{place}: each passage must be an object; got {_shown(passage)}.")
        if "is_selected" not in passage or "passage_text" not in passage:
            _refuse_absent(passage, place)
        yield passage["is_selected"], passage["passage_text"], passage.get("url")


def _refuse_absent(content: Mapping[str, Any], place: str) -> None:
    for name in PASSAGE[:2]:
        if name not in content:
            hint = " The evaluation file has no judgements; use train or dev." if name == "is_selected" else ""
            raise DataError(f"{place}: {name!r} is needed in the passages; they have {listed(content)}.{hint}")


def _passage(selected: Any, text: Any, url: Any, place: str) -> Passage:
    if selected not in (0, 1):
        raise DataError(f"{place}: 'is_selected' must be 0 or 1; got {_shown(selected)}.")
    if not isinstance(text, str):
        raise DataError(f"{place}: 'passage_text' must be a text; got {_shown(text)}.")
    if url is not None and not isinstance(url, str):
        raise DataError(f"{place}: 'url' must be a text; got {_shown(url)}.")
    return Passage(bool(selected), text, url or None)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
