"""`evenrank monitor`: has the way rankings treat groups changed? Windows over time, with a state that is carried on."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import evenrank as er
from evenrank.checks import choose
from evenrank.cli import common, options, process, show
from evenrank.cli.guard import Output
from evenrank.cli.periods import files_in_turn, periods
from evenrank.cli.provenance import provenance
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, one_line
from evenrank.io.columns import MissingColumn
from evenrank.io.files import write_whole
from evenrank.monitoring.estimates import POOLED, QUESTIONS, WITHIN
from evenrank.monitoring.judge import ALERT_ON, FIRST, LOOKS, judged
from evenrank.monitoring.monitor import AGAIN, Monitor
from evenrank.monitoring.result import Chart, Monitored, Point
from evenrank.monitoring.watched import DEFAULT, PAIRS, asked_at, knows_groups
from evenrank.monitoring.windows import PERIOD
from evenrank.monitoring.words import alert_sentence
from evenrank.page.monitor import monitor_page

FORMATS = {"text": ".txt", "json": ".json", "html": ".html"}
ASKED = {"within": (WITHIN,), "pooled": (POOLED,), "both": QUESTIONS}


def monitor(
    file: Annotated[
        list[Path] | None,
        typer.Argument(help="The rows. Without --time each file is a period; a folder stands for its files."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", help="Column of the date or time of the row.", rich_help_panel=options.COLUMNS),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(
            help="day, week, month, a duration as 6h or 14d, a number (of numeric times), or period: --time has "
            "names.  [default: week]"
        ),
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(help="Where days begin, as Europe/Berlin; times without an offset are there.  [default: UTC]"),
    ] = None,
    period: Annotated[
        list[str] | None,
        typer.Option("--period", help="Name of each file's period, in turn; by default its name without the suffix."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="File with the sums of earlier windows; it is made, or read, added to and written."),
        Output(),
    ] = None,
    again: Annotated[
        str, typer.Option(help=f"What to do with lists that a window already has: {', '.join(AGAIN)}.")
    ] = "refuse",
    reference: Annotated[
        str, typer.Option(help="How many of the first windows, or the first and last, as 2026-01-05..2026-01-26.")
    ] = str(FIRST),
    reference_state: Annotated[
        Path | None, typer.Option(help="State of a reference of its own; then every window is looked at.")
    ] = None,
    measures: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated: gaps and four_fifths at --k, and any measure of `evenrank measures` that has an "
            f"interval, as awrf@10.  [default: {', '.join(DEFAULT)}]"
        ),
    ] = None,
    question: Annotated[
        str, typer.Option(help="Gaps within queries (the ranker's), pooled over all lists, or both.")
    ] = "within",
    alert_on: Annotated[
        str | None,
        typer.Option(
            help=f"Charts that give alerts: {' (gaps within queries) or '.join(ALERT_ON)}.  [default: within, and all "
            "where no such gap is watched]"
        ),
    ] = None,
    looks: Annotated[
        int, options.numeric(parser=options.whole(1), help="Looks that share the chance of a false alarm.")
    ] = LOOKS,
    confidence: Annotated[
        float, options.numeric("--confidence", help="1 − the chance of any false alarm; also of the intervals.")
    ] = 0.95,
    k: Annotated[
        int | None,
        options.numeric("--k", parser=options.whole(1), help="The cut-off; by default by the lists' length."),
    ] = None,
    query: options.Query = "qid",
    item: options.Item = None,
    relevance: options.Relevance = "relevance",
    group: options.Group = "group",
    score: options.Score = "score",
    rank: Annotated[
        str | None,
        typer.Option("--rank", help="Column of the rank, 1 first, instead of scores.", rich_help_panel=options.COLUMNS),
    ] = None,
    threshold: options.Threshold = 1.0,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster",
            help="Column of what queries share, such as a user. Once or twice.",
            rich_help_panel=options.COLUMNS,
        ),
    ] = None,
    items: Annotated[
        bool, typer.Option("--items/--no-items", help="Take items that recur in several lists into account.")
    ] = True,
    no_relevance: Annotated[bool, typer.Option("--no-relevance", help="The log has no labels.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=f"Write to this file: {', '.join(FORMATS.values())}."),
        Output(suffixes=tuple(FORMATS.values())),
    ] = None,
    input_format: options.InputFormat = None,
    header: options.Header = True,
    as_json: options.Json = False,
) -> None:
    """Watch rankings over time: charts by window, and an alert (exit code 1) where a gap changed since the start."""
    choose(again, AGAIN, what="--again")
    questions = ASKED[choose(question, ASKED, what="--question")]
    if alert_on is not None:
        choose(alert_on, ALERT_ON, what="--alert-on")
    span = _reference(reference)
    files = files_in_turn(file or [])
    if not files and (state is None or not state.exists()):
        raise ConfigError("monitor needs rows, or a --state that exists; got neither. Name a file of rows.")
    if state is not None and out is not None and state.resolve() == out.resolve():
        raise ConfigError(f"--state and --out must be two files; got {str(out)!r} for both.")
    base = None if reference_state is None else Monitor.load(reference_state)
    names = periods(files, time, period)
    settings = {
        "measures": None if measures is None else _measures(measures),
        "window": window or (PERIOD if files and time is None else None),
        "timezone": timezone,
        "k": k,
        "labelled": False if no_relevance else None,
        "items": None if items else False,
    }
    before = _begin(state, settings, base, timed=time is not None)
    reading = {
        "query": query,
        "relevance": relevance if before.labelled else None,
        "group": group,
        "score": rank or score,
        "relevance_threshold": threshold,
        "format": input_format,
        "header": header,
    }
    after = before
    groups: set[str] = set()
    shared = list(dict.fromkeys(cluster or []))
    for paths, name in names:
        wanted = [*([("time", time)] if time is not None else []), *(("cluster", column) for column in shared)]
        data, columns = _read(paths, item, wanted, reading)
        groups |= {str(data.group_names[code]) for code in np.unique(data.group[data.group >= 0])}
        scores = data.to_caller(data.column(rank or score))
        times = columns[time] if time is not None else np.full(data.n_rows, name, object)
        try:
            after = after.update(
                -scores if rank else scores,
                data,
                times,
                cluster={column: columns[column] for column in shared} or None,
                again=again,
            )
        except DataError as error:
            raise DataError(f"{paths[0]}: {error}") from None
    if after.windows and any(knows_groups(measure) for measure in after.measures):
        known = {name for series in after.table.series for name in (series.a, series.b, series.mix) if name}
        _need_groups(known | groups, before, files)
    result = judged(
        after, reference=base or span, questions=questions, alert_on=alert_on, looks=looks, confidence=confidence
    )
    _give(result, out, files, as_json=as_json)
    if state is not None and after is not before:
        after.save(state)
    fresh = _changed(before, after) if files else result.windows[-1:]
    alerts = result.alerts(fresh)
    if alerts and (as_json or out is not None):
        process.say(one_line(_spoken(alerts)))
    if alerts:
        raise typer.Exit(1)


def _spoken(alerts: list[tuple[Chart, Point]]) -> str:
    """The alerts of the last window that has any, in one line."""
    last = alerts[-1][1].window
    here = [alert for alert in alerts if alert[1].window == last]
    strongest = min(here, key=lambda alert: alert[1].adjusted)
    more = f" And {len(here) - 1} more." if len(here) > 1 else ""
    return f"changed at {last}: {alert_sentence(*strongest)}{more}"


def _measures(text: str) -> list[str]:
    names = options.split_measures(text)
    if not names:
        raise ConfigError(f"--measures must name what is watched, as dp,awrf@10; got {text!r}. Or leave it out.")
    return names


def _reference(text: str) -> Any:
    first, dots, last = text.partition("..")
    if dots and first.strip() and last.strip():
        return first.strip(), last.strip()
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise ConfigError(
        f"--reference must be a number of windows, or the first and last as 2026-01-05..2026-01-26; got {text!r}."
    )


def _begin(path: Path | None, asked: dict[str, Any], base: Monitor | None, *, timed: bool) -> Monitor:
    """The state so far, which must be what is asked for, or an empty one."""
    if path is not None and path.exists():
        state = Monitor.load(path)
        if asked["window"] == PERIOD != state.window:
            raise ConfigError(f"--time: the state {path} has windows by time ({state.window}). Name the time column.")
        if state.window == PERIOD and timed and asked["window"] is None:
            raise ConfigError(
                f"--time: the state {path} has named periods. Pass --window period if the column has names."
            )
        for name, value in asked.items():
            mine = getattr(state, name)
            wanted = (
                Monitor(measures=value, labelled=state.labelled).measures if name == "measures" and value else value
            )
            if wanted is not None and (set(wanted) != set(mine) if name == "measures" else wanted != mine):
                raise ConfigError(
                    f"--{name.replace('_', '-')}: the state {path} has {_plain(mine)}; got {_plain(wanted)}. Leave the "
                    "option out, or begin another state."
                )
        return state
    given = {name: value for name, value in asked.items() if value is not None}
    if base is not None:
        given = {"k": base.k, "labelled": base.labelled, "measures": base.measures, "items": base.items} | given
    return Monitor(**given)


def _plain(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _read(
    paths: list[Path], item: str | None, wanted: list[tuple[str, str]], reading: dict[str, Any]
) -> tuple[RankingData, dict[str, Any]]:
    """Rows with their items, which may come again in another window's list of the same query."""
    advice = {
        "relevance": "Name the right column with --relevance, or pass --no-relevance if the log has none.",
        "score": "Name the right column with --score, or a column of ranks with --rank.",
        "item": "Name the right column with --item.",
    }
    name = item or "item"
    try:
        data, columns = er.io.registry.read_with_labels(paths, [*wanted, ("item", name)], ignore=[name], **reading)
    except MissingColumn as error:
        if error.role != "item" or item is not None:
            raise DataError(
                f"{error.fact} {advice.get(error.role, f'Name the right column with --{error.role}.')}"
            ) from None
        data, columns = common.read_labelled_rows(paths, wanted, advice, **reading)
    if name in columns:
        ids = columns[name]
        data = replace(data, item_ids=ids if data.row_order is None else ids[data.row_order])
    return data, columns


def _need_groups(groups: set[str], before: Monitor, files: list[Path]) -> None:
    """Refuse rows of one group, unless the state may know more; and a protected group that no row has."""
    if before.windows and not any(measure in PAIRS for measure in before.measures):
        return
    for name in before.measures:
        protected = None if name in PAIRS else asked_at(name, 1).options.protected
        if not before.windows and protected is not None and str(protected) not in groups:
            raise ConfigError(f"{name}: protected must be one of the groups {_plain(tuple(sorted(groups)))}.")
    if len(groups) < 2:
        where = files[0] if files else "the state"
        there = f"only {next(iter(groups))!r}" if groups else "no group labels"
        raise DataError(
            f"{where}: at least two groups are needed, to compare them; found {there}. Name the column with --group."
        )


def _changed(before: Monitor, after: Monitor) -> list[str]:
    """The windows that these rows are in."""
    known = {window.key: (window.lists, window.rows) for window in before.windows}
    return [window.label for window in after.windows if known.get(window.key) != (window.lists, window.rows)]


def _give(result: Monitored, out: Path | None, files: list[Path], *, as_json: bool) -> None:
    title = "Monitor"
    shape = "json" if as_json and out is None else "text"
    if out is not None:
        shape = next(name for name, suffix in FORMATS.items() if out.suffix == suffix)
    made = provenance(files) if shape != "text" else {}
    if shape == "json":
        text = common.as_json(result.to_dict() | {"provenance": made}) + "\n"
    elif shape == "html":
        text = monitor_page(result, title, made=made)
    else:
        text = result.text(title)
    if out is None:
        sys.stdout.write(text)
        return
    write_whole(out, text)
    if as_json and shape != "json":
        common.print_json(result.to_dict() | {"provenance": made})
    else:
        show.line(f"The monitor: {out}")
