"""What the commands print: tables for people, plain values for machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import evenrank as er
from evenrank.audits.audit import GAPS, QUALITY, RATIO, UNLABELLED
from evenrank.checks import check_k
from evenrank.data import RankingData
from evenrank.errors import ConfigError, one_line
from evenrank.experiment.trials import Sweep
from evenrank.extras import EXTRA_OF
from evenrank.measures import MeasureAt, measure_names
from evenrank.methods.method import Method
from evenrank.notions import NOTIONS
from evenrank.page.words import answer
from evenrank.ranking import strict_places
from evenrank.wording import TITLES, data_line, percent, spoken, three_digits, with_error

FAIRNESS = (*GAPS, RATIO)
AT_NO_LOSS = ("gap\nat 0", "gap at\nno loss", "reduced\nby", "NDCG\nat 0", "NDCG at\nno loss", "strength")  # heads


def console() -> Console:
    """Make a console that neither colours numbers nor fixes its width."""
    return Console(highlight=False, width=None)


def line(text: str) -> None:
    """Print text as it is, whatever the names in it hold."""
    console().print("\n".join(map(one_line, text.split("\n"))), soft_wrap=True, markup=False)


def audit_values(scores: NDArray[Any], data: RankingData, ks: Sequence[int], *, labelled: bool) -> dict[str, Any]:
    """Measure what `train` reports of its training rows, as plain values."""
    fairness = () if data.n_groups < 2 else FAIRNESS if labelled else (*UNLABELLED, RATIO)
    names = measure_names(ks, [*(QUALITY if labelled else ()), *fairness])
    pairs = ["max", "mean"] if data.n_groups > 2 else ["mean"]
    gaps = [name for name in names if MeasureAt.of(name).name in fairness]
    values = er.measure(scores, data, names)
    largest = er.measure(scores, data, gaps, across="max") if "max" in pairs else {}
    return {
        "data": {
            "rows": data.n_rows,
            "queries": data.n_queries,
            "longest_list": int(data.lengths.max()),
            "relevant_share": float(data.relevant.mean()) if labelled else None,
            "groups": {str(n): float((data.group == c).mean()) for c, n in enumerate(data.group_names)},
            "unknown_group_share": float((data.group < 0).mean()),
        },
        "k": list(ks),
        "measures": values,
        "largest_pair": largest,
        "selection_rates": {
            k: {str(name): rate for name, rate in er.selection_rates(scores, data, k).items()} for k in ks
        },
    }


def audit(report: dict[str, Any], title: str = "Audit") -> None:
    """Print what `audit_values` measured, beside the same of another model where the report has it as ``before``."""
    facts, ks = report["data"], report["k"]
    parts = [report["before"], report] if "before" in report else [report]
    line(
        data_line(
            rows=facts["rows"],
            queries=facts["queries"],
            relevant=facts["relevant_share"],
            groups=facts["groups"],
            unknown=facts["unknown_group_share"],
        )
    )
    table = new_table(title)
    table.add_column("measure")
    for k in ks:
        table.add_column(f"k = {k}", justify="right")
    for name in dict.fromkeys(MeasureAt.of(name).name for name in report["measures"]):
        for kind, values in (("largest pair", report["largest_pair"]), ("", report["measures"])):
            if f"{name}@{ks[0]}" not in values or (kind and name == RATIO):
                continue
            mean = " (mean over pairs)" if not kind and report["largest_pair"] and name in GAPS else ""
            label = TITLES[name] + (f" ({kind})" if kind else mean)
            key = "largest_pair" if kind else "measures"
            cells = ("→".join(three_digits(part[key][f"{name}@{k}"]) for part in parts) for k in ks)
            table.add_row(Text(label), *cells)
    table.add_section()
    for group in facts["groups"]:
        cells = ("→".join(three_digits(part["selection_rates"][k][group]) for part in parts) for k in ks)
        table.add_row(Text(one_line(f"selection rate: {group}")), *cells)
    console().print(table)


def sweep(result: Sweep, subtitle: str, *, every_strength: bool = False) -> None:
    """Print the demo's tables: the reduction at no loss per notion and k, then each notion's curve at the largest k."""
    line(subtitle)
    summary = new_table(f"The smallest gaps at {no_loss(result)}")
    for name in ("notion", "k", *AT_NO_LOSS):
        summary.add_column(name, justify="left" if name == "notion" else "right", no_wrap=True)
    for notion in result.notions:
        for k in result.ks:
            curve = result.curve(notion, k)
            i = curve.best
            summary.add_row(
                short_notion(notion),
                str(k),
                with_short_error(curve.violation[0], curve.violation_error[0]),
                with_short_error(curve.violation[i], curve.violation_error[i]),
                percent(curve.max_reduction),
                with_short_error(curve.quality[0], curve.quality_error[0]),
                with_short_error(curve.quality[i], curve.quality_error[i]),
                f"{curve.strengths[i]:.3g}",
            )
        summary.add_section()
    console().print(summary)
    k = result.ks[-1]
    curves = [result.curve(notion, k) for notion in result.notions]
    known = has_errors(result)
    marks = f"± {result.spread}; * significantly worse" if known else "* worse; one test only, so no error is known"
    table = new_table(f"Along the strengths at k = {k} ({marks})")
    table.add_column("strength", justify="right", no_wrap=True)
    for curve in curves:
        alias = short_notion(curve.notion)
        table.add_column(f"{alias}: NDCG", justify="right", no_wrap=True)
        table.add_column("gap", justify="right", no_wrap=True)
    step = 1 if every_strength else 3
    for i in sorted({0, *range(1, len(curves[0].strengths), step), *(curve.best for curve in curves)}):
        cells = []
        for curve in curves:
            star = "*" if curve.worse[i] else " "
            cells += [
                f"{with_short_error(curve.quality[i], curve.quality_error[i])}{star}",
                with_short_error(curve.violation[i], curve.violation_error[i]),
            ]
        table.add_row(f"{curves[0].strengths[i]:.3g}", *cells)
    console().print(table)
    names = (f"{short_notion(notion)} = {spoken(notion)}" for notion in result.notions)
    pairs = ", the mean over all pairs" if len(result.about.shares_of(result.groupings[0])) > 2 else ""
    line(f"{', '.join(names)}. gap: difference of the groups' rates of being in the top k{pairs}.")
    for curve in curves:
        line(answer(curve))


def has_errors(result: Sweep) -> bool:
    """Whether some model was tested more than once, so that a loss can be told from chance."""
    curve = result.curve(result.notions[0], result.ks[-1], method=result.methods[0], grouping=result.groupings[0])
    return not bool(np.isnan(curve.quality_error).all())


def no_loss(result: Sweep) -> str:
    """Say what counts as no loss; where no error is known, any drop is a loss (see `Curve.worse`)."""
    return "no significant quality loss" if has_errors(result) else "no quality loss at all"


def ranked_frame(scores: NDArray[np.float64], data: RankingData, top: int | None, names: dict[str, str | None]) -> Any:
    """Order rows by query (in file order), best first; ties go by item id, or by row.

    Parameters
    ----------
    scores : ndarray
        In the caller's row order, (n,).
    data : RankingData
        The rows.
    top : int or None
        The number of places to keep per query; None keeps all.
    names : dict
        What the file calls "query", "item", "relevance" (None to leave it out) and "group".
    """
    import polars as pl

    columns: dict[str, Any] = {names["query"] or "qid": _column(data.query_ids[data.query_of_row])}
    if data.item_ids is not None:
        columns[names["item"] or "item"] = _column(data.item_ids)
    stored = data.to_stored(scores)
    columns |= {"rank": strict_places(stored, data) + 1, "score": stored}
    if names["relevance"] is not None:
        columns[names["relevance"]] = data.relevance
    if data.n_groups:
        labels = np.array([*data.group_names, None], dtype=object)[data.group]
        columns[names["group"] or "group"] = _column(labels)
    columns["row"] = np.arange(data.n_rows) if data.row_order is None else data.row_order
    frame = pl.DataFrame(columns, strict=False).with_columns(order=pl.Series(data.query_of_row))
    frame = frame.sort(["order", "rank"])
    if top is not None:
        frame = frame.filter(pl.col("rank") <= check_k(top))
    return frame.drop("order")


def _column(values: NDArray[Any]) -> list[Any]:
    """Python values of one type, or text; None stays."""
    listed: list[Any] = values.tolist()
    if len({type(value) for value in listed if value is not None}) <= 1:
        return listed
    return [None if value is None else str(value) for value in listed]


def bounds(assumptions: dict[str, Any], rows: list[dict[str, Any]], k: int) -> None:
    """Print the bounds side by side, then the plan; numbers of 1 and more say nothing, and it is said.

    Parameters
    ----------
    assumptions : dict
        The number of queries, the list length, the longest list, the number of groups and features, delta and epsilon.
    rows : list of dict
        One per notion: its shares, the bounds and the queries needed.
    k : int
        The cut-off of the certified bounds.
    """
    line(
        f"{assumptions['queries']:,} queries of {assumptions['list_length']} items, none longer than "
        f"{assumptions['longest']:g}, {assumptions['groups']} groups, {assumptions['n_features']} features, confidence "
        f"{1 - assumptions['delta']:.0%} for each number by itself.\nAn addition of 0.05 to a gap of 0.10 seen means: "
        "at most 0.15 in the population of queries. 1 or more says nothing."
    )
    table = new_table("What to add to a gap seen")
    for name in ("notion", "rarest share", "theorem*", "lemma*", "share of longest", "certified (Hoeffding)"):
        table.add_column(name, justify="left" if name == "notion" else "right")
    for row in rows:
        *claims, planned = (str(value) if value.holds else "does not apply" for value in row["adds"].values())
        shares = f"{row['min_share']:.3f}", f"{row['certified_share']:.4f}"
        table.add_row(spoken(row["notion"]), shares[0], *claims, shares[1], planned)
    console().print(table)
    if "certified" in rows[0]:
        limit = rows[0]["certified"]["bernstein"]
        what = "the population" if limit.next_queries is None else f"the next {limit.next_queries:,} queries"
        certified = new_table(f"Certified from the file for {what}, at k = {k}")
        for name in ("notion", "seen", "Bernstein: at most", "Hoeffding: at most"):
            certified.add_column(name, justify="left" if name == "notion" else "right")
        for row in rows:
            limits = [
                f"{each.bound:.3f}{' (says nothing)' if each.vacuous else ''}" for each in row["certified"].values()
            ]
            certified.add_row(spoken(row["notion"]), f"{row['certified']['bernstein'].estimate:.3f}", *limits)
        console().print(certified)
        line(f"Each holds by itself, if {limit.condition}.")
    plan = new_table(f"Queries needed to add at most {assumptions['epsilon']:g}")
    for name in ("notion", "theorem*", "lemma*", "certified (Hoeffding)"):
        plan.add_column(name, justify="left" if name == "notion" else "right")
    for row in rows:
        plan.add_row(spoken(row["notion"]), *(f"{number:,}" for number in row["queries_needed"].values()))
    console().print(plan)
    line("* the paper's claims, for item-by-item decisions on lists of one length; their proof does not cover top-k.")


def methods(registry: Sequence[Method]) -> None:
    """Print some lines per method: name, when it acts and its strengths; what it is; what it may see; its facts."""
    for method in registry:
        grid = method.strength.grid()
        swept = f"{method.strength.name} = 0, {grid[1]:.3g} … {grid[-1]:.3g} ({len(grid)} strengths)"
        extra = f" (needs pip install 'evenrank[{EXTRA_OF.get(method.extra, method.extra)}]')" if method.extra else ""
        labels = "learns from labels" if method.sees.labels else "needs no labels"
        line(f"{method.name:<20} {method.kind:<15}  {swept}\n    {method.title}{extra}\n    {method.sees}; {labels}")
        line(f"    guarantee: {method.facts.guarantee}\n    cost: {method.facts.cost}; {method.facts.reference}")


def short_notion(name: str) -> str:
    """Write a notion's short name; one of the user's own has its name."""
    return NOTIONS[name].alias if name in NOTIONS else name


def measures(rows: Sequence[dict[str, Any]]) -> None:
    """Print some lines per measure: how it is written and which end is better; how it is read; its options."""
    for row in rows:
        cut = {"needed": "@k", "optional": "[@k]", "none": ""}[row["k"]]
        alias = f" ({row['alias']})" if row["alias"] else ""
        line(f"{row['name'] + cut + alias:<34} {row['best']} is better, {row['range']}")
        line(f"    {row['formula']}")
        if row["fair"]:
            line(f"    {row['fair']}")
        needs = f"; needs {', '.join(row['needs'])}" if row["needs"] else ""
        line(f"    ties: {row['ties']}{needs}{'; ' + row['reference'] if row['reference'] else ''}")
        if row["options"]:
            line("    options: " + ", ".join(f"{name}={value}" for name, value in row["options"].items()))


WRITERS: dict[str, Callable[[Any, BytesIO], Any]] = {
    ".csv": lambda frame, file: frame.write_csv(file),
    ".jsonl": lambda frame, file: frame.write_ndjson(file),
    ".parquet": lambda frame, file: frame.write_parquet(file),
}


def as_bytes(frame: Any, write: Callable[[Any, BytesIO], Any]) -> bytes:
    """Give what one of the `WRITERS` writes of a frame."""
    buffer = BytesIO()
    write(frame, buffer)
    return buffer.getvalue()


def plain(value: Any) -> Any:
    """Turn a value into JSON's types, NaN into null; digits beyond twelve depend on the order of summing."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.12g}") if math.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    if value is None or isinstance(value, str | int | bool):
        return value
    raise ConfigError(f"a value of type {type(value).__name__} cannot be printed as JSON.")


def with_short_error(value: float, error: float) -> str:
    """Write a mean and its error without the spaces and zeros that a narrow table has no room for."""
    return with_error(value, error).replace(" ± ", "±").replace("±0.", "±.")


def new_table(title: str) -> Table:
    """Make a table that is narrow enough for 80 columns."""
    named = Text(one_line(title), style="table.title")  # names of the data's columns may look like markup
    return Table(title=named, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
