"""The honest table: what is left of the reductions on folds that took no part in choosing the strength."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from evenrank.errors import DataWarning
from evenrank.experiment.select import select
from evenrank.experiment.trials import Sweep
from evenrank.paper import summary
from evenrank.paper.tables import Row, Table
from evenrank.wording import percent, short_title, spoken


def honest(
    results: Sequence[Sweep], methods: Mapping[str, str], ks: Mapping[str, Sequence[int]], quality: str = "ndcg"
) -> Table:
    """Tabulate reduction and change of quality on folds that took no part in choosing the strength.

    The paper's maximum is chosen and reported on the same folds, so it flatters every method.

    Parameters
    ----------
    results : sequence of Sweep
        The same sweep under several divisions into folds.
    methods : mapping
        Method → its heading.
    ks : mapping
        Method → its cut-offs, where not all are tabulated.
    quality : str
        The measure of quality.

    Returns
    -------
    Table
        Mean ± standard deviation over the divisions.
    """
    settings = summary.settings_of(results[0])
    changes = np.full((len(results), len(settings) + 1, len(methods), 2), np.nan)
    for number, result in enumerate(results):
        for i, (notion, grouping) in enumerate(settings):
            for j, method in enumerate(methods):
                per_k = [_held_out(result, notion, grouping, k, method, quality) for k in ks.get(method, result.ks)]
                changes[number, i, j] = summary.average(np.array(per_k), axis=0)
        changes[number, -1] = summary.average(changes[number, :-1], axis=0)
    flat = changes.reshape(len(results), len(settings) + 1, -1)
    table = summary.average(flat, axis=0)
    spread = np.sqrt(summary.average((flat - table) ** 2, axis=0) * len(results) / max(1, len(results) - 1))
    labels = [*((spoken(notion), grouping) for notion, grouping in settings), ("average", "")]
    several = len(results) > 1
    rows = [
        Row(
            label,
            tuple(
                _with_spread(value, error if several else np.nan, share=j % 2 == 0)
                for j, (value, error) in enumerate(zip(line, errors, strict=True))
            ),
            rule=number % len(results[0].groupings) == 0,
        )
        for number, (label, line, errors) in enumerate(zip(labels, table.tolist(), spread.tolist(), strict=True))
    ]
    name = short_title(quality, "k")
    note = (
        f"Mean ± standard deviation over {len(results)} divisions into folds."
        if several
        else "One division into folds."
    )
    return Table(
        f"Reduction of the gap, and change of {name}, on folds that took no part in choosing the strength",
        ("notion", "grouping"),
        tuple(f"{title} {what}" for title in methods.values() for what in ("falls by", name)),
        tuple(rows),
        tuple(tuple(line) for line in table.tolist()),
        note=note
        + " The strength is chosen on the other folds by the paper's rule; a fold's rows did train the models "
        "that the others compare. evenrank bench avoids that too.",
    )


def _with_spread(value: float, error: float, *, share: bool) -> str:
    """Write a share in percent, or a change with its sign, and its standard deviation if it is known."""
    text = percent(value) if share else f"{value:+.3f}"
    if np.isnan(error) or np.isnan(value):
        return text
    return f"{text} ± {100 * error:.0f}" if share else f"{text} ± {error:.3f}"


def _held_out(result: Sweep, notion: str, grouping: str, k: int, method: str, quality: str) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # where nothing qualifies, the reduction is 0
        held_out = select(result, notion, k, quality=quality, methods=method, grouping=grouping).held_out
    if held_out is None or not held_out.before.violation > 0:
        return np.nan, np.nan
    reduction = (held_out.before.violation - held_out.violation) / held_out.before.violation
    return reduction, held_out.quality - held_out.before.quality
