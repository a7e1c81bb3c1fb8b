"""`audit_table`: the audit of a table in an engine, by the same steps as in memory."""

from __future__ import annotations

from collections.abc import Sequence

from evenrank.audits.run import Run
from evenrank.checks import check_number
from evenrank.confidence import check_confidence
from evenrank.engines.engine import Engine, Roles
from evenrank.engines.summaries import EngineLists
from evenrank.page.audit import Audit
from evenrank.threads import one_thread


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
    lists = EngineLists.of(engine, roles, ks, labelled=labelled, items=items, groups=2)
    run = Run(confidence, "analytic", items, min_share, min_count, replicates=1, seed=seed)
    with one_thread():
        return Audit(**run.over(lists.summaries(), lists.ks))
