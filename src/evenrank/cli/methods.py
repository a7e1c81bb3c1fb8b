"""`evenrank methods`: the registry, printed."""

from __future__ import annotations

from dataclasses import asdict

from evenrank.cli import common, options, show
from evenrank.methods.registry import METHODS


def methods(as_json: options.Json = False) -> None:
    """List the methods: when each acts, its strengths, what it is, what it may see, and what it guarantees."""
    if as_json:
        common.print_json(
            [
                {
                    "name": method.name,
                    "title": method.title,
                    "kind": method.kind,
                    "strength": method.strength.name,
                    "grid": method.strength.grid().tolist(),
                    "options": None if method.settings is None else list(method.settings),
                    "extra": method.extra,
                    "sees": asdict(method.sees),
                    **asdict(method.facts),
                    "model_file": method.home[1] if method.saves else None,
                }
                for method in METHODS.values()
            ]
        )
        return
    show.methods(list(METHODS.values()))
