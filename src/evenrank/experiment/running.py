"""The blocks of a sweep or a bench, run in this process or in several."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from evenrank.errors import DataWarning
from evenrank.experiment.journal import Journal
from evenrank.threads import in_processes


class Runner(Protocol):
    """Runs blocks; what neighbouring blocks share it may keep."""

    def run(self, block: Any) -> dict[str, Any]:
        """Run one block; its record holds ``block``, ``seconds``, ``warnings`` and what it found."""


class Plan(Protocol):
    """What is run block by block: a sweep or a bench."""

    @property
    def blocks(self) -> Sequence[Any]:
        """The blocks, data classes, in the order of the table."""

    def runner(self) -> Runner:
        """Make what runs them."""


def run_blocks(
    plan: Plan,
    records: list[dict[str, Any]],
    journal: Journal | None,
    n_jobs: int,
    progress: Callable[[float], None] | None,
) -> list[dict[str, Any]]:
    """Run the blocks that are not among the records yet, writing each down as it is finished.

    Parameters
    ----------
    plan : Plan
        What to run.
    records : list of dict
        Those of the blocks already finished; the new ones are added to it.
    journal : Journal or None
        Where each record is written.
    n_jobs : int
        The number of processes; -1 is one per core.
    progress : callable or None
        Called with the fraction done.

    Returns
    -------
    list of dict
        One record per block, in the order they were finished.
    """
    relayed: set[str] = set()
    done = {frozenset(record["block"].items()) for record in records}
    todo = [block for block in plan.blocks if frozenset(asdict(block).items()) not in done]
    _relay(records, relayed)
    if progress is not None and records:
        progress(len(records) / len(plan.blocks))
    for record in _results(plan, todo, n_jobs):
        if journal is not None:
            journal.append(record)
        records.append(record)
        _relay([record], relayed)
        if progress is not None:
            progress(len(records) / len(plan.blocks))
    return records


def _results(plan: Plan, todo: Sequence[Any], n_jobs: int) -> Iterable[dict[str, Any]]:
    if n_jobs == 1 or len(todo) < 2:
        return map(plan.runner().run, todo)
    from joblib import delayed

    return in_processes((delayed(_one)(plan, block) for block in todo), n_jobs)


def _one(plan: Plan, block: Any) -> dict[str, Any]:
    return plan.runner().run(block)


def _relay(records: Sequence[dict[str, Any]], relayed: set[str]) -> None:
    """Each of the blocks' warnings once."""
    for record in records:
        for message in record["warnings"]:
            if message not in relayed:
                relayed.add(message)
                warnings.warn(message, DataWarning, stacklevel=4)
