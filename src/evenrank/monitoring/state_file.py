"""States of monitors as files: numpy's archives without Python objects, with a version and a digest."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, fields
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import DataError, EvenrankError, shortened
from evenrank.io.archives import load_archive
from evenrank.io.files import write_whole
from evenrank.monitoring.monitor import Monitor, Window
from evenrank.monitoring.series import BINS, COLUMNS, Series, Table
from evenrank.monitoring.windows import PERIOD, in_order

FORMAT = "evenrank-monitor"
VERSION = 2  # 2: means and rates by kind of list
SETTINGS = ("measures", "window", "timezone", "k", "labelled", "items", "cluster_names")
ARRAYS = ("key", "values", "ids")
TYPES: dict[str, type] = {"str": str, "int": int}  # of the fields of a series
MOST = 1e100  # what sums stay below


def save(state: Monitor, path: str | PathLike[str]) -> None:
    """Write a state, whole or not at all.

    Parameters
    ----------
    state : Monitor
        The state.
    path : str or path
        The file.
    """
    ids = [window.ids for window in state.windows]
    arrays = {
        "key": state.table.key,
        "values": state.table.values,
        "ids": np.concatenate([np.zeros(0, np.uint64), *ids]),
    }
    header = {
        "format": FORMAT,
        "version": VERSION,
        "bins": BINS,
        "settings": {name: getattr(state, name) for name in SETTINGS},
        "series": [asdict(series) for series in state.table.series],
        "windows": [
            {"key": window.key, "lists": window.lists, "rows": window.rows, "late": window.late}
            for window in state.windows
        ],
    }
    text = json.dumps(header, sort_keys=True)
    buffer = io.BytesIO()
    parts: dict[str, Any] = {"header": np.array(text), "check": np.array(_digest(text, arrays)), **arrays}
    np.savez_compressed(buffer, **parts)
    write_whole(Path(path), buffer.getvalue())


def load(path: str | PathLike[str]) -> Monitor:
    """Read a state.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Monitor
        As it was saved.

    Raises
    ------
    DataError
        If the file is none, is damaged or is of another version.
    """
    refusal = "is no state of a monitor, or is damaged. Take a copy of it, or begin anew."
    archive = load_archive(path, refusal)
    try:
        text, check = str(archive["header"]), str(archive["check"])
        arrays = {name: archive[name] for name in ARRAYS}
        header = json.loads(text)
        version = (header["version"], header["bins"]) if header["format"] == FORMAT else None
    except (KeyError, TypeError, ValueError, RecursionError):
        raise DataError(f"{path}: {refusal}") from None
    if version != (VERSION, BINS):
        raise DataError(f"{path}: a state of version {VERSION} is needed; got {shortened(str(version))}. Begin anew.")
    try:
        if check != _digest(text, arrays):
            raise ValueError
        return _state(header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, EvenrankError):
        raise DataError(
            f"{path}: the state's parts do not fit together; the file is damaged. Take a copy of it, or begin anew."
        ) from None


def _state(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Monitor:
    settings = dict(header["settings"])
    settings["cluster_names"] = tuple(settings["cluster_names"])
    state = Monitor(**settings)
    if list(state.measures) != settings["measures"]:
        raise ValueError
    ends = np.cumsum([0, *(window["lists"] for window in header["windows"])])
    key, values, ids = (arrays[name] for name in ARRAYS)
    series = tuple(Series(**one) for one in header["series"])
    if any(type(getattr(one, field.name)) is not TYPES[str(field.type)] for one in series for field in fields(Series)):
        raise ValueError
    width = len(header["windows"]) * BINS
    keys = [window["key"] for window in header["windows"]]
    kind = str if state.window == PERIOD else int
    sound = (
        key.dtype == np.int64
        and values.dtype == np.float64
        and ids.dtype == np.uint64
        and values.shape == (len(key), COLUMNS)
        and bool((np.abs(values) < MOST).all())
        and bool((values[:, 1:] > -1e-6).all())  # numbers, variances and weights, but for rounding
        and bool((key[1:] > key[:-1]).all())  # a difference may overflow
        and (not len(key) or (key[0] >= 0 and key[-1] < len(series) * width))
        and ends[-1] == len(ids)
        and all(isinstance(one, kind) and not isinstance(one, bool) for one in keys)
        and keys == in_order(keys)
        and list(series) == sorted(set(series))
    )
    if not sound:
        raise ValueError
    windows = tuple(
        Window(one["key"], state.rule.label(one["key"]), ids[start:stop], int(one["rows"]), int(one["late"]))
        for one, start, stop in zip(header["windows"], ends[:-1], ends[1:], strict=True)
    )
    table = Table(series, key, values, len(windows))
    object.__setattr__(state, "windows", windows)
    object.__setattr__(state, "table", table)
    return state


def _digest(text: str, arrays: dict[str, NDArray[Any]]) -> str:
    digest = blake2b(text.encode(), digest_size=16)
    for name in ARRAYS:
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
