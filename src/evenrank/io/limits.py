"""How much memory reading a file may ask for: a small file must not unpack to more than the machine has.

The limit is the memory of the machine (or of its container); ``EVENRANK_MAX_BYTES``, as 500M or 64G, replaces it.
A compressed text may unpack to 100 times its size and in any case to 256 MB, unless the variable says otherwise.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from evenrank.errors import ConfigError, DataError

VARIABLE = "EVENRANK_MAX_BYTES"
UNPACKED_TIMES = 100
UNPACKED_ANYWAY = 1 << 28
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def byte_limit() -> int:
    """Find how many bytes one table may take: the environment's setting, or the memory."""
    setting = _from_environment()
    if setting is not None:
        return setting
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not POSIX
        memory = 1 << 34
    for file in _CONTAINER:
        with contextlib.suppress(OSError, ValueError):
            memory = min(memory, int(Path(file).read_text()))
    return memory


def unpacked_limit(packed: int) -> int:
    """Find how many bytes a compressed text of ``packed`` bytes may unpack to."""
    limit = byte_limit()
    return limit if _from_environment() is not None else min(limit, max(UNPACKED_ANYWAY, UNPACKED_TIMES * packed))


def _from_environment() -> int | None:
    written = os.environ.get(VARIABLE, "").strip()
    if not written:
        return None
    parsed = re.fullmatch(r"([0-9]{1,15})([KMGT]?)B?", written.upper())
    if parsed is None or not int(parsed[1]):
        raise ConfigError(f"{VARIABLE} must be a number of bytes ≥ 1, as 500M or 64G; got {written!r}.")
    return int(parsed[1]) << _UNITS[parsed[2]]


def too_large(source: str, what: str, size: int, limit: int) -> DataError:
    """Make the error for a file that would take more than the limit.

    Parameters
    ----------
    source : str
        What the error calls the file.
    what : str
        What needs the bytes, as "7 rows × 3 features need".
    size, limit : int
        The bytes needed, and those allowed.
    """
    return DataError(
        f"{source}: {what} {_shown(size)}; at most {_shown(limit)} are allowed. "
        f"Read fewer rows or columns, or allow more with the environment variable {VARIABLE}, as 64G."
    )


def _shown(size: int) -> str:
    for unit, shift in (("GB", 30), ("MB", 20), ("KB", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.3g} {unit}" if size < 1000 << shift else f"{size >> shift:,} {unit}"
    return f"{size} bytes"
