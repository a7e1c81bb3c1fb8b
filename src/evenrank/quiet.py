"""What libraries print is kept off the streams: their warnings become ours, the rest is dropped."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from threading import Lock
from typing import Any

LIBRARIES = ("lightgbm", "xgboost")
# When and where in their source libraries complain; LightGBM's mark of a warning, but for trees that are done.
PLACE = re.compile(r"^\[\d\d:\d\d:\d\d\] (?:WARNING: )?\S+:\d+: *| at /\S+, line \d+ \.$")
WARNING = re.compile(r"^\[LightGBM\] \[Warning\] (?!No further splits|Stopped training)(.+)$", re.MULTILINE)
_ACTIVE = Lock()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drop what libraries write to stdout and stderr, in Python or below it; what Python writes to stderr stays.

    LightGBM's warnings are given as Python's at the end. Within another `quiet` this one does nothing.
    """
    if not _ACTIVE.acquire(blocking=False):
        yield
        return
    printed = io.StringIO()
    try:
        with _streams_below(), contextlib.redirect_stdout(printed):
            yield
    finally:
        _ACTIVE.release()
        for text in dict.fromkeys(WARNING.findall(printed.getvalue())):
            warnings.warn(f"LightGBM: {text}", stacklevel=4)


@contextlib.contextmanager
def _streams_below() -> Iterator[None]:
    """Send the descriptors of stdout and stderr nowhere, and leave Python's stderr where it was."""
    with contextlib.ExitStack() as restore, tempfile.TemporaryFile() as nowhere:
        _flush()
        for descriptor in (1, 2):
            try:
                saved = os.dup(descriptor)
            except OSError:
                continue  # the stream is closed
            restore.callback(os.close, saved)
            restore.callback(os.dup2, saved, descriptor)
            if descriptor == 2 and _descriptor(sys.stderr) == descriptor:
                again = open(os.dup(saved), "w", encoding=sys.stderr.encoding, errors="replace", buffering=1)  # noqa: SIM115
                restore.enter_context(contextlib.redirect_stderr(restore.enter_context(again)))
            os.dup2(nowhere.fileno(), descriptor)
        restore.callback(_flush)
        yield


def _descriptor(stream: Any) -> int | None:
    try:
        return int(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return None


def _flush() -> None:
    """Write out what Python and the C library still hold, before the streams change."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).fflush(None)


def from_library(error: BaseException) -> bool:
    """Tell whether an error is one of the boosting libraries' own."""
    return type(error).__module__.partition(".")[0] in LIBRARIES


def first_line(error: BaseException) -> str:
    """Write what a library complains of, without the place in its source and the stack below it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return without_place(lines[0]) if lines else type(error).__name__


def without_place(text: str) -> str:
    """Drop the time and the place in the source from a library's message."""
    return PLACE.sub("", text)
