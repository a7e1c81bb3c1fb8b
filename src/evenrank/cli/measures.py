"""`evenrank measures`: the registry of measures, printed."""

from __future__ import annotations

from evenrank.cli import common, options, show
from evenrank.measures import measures_table


def measures(as_json: options.Json = False) -> None:
    """List the measures: how each is written, which end is better, its range, its fair value and its options."""
    rows = measures_table()
    if as_json:
        common.print_json(rows)
        return
    show.measures(rows)
