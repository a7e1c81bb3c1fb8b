"""`measures_table`: the registry as rows, for reading and printing."""

from __future__ import annotations

from typing import Any

from evenrank.measures.registry import MEASURES


def measures_table() -> list[dict[str, Any]]:
    """List the measures: how each is written, its better end, range and fair value, its options, ties and needs.

    Returns
    -------
    list of dict
        One per measure: name, alias, k, best, formula, range, fair, ties, needs, options (with the measure's own
        choices), over ("lists": a mean over lists; "all lists": one value of all together), no_interval (why it has no
        interval, if it has none), reference.

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
            "formula": measure.formula,
            "range": measure.range,
            "fair": measure.fair,
            "ties": measure.ties,
            "needs": list(measure.needs),
            "options": dict(measure.options),
            "over": "lists" if measure.pooled is None else "all lists",
            "no_interval": measure.no_interval,
            "reference": measure.reference,
        }
        for measure in MEASURES.values()
    ]
