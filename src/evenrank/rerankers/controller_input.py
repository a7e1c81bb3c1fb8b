"""What a `FairController` is given: where to start, the relevance of items, and the spread of a list's scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.checks import check_number
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, shortened
from evenrank.notions import ALIASES, NOTIONS
from evenrank.ranking import strict_places
from evenrank.rerankers.base import need_groups, one_column
from evenrank.rerankers.chances import Chances
from evenrank.rerankers.tallies import Tallies
from evenrank.row_checks import as_array, as_floats

MERIT = "merit"
VERSION = 2  # of states; 1 had one fit of chances for all groups
VALUES = ("topk", "exposure", "impact")
DOUBT = 10  # items that must have got something, and as many that did not, for half of a start to be believed
QUARTILES = 1.349  # from the first to the third quartile of a normal distribution, in standard deviations


def notion_name(notion: str | None, value: str) -> str:
    """Give the full name of a controller's notion.

    Parameters
    ----------
    notion : str, optional
        A name or alias, or "merit"; None is parity for the top k, and merit for the other values.
    value : str
        What items get; impact is for parity and merit only.

    Returns
    -------
    str
        The name.
    """
    name = ("dp" if value == "topk" else MERIT) if notion is None else notion
    name = ALIASES.get(name, name) if isinstance(name, str) else name
    if name not in (*NOTIONS, MERIT):
        known = ", ".join((*ALIASES, MERIT))
        raise ConfigError(f"notion of a controller must be one of {known}, as it sees no features; got {notion!r}.")
    if value == "impact" and name not in ("demographic_parity", MERIT):
        raise ConfigError(f"value='impact' counts relevance already; use value='exposure' with notion={notion!r}.")
    return name


def stored_scores(scores: ArrayLike, data: RankingData, least: int) -> NDArray[np.float64]:
    """Check scores (n,) in the caller's row order and bring them to stored order; the rows must have so many groups."""
    need_groups("FairController", data, least)
    return np.asarray(one_column(scores, data), np.float64)


def plain_floats(values: ArrayLike, what: str) -> NDArray[np.float64]:
    """Make float64 of a list's numbers; nothing that is masked, complex, a time or no number becomes one.

    Parameters
    ----------
    values : array-like
        (n,).
    what : str
        What an error calls them.

    Returns
    -------
    ndarray
        (n,); an array of float64 stays as it is.
    """
    if type(values) is np.ndarray and values.dtype.char == "d":
        return values
    return as_floats(as_array(values, what), what)


def one_list(scores: ArrayLike, groups: Any) -> NDArray[np.float64]:
    """Check that scores and groups are one list, and give the scores, (n,)."""
    try:
        own = plain_floats(scores, "scores")
        if own.ndim == 1 and len(groups) == len(own):
            return own
        found = f"shape {own.shape} and {len(groups)} groups"
    except TypeError:
        found = f"{type(scores).__name__} and {type(groups).__name__}"
    raise DataError(f"rank needs one score and one group per item; got {found}.")


def lists_of(stored: NDArray[np.float64], data: RankingData) -> Iterator[tuple[NDArray[np.int64], list[Any]]]:
    """Yield the rows of each list, best first, and their group labels.

    Parameters
    ----------
    stored : ndarray
        Scores, (n,), in stored order.
    data : RankingData
        The rows; ties go by item id.

    Yields
    ------
    tuple of ndarray and list
        Rows and labels; None is an unknown group.
    """
    by_place = np.empty(data.n_rows, np.int64)
    by_place[data.query_ptr[data.query_of_row] + strict_places(stored, data)] = np.arange(data.n_rows)
    labels = np.array([*data.group_names, None], object)[data.group]
    for start, end in pairwise(data.query_ptr.tolist()):
        rows = by_place[start:end]
        yield rows, labels[rows].tolist()


def warm_start(warm: Any) -> tuple[dict[Any, float], dict[Any, float], dict[Any, Chances]]:
    """Take apart what a controller starts from.

    Parameters
    ----------
    warm : GroupOffset, FairController, dict or None
        See `FairController`.

    Returns
    -------
    tuple of dict
        By group: shifts in spreads, offsets in units of the scores, and fits of the chance of being relevant (none if
        they are not known).
    """
    if warm is None:
        return {}, {}, {}
    if hasattr(warm, "start_"):
        return dict(warm.start_), dict(warm.offsets), dict(warm.chances_)
    offsets = getattr(warm, "offsets_", warm)
    if not isinstance(offsets, Mapping):
        raise ConfigError(
            f"warm must be a fitted GroupOffset, a fitted FairController or a dict of one number per group; got "
            f"{type(warm).__name__}."
        )
    for label, number in offsets.items():
        check_number(number, f"the offset of group {label!r}")
    fits = getattr(warm, "chances_", ())
    names = getattr(warm, "group_names_", ())
    return {}, {label: float(number) for label, number in offsets.items()}, dict(zip(names, fits, strict=True))


def kept_start(state: Mapping[str, Any]) -> tuple[dict[Any, float], dict[Any, float], dict[Any, Chances]]:
    """Read from a controller's state what `warm_start` gave it."""
    if state["controller"] not in range(1, VERSION + 1):
        version = shortened(repr(state["controller"]))
        raise DataError(f"this state is of version {version}; this evenrank knows 1 to {VERSION}.")
    for name in ("notion", "gain", *(("k",) if state["value"] == "topk" else ())):
        if state[name] is None:  # it would become the default
            raise DataError(f"the state of this FairController lacks its {name}. Keep what state() gave.")
    start, offsets = ({label: float(number) for label, number in state[name]} for name in ("start", "offsets"))
    for label, number in (*start.items(), *offsets.items()):
        check_number(number, f"the start of group {label!r}")
    fits = state["chances"] or []
    if state["controller"] == 1 and fits:
        fits = [[None, *fits]]
    return start, offsets, {label: _kept_fit(score, chance) for label, score, chance in fits}


def _kept_fit(score: Any, chance: Any) -> Chances:
    fit = Chances(np.array(score, np.float64), np.array(chance, np.float64))
    rises = len(fit.score) and (np.diff(fit.score) > 0).all() and (np.diff(fit.chance) >= 0).all()
    if fit.score.shape != fit.chance.shape or not (rises and fit.chance[0] >= 0 and fit.chance[-1] <= 1):
        raise DataError("the state's chances must rise with the score, from 0 to 1.")
    return fit


def mean_start(shifts: list[dict[Any, float]], tallies: Tallies) -> dict[Any, float]:
    """Give the mean shift of each group, drawn towards 0 where little is known of the group.

    Parameters
    ----------
    shifts : list of dict
        By group, the shift in each list.
    tallies : Tallies
        What the groups got in all lists.

    Returns
    -------
    dict
        By group.
    """
    start = {}
    for label in tallies.labels[1:]:
        known = tallies.evidence(label)
        start[label] = sum(each.get(label, 0.0) for each in shifts) / len(shifts) * known / (known + DOUBT)
    return start


def not_finite(own: NDArray[np.float64]) -> DataError:
    """Make the error that names the first score that is not finite."""
    place = int(np.flatnonzero(~np.isfinite(own))[0])
    return DataError(f"scores must be finite; item {place} has {own[place]}. Leave the item out of the list.")


def known_chances(fits: dict[Any, Chances], notion: str) -> dict[Any, Chances]:
    """Give the fits, if there are any; a list that came without relevance needs them."""
    if not fits:
        raise ConfigError(
            f"a controller of {notion} needs the chance that an item is relevant. Give rank(…, relevance=), fit the "
            "controller, or start it from a fitted GroupOffset (warm=)."
        )
    return fits


def checked_relevance(given: ArrayLike, own: NDArray[np.float64], notion: str) -> NDArray[np.float64]:
    """Check the relevance given for a list's items.

    Parameters
    ----------
    given : array-like
        (n,): chances from 0 to 1, or for "merit" any finite numbers ≥ 0.
    own : ndarray
        Scores, (n,).
    notion : str
        The controller's notion.

    Returns
    -------
    ndarray
        (n,).

    Raises
    ------
    DataError
        If there are more or fewer numbers, or one is out of bounds or NaN.
    """
    relevance = plain_floats(given, "relevance")
    if relevance.shape != own.shape:
        raise DataError(f"relevance must be one number per item, {own.shape}; got shape {relevance.shape}.")
    low, high = relevance.item(relevance.argmin()), relevance.item(relevance.argmax())  # NaN, if there is one
    if not (low >= 0 and isfinite(high) and (high <= 1 or notion == MERIT)):
        rule = "finite and ≥ 0" if notion == MERIT else "chances from 0 to 1"
        raise DataError(f"relevance must be {rule}; got {low:g} to {high:g}.")
    return relevance


def spread_of(ordered: NDArray[np.float64]) -> float:
    """Give the spread of scores that are sorted, either way.

    It is that between the quartiles, as a standard deviation; where they are equal, the smallest distance of a score
    from the median, and 1 where all are equal.

    Parameters
    ----------
    ordered : ndarray
        Sorted scores, (n,).

    Returns
    -------
    float
        The spread, above 0.
    """
    n = len(ordered)
    spread = abs(ordered.item(3 * n // 4) - ordered.item(n // 4)) / QUARTILES
    if spread == 0:
        steps = np.abs(ordered - ordered[n // 2])
        spread = float(steps[steps > 0].min(initial=np.inf))
    return spread if isfinite(spread) else 1.0
