"""`measure_table`: measures of a table in an engine, from the same sums as its audit."""

from __future__ import annotations

from collections.abc import Sequence

from evenrank.audits.cells import SummaryStatistics
from evenrank.audits.run import GAPS, ORDER, RATIO, UNLABELLED, can_tell
from evenrank.engines.engine import Engine, Roles
from evenrank.engines.summaries import EngineLists
from evenrank.errors import ConfigError
from evenrank.measures import ask


def measure_table(engine: Engine, roles: Roles, measures: str | Sequence[str]) -> dict[str, float]:
    """Measure the lists of a table.

    Parameters
    ----------
    engine : Engine
        Where the rows are.
    roles : Roles
        The parts of their columns.
    measures : str or sequence of str
        Measures with a cut-off: NDCG, precision, recall, the gaps, and the four-fifths ratio.

    Returns
    -------
    dict
        Measure, as it was named → value.
    """
    names = [measures] if isinstance(measures, str) else list(measures)
    asked = {name: _asked(name, labelled=roles.relevance is not None) for name in names}
    if not asked:
        return {}
    cuts = sorted({k for _, k in asked.values()})
    groups = 2 if any(measure in (*GAPS, RATIO) for measure, _ in asked.values()) else 0
    labelled = roles.relevance is not None
    lists = EngineLists.of(engine, roles, cuts, labelled=labelled, items=False, groups=groups)
    found: dict[tuple[str, int], float] = {}
    for summary in lists.summaries():
        statistics = SummaryStatistics(summary)
        for measure, k in asked.values():
            if k in summary.ks and can_tell(measure, summary):
                (stat,) = statistics.statistics([f"{measure}@{k}"])
                found[measure, k] = float(stat.value(stat.estimates))
    return {name: found[place] for name, place in asked.items()}


def _asked(name: str, *, labelled: bool) -> tuple[str, int]:
    asked = ask(name)[1]
    measure, k = asked.measure.name, asked.k
    if measure not in ORDER or k is None:
        raise ConfigError(
            f"an engine measures {', '.join(ORDER)}, each with a cut-off as in dp@5; got {name!r}. Measure a sample of "
            "the queries in memory with er.measure."
        )
    if not labelled and measure not in (*UNLABELLED, RATIO):
        raise ConfigError(f"{name} needs relevance labels, and relevance=None says that there are none.")
    return measure, k
