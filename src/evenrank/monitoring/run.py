"""`monitor`: audits over time in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from evenrank.data import RankingData
from evenrank.monitoring.estimates import WITHIN
from evenrank.monitoring.judge import FIRST, LOOKS, judged
from evenrank.monitoring.monitor import Monitor
from evenrank.monitoring.result import Monitored


def monitor(
    scores: ArrayLike | Monitor,
    data: RankingData | None = None,
    times: Any = None,
    *,
    window: str = "week",
    timezone: str = "UTC",
    measures: Sequence[str] = (),
    k: int | None = None,
    labelled: bool = True,
    cluster: Any = None,
    items: bool = True,
    reference: Any = FIRST,
    questions: Sequence[str] = (WITHIN,),
    alert_on: str | None = None,
    looks: int = LOOKS,
    confidence: float = 0.95,
) -> Monitored:
    """Watch rankings over time: has a gap, a ratio or the quality changed since the reference?

    Parameters
    ----------
    scores : array-like or Monitor
        (n,), in the caller's row order; or a state, which has its own windows and measures.
    data : RankingData
        The rows that the scores are of; None with a state.
    times : array-like
        (n,): when each row was ranked, or the name of its period; see `Monitor.update`.
    window, timezone, measures, k, labelled, items
        As of `Monitor`.
    cluster : str, array-like, or a tuple of two of them, optional
        What lists share that makes them depend on each other, such as a user.
    reference : int, (str, str) or Monitor
        The first so many windows; or the names of its first and last window; or the state of a reference of its own.
    questions : sequence of str
        What is asked of gaps: "within_query" (what the ranker does with the lists it got), "pooled", or both.
    alert_on : str, optional
        Which charts give alerts: "within", gaps within queries; or "all". The others are shown and tested, and queries
        of other kinds move them too. By default "within" where such gaps are watched, and else "all".
    looks : int
        The number of looks in which the chance of any false alarm, over all that is watched, is at most
        1 − confidence.
    confidence : float
        See ``looks``; also of each window's interval.

    Returns
    -------
    Monitored
        Charts and alerts, with methods that write them in words.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> scores, times = data.to_caller(data.features[:, 0]), data.to_caller(data.query_of_row)
    >>> monitor(scores, data, times, window="100", k=5).verdict
    'no change shown'
    """
    if isinstance(scores, Monitor):
        state = scores
    else:
        state = Monitor(measures, window, timezone, k, labelled, items)
        if data is None or times is None:
            from evenrank.errors import ConfigError

            raise ConfigError("a monitor needs scores, data and times, or a state; got scores alone.")
        state = state.update(scores, data, times, cluster=cluster)
    return judged(
        state, reference=reference, questions=questions, alert_on=alert_on, looks=looks, confidence=confidence
    )
