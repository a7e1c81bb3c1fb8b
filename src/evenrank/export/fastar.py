"""FA*IR's table as JSON, for the code that fills a page of results."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenrank.errors import ConfigError
from evenrank.rerankers.fastar import FAStar

HOW = (
    "Fill places from the top. At place i (from 1) take the best protected item if fewer than table[i - 1] protected "
    "items are placed so far, otherwise the best item of all."
)


def fastar_table(fastar: FAStar, k: int) -> dict[str, Any]:
    """Give what a program needs to re-rank by FA*IR: no engine can, as a place depends on the places above it.

    Parameters
    ----------
    fastar : FAStar
        The re-ranker, with one p.
    k : int
        The number of places.

    Returns
    -------
    dict
        p, significance, the protected group, and the least number of protected items in the first 1, …, k; plain
        values, ready for `json.dumps`.

    Examples
    --------
    >>> import evenrank as er
    >>> fastar_table(er.FAStar(p=0.5, significance=0.1, protected="young"), 6)["table"]
    [0, 0, 0, 1, 1, 1]
    """
    if np.ndim(fastar.p):
        raise ConfigError(f"one table is for one p; got {len(np.atleast_1d(fastar.p))}. Make a FAStar with a single p.")
    return {
        "method": "fastar",
        "p": float(np.asarray(fastar.p)),
        "significance": float(fastar.significance),
        "adjusted_significance": float(fastar.adjusted_significance(k)),
        "protected": fastar.protected,
        "k": int(k),
        "table": fastar.table(k).tolist(),
        "how": HOW,
    }
