"""What `sweep` and `select` print."""

from __future__ import annotations

from collections.abc import Sequence

from evenrank.cli import show
from evenrank.experiment.choice import Choice
from evenrank.experiment.trials import Sweep
from evenrank.page.further import further_measures, further_rows
from evenrank.wording import percent, spoken, three_digits


def further(result: Sweep) -> None:
    """Print the measures that were asked for besides, if any were: without mitigation, and at no loss."""
    for grouping in result.groupings if further_measures(result) else ():
        of = f", groups by {grouping}" if len(result.groupings) > 1 else ""
        table = show.new_table(f"Further measures{of}: now, and at the smallest gap at {show.no_loss(result)}")
        left = ("measure", "notion", "method") if len(result.methods) > 1 else ("measure", "notion")
        for name in (*left, "now", "at no loss"):
            table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
        for part in further_rows(result, grouping):
            method = [part.method] if len(result.methods) > 1 else []
            table.add_row(part.measure, show.short_notion(part.notion), *method, part.now, part.at_no_loss)
        show.console().print(table)


def summary(result: Sweep, subtitle: str = "", *, every_strength: bool = False) -> None:
    """Print the smallest gaps at no significant quality loss.

    One method has one row per notion and k; several have one row per method, at the largest k.

    Parameters
    ----------
    result : Sweep
        The sweep.
    subtitle : str
        The first line; by default the sizes of the data.
    every_strength : bool
        Print all strengths of one method's curves, instead of every third.
    """
    about = result.about
    subtitle = subtitle or (
        f"{about.rows:,} rows, {about.queries:,} queries, {about.features} features; "
        f"{about.models:,} models trained and measured in {about.seconds:.1f} s."
    )
    if len(result.methods) == len(result.groupings) == 1:
        show.sweep(result, subtitle, every_strength=every_strength)
        return
    show.line(subtitle)
    k = max(result.ks)
    left = ("method", "notion")
    for grouping in result.groupings:
        of = f", groups by {grouping}" if len(result.groupings) > 1 else ""
        table = show.new_table(f"At {show.no_loss(result)}, k = {k}{of}")
        for name in (*left, *show.AT_NO_LOSS):
            table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
        for notion in result.notions:
            for method in result.methods:
                curve = result.curve(notion, k, method=method, grouping=grouping)
                i = curve.best
                table.add_row(
                    method,
                    show.short_notion(notion),
                    three_digits(curve.violation[0]),
                    three_digits(curve.violation[i]),
                    percent(curve.max_reduction),
                    show.with_short_error(curve.quality[0], curve.quality_error[0]),
                    show.with_short_error(curve.quality[i], curve.quality_error[i]),
                    f"{curve.strengths[i]:.3g}",
                )
            table.add_section()
        show.console().print(table)
    names = (f"{show.short_notion(notion)} = {spoken(notion)}" for notion in result.notions)
    spread = f"; ± {result.spread}" if show.has_errors(result) else ""
    show.line(f"{', '.join(names)}{spread}. Each method is compared with its own strength 0.")


def choices(chosen: Sequence[Choice]) -> None:
    """Print one table per grouping with one row per choice: what it is, then the baseline → the choice."""
    groupings = list(dict.fromkeys(choice.grouping for choice in chosen))
    held = chosen[0].held_out is not None
    where = "on folds that took no part in it" if held else "on the queries it was made on"
    for grouping in groupings:
        of = f", groups by {grouping}" if len(groupings) > 1 else ""
        base = chosen[0].baseline.method
        table = show.new_table(f"Baseline ({base}, strength 0) → choice{of}, {where}")
        left = ("notion", "rule", "method")
        for name in (*left, "strength", f"gap@{chosen[0].k}", chosen[0].quality_name.upper(), "four-fifths"):
            table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
        rows = [choice for choice in chosen if choice.grouping == grouping]
        for number, choice in enumerate(rows):
            if number and choice.notion != rows[number - 1].notion and choice.rule == rows[0].rule != rows[-1].rule:
                table.add_section()
            table.add_row(
                show.short_notion(choice.notion),
                choice.rule,
                choice.method if choice.qualified else "none",
                f"{choice.strength:.3g}" if choice.qualified else "–",
                *(_change(choice, name) for name in ("violation", "quality", "ratio")),
            )
        show.console().print(table)


def _change(choice: Choice, name: str) -> str:
    """Nothing changes where nothing qualifies."""
    held = choice.held_out if choice.qualified else None
    before, after = (choice.baseline, choice.chosen) if held is None else (held.before, held)
    return "→".join(three_digits(getattr(outcome, name)).removeprefix("0") for outcome in (before, after))
