"""Texts kept on disk instead of in memory, in a file that goes away with the process."""

from __future__ import annotations

import tempfile
from array import array
from errno import EIO
from itertools import pairwise
from pathlib import Path

from evenrank.io.files import OwnsFile


class TextSpool(OwnsFile):
    """A list of texts in a temporary file: append all, then read by number or by range.

    Parameters
    ----------
    folder : Path, optional
        Where the file is made; None is the system's folder for temporary files.

    Examples
    --------
    >>> with TextSpool() as spool:
    ...     for text in ("one", "", "three"):
    ...         spool.append(text)
    ...     len(spool), spool[2], spool.between(0, 2)
    (3, 'three', ['one', ''])
    """

    def __init__(self, folder: Path | None = None) -> None:
        # Without a name on disk, so that nothing is left behind even when the process is killed.
        self._file = tempfile.TemporaryFile(dir=folder, prefix="evenrank-", buffering=1 << 20)  # noqa: SIM115
        self._ends = array("Q", [0])

    def append(self, text: str) -> None:
        """Add a text at the end."""
        data = text.encode("utf-8", "replace")  # half a surrogate pair, which JSON can write, becomes "?"
        self._file.write(data)
        self._ends.append(self._ends[-1] + len(data))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, number: int) -> str:
        return self.between(number, number + 1)[0]

    def between(self, start: int, stop: int) -> list[str]:
        """Give texts ``start`` to ``stop`` - 1, in one read."""
        ends = self._ends[start : stop + 1]
        self._file.seek(ends[0])
        data = self._file.read(ends[-1] - ends[0])
        if len(data) < ends[-1] - ends[0]:
            raise OSError(EIO, "a temporary file has lost what was written to it")
        return [data[a - ends[0] : b - ends[0]].decode() for a, b in pairwise(ends)]
