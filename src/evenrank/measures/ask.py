"""What users ask to be measured: a name, a notion of their own, or a function of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from evenrank.checks import check_k
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.measures.entry import Measure
from evenrank.measures.options import Options
from evenrank.measures.registry import MEASURE_ALIASES, MEASURES, Asked, parse_measure, violation_measure
from evenrank.notions import NOTIONS, Notion

CUT_OFF = 5  # of a notion that is given without one

OwnFunction = Callable[[NDArray[Any], RankingData], Any]
MeasureLike = str | Measure | Notion | tuple[Notion, int] | OwnFunction

_of_notion = lru_cache(maxsize=256)(violation_measure)


def ask(measure: MeasureLike) -> tuple[str, Asked]:
    """Take a measure in any form.

    Parameters
    ----------
    measure : str, Notion, (Notion, k), Measure or callable
        A name, with its cut-off and options. A notion, whose violation by the top k is measured, as a pair with the
        cut-off (5 if it is alone). A function of scores and data, see `Measure.of`.

    Returns
    -------
    name : str
        What it is called in tables and files.
    asked : Asked
        The measure, its cut-off and its options.

    Raises
    ------
    ConfigError
        For an unknown name, or a notion or function whose name is missing or taken.

    Examples
    --------
    >>> within_history = Notion("parity by history", lambda data: [data.column("history") == 1])
    >>> ask((within_history, 3))[0], ask("eop@3")[0]
    ('parity by history@3', 'eop@3')
    """
    if isinstance(measure, str):
        return measure, parse_measure(measure)
    if isinstance(measure, Notion):
        measure = (measure, CUT_OFF)
    if isinstance(measure, tuple) and len(measure) == 2 and isinstance(measure[0], Notion):
        notion, k = measure
        _check_name(notion.name, "notion", taken=NOTIONS.get(notion.name) is not notion)
        return f"{notion.name}@{check_k(k)}", Asked(_of_notion(notion), int(k), Options())
    if isinstance(measure, Measure):
        if MEASURES.get(measure.name) is measure:
            raise ConfigError(f"measure {measure.name!r} is one of evenrank's; ask for it by name, as text.")
        _check_name(measure.name, "measure")
        return measure.name, Asked(measure, None, Options())
    if callable(measure):
        return ask(Measure.of(measure))
    raise ConfigError(
        f"a measure must be a name, a Notion (or a pair of one and k), a Measure or a function; got {measure!r}."
    )


def ask_all(measures: Iterable[MeasureLike] | MeasureLike) -> dict[str, Asked]:
    """Take several measures, or one.

    Parameters
    ----------
    measures : iterable, or one measure
        As for `ask`.

    Returns
    -------
    dict
        Name → what was asked, in the order given.

    Raises
    ------
    ConfigError
        If two different notions or functions have the same name.
    """
    out: dict[str, Asked] = {}
    for measure in listed_measures(measures):
        name, asked = ask(measure)
        if out.setdefault(name, asked) != asked:
            raise ConfigError(f"two different measures are called {name!r}; give each its own name.")
    return out


def listed_measures(measures: Iterable[MeasureLike] | MeasureLike) -> list[MeasureLike]:
    """List measures given as several or as one."""
    pair = isinstance(measures, tuple) and len(measures) == 2 and isinstance(measures[1], int)
    if pair or isinstance(measures, str | Notion | Measure) or not isinstance(measures, Iterable):
        return [measures]  # type: ignore[list-item]
    return list(measures)  # type: ignore[arg-type]


def _check_name(name: str, what: str, *, taken: bool = True) -> None:
    """Refuse a name that is one of ours, or that a table, a file or the command line could not tell from another."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or set(name) & set("@(),"):
        raise ConfigError(
            f"a {what} of your own needs a name of letters, digits, spaces and signs other than @ ( ) and comma; "
            f"got {name!r}."
        )
    if taken and name.lower() in {*MEASURES, *MEASURE_ALIASES, *NOTIONS}:
        raise ConfigError(f"a {what} of your own needs a name of its own; {name!r} is one of evenrank's.")
