"""What a monitor can watch, by name: the gaps of pairs of groups, and any measure that has an interval."""

from __future__ import annotations

from typing import Any

from evenrank.errors import ConfigError
from evenrank.measures import MEASURE_ALIASES, MEASURES, Asked, MeasureAt, parse_measure
from evenrank.measures.options import GroupShares
from evenrank.monitoring.series import GAPS

RATIO = "four_fifths"
PAIRS = (*GAPS, RATIO)  # of pairs of groups, at the monitor's own cut-off
DEFAULT = (*GAPS, RATIO, "ndcg")
UNLABELLED = ("demographic_parity", "exposure_gap", RATIO)


def watched(name: Any) -> str:
    """Give the full name of a measure that a monitor can watch.

    Parameters
    ----------
    name : str
        A gap or four_fifths without a cut-off, which is the monitor's; or any other measure that has an interval, with
        a cut-off of its own or, if it needs one and has none, with the monitor's.

    Returns
    -------
    str
        Its name, cut-off and options, written in one way.

    Raises
    ------
    ConfigError
        For a measure without an interval, and for one whose value of a list depends on the lists that are read with
        it: then parts would not add up to the whole.

    Examples
    --------
    >>> watched("dp"), watched("awrf@10( discount = rbp )"), watched("p"), watched("dtr")
    ('demographic_parity', 'awrf@10(discount=rbp)', 'precision', 'dtr')
    """
    if not isinstance(name, str):
        raise ConfigError(f"a monitor watches measures by name, since its state is kept in a file; got {name!r}.")
    text = "exposure_gap" if name == "exposure" else name
    head, bracket, rest = text.partition("(")
    at = "@" in head
    plain = head.strip().lower()
    known = MEASURES.get(MEASURE_ALIASES.get(plain, plain))
    if not at and known is not None and known.k == "needed":
        text = f"{head}@1{bracket}{rest}"
    measure, k, options = parse_measure(text)
    if measure.name in PAIRS:
        if at or options.given():
            raise ConfigError(f"{measure.name} is watched at the monitor's cut-off, without options; got {name!r}.")
        return measure.name
    if measure.no_interval:
        raise ConfigError(f"{measure.name} cannot be watched, since it has no interval: {measure.no_interval}.")
    chosen = measure.chosen(options)
    if "protected" in measure.options and chosen.protected is None:
        raise ConfigError(
            f"{measure.name} needs the protected group in a monitor, as in '{measure.name}(protected=GROUP)': the "
            f"smallest group may be another in every part; got {name!r}."
        )
    if chosen.target in ("all", "equal") or (chosen.smoothing and not isinstance(chosen.target, GroupShares)):
        raise ConfigError(
            f"{measure.name} needs shares by group in a monitor, as in target=a:0.5/b:0.5: which groups there are may "
            f"differ from part to part; got {name!r}."
        )
    given = str(options)
    return str(MeasureAt(f"{measure.name}({given})" if given else measure.name, k if at else None))


def asked_at(name: str, k: int) -> Asked:
    """Give what is measured of each list for a name that `watched` gave and that is none of `PAIRS`.

    Parameters
    ----------
    name : str
        The name.
    k : int
        The monitor's cut-off, for measures that need one and have none of their own, and for NDCG.

    Returns
    -------
    Asked
        The measure, its cut-off or None, and its options.
    """
    called, cut = MeasureAt.of(name)
    plain = called.partition("(")[0]
    if cut is None and (MEASURES[plain].k == "needed" or plain == "ndcg"):
        cut = k
    return parse_measure(str(MeasureAt(called, cut)))


def needs_labels(name: str) -> bool:
    """Tell whether a watched measure needs relevance labels."""
    return "relevance" in _needs(name)


def knows_groups(name: str) -> bool:
    """Tell whether a watched measure compares groups."""
    return "groups" in _needs(name)


def _needs(name: str) -> tuple[str, ...]:
    return MEASURES[name.partition("@")[0].partition("(")[0]].needs
