"""A progress bar on stderr for work long enough to want one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[float], None]  # called with the fraction done


class Shown:
    """Called with the fraction done; `note` says something beside it, a rate for one."""

    def __init__(self, progress: Any, task: Any, title: str) -> None:
        self._progress, self._task, self._title = progress, task, title

    def __call__(self, done: float) -> None:
        self._progress.update(self._task, completed=done)

    def note(self, text: str) -> None:
        self._progress.update(self._task, description=f"{self._title}, {text}")


@contextmanager
def bar(title: str, *, show: bool = True) -> Iterator[Shown | None]:
    """What to call with the fraction done, or None if nothing is to be shown."""
    if not show:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=1.0)
        yield Shown(progress, task, title)


def warn_interrupted(done: int, asked: int, what: str) -> None:
    """Tell that Ctrl-C ended a training whose weights are kept."""
    warnings.warn(f"training was interrupted after {done} of {asked} {what}; the weights so far are kept", stacklevel=3)
