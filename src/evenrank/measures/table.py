"""`measures_table`: the registry as rows, for reading and printing."""

from __future__ import annotations

from typing import Any

from evenrank.measures.registry import MEASURES


def measures_table() -> list[dict[str, Any]]:
    """List the measures: how each is written, its better end, range and fair value, its options, ties and needs.

    Returns
    -------
    list of dict
        One per measure: name, alias, k, best, range, fair, ties, needs, options (with the measure's own choices),
        reference.

    Examples
    --------
    >>> rows = {row["name"]: row for row in measures_table()}
    >>> rows["precision"]["alias"], rows["precision"]["k"], rows["precision"]["best"], rows["precision"]["range"]
    ('p', 'needed', 'high', '0 to 1')
    """
    return [
        {
            "name": measure.name,
            "alias": measure.alias,
            "k": measure.k,
            "best": measure.best,
            "range": measure.range,
            "fair": measure.fair,
            "ties": measure.ties,
            "needs": list(measure.needs),
            "options": dict(measure.options),
            "reference": measure.reference,
        }
        for measure in MEASURES.values()
    ]
