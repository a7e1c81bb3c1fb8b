"""Checks of values read from JSON, and ways to put them together.

A check is a function of a value and of where it stands. It returns nothing, or raises `Breach` with the rule that is
broken.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any, str], None]

SHORT = 77  # characters of a value that a message shows
LARGEST = 2**53  # whole numbers up to here are exact everywhere, also in the page's script
DEEPEST = 20  # lists within lists in a setting
ROUNDING = 1e-6  # by which a share may exceed 1


class Breach(Exception):
    """A value that breaks a rule; the message says where it stands, the rule and the value.

    Parameters
    ----------
    where : str
        Where the value stands.
    rule : str
        What it must be.
    value : object
        What it is.
    """

    def __init__(self, where: str, rule: str, value: Any) -> None:
        super().__init__(f"{where or 'its content'} must be {rule}; found {short(value)}")


def short(value: Any) -> str:
    """Give a value as it stands in a file, cut to what a message can show.

    Parameters
    ----------
    value : object
        A value of JSON.

    Returns
    -------
    str
        At most `SHORT` characters and "…".
    """
    try:
        text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= SHORT else text[:SHORT] + "…"


def text(value: Any, where: str) -> None:
    """Check that the value is a text."""
    if not isinstance(value, str):
        raise Breach(where, "a text", value)


def name(value: Any, where: str) -> None:
    """Check that the value is a text that UTF-8, and so a table, can hold: without half characters."""
    text(value, where)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Breach(where, "a text without half characters", value) from None


def flag(value: Any, where: str) -> None:
    """Check that the value is true or false."""
    if not isinstance(value, bool):
        raise Breach(where, "true or false", value)


def number(least: float = -math.inf, most: float = math.inf) -> Check:
    """Make the check that a value is a finite number from ``least`` to ``most``."""
    limits = (
        "" if least == -math.inf else f" of at least {least:g}" if most == math.inf else f" in {least:g} … {most:g}"
    )
    slack = ROUNDING if most == 1 else 0.0

    def check(value: Any, where: str) -> None:
        # Whole numbers are compared as they are: one of 400 digits fits into no float.
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1.7e308:
            raise Breach(where, f"a finite number{limits}", value)
        if not least - slack <= value <= most + slack:
            raise Breach(where, f"a number{limits}", value)

    return check


def whole(least: int, most: int = LARGEST) -> Check:
    """Make the check that a value is a whole number from ``least`` to ``most``."""

    def check(value: Any, where: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise Breach(where, f"a whole number in {least} … {most}", value)

    return check


def one_of(*choices: Any) -> Check:
    """Make the check that a value is one of some texts or null."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, str | None) or value not in choices:
            raise Breach(where, "one of " + ", ".join(short(choice) for choice in choices), value)

    return check


def optional(check: Check) -> Check:
    """Make the check that a value is null or what ``check`` allows."""
    return lambda value, where: None if value is None else check(value, where)


def listed(each: Check, least: int = 0, *, distinct: bool = False, length: int | None = None) -> Check:
    """Make the check that a value is a list, of a length, whose entries pass ``each`` and may have to differ."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, list) or len(value) < least:
            raise Breach(where, f"a list of at least {least}" if least else "a list", value)
        if length is not None and len(value) != length:
            raise Breach(where, f"a list of {length}", value)
        for place, entry in enumerate(value):
            each(entry, f"{where}[{place}]")
        if distinct and len({json.dumps(entry, sort_keys=True) for entry in value}) < len(value):
            raise Breach(where, "a list whose entries differ", value)

    return check


def table(each: Check) -> Check:
    """Make the check that a value is an object of any names whose values pass ``each``."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise Breach(where, "an object", value)
        for key, entry in value.items():
            name(key, f"a name in {where}")
            each(entry, f"{where}.{key}")

    return check


def fields(required: Mapping[str, Check], others: Mapping[str, Check] | None = None) -> Check:
    """Make the check that an object has the required names; ``others`` are checked if present, unknown ones are not."""
    known = {**required, **(others or {})}

    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise Breach(where, "an object", value)
        for key in required:
            if key not in value:
                raise Breach(where, f"an object with {key!r}", sorted(value))
        for key, entry in value.items():
            if key in known:
                known[key](entry, f"{where}.{key}".lstrip("."))

    return check


def plain(value: Any, where: str, depth: int = 0) -> None:
    """Check that the value is one of JSON, not nested too deep: what settings mean is up to each method."""
    if depth > DEEPEST:
        raise Breach(where, f"nested at most {DEEPEST} deep", "more")
    if isinstance(value, list | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            plain(entry, where, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number()(value, where)
