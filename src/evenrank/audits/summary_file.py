"""Summaries as files: numpy's archives without Python objects, with a version and a digest, checked on loading."""

from __future__ import annotations

import io
import json
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.audits.summary import QUALITY, VALUES, Summary
from evenrank.errors import DataError, shortened
from evenrank.io.archives import load_archive
from evenrank.io.files import write_whole
from evenrank.io.limits import byte_limit

FORMAT = "evenrank-summary"
VERSION = 2
ARRAYS = ("query_ids", "lengths", "relevant", "key", "count", "weight", "sums", "squares", "quality", "marks")
ROWS = ("items", "first", "size")
LABELS = (bool, int, float, str)
MOST = 1e100  # what sums stay below
MOST_K = 2**62


def save(summary: Summary, path: str | PathLike[str]) -> None:
    """Write a summary, whole or not at all.

    Parameters
    ----------
    summary : Summary
        The summary.
    path : str or path
        The file.
    """
    arrays = {name: getattr(summary, name) for name in ARRAYS}
    arrays |= {f"cluster_{j}": ids for j, ids in enumerate(summary.clusters)}
    if summary.items is not None:
        arrays |= {name: getattr(summary, name) for name in ROWS}
    labels = [name if isinstance(name, LABELS) else str(name) for name in summary.group_names]
    header = {
        "format": FORMAT,
        "version": VERSION,
        "ks": summary.ks,
        "labelled": summary.labelled,
        "groups": labels,
        "clusters": summary.cluster_names,
        "items": summary.items is not None,
        "weighted": summary.weighted,
        "check": _digest(arrays),
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, header=np.array(json.dumps(header)), **arrays)
    write_whole(Path(path), buffer.getvalue())


def load(path: str | PathLike[str]) -> Summary:
    """Read a summary.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Summary
        As it was saved.

    Raises
    ------
    DataError
        If the file is none, is damaged or is of a later version.
    """
    refusal = "is no summary of an audit, or is damaged. Make it again."
    arrays = load_archive(path, refusal)
    try:
        header = json.loads(str(arrays.pop("header")))
        version = header["version"] if header["format"] == FORMAT else None
    except (KeyError, TypeError, ValueError, RecursionError):
        raise DataError(f"{path}: {refusal}") from None
    if version != VERSION:
        raise DataError(
            f"{path}: a summary of version {VERSION} is needed; got {shortened(repr(version))}. Make it again."
        )
    try:
        if header["check"] != _digest(arrays) or not _plain(header):
            raise ValueError
        held: dict[str, Any] = {name: arrays[name] for name in (*ARRAYS, *(ROWS if header["items"] else ()))}
        summary = Summary(
            ks=tuple(header["ks"]),
            labelled=bool(header["labelled"]),
            group_names=tuple(header["groups"]),
            clusters=tuple(arrays[f"cluster_{j}"] for j in range(len(header["clusters"]))),
            cluster_names=tuple(header["clusters"]),
            weighted=bool(header["weighted"]),
            **held,
        )
        if not _sound(summary):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise DataError(
            f"{path}: the summary's parts do not fit together; the file is damaged. Make it again."
        ) from None
    return summary


def _plain(header: dict[str, Any]) -> bool:
    """Whether cut-offs are whole numbers, and groups and clusterings have names; halves of pairs are a ValueError."""
    return (
        all(isinstance(header[name], list) for name in ("ks", "groups", "clusters"))
        and all(isinstance(k, int) and not isinstance(k, bool) and 0 < k <= MOST_K for k in header["ks"])
        and all(isinstance(name, LABELS) for name in header["groups"])
        and all(isinstance(name, str) for name in header["clusters"])
        and json.dumps([header["groups"], header["clusters"]], ensure_ascii=False).encode() != b""
    )


def _digest(arrays: dict[str, NDArray[Any]]) -> str:
    digest = blake2b(digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _sound(summary: Summary) -> bool:
    """Whether the arrays fit together."""
    q, e, cuts = summary.n_queries, len(summary.key), len(summary.ks)
    shapes = {
        (q,): (summary.query_ids, summary.lengths, summary.relevant, summary.marks, *summary.clusters),
        (e,): (summary.key, summary.count, summary.weight),
        (len(VALUES), cuts, e): (summary.sums, summary.squares),
        (len(QUALITY) if summary.labelled else 0, cuts, q): (summary.quality,),
    }
    if any(array.shape != shape for shape, arrays in shapes.items() for array in arrays):
        return False
    whole, real = (summary.lengths, summary.relevant, summary.key), (summary.count, summary.weight, summary.sums)
    if not all(array.dtype.kind in "iu" and (array >= 0).all() for array in whole):
        return False
    if not all(array.dtype == np.float64 and (np.abs(array) < MOST).all() for array in (*real, summary.squares)):
        return False
    if summary.quality.dtype.kind != "f" or summary.marks.dtype != np.uint64 or (summary.count < 0).any():
        return False
    # Quality may be NaN where it is not defined. A list is as long as the rows that were read, which fitted in memory.
    if (np.abs(summary.quality.astype(np.float64)) >= MOST).any() or (summary.weight < 0).any():
        return False
    if (summary.relevant > summary.lengths).any() or 8 * int(summary.lengths.max(initial=0)) > byte_limit():
        return False
    rows = () if summary.items is None else (summary.items, summary.first, summary.size)
    width = 2 * summary.n_groups
    return bool(
        q
        and cuts
        and (summary.key[1:] > summary.key[:-1]).all()  # a difference may overflow
        and (e == 0 or (summary.key[0] >= 0 and summary.key[-1] < q * width))
        and (summary.query_ids[1:] > summary.query_ids[:-1]).all()
        and all(array is not None and array.shape == (int(summary.count.sum()),) for array in rows)
    )
