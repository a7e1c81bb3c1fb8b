"""The bench as one self-contained page; reductions are drawn with plain CSS.

The public names `bench` and `Bench` are taken from here, so that a bench knows its page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenrank.leaderboard.bench import bench
from evenrank.leaderboard.plan import FLOOR
from evenrank.leaderboard.result import Bench, Standing
from evenrank.leaderboard.words import HEAD, answers, caption, cells, notes, seen
from evenrank.page.skeleton import Row, Table, page
from evenrank.wording import percent, spoken

__all__ = ["Bench", "bench", "bench_page"]


@dataclass(frozen=True)
class Bar:
    """A reduction and its range over the seeds, as the page draws them.

    Attributes
    ----------
    label, value, note : str
        The method and its rule, the reduction, and what it may see.
    low, high, estimate : float
        In percent of the scale, on which 0 is at ``zero`` of `_bars`.
    """

    label: str
    value: str
    note: str
    low: float
    high: float
    estimate: float


def bench_page(result: Bench, *, title: str = "Which method lowers the gaps, and at what cost?") -> str:
    """Write a bench as one self-contained page.

    Parameters
    ----------
    result : Bench
        What `evenrank.bench` returned or `Bench.load` read.
    title : str
        The page's title.

    Returns
    -------
    str
        HTML.
    """
    done, wanted = result.done
    notices = [f"This bench is not finished: {done} of {wanted} parts are done."] if done < wanted else []
    return page(
        "bench.html",
        title,
        notices=notices,
        parts_of=[_parts(result, data) for data in result.data],
        notes=notes(result),
        made=_made(result),
    )


def _parts(result: Bench, data: str) -> dict[str, Any]:
    standings = result.standings(data)
    bars, zero = _bars(standings)
    rows = [Row(cells(standing)) for standing in standings]
    return {
        "caption": caption(result, data),
        "answers": answers(result, data),
        "bars": bars,
        "zero": zero,
        "table": Table(f"Standings on {data}", HEAD, rows, words=3),
        "settings": _settings(result, data, standings),
    }


def _bars(standings: Sequence[Standing]) -> tuple[list[Bar], float]:
    """The reductions on a scale from their lowest, at most 0, to 1; and where 0 is on it, in percent."""
    low = min(0.0, *(standing.low for standing in standings if not np.isnan(standing.low)), 0.0)
    low = max(low, -1.0)

    def place(value: float) -> float:
        return float(np.clip((value - low) / (1 - low), 0, 1) * 100)

    bars = []
    for standing in standings:
        if np.isnan(standing.reduction):
            continue
        rule = "" if standing.method == FLOOR else f", {spoken(standing.rule)}"
        bars.append(
            Bar(
                f"{standing.label}{rule}",
                percent(standing.reduction),
                seen(standing),
                place(standing.low),
                place(standing.high),
                place(standing.reduction),
            )
        )
    return bars, place(0.0)


def _settings(result: Bench, data: str, standings: Sequence[Standing]) -> Table:
    """One row per method and rule, one column per notion and grouping: the reduction averaged over k."""
    asked = result.config["asked"]
    keys = [(notion, grouping) for notion in asked["notions"] for grouping in asked["data"][data]]
    several = len(asked["data"][data]) > 1
    head = ["method", "strength", *(spoken(notion) + (f", {grouping}" if several else "") for notion, grouping in keys)]
    by_key = [
        {(one.method, one.rule): one.reduction for one in result.standings(data, notion=notion, grouping=grouping)}
        for notion, grouping in keys
    ]
    rows = [
        Row(
            [
                standing.label,
                standing.rule,
                *(percent(reductions[standing.method, standing.rule]) for reductions in by_key),
            ]
        )
        for standing in standings
    ]
    return Table(f"Reductions on {data} by setting", head, rows, words=2)


def _made(result: Bench) -> list[str]:
    asked, config = result.config["asked"], result.config
    versions = ", ".join(f"{name} {version}" for name, version in config["versions"].items())
    folds = asked["folds"]
    return [
        f"{folds} folds, drawn anew for each seed. For each fold the methods train on the others. The strength is "
        f"chosen on {folds - 1} inner folds: each is tested by models trained without it and without the fold that is "
        "reported. Methods get test rows without labels.",
        f"Versions: {versions}.",
        *([f"Command: {config['made']['command']}"] if config["made"].get("command") else []),
    ]


Bench.page = staticmethod(bench_page)
