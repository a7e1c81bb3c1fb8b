"""A sweep in tables: the reduction at no significant quality loss per setting and k, and every strength with errors.

A *setting* is a notion under a grouping. A *reduction* is the share by which the gap falls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evenrank.experiment.curves import Curve
from evenrank.experiment.trials import Sweep
from evenrank.paper.tables import Row, Table
from evenrank.wording import NONE, percent, short_title, spoken, with_error

STATISTICS = ("max", "mean")

Reading = Callable[[str, str, str, str], float]  # statistic, method, notion, grouping → a share, or NaN


def settings_of(sweep: Sweep) -> list[tuple[str, str]]:
    """List the settings, (notion, grouping), in the order of the tables."""
    return [(notion, grouping) for notion in sweep.notions for grouping in sweep.groupings]


def reductions(
    sweep: Sweep, statistic: str, method: str, ks: Sequence[int], quality: str = "ndcg"
) -> NDArray[np.float64]:
    """Collect the max or mean reductions at no significant quality loss.

    Parameters
    ----------
    sweep : Sweep
        The sweep.
    statistic : str
        "max" or "mean" over the strengths.
    method : str
        The method.
    ks : sequence of int
        The cut-offs.
    quality : str
        The measure of quality.

    Returns
    -------
    ndarray
        (settings, ks); NaN where there is no gap to reduce.
    """
    return np.array(
        [
            [
                _reduction(sweep.curve(notion, k, method=method, quality=quality, grouping=grouping), statistic)
                for k in ks
            ]
            for notion, grouping in settings_of(sweep)
        ]
    )


def _reduction(curve: Curve, statistic: str) -> float:
    return curve.max_reduction if statistic == "max" else curve.mean_reduction


def columns(sweep: Sweep, method: str, ks: Sequence[int], quality: str = "ndcg") -> NDArray[np.float64]:
    """Collect the max and mean reductions of a method averaged over k, (settings, 2)."""
    of = [average(reductions(sweep, statistic, method, ks, quality), axis=1) for statistic in STATISTICS]
    return np.stack(of, axis=1)


def average(values: NDArray[np.float64], axis: int | None = None) -> NDArray[np.float64]:
    """Average what is defined; NaN if nothing is."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.asarray(np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0))


def overview(
    sweep: Sweep,
    quality: str = "ndcg",
    *,
    methods: Mapping[str, str] | None = None,
    ks: Mapping[str, Sequence[int]] | None = None,
    beside: Reading | None = None,
    extra: Mapping[str, NDArray[np.float64]] | None = None,
    joined: bool = False,
) -> Table:
    """Tabulate each method's max and mean reduction in each setting, averaged over k (the paper's Table 1).

    Parameters
    ----------
    sweep : Sweep
        The sweep.
    quality : str
        The measure of quality that must not fall significantly.
    methods : mapping, optional
        Method → its heading; by default all methods of the sweep.
    ks : mapping, optional
        Method → the cut-offs averaged over; by default all.
    beside : callable, optional
        (statistic, method, notion, grouping) → what to show in brackets beside a number; NaN for nothing.
    extra : mapping, optional
        Further columns: heading → (settings, 2), max and mean.
    joined : bool
        One column per method, "max/mean", narrow enough for a terminal.

    Returns
    -------
    Table
        One row per setting, and their average.
    """
    titles = methods or {name: name for name in sweep.methods}
    settings = settings_of(sweep)
    parts = {}
    for name, title in titles.items():
        parts[title] = columns(sweep, name, (ks or {}).get(name, sweep.ks), quality)
    parts |= dict(extra or {})
    reduced = np.concatenate(list(parts.values()), axis=1)
    reduced = np.concatenate([reduced, average(reduced, axis=0)[None]])
    heads = tuple(f"{title} {statistic}" for title in parts for statistic in STATISTICS)
    keys = [*settings, ("average", "average")]
    rows = []
    for number, (notion, grouping) in enumerate(keys):
        others = [
            np.nan if beside is None or title not in titles.values() else beside(statistic, name, notion, grouping)
            for title, name in zip(parts, [*titles, *(extra or {})], strict=True)
            for statistic in STATISTICS
        ]
        label = ("average", "") if notion == "average" else (spoken(notion), grouping)
        shown = [(percent(share), percent(other)) for share, other in zip(reduced[number], others, strict=True)]
        if joined:
            shown = [("/".join(ours), "/".join(theirs)) for ours, theirs in _by_two(shown)]
        cells = tuple(ours + ("" if NONE in theirs else f" ({theirs})") for ours, theirs in shown)
        rows.append(Row(label, cells, rule=number % len(sweep.groupings) == 0))
    return Table(
        f"Relative fairness increase without a significant loss of {short_title(quality, 'k')}"
        + (", max/mean" if joined else ""),
        ("notion", "grouping"),
        tuple(parts) if joined else heads,
        tuple(rows),
        () if joined else _plain(reduced),
        note=_reading(sweep, titles, ks or {}, quality, brackets=beside is not None),
    )


def _reading(
    sweep: Sweep, titles: Mapping[str, str], ks: Mapping[str, Sequence[int]], quality: str, *, brackets: bool
) -> str:
    """What max and mean are, and the mean without strength 0, which cannot reduce anything."""
    without = {}
    for name, title in titles.items():
        curves = [
            sweep.curve(notion, k, method=name, quality=quality, grouping=grouping)
            for notion, grouping in settings_of(sweep)
            for k in ks.get(name, sweep.ks)
        ]
        per_curve = [curve.reduction[1:][~curve.worse[1:]] for curve in curves]
        without[title] = average(np.array([float(average(values)) for values in per_curve]))
    told = ", ".join(f"{title} {percent(float(value))}" for title, value in without.items())
    theirs = " In brackets: the paper's numbers." if brackets else ""
    return (
        "max and mean are over the strengths that are not significantly worse, strength 0 included. Without strength 0 "
        f"the means average to: {told}. The grid of strengths is ours: the paper gives its size, not its range.{theirs}"
    )


def _by_two(shown: Sequence[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    for (ours_max, theirs_max), (ours_mean, theirs_mean) in zip(shown[::2], shown[1::2], strict=True):
        yield (ours_max, ours_mean), (theirs_max, theirs_mean)


def by_k(
    sweep: Sweep,
    statistic: str,
    method: str,
    quality: str = "ndcg",
    *,
    title: str | None = None,
    ks: Sequence[int] | None = None,
    beside: Callable[[str, str, str], float] | None = None,
) -> Table:
    """Tabulate one method's max or mean reduction at each k (the paper's appendix tables).

    Parameters
    ----------
    sweep, statistic, method, quality
        As in `reductions`.
    title : str, optional
        The method's name in the title of the table.
    ks : sequence of int, optional
        The cut-offs; by default all.
    beside : callable, optional
        (notion, grouping, k or "average") → what to show in brackets; NaN for nothing.

    Returns
    -------
    Table
        One row per setting, and their average.
    """
    cuts = list(sweep.ks if ks is None else ks)
    reduced = reductions(sweep, statistic, method, cuts, quality)
    reduced = np.concatenate([reduced, average(reduced, axis=1)[:, None]], axis=1)
    reduced = np.concatenate([reduced, average(reduced, axis=0)[None]])
    columns = (*(f"k={k}" for k in cuts), "average")
    keys = [*settings_of(sweep), ("average", "average")]
    rows = []
    for number, (notion, grouping) in enumerate(keys):
        cells = []
        for j, k in enumerate([*map(str, cuts), "average"]):
            other = np.nan if beside is None else beside(notion, grouping, k)
            cells.append(percent(reduced[number, j]) + ("" if np.isnan(other) else f" ({percent(other)})"))
        last = notion == "average"
        label = ("average over settings", "") if last else (spoken(notion), grouping)
        rows.append(Row(label, tuple(cells), rule=number % len(sweep.groupings) == 0))
    kind = "Maximal" if statistic == "max" else "Mean"
    return Table(
        f"{kind} relative fairness increase without a significant loss of {short_title(quality, 'k')}: "
        f"{title or method}",
        ("notion", "grouping"),
        columns,
        tuple(rows),
        _plain(reduced),
    )


def strengths(
    sweep: Sweep, method: str, notion: str, k: int, quality: str = "ndcg", grouping: str | None = None
) -> Table:
    """Tabulate mean ± error of quality and gap at every strength of one curve."""
    curve = sweep.curve(notion, k, method=method, quality=quality, grouping=grouping)
    rows, numbers = [], []
    for i in range(len(curve.strengths)):
        verdict = (
            "significantly worse" if curve.worse[i] else "fairest at no significant loss" if i == curve.best else ""
        )
        cells = (
            with_error(curve.quality[i], curve.quality_error[i]),
            with_error(curve.violation[i], curve.violation_error[i]),
            percent(curve.reduction[i]),
            verdict,
        )
        rows.append(Row((f"{curve.strengths[i]:.4g}",), cells))
        numbers.append((curve.quality[i], curve.violation[i], curve.reduction[i], float(not curve.worse[i])))
    where = f", {grouping}" if grouping else ""
    return Table(
        f"{method}, {spoken(curve.notion)} at k = {k}{where}: mean ± {sweep.spread} "
        f"over {sweep.about.folds or '?'} {sweep.about.repeats}",
        ("strength",),
        (curve.quality_name, "violation", "falls by", "quality"),
        tuple(rows),
        tuple(tuple(map(float, line)) for line in numbers),
    )


def _plain(values: NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(line) for line in values.tolist())
