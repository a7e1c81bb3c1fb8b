"""`audit_lists`: the audit of a table in an engine, by the same steps as in memory."""

from __future__ import annotations

from collections.abc import Sequence

from threadpoolctl import threadpool_limits

from evenrank.audits.run import Run
from evenrank.checks import check_number
from evenrank.engines.engine import Engine, Roles
from evenrank.engines.summaries import EngineLists
from evenrank.errors import DataError
from evenrank.intervals import check_confidence
from evenrank.page.audit import Audit


def audit_table(
    engine: Engine,
    roles: Roles,
    ks: Sequence[int],
    *,
    confidence: float,
    labelled: bool,
    items: bool,
    min_share: float,
    min_count: float,
    seed: int = 0,
) -> Audit:
    """Audit the lists of a table; parameters as in `evenrank.audit`."""
    check_confidence(confidence)
    check_number(min_share, "min_share", least=0, below=1)
    check_number(min_count, "min_count", least=0)
    lists = EngineLists.of(engine, roles, ks, labelled=labelled, items=items)
    if len(lists.rows.group_names) < 2:
        present = f"only {lists.rows.group_names[0]!r}" if lists.rows.group_names else "no group labels"
        raise DataError(f"{engine.title}: at least two groups are needed, to compare them; found {present}.")
    run = Run(confidence, "analytic", items, min_share, min_count, replicates=1, seed=seed)
    # Sums over kinds of lists are short: threads would cost more than they save, and DuckDB has its own.
    with threadpool_limits(1, user_api="blas"):
        return Audit(**run.over(lists.summaries(), lists.ks))
