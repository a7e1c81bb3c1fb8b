"""The further measures of a sweep: what each is without mitigation, and at no significant quality loss."""

from __future__ import annotations

from typing import NamedTuple

from evenrank.experiment.plan import FAIRNESS, QUALITIES, RATE
from evenrank.experiment.trials import KEYS, Sweep
from evenrank.measures import MEASURES, MeasureAt, measure_names
from evenrank.wording import with_error


class Further(NamedTuple):
    """A further measure along one curve.

    Attributes
    ----------
    notion, method, measure : str
        The curve, and the measure's name.
    k : int
        The cut-off of the curve.
    now, at_no_loss : str
        Mean and error at strength 0, and at the strength of the smallest gap at no significant quality loss.
    """

    notion: str
    method: str
    k: int
    measure: str
    now: str
    at_no_loss: str


def further_measures(sweep: Sweep) -> list[str]:
    """Name the columns of a sweep that were asked for besides those that every sweep has."""
    usual = {*KEYS, *measure_names(sweep.ks, [*QUALITIES, *FAIRNESS, *sweep.notions])}
    return [name for name in sweep.columns if name not in usual and not name.startswith(f"{RATE}_")]


def further_rows(sweep: Sweep, grouping: str, quality: str = "ndcg") -> list[Further]:
    """Look up the further measures of every notion and method, at their own cut-off or else the largest."""
    rows = []
    for name in further_measures(sweep):
        cut = MeasureAt.of(name).k if name.partition("(")[0].rpartition("@")[2].isdecimal() else None
        k = cut if cut in sweep.ks else max(sweep.ks)
        for notion in sweep.notions:
            for method in sweep.methods:
                strengths, means, errors = sweep.along(name, notion, method=method, grouping=grouping)
                if not len(strengths):
                    continue
                best = sweep.curve(notion, k, method=method, quality=quality, grouping=grouping).best
                cells = [with_error(means[at], errors[at]) for at in (0, best)]
                rows.append(Further(notion, method, k, name, *cells))
    return rows


def how_read(name: str) -> str:
    """Say which end of a measure is better, and what its fair value means; nothing for one of the user's own."""
    measure = MEASURES.get(name.partition("(")[0].partition("@")[0])
    if measure is None:
        return ""
    return f"{name}: {measure.best} is better" + (f"; {measure.fair}." if measure.fair else ".")
