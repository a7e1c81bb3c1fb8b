"""MS MARCO's records as rows: what training needs is in compact arrays, the texts are on disk."""

from __future__ import annotations

import io
import re
import warnings
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.datasets.msmarco_files import Record, read_records
from evenrank.errors import DataError, DataWarning
from evenrank.features.spool import TextSpool
from evenrank.io.files import write_whole
from evenrank.labels import tidy_labels
from evenrank.row_checks import freeze

# The suffixes that make the first group; every other host is in the group "other".
GROUPINGS = {"com": ("com",), "ext": ("com", "org", "gov", "edu", "net")}
_HOST = re.compile(r"\s*(?:(?:[a-z][a-z0-9+.\-]*:)?//)?([^/?#\\\s]*)", re.IGNORECASE)
_UNKNOWN = -1


@dataclass(frozen=True)
class Rows:
    """All about the rows but texts and features: small, so that a finished cache needs no second look at the file.

    Attributes
    ----------
    query_ids : ndarray
        (q,).
    query_ptr : ndarray
        (q + 1,): the rows of query i are ``query_ptr[i]:query_ptr[i + 1]``.
    relevance : ndarray
        (n,), 0 or 1.
    suffix : ndarray
        (n,): the number of the address's top-level domain in ``suffixes``; -1 is unknown.
    suffixes : ndarray
        The top-level domains.
    """

    query_ids: NDArray[Any]
    query_ptr: NDArray[np.int64]
    relevance: NDArray[np.uint8]
    suffix: NDArray[np.int32]
    suffixes: NDArray[np.str_]

    def groups(self, grouping: str) -> tuple[NDArray[np.int32], tuple[str, str]]:
        """Give each row's group under a grouping.

        Parameters
        ----------
        grouping : str
            One of `GROUPINGS`.

        Returns
        -------
        codes : ndarray of int32
            (n,); -1 is unknown.
        names : tuple of str
            The groups' names.
        """
        chosen = GROUPINGS[grouping]
        names = ("/".join(f".{suffix}" for suffix in chosen), "other")
        code = np.append(np.where(np.isin(self.suffixes, chosen), 0, 1), _UNKNOWN)
        return code[self.suffix].astype(np.int32), names

    def save(self, path: Path, data: str) -> None:
        """Write the rows, with a digest of them and of what they were made from.

        Parameters
        ----------
        path : Path
            The file.
        data : str
            The fingerprint of what they were made from.
        """
        buffer = io.BytesIO()
        np.savez(buffer, **vars(self), check=np.array(self._digest(data)))
        write_whole(path, buffer.getvalue())

    @classmethod
    def load(cls, path: Path, data: str, *, bound: bool = True) -> Rows | None:
        """Read the rows as they were saved; None if they are damaged or of other data.

        Parameters
        ----------
        path : Path
            The file.
        data : str
            The fingerprint of what they should be made from.
        bound : bool
            False takes rows without a digest, as older caches have them, if they fit together.
        """
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as content:
                rows = cls(**{name: content[name] for name in cls.__dataclass_fields__})
                check = str(content["check"]) if "check" in content else None
        except Exception:  # a damaged archive raises errors of a dozen kinds
            return None
        if not all(isinstance(part, np.ndarray) for part in vars(rows).values()):
            return None  # what does not begin as an array comes as bytes
        proven = check == rows._digest(data) if check is not None or bound else True
        return rows if proven and rows._sound() else None

    def _digest(self, data: str) -> str:
        digest = blake2b(data.encode(), digest_size=16)
        for array_ in vars(self).values():
            digest.update(f"{array_.dtype.str}{array_.shape}".encode())
            digest.update(np.ascontiguousarray(array_).tobytes())
        return digest.hexdigest()

    def _sound(self) -> bool:
        """Whether the arrays fit together."""
        kinds = [(self.query_ids, "iuU"), (self.query_ptr, "i"), (self.relevance, "u"), (self.suffix, "i")]
        if any(values.ndim != 1 or values.dtype.kind not in kind for values, kind in [*kinds, (self.suffixes, "U")]):
            return False
        number = len(self.relevance)
        ends, codes = self.query_ptr, self.suffix
        return bool(
            len(codes) == number > 0
            and len(ends) == len(self.query_ids) + 1
            and (ends[0], ends[-1]) == (0, number)
            and (np.diff(ends) > 0).all()
            and len(np.unique(self.query_ids)) == len(self.query_ids)
            and self.relevance.max() <= 1
            and codes.min() >= _UNKNOWN
            and codes.max() < len(self.suffixes)
        )


class TextPairs:
    """The rows' texts, on disk: each query once, and each passage."""

    def __init__(self, queries: TextSpool, passages: TextSpool) -> None:
        self.queries, self.passages = queries, passages
        self.query_of_row = array("i")

    def __len__(self) -> int:
        return len(self.passages)

    def between(self, start: int, stop: int) -> tuple[list[str], list[str]]:
        """Give the queries and passages of rows ``start`` to ``stop`` - 1."""
        numbers = self.query_of_row[start:stop]
        texts = self.queries.between(numbers[0], numbers[-1] + 1)
        return [texts[number - numbers[0]] for number in numbers], self.passages.between(start, stop)


def collect(paths: Sequence[Path], limit: int | None, folder: Path, texts: TextPairs) -> Rows:
    """Go through the files once; texts go to disk and the rest to compact arrays.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    limit : int or None
        Read only this number of queries.
    folder : Path
        Where temporary files are made.
    texts : TextPairs
        Where the texts go.

    Returns
    -------
    Rows
        The rest.
    """
    ids: list[int | str] = []
    known_ids: set[int | str] = set()
    ends, relevance, suffix = array("q", [0]), array("B"), array("i")
    code_of: dict[str, int] = {}
    empty = 0
    for record in all_records(paths, limit, folder):
        if not record.passages:
            empty += 1
            continue
        if record.query_id in known_ids:
            raise DataError(
                f"{_named(paths)}: query_id {record.query_id!r} occurs twice; one record per query is needed."
            )
        known_ids.add(record.query_id)
        for passage in record.passages:
            relevance.append(passage.selected)
            domain = domain_suffix(passage.url)
            suffix.append(_UNKNOWN if domain is None else code_of.setdefault(domain, len(code_of)))
            texts.passages.append(passage.text)
            texts.query_of_row.append(len(ids))
        texts.queries.append(record.query)
        ids.append(record.query_id)
        ends.append(len(relevance))
    if empty:
        warnings.warn(f"{_named(paths)}: {empty} queries have no passages and are left out", DataWarning, stacklevel=6)
    if not ids:
        raise DataError(f"{_named(paths)}: no query has a passage; at least one is needed.")
    query_ids = tidy_labels(ids)
    if query_ids.dtype == object:  # numbers and texts, or numbers beyond 64 bits
        query_ids = np.array([str(value) for value in ids])
        if len(set(query_ids.tolist())) < len(ids):
            raise DataError(f"{_named(paths)}: query_id must be a number everywhere or a text; one occurs as both.")
    return Rows(
        query_ids,
        np.array(ends, np.int64),
        np.array(relevance, np.uint8),
        np.array(suffix, np.int32),
        np.array(list(code_of), np.str_),
    )


def all_records(paths: Sequence[Path], limit: int | None, folder: Path | None) -> Iterator[Record]:
    """Read the records of all files one after the other.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    limit : int or None
        The most records to read.
    folder : Path or None
        Where temporary files go.
    """
    left = limit
    for path in paths:
        for record in read_records(path, limit=left, folder=folder):
            yield record
            if left is not None:
                left -= 1


def ranking_data(rows: Rows, features: NDArray[Any]) -> RankingData:
    """Build the data without checks: the rows are known to be grouped, the ids to differ, the vectors to be finite.

    Parameters
    ----------
    rows : Rows
        The rows.
    features : ndarray
        Their vectors, (n, width).
    """
    lengths = np.diff(rows.query_ptr)
    positions = np.arange(len(rows.relevance)) - np.repeat(rows.query_ptr[:-1], lengths)
    queries = np.array([str(query) for query in rows.query_ids.tolist()])
    places = np.array([f"-{position}" for position in range(lengths.max())])
    ids = np.strings.add(np.repeat(queries, lengths), places[positions])
    return RankingData(
        features=freeze(features),
        relevance=freeze(rows.relevance.astype(np.float64)),
        group=freeze(np.full(len(ids), _UNKNOWN, np.int32)),
        query_ptr=freeze(rows.query_ptr),
        query_ids=freeze(rows.query_ids),
        item_ids=freeze(ids),
        feature_names=tuple(f"e{j}" for j in range(features.shape[1])),
        group_names=(),
    )


def domain_suffix(url: str | None) -> str | None:
    """Find the last label of the address's host; "" if it has none (an IP, localhost), None if there is no address.

    Examples
    --------
    >>> [domain_suffix(url) for url in ("HTTP://me:x@A.COM.:80/b.org", "www.b.co.uk?u=http://c.com", "10.0.0.1", None)]
    ['com', 'uk', '', None]
    """
    if url is None:
        return None
    host = _HOST.match(url)[1].rpartition("@")[2]  # type: ignore[index]
    if host.startswith("["):
        return ""
    host = host.partition(":")[0].rstrip(".").lower()
    if not host:
        return None
    name, _, last = host.rpartition(".")
    return last if name and not last.isdecimal() else ""


def _named(paths: Sequence[Path]) -> str:
    return str(paths[0]) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")
