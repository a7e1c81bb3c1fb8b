"""Checks of options, each refusal one line with the value found; and texts as an array that loses nothing of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError

LARGEST_K = 2**62


def choose(value: object, choices: Iterable[Any], *, what: str) -> str:
    """Return ``value`` if it is one of ``choices``.

    >>> choose("b", ["a", "b"], what="letter")
    'b'
    """
    names = list(choices)
    if value not in names:
        raise ConfigError(f"{what} must be one of {', '.join(map(str, names))}; got {value!r}.")
    return str(value)


def check_number(
    value: Any,
    name: str,
    *,
    least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    most: float | None = None,
    whole: bool = False,
) -> None:
    """Refuse what is not a finite (whole) number within the bounds; ``above`` and ``below`` exclude their end.

    >>> check_number(0.5, "share", above=0, below=1)
    >>> check_number(True, "seed", least=0, whole=True)
    Traceback (most recent call last):
    ...
    evenrank.errors.ConfigError: seed must be a whole number ≥ 0; got True.
    """
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    good = isinstance(value, kinds) and not isinstance(value, bool | np.bool_)
    # numpy refuses an int beyond 64 bits, and arithmetic one beyond the largest float.
    good = good and (whole or abs(value) <= sys.float_info.max if isinstance(value, int) else bool(np.isfinite(value)))
    good = good and (least is None or value >= least) and (above is None or value > above)
    good = good and (below is None or value < below) and (most is None or value <= most)
    if not good:
        raise ConfigError(f"{name} must be {_rule(least, above, below, most, whole=whole)}; got {found(value)}.")


def found(value: Any) -> str:
    """Write what was given for an error message; Python writes no numbers of thousands of digits.

    >>> found("x"), found(10**9999)
    ("'x'", 'a larger number')
    """
    try:
        return repr(value)
    except ValueError:
        return "a larger number"


def floats_or_none(values: Any) -> NDArray[np.float64]:
    """Convert to an array of floats, (…); NaN alone where there is anything that is no number, or one too large.

    >>> floats_or_none([1, 2.5]).tolist(), floats_or_none("x").tolist(), floats_or_none(10**400).tolist()
    ([1.0, 2.5], [nan], [nan])
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array([np.nan])


def _rule(low: float | None, above: float | None, below: float | None, most: float | None, *, whole: bool) -> str:
    """The range in words."""
    kind = "a whole number" if whole else "a finite number"
    if above is not None and below is not None:
        return f"between {_end(above)} and {_end(below)}, ends excluded"
    ends = [f"≥ {_end(low)}"] if low is not None else [f"> {_end(above)}"] if above is not None else []
    ends += [f"< {_end(below)}"] if below is not None else [f"≤ {_end(most)}"] if most is not None else []
    return " ".join([kind, " and ".join(ends)]).rstrip()


def _end(value: float) -> str:
    """An end of the range; a whole one with all its digits."""
    return str(value) if isinstance(value, int) else f"{value:g}"


def check_k(k: Any) -> int:
    """A cut-off: a whole number of at least 1."""
    check_number(k, "k", least=1, whole=True)
    if k > LARGEST_K:
        raise ConfigError(f"k must be at most {LARGEST_K}; got {found(k)}.")
    return int(k)


def text_array(values: list[Any]) -> NDArray[Any]:
    """Texts as an array of numpy's own, (n,), or as Python objects where that would lose or waste something.

    numpy drops NUL at the end of a text, and gives every text the room of the longest.
    """
    longest = max(map(len, values), default=0)
    wasteful = longest * len(values) > max(1 << 24, 16 * sum(map(len, values)))
    if wasteful or any(value[-1:] in ("\0", b"\0") for value in values):
        return np.fromiter(values, object, len(values))
    return np.asarray(values)
