"""Progress on stderr for work long enough to want it: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

Progress = Callable[[float], None]  # called with the fraction done
EVERY = 30.0  # seconds


class Noted(Protocol):
    """What shows progress: it is called with the fraction done; `note` says something beside it, a rate for one."""

    def __call__(self, done: float) -> None: ...
    def note(self, text: str) -> None: ...


class Lines:
    """Progress as lines of a log; work that is done before the first is due stays silent.

    Parameters
    ----------
    title : str
        What is being done.
    clock : Callable
        Gives the time in seconds.
    """

    def __init__(self, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._note, self._clock = title, "", clock
        self._began = clock()
        self._due = self._began + EVERY

    def __call__(self, done: float) -> None:
        now = self._clock()
        if now < self._due:
            return
        self._due = now + EVERY
        spent = now - self._began
        left = f", about {_duration(spent * (1 / done - 1))} left" if 0 < done < 1 else ""
        print(f"{self._title}{self._note}: {done:.0%} after {_duration(spent)}{left}", file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        self._note = f", {text}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Shown:
    """A bar on the terminal."""

    def __init__(self, progress: Any, task: Any, title: str) -> None:
        self._progress, self._task, self._title = progress, task, title

    def __call__(self, done: float) -> None:
        self._progress.update(self._task, completed=done)

    def note(self, text: str) -> None:
        self._progress.update(self._task, description=f"{self._title}, {text}")


@contextmanager
def bar(title: str, *, show: bool = True) -> Iterator[Noted | None]:
    """What to call with the fraction done, or None if nothing is to be shown."""
    if not show:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines(title)
        return
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=1.0)
        yield Shown(progress, task, title)


def warn_interrupted(done: int, asked: int, what: str) -> None:
    """Tell that Ctrl-C ended a training whose weights are kept."""
    warnings.warn(f"training was interrupted after {done} of {asked} {what}; the weights so far are kept", stacklevel=3)
