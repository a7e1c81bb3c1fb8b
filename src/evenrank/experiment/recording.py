"""`recorded`: the work of one block, which counts as a whole or not at all, and its record."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from evenrank.errors import DataWarning
from evenrank.threads import one_thread


def recorded(block: Any, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do a block's work, on one thread, and make its record.

    Parameters
    ----------
    block : dataclass
        The block.
    work : callable
        Does it; gives its results in plain values.

    Returns
    -------
    dict
        The block, its results, the seconds it took and its warnings.
    """
    began = time.perf_counter()
    with _whole(), warnings.catch_warnings(record=True) as caught, one_thread():
        # One thread: the same numbers whatever else runs, and blocks run in parallel instead.
        warnings.simplefilter("always", DataWarning)
        results = work()
    return {
        "block": asdict(block),
        **results,
        "seconds": time.perf_counter() - began,
        "warnings": list(dict.fromkeys(str(warning.message) for warning in caught)),
    }


@contextmanager
def _whole() -> Iterator[None]:
    """Let an interrupt end the block, even if a trainer catches it to keep the weights it has."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread only
        return
    before = signal.getsignal(signal.SIGINT)
    interrupted = False

    def note(number: int, frame: Any) -> None:
        nonlocal interrupted
        interrupted = True
        if callable(before):
            before(number, frame)

    if before is not None:  # one that was not set from Python cannot be put back
        signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
    if interrupted and before is signal.default_int_handler:
        raise KeyboardInterrupt
