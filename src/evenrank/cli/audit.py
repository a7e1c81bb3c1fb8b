"""`evenrank audit`: how evenly logged rankings treat groups, in whose favour, and how sure that is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import evenrank as er
from evenrank.audits.audit import GAPS, UNLABELLED, Audit
from evenrank.checks import choose
from evenrank.cli import common, options, process, show
from evenrank.cli.guard import Output
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, one_line
from evenrank.io.files import write_whole
from evenrank.io.registry import format_of
from evenrank.measures import parse_measure

FORMATS = {"text": ".txt", "json": ".json", "md": ".md", "html": ".html"}


def audit(
    file: options.File,
    query: options.Query = "qid",
    item: options.Item = None,
    relevance: options.Relevance = "relevance",
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            help="Column of the group ('group'); empty is unknown. Several: each, and their intersections.",
            rich_help_panel=options.COLUMNS,
        ),
    ] = None,
    score: options.Score = "score",
    rank: Annotated[
        str | None,
        typer.Option("--rank", help="Column of the rank, 1 first, instead of scores.", rich_help_panel=options.COLUMNS),
    ] = None,
    threshold: options.Threshold = 1.0,
    k: options.Ks = "1,3,5,10",
    confidence: Annotated[
        float, options.numeric("--confidence", help="Confidence of the intervals and bounds.")
    ] = 0.95,
    no_relevance: Annotated[
        bool, typer.Option("--no-relevance", help="The log has no labels: demographic parity and exposure only.")
    ] = False,
    compare: Annotated[
        Path | None, typer.Option(help="Other scores of the same queries and items, to be compared with these.")
    ] = None,
    fail_over: Annotated[
        list[str] | None,
        typer.Option(help="As eop@10=0.05: exit 1 if that gap (largest pair) is significantly above. Repeatable."),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Relevance judgements of a TREC run; without them it has no labels.")
    ] = None,
    groups: Annotated[Path | None, typer.Option(help="CSV with columns item,group, for a TREC run.")] = None,
    format: Annotated[str | None, typer.Option("--format", help=f"Format of the output: {', '.join(FORMATS)}.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write to this file instead, in the format of its suffix."),
        Output(),
    ] = None,
    input_format: options.InputFormat = None,
    as_json: options.Json = False,
) -> None:
    """Say how evenly rankings treat the groups, in whose favour and how sure. Needs scores or ranks, no model."""
    shape = _output_format(format, out, as_json)
    limits = [_limit(text) for text in fail_over or []]
    trec = (input_format or format_of(file)) == "trec"
    if trec and group is not None:
        raise ConfigError(f"--group must not be given for a TREC run; got {group[0]!r}. Its groups come from --groups.")
    labelled = not no_relevance and not (trec and qrels is None)
    ks = sorted({*options.cut_offs(k), *(cut for _, cut, _, _ in limits)})
    for name, _, _, text in limits:
        if not labelled and name not in UNLABELLED:
            raise ConfigError(f"--fail-over {text}: {name} needs relevance labels, and the log has none.")
    settings: dict[str, Any] = {"query": query, "item": item, "score": rank or score, "format": input_format}
    settings["qrels"] = qrels
    advice = {
        "relevance": "Name the right column with --relevance, or pass --no-relevance if the log has none.",
        "score": f"Name the right column with --{'rank' if rank else 'score'}"
        + ("." if rank else ", or a column of ranks with --rank."),
    }
    attributes = group or ["group"]
    grouped = [
        common.read_rows(
            file,
            advice,
            **settings,
            relevance=None if no_relevance else relevance,
            group=column,
            relevance_threshold=threshold,
            groups=groups,
        )
        for column in dict.fromkeys(attributes)
    ]
    for data in grouped:
        common.need_groups(data, file, "Name the group column with --group (or, for a TREC run, a file with --groups).")
    data = grouped[0]
    scores = _scores(data, settings["score"], rank)
    common.warn_if_tied(scores, data)
    other = None
    if compare is not None:
        read = common.read_rows([compare], advice, **settings, relevance=None, group=None)
        other = _matched(data, read, _scores(read, settings["score"], rank), compare)
    parts = dict(zip(dict.fromkeys(attributes), grouped, strict=True))
    if len(parts) > 1:
        parts[" & ".join(parts)] = intersection(grouped)
    audits = {
        name: er.audit(scores, rows, ks, confidence=confidence, labelled=labelled, against=other)
        for name, rows in parts.items()
    }
    _give(audits, shape, out, file)
    over = [text for name, report in audits.items() for text in _over(report, limits, name if len(audits) > 1 else "")]
    for text in over:
        process.say(one_line(text))
    if over:
        raise typer.Exit(1)


def intersection(grouped: list[RankingData]) -> RankingData:
    """Group the same rows by all attributes at once, labelled "female & young"; unknown if any of them is."""
    labels = [data.to_caller(np.array([*map(str, data.group_names), None], object)[data.group]) for data in grouped]
    joined = [None if None in row else " & ".join(row) for row in zip(*labels, strict=True)]
    return grouped[0].with_group(np.array(joined, object))


def _output_format(format: str | None, out: Path | None, as_json: bool) -> str:
    if format is not None:
        choose(format, FORMATS, what="--format")
        if as_json and format != "json":
            raise ConfigError(f"--json and --format {format} ask for different outputs; give one of them.")
        return format
    if as_json:
        return "json"
    by_suffix = {suffix: name for name, suffix in FORMATS.items()}
    return by_suffix.get(out.suffix.lower(), "text") if out is not None else "text"


def _limit(text: str) -> tuple[str, int, float, str]:
    """The measure, k and limit of "eop@10=0.05"."""
    name, equals, value = text.partition("=")
    measure, k = parse_measure(name)
    try:
        limit = float(value)
    except ValueError:
        limit = -1.0
    if not equals or not 0 <= limit <= 1:
        raise ConfigError(f"--fail-over must be a gap and a limit from 0 to 1, as eop@10=0.05; got {text!r}.")
    if measure.name not in GAPS or k is None:
        raise ConfigError(f"--fail-over must name one of {', '.join(GAPS)} with a cut-off; got {text!r}.")
    return measure.name, k, limit, text


def _scores(data: RankingData, column: str, rank: str | None) -> NDArray[Any]:
    """Scores in the caller's row order; the first rank is the highest score."""
    values = data.to_caller(data.column(column))
    return -values if rank else values


def _matched(data: RankingData, other: RankingData, scores: NDArray[Any], file: Path) -> NDArray[Any]:
    """The other file's scores in the order of ``data``'s rows, matched by query and item."""
    mine, theirs = _keys(data, file), _keys(other, file)
    known = dict(zip(theirs, other.to_stored(scores).tolist(), strict=True))
    for these, those, fault in ((mine, known, "lacks"), (theirs, set(mine), "has besides")):
        odd = [key for key in these if key not in those]
        if odd:
            raise DataError(
                f"{file}: --compare needs the same queries and items in both files; it {fault} {len(odd)}, such as "
                f"item {odd[0][1]!r} of query {odd[0][0]!r}. Keep the rows that both have."
            )
    return data.to_caller(np.array([known[key] for key in mine]))


def _keys(data: RankingData, file: Path) -> list[tuple[str, str]]:
    """Query and item of each stored row, as text: one file may have numbers where the other has digits."""
    if data.item_ids is None:
        raise DataError(
            f"{file}: --compare matches rows by query and item; an item column is missing. Name it with --item."
        )
    queries = data.query_ids[data.query_of_row]
    return list(zip(map(str, queries.tolist()), map(str, data.item_ids.tolist()), strict=True))


def _give(audits: dict[str, Audit], shape: str, out: Path | None, file: list[Path]) -> None:
    several = len(audits) > 1
    titles = {name: one_line(f"Audit of {file[0].name}" + (f" by {name}" if several else "")) for name in audits}
    if shape == "json":
        plain = {name: report.to_dict() for name, report in audits.items()}
        text = common.as_json({"attributes": plain} if several else next(iter(plain.values()))) + "\n"
    elif shape == "html":
        text = er.audit_page([(titles[name], report) for name, report in audits.items()])
    else:
        text = "\n".join(
            report.markdown(titles[name]) if shape == "md" else report.text(titles[name])
            for name, report in audits.items()
        )
    if out is None:
        sys.stdout.write(text)
        return
    write_whole(out, text)
    show.line(f"The audit: {out}")


def _over(report: Audit, limits: list[tuple[str, int, float, str]], attribute: str) -> list[str]:
    failures = []
    for name, k, limit, text in limits:
        interval = next(gap.interval for gap in report.find(name) if gap.k == k)
        where = f" (by {attribute})" if attribute else ""
        if np.isnan(interval.low):
            raise DataError(
                f"--fail-over {text}{where}: {name} at {k} cannot be judged on these rows; it has no interval."
            )
        if interval.low > limit:
            failures.append(
                f"{text}{where} fails: {name} at {k} is {interval.estimate:.3f}, {report.confidence:.0%} interval "
                f"{interval.low:.3f} to {interval.high:.3f}, significantly above {limit:g}."
            )
    return failures
