"""`--fail-over`: limits that an audit must keep, for pipelines."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenrank.audits.audit import GAPS, RATIO, Audit
from evenrank.confidence import Interval
from evenrank.errors import ConfigError, DataError
from evenrank.measures import MEASURES, parse_measure


@dataclass(frozen=True)
class Limit:
    """What --fail-over asks of one measure.

    Attributes
    ----------
    measure : str
        Its full name; where low is better it fails above the limit, where high is better below it.
    k : int or None
        The cut-off.
    value : float
        The limit.
    text : str
        As it was written.
    further : str
        The measure as it was written, if it is none that an audit has anyway.
    """

    measure: str
    k: int | None
    value: float
    text: str
    further: str = ""

    @property
    def at_least(self) -> bool:
        """Whether it fails below."""
        return MEASURES[self.measure].best == "high"

    @property
    def name(self) -> str:
        """The measure as `parse_measure` takes it."""
        return self.further or f"{self.measure}@{self.k}"

    @property
    def title(self) -> str:
        """What a message calls it."""
        if self.further:
            return self.further
        return f"{'the lowest rate over the highest' if self.measure == RATIO else self.measure} at {self.k}"

    def interval(self, report: Audit) -> Interval:
        """Find the interval that is held against the limit."""
        if self.further:
            return next(interval for interval in report.measures if interval.measure == self.further)
        return next(gap.interval for gap in report.find(self.measure) if gap.k == self.k)


def limit_of(text: str) -> Limit:
    """Parse the measure, k and limit of "eop@10=0.05" or "awrf@10(target=equal)=0.95"."""
    name, equals, value = text.rpartition("=")
    name = name.strip().replace("dp_ratio@", f"{RATIO}@", 1)
    try:
        limit = float(value)
    except ValueError:
        limit = math.nan
    if not equals or not math.isfinite(limit):
        raise ConfigError(f"--fail-over must be a measure and a limit, as eop@10=0.05; got {text!r}.")
    measure, k, given = parse_measure(name)
    if measure.no_interval:
        raise ConfigError(f"--fail-over {text}: {measure.name} has no interval: {measure.no_interval}.")
    usual = measure.name in (*GAPS, RATIO) and k is not None and not given.given()
    if measure.range == "0 to 1" and not 0 <= limit <= 1:
        raise ConfigError(f"--fail-over: a limit of {measure.name} is from 0 to 1, as eop@10=0.05; got {text!r}.")
    return Limit(measure.name, k if usual else None, limit, text, "" if usual else name)


def need_no_labels(measures: list[tuple[str, str]]) -> None:
    """Refuse (option, measure) pairs whose measure needs relevance, for a log that has none."""
    for option, name in measures:
        measure = parse_measure(name).measure
        if "relevance" in measure.needs:
            raise ConfigError(f"{option}: {measure.name} needs relevance labels, and the log has none.")


def exceeded(report: Audit, limits: list[Limit], attribute: str) -> list[str]:
    """Say which limits are significantly exceeded, each in a line; ``attribute`` is what the audit is by."""
    failures = []
    for limit in limits:
        interval = limit.interval(report)
        where = f" (by {attribute})" if attribute else ""
        if np.isnan(interval.low):
            why = f": {interval.reason}" if interval.reason else ""
            raise DataError(
                f"--fail-over {limit.text}{where}: {limit.title} cannot be judged on these rows; it has no "
                f"interval{why}."
            )
        if interval.high < limit.value if limit.at_least else interval.low > limit.value:
            failures.append(
                f"{limit.text}{where} fails: {limit.title} is {interval.estimate:.3f}, {report.confidence:.0%} "
                f"interval {interval.low:.3f} to {interval.high:.3f}, significantly "
                f"{'below' if limit.at_least else 'above'} {limit.value:g}."
            )
    return failures
