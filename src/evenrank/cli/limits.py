"""`--fail-over`: limits that an audit must keep, for pipelines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenrank.audits.audit import GAPS, RATIO, Audit
from evenrank.errors import ConfigError, DataError
from evenrank.measures import parse_measure


@dataclass(frozen=True)
class Limit:
    """What --fail-over asks of one measure.

    Attributes
    ----------
    measure : str
        A gap, which fails above the limit, or "four_fifths", which fails below it.
    k : int
        The cut-off.
    value : float
        The limit.
    text : str
        As it was written.
    """

    measure: str
    k: int
    value: float
    text: str

    @property
    def ratio(self) -> bool:
        """Whether it fails below."""
        return self.measure == RATIO


def limit_of(text: str) -> Limit:
    """Parse the measure, k and limit of "eop@10=0.05"."""
    name, equals, value = text.partition("=")
    measure, k, _ = parse_measure(name.replace("dp_ratio@", f"{RATIO}@", 1))
    try:
        limit = float(value)
    except ValueError:
        limit = -1.0
    if not equals or not 0 <= limit <= 1:
        raise ConfigError(f"--fail-over must be a gap and a limit from 0 to 1, as eop@10=0.05; got {text!r}.")
    if measure.name not in (*GAPS, RATIO) or k is None:
        raise ConfigError(
            f"--fail-over must name one of {', '.join(GAPS)}, {RATIO} (or dp_ratio) with a cut-off; got {text!r}."
        )
    return Limit(measure.name, k, limit, text)


def exceeded(report: Audit, limits: list[Limit], attribute: str) -> list[str]:
    """Say which limits are significantly exceeded, each in a line; ``attribute`` is what the audit is by."""
    failures = []
    for limit in limits:
        interval = next(gap.interval for gap in report.find(limit.measure) if gap.k == limit.k)
        where = f" (by {attribute})" if attribute else ""
        name = "the lowest rate over the highest" if limit.ratio else limit.measure
        if np.isnan(interval.low):
            raise DataError(
                f"--fail-over {limit.text}{where}: {name} at {limit.k} cannot be judged on these rows; it has no "
                "interval."
            )
        if interval.high < limit.value if limit.ratio else interval.low > limit.value:
            failures.append(
                f"{limit.text}{where} fails: {name} at {limit.k} is {interval.estimate:.3f}, {report.confidence:.0%} "
                f"interval {interval.low:.3f} to {interval.high:.3f}, significantly "
                f"{'below' if limit.ratio else 'above'} {limit.value:g}."
            )
    return failures
