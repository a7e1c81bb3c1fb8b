"""numpy's archives (.npz): read without Python objects, and not beyond what a file may unpack to."""

from __future__ import annotations

import io
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import DataError
from evenrank.io.files import unreadable
from evenrank.io.limits import too_large, unpacked_limit


def load_archive(path: str | PathLike[str], refusal: str) -> dict[str, NDArray[Any]]:
    """Read all arrays of an archive.

    Parameters
    ----------
    path : str or path
        The file.
    refusal : str
        What an error says of a file that is none, or is damaged.

    Returns
    -------
    dict
        By name.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise unreadable(Path(path), error) from None
    limit = unpacked_limit(len(content))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size <= limit:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
    except Exception:  # a damaged archive raises errors of a dozen kinds
        raise DataError(f"{path}: {refusal}") from None
    raise too_large(str(path), f"{len(content):,} bytes unpack to", size, limit)
