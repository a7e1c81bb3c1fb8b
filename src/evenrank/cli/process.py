"""The process around a command: its streams, the terminal's variables, Ctrl-C while modules load, and SIGTERM.

Imports next to nothing, so that all of it is in place before the slow imports begin.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

INTERRUPTED = 130
PIPE_CLOSED = 141
TERMINATED = 143
REFUSED = 2
# Widths outside make tables of one letter per line, or lines of a gigabyte.
WIDTHS = {"COLUMNS": range(20, 1001), "LINES": range(2, 1001), "TERMINAL_WIDTH": range(20, 1001)}


def say(text: str) -> None:
    """Print one line on stderr; a stderr that cannot be written must not hide the exit code."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print("evenrank: " + " ".join(text.split()), file=sys.stderr, flush=True)


@contextlib.contextmanager
def quiet_interrupts() -> Iterator[None]:
    """End the process in one line at once on Ctrl-C and SIGTERM: in an import Ctrl-C may surface as any exception."""
    ends: dict[signal.Signals, tuple[Any, str, int]] = {
        signal.SIGINT: (signal.default_int_handler, "interrupted", INTERRUPTED),
        signal.SIGTERM: (signal.SIG_DFL, "terminated", TERMINATED),
    }

    def stop(number: int, _: object) -> None:
        _, word, code = ends[signal.Signals(number)]
        say(word)
        os._exit(code)

    # Others are ignored on purpose, or someone else's.
    ours = [number for number, (usual, *_) in ends.items() if _in_main_thread() and signal.getsignal(number) == usual]
    for number in ours:
        signal.signal(number, stop)
    yield
    for number in ours:
        signal.signal(number, ends[number][0])


def end_tidily() -> None:
    """Have SIGTERM unwind the command, so that its temporary files go with it; a second one ends the process at once.

    An interrupt would not do: trainers catch it, and go on with the weights they have.
    """
    if not _in_main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise SystemExit(TERMINATED)

    signal.signal(signal.SIGTERM, stop)


def ignore_signals_at_the_end() -> None:
    """Keep the exit code of a command that is done while Python takes itself apart, which may take a second.

    Python gives signals their defaults back before that, so that one would end the process without a word. What was
    registered first runs last: whatever waits at exit can still be interrupted.
    """

    def ignore() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            if _in_main_thread() and callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_IGN)

    atexit.register(ignore)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def open_streams() -> None:
    """Occupy the standard streams that are closed, or the next file opened would become one of them.

    What is written to a closed stdout is an error, as with other programs; a closed stderr swallows it.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115


def tidy_terminal() -> None:
    """Drop sizes of the terminal that no terminal has, such as COLUMNS=0."""
    for name, sensible in WIDTHS.items():
        written = os.environ.get(name)
        if written is not None and not (written.isdecimal() and len(written) < 9 and int(written) in sensible):
            del os.environ[name]


def flush(code: int) -> int:
    """Flush stdout and give the exit code: a reader that went away or a full disk may show only now."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        abandon_stdout()
        return code or PIPE_CLOSED
    except (OSError, ValueError) as error:
        abandon_stdout()
        if code == 0:
            say(f"stdout cannot be written ({getattr(error, 'strerror', None) or error}).")
        return code or REFUSED
    return code


def abandon_stdout() -> None:
    """Let what is still buffered go nowhere, or Python complains of it when it exits."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
