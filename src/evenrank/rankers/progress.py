"""A progress bar on stderr for work long enough to want one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(title: str, *, show: bool = True) -> Iterator[Callable[[float], None] | None]:
    """A function to call with the fraction done, or None if nothing is to be shown."""
    if not show:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=1.0)
        yield lambda done: progress.update(task, completed=done)
