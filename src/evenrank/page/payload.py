"""What the page's script reads: every number of a sweep once, in plain lists, and the example queries packed small."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.experiment.curves import DECIMALS, Curve, pareto_front
from evenrank.experiment.examples import Examples
from evenrank.experiment.plan import RATE, RELEVANT_RATE
from evenrank.experiment.trials import Sweep
from evenrank.methods.method import ANY
from evenrank.methods.registry import METHODS
from evenrank.page.words import MEANING, Rates, story
from evenrank.wording import SHORT_TITLES, no_formula, spoken

DIGITS = 6
TITLE = 160  # characters of a query's or item's text


def payload(sweep: Sweep) -> dict[str, Any]:
    """Collect everything that changes with a selector or the slider.

    Parameters
    ----------
    sweep : Sweep
        The sweep.

    Returns
    -------
    dict
        Values of JSON; "settings" are [grouping][method][notion][k].
    """
    qualities = [name for name in SHORT_TITLES if f"{name}@{sweep.ks[0]}" in sweep.columns]
    build = _Builder(sweep, qualities)
    settings = [
        [
            [[build.setting(grouping, method, notion, k) for k in sweep.ks] for notion in sweep.notions]
            for method in sweep.methods
        ]
        for grouping in sweep.groupings
    ]
    return {
        "groupings": [no_formula(spoken(name)) or "groups" for name in sweep.groupings],
        "groups": [[no_formula(name) for name in sweep.about.shares_of(grouping)] for grouping in sweep.groupings],
        "methods": [_method(sweep, name) for name in sweep.methods],
        "notions": [{"name": spoken(name), "meaning": MEANING.get(name, "")} for name in sweep.notions],
        "ks": list(sweep.ks),
        "qualities": [SHORT_TITLES[name] for name in qualities],
        "settings": settings,
        "shared": build.shared.values,
        "fronts": [
            [
                [[build.front(grouping, notion, k, quality) for quality in qualities] for k in sweep.ks]
                for notion in sweep.notions
            ]
            for grouping in sweep.groupings
        ],
        "examples": _examples(sweep),
        "places": 0
        if sweep.examples is None
        else max((top.shape[1] for top in sweep.examples.tops.values()), default=0),
        "tops": build.tops,
        "start": start(sweep),
        "spread": sweep.spread,
        "factor": build.factor,
    }


def start(sweep: Sweep) -> dict[str, int]:
    """Choose what the page shows first: equal opportunity at the cut-off nearest to half of a median list."""
    median = 2 * sweep.ks[-1] if sweep.about.lists is None else sweep.about.lists.median
    k = min(range(len(sweep.ks)), key=lambda i: (abs(2 * sweep.ks[i] - median), sweep.ks[i]))
    wanted = sweep.notions.index("equal_opportunity") if "equal_opportunity" in sweep.notions else 0
    return {"grouping": 0, "method": 0, "notion": wanted, "k": k, "quality": 0}


def repeats(sweep: Sweep) -> int:
    """Count the folds or seeds that are done."""
    return int(np.unique([sweep.columns["fold"], sweep.columns["seed"]], axis=1).shape[1])


def rates_at(sweep: Sweep, name: str, grouping: str, method: str, notion: str, k: int) -> NDArray[np.float64]:
    """Look up each group's selection rate at each strength.

    Parameters
    ----------
    sweep : Sweep
        The sweep.
    name : str
        "selection_rate", or "selection_rate_relevant" for relevant items only.
    grouping, method, notion : str
        Which curve.
    k : int
        The cut-off.

    Returns
    -------
    array of float
        (groups, strengths); NaN where the sweep has none.
    """
    count = len(sweep.about.shares_of(grouping))
    columns = [f"{name}_{code}@{k}" for code in range(count)]
    length = len(sweep.along(f"{notion}@{k}", notion, method=method, grouping=grouping)[0])
    return np.array(
        [
            sweep.along(column, notion, method=method, grouping=grouping)[1]
            if column in sweep.columns
            else np.full(length, np.nan)
            for column in columns
        ]
    ).reshape(count, length)


class _Once:
    """Values that several settings share; each is kept once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._place: dict[str, int] = {}

    def add(self, value: Any) -> int:
        key = json.dumps(value)
        if key not in self._place:
            self._place[key] = len(self.values)
            self.values.append(value)
        return self._place[key]


class _Builder:
    def __init__(self, sweep: Sweep, qualities: list[str]) -> None:
        self.sweep = sweep
        self.qualities = qualities
        self._curves: dict[tuple[Any, ...], Curve | None] = {}
        self.shared = _Once()
        self.tops: list[list[str]] = []
        self._packed: dict[Any, int] = {}
        number = repeats(sweep)
        self.factor = _student(number) if sweep.spread == "standard error" and number > 1 else None

    def curve(self, grouping: str, method: str, notion: str, k: int, quality: str) -> Curve | None:
        """A curve of the sweep, or None if it was not run."""
        key = (grouping, method, notion, k, quality)
        if key not in self._curves:
            sweep = self.sweep
            run = len(sweep.along(f"{notion}@{k}", notion, method=method, grouping=grouping)[0])
            curve = sweep.curve(notion, k, method=method, quality=quality, grouping=grouping) if run else None
            self._curves[key] = curve
        return self._curves[key]

    def setting(self, grouping: str, method: str, notion: str, k: int) -> dict[str, Any] | None:
        """One curve: its own numbers, and the place of those it shares with other notions; None if it was not run."""
        sweep = self.sweep
        by_quality = [self.curve(grouping, method, notion, k, name) for name in self.qualities]
        curves = [curve for curve in by_quality if curve is not None]
        if not curves:
            return None
        rates = [rates_at(sweep, name, grouping, method, notion, k) for name in (RATE, RELEVANT_RATE)]
        groups = list(sweep.about.shares_of(grouping))
        at_0 = Rates(groups, rates[0][:, 0], rates[1][:, 0])
        stories = [
            story(curve, at_0, others=self.others(curve, quality))
            for curve, quality in zip(curves, self.qualities, strict=True)
        ]
        shared = {
            "quality": [numbers(curve.quality) for curve in curves],
            "error": [numbers(curve.quality_error) for curve in curves],
            "rates": [numbers(rate) for rate in rates[0]],
            "relevant": [numbers(rate) for rate in rates[1]],
        }
        return {
            "violation": numbers(np.round(curves[0].violation, DECIMALS)),
            "error": numbers(curves[0].violation_error),
            "shared": self.shared.add(shared),
            "best": [curve.best for curve in curves],
            "worse": ["".join("1" if worse else "0" for worse in curve.worse) for curve in curves],
            "story": [[part.answer, *part.uneven, *part.no_loss, *part.further] for part in stories],
            "tops": self._tops(grouping, method, notion, k),
        }

    def others(self, curve: Curve, quality: str) -> list[Curve]:
        """The same setting's curves of the other methods."""
        names = [name for name in self.sweep.methods if name != curve.method]
        curves = [self.curve(curve.grouping, name, curve.notion, curve.k, quality) for name in names]
        return [other for other in curves if other is not None]

    def front(self, grouping: str, notion: str, k: int, quality: str) -> list[list[int]]:
        """Method and strength of each point that no other point of any method beats, most even first."""
        points: list[tuple[int, int, Curve]] = []
        for number, method in enumerate(self.sweep.methods):
            curve = self.curve(grouping, method, notion, k, quality)
            if curve is not None:
                points += [(number, i, curve) for i in range(len(curve.strengths))]
        quality_of = np.array([curve.quality[i] for _, i, curve in points])
        violation_of = np.array([curve.violation[i] for _, i, curve in points])
        chosen = np.flatnonzero(pareto_front(quality_of, violation_of))
        chosen = chosen[np.argsort(violation_of[chosen], kind="stable")]
        return [[points[i][0], points[i][1]] for i in chosen.tolist()]

    def _tops(self, grouping: str, method: str, notion: str, k: int) -> int | None:
        tops = None if self.sweep.examples is None else self.sweep.examples.tops
        for key in ((method, grouping, name, cut) for name in (notion, ANY) for cut in (k, None)):
            if tops and key in tops:
                if key not in self._packed:
                    self._packed[key] = len(self.tops)
                    self.tops.append([runs(top) for top in tops[key]])
                return self._packed[key]
        return None


def runs(top: NDArray[np.int16]) -> str:
    """Write a query's top places along the strengths as the strengths at which they change.

    Parameters
    ----------
    top : array of int
        Item numbers, (places, strengths); -1 where a list is shorter.

    Returns
    -------
    str
        "strength number:items" for each change; empty if the query was not tested.

    Examples
    --------
    >>> runs(np.array([[3, 3, 1], [1, 1, 3], [-1, -1, -1]], np.int16))
    '0:3,1;2:1,3'
    """
    if top[0, 0] < 0:
        return ""
    changes = np.flatnonzero(np.concatenate([[True], (np.diff(top, axis=1) != 0).any(axis=0)]))
    return ";".join(f"{i}:" + ",".join(str(item) for item in top[:, i].tolist() if item >= 0) for i in changes.tolist())


def _examples(sweep: Sweep) -> list[dict[str, Any]]:
    """The example queries; items that no list shows are left out but counted, (groups,) of all and of relevant ones."""
    examples = sweep.examples
    if examples is None:
        return []
    codes = [{name: code for code, name in enumerate(sweep.about.shares_of(one))} for one in sweep.groupings]
    shown = _shown(examples)
    out = []
    for number, query in enumerate(examples.queries):
        items = []
        counts = [[[0] * len(own), [0] * len(own)] for own in codes]
        for place, item in enumerate(query["items"]):
            groups = [own.get(item["groups"].get(name), -1) for own, name in zip(codes, sweep.groupings, strict=True)]
            for code, count in zip(groups, counts, strict=True):
                if code >= 0:
                    count[0][code] += 1
                    count[1][code] += int(item["relevant"])
            if place in shown[number]:
                items.append([place, str(item["title"])[:TITLE], int(item["relevant"]), groups])
        out.append({"title": str(query["title"])[:TITLE], "items": items, "counts": counts})
    return out


def _shown(examples: Examples) -> list[set[int]]:
    """The items that stand in any list of each query."""
    shown: list[set[int]] = [set() for _ in examples.queries]
    for table in examples.tops.values():
        for number, top in enumerate(table):
            shown[number].update(np.unique(top).tolist())
    return shown


def _method(sweep: Sweep, name: str) -> dict[str, Any]:
    known, settings = METHODS.get(name), sweep.about.settings.get(name, {})
    for grouping in sweep.groupings:
        for notion in sweep.notions:
            grid = sweep.along(f"{notion}@{sweep.ks[0]}", notion, method=name, grouping=grouping)[0]
            if len(grid):
                return {
                    "name": spoken(name),
                    "title": f"{known.title}; it {known.sees.given(settings)}" if known else "",
                    "knob": known.strength.meaning if known else "",
                    "grid": numbers(grid),
                }
    return {"name": spoken(name), "title": "", "knob": "", "grid": []}


def _student(number: int) -> float:
    from evenrank.confidence import student

    return float(f"{student(number - 1, 0.95):.4g}")


def numbers(values: NDArray[np.float64]) -> list[float | None]:
    """Round values for JSON, which has no NaN: null stands for it."""
    return [float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in values.tolist()]
