"""What the fuzz targets share: numbered cases, the outcome of one, and rows to compare.

A target is a module of this folder with ``NAME``, ``EXTRA`` (the optional dependency it needs, or None) and
``run(n, seed)``, which returns one line per failure and prints nothing.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import IO, Any

from evenrank.data import RankingData
from evenrank.errors import EvenrankError

# A case has this long of the processor, which others may be using too, and this long by the clock.
SECONDS, CLOCK = 10, 300
PROGRESS, CASE = "EVENRANK_FUZZ_PROGRESS", "EVENRANK_FUZZ_CASE"
REFUSED = "refused"


_stopped = False


def stop_early(*_: object) -> None:
    """Take no case after the present one, so that the target gives its verdict on those it had."""
    global _stopped
    _stopped = True


def stopped() -> bool:
    return _stopped


def numbers(n: int) -> Iterator[int]:
    """From 0 to n − 1, or the one case asked for; tells the driver of each before it begins, and ends when stopped."""
    progress = os.environ.get(PROGRESS)
    only = os.environ.get(CASE)
    for number in range(n) if only is None else [int(only)]:
        if progress is not None:
            Path(progress).write_text(str(number))
        if _stopped:
            return
        yield number


def cases(n: int, seed: int) -> Iterator[tuple[int, Random]]:
    """Numbers of cases, each with its own source of randomness, so that any case can be run alone."""
    for number in numbers(n):
        yield number, Random(f"{seed}/{number}")


class Slow(Exception):
    """A case took too long; the message says by what."""


@contextmanager
def time_limit() -> Iterator[None]:
    """Raises `Slow` once a case has had its time; what hangs below Python is the driver's to end."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, _: object) -> None:
        busy = number == signal.SIGPROF
        raise Slow(f"took more than {SECONDS} s of the processor" if busy else f"took more than {CLOCK} s")

    limits = ((signal.SIGPROF, signal.ITIMER_PROF, SECONDS), (signal.SIGALRM, signal.ITIMER_REAL, CLOCK))
    before = [signal.signal(number, stop) for number, _, _ in limits]
    for _, timer, seconds in limits:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(limits, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def processor_seconds(pid: int) -> float:
    """How long a process has had a processor; 0 where the system does not say."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


def answers(stream: IO[Any], pid: int, seconds: float) -> bool:
    """Wait for a process to write; False once it has had so many seconds of the processor, or `CLOCK`, without."""
    began, spent = time.monotonic(), processor_seconds(pid)
    while not select.select([stream], [], [], 0.2)[0]:
        if processor_seconds(pid) - spent > seconds or time.monotonic() - began > CLOCK:
            return False
    return True


def outcome(read: Callable[[], RankingData]) -> tuple[Any, str]:
    """The rows, or `REFUSED`, and what is wrong with how it ended ('' if nothing)."""
    try:
        with time_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return rows(read()), ""
    except EvenrankError as error:
        fault = "" if str(error).isprintable() else f"the message is not one plain line: {str(error)!r}"
        return REFUSED, fault
    except Slow as slow:
        return REFUSED, str(slow)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return REFUSED, f"{type(error).__name__}: {str(error)[:200]!r}"


def rows(data: RankingData) -> list[tuple[Any, ...]]:
    """Query, item, relevance, group and features of each row, in the order of the file."""
    names = [*data.group_names, None]
    query = data.to_caller(data.query_ids[data.query_of_row]).tolist()
    item = [None] * data.n_rows if data.item_ids is None else data.to_caller(data.item_ids).tolist()
    group = [names[code] for code in data.to_caller(data.group).tolist()]
    features = data.to_caller(data.features).tolist()
    return list(zip(query, item, data.to_caller(data.relevance).tolist(), group, map(tuple, features), strict=True))


def verdict(found: Any, fault: str, expected: Any, *, good: bool) -> str:
    """What is wrong, or ''. A file made without a fault must be read; any file that is read must be read right."""
    if fault:
        return fault
    if found == REFUSED:
        return f"refused, but the file is good; expected {expected!r:.300}" if good and expected is not None else ""
    if expected is None:
        return f"read, but the independent parser refuses it; got {found!r:.300}"
    if repr(found) != repr(expected):
        return f"differs: got {found!r:.300}, expected {expected!r:.300}"
    return ""


def line(name: str, seed: int, number: int, problem: str) -> str:
    return f"{name}, seed {seed}, case {number}: {problem}"


def mutated(random: Random, content: bytes, marks: list[bytes]) -> bytes:
    """The content with a few pieces cut, doubled, moved or written over."""
    for _ in range(random.choice([1, 1, 1, 2, 4])):
        at = random.randrange(len(content) + 1)
        stop = min(len(content), at + random.choice([0, 0, 1, 1, 2, 8]))
        match random.randrange(6):
            case 0:
                content = content[:at] + content[stop:]
            case 1:
                content = content[:at] + random.choice(marks) + content[stop:]
            case 2:
                content = content[:stop] + content[at:]
            case 3:
                content = content[:at] + bytes([random.randrange(256)]) + content[stop:]
            case 4:
                content = content[:at]
            case _:
                mark = random.choice(marks)
                content = content.replace(random.choice(marks), mark) if random.random() < 0.3 else content + mark
    return content


# ---------------------------------------------------------------------- tables


def whole_numbers(values: list[Any]) -> list[Any]:
    """Texts as integers if every one is written as an integer of 64 bits would be."""

    def is_whole(value: str) -> bool:
        digits = value.removeprefix("-")
        return digits.isascii() and digits.isdecimal() and str(int(value)) == value and -(2**63) <= int(value) < 2**63

    written = [value for value in values if value is not None]
    return [None if value is None else int(value) for value in values] if all(map(is_whole, written)) else values


def number(text: str | None) -> float | None:
    """The number a text stands for, NaN too, else None; infinite ones are none."""
    if text is None or "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return None if abs(value) == float("inf") else value


def with_missing(values: list[Any], numbers: list[float | None]) -> list[float | None]:
    """The numbers of a feature, of which missing values are NaN."""
    return [float("nan") if value is None else number for value, number in zip(values, numbers, strict=True)]


def assembled(
    columns: dict[str, list[Any]], features: list[str], relevance: list[float | None]
) -> list[tuple[Any, ...]] | None:
    """Rows of a table by the plain rules, or None where one is broken. Columns are ready but for the rules of rows."""
    n = len(columns["qid"])
    items = columns.get("item", [None] * n)
    queries = columns["qid"]
    if not n or any(query in (None, "") for query in queries):
        return None
    if "item" in columns and (
        any(item in (None, "") for item in items) or len({*zip(queries, items, strict=True)}) < n
    ):
        return None
    if any(value is None or not 0 <= value <= 1e100 for value in relevance):
        return None
    if any(value is None for name in features for value in columns[name]):
        return None
    values = zip(*(columns[name] for name in features), strict=True) if features else [()] * n
    groups = [None if group == "" else group for group in columns["group"]]
    # A column of whole numbers holds floats as soon as one is missing: such groups are called by the number.
    floats = [group for group in groups if isinstance(group, float)]
    if all(group.is_integer() and abs(group) < 2**53 for group in floats):
        groups = [int(group) if isinstance(group, float) else group for group in groups]
    return list(zip(queries, items, map(float, relevance), groups, values, strict=True))  # type: ignore[arg-type]
