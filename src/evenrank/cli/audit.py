"""`evenrank audit`: how evenly logged rankings treat groups, in whose favour, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import evenrank as er
from evenrank.audits.audit import Audit
from evenrank.audits.tables import tidy_table
from evenrank.audits.workbook import sheets, workbook
from evenrank.cli import audit_output, common, engines, options, process, standards
from evenrank.cli.audit_output import FORMATS
from evenrank.cli.guard import Output
from evenrank.cli.limits import Limit, exceeded, limit_of, need_no_labels
from evenrank.cli.spool import title_of
from evenrank.data import RankingData
from evenrank.engines.engine import Roles
from evenrank.errors import ConfigError, DataError, one_line
from evenrank.io.registry import format_of

CUTS = "1,3,5,10"
MANY_NUMBERS = 100  # as group labels, from which a column is taken for a quantity


def audit(
    file: options.File,
    query: options.Query = "qid",
    item: options.Item = None,
    relevance: options.Relevance = "relevance",
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            help="Column of the group; empty means unknown. Repeat it for several columns and their intersections.  "
            "[default: group]",
            rich_help_panel=options.COLUMNS,
        ),
    ] = None,
    score: options.Score = "score",
    rank: Annotated[
        str | None,
        typer.Option("--rank", help="Column of the rank, 1 first, instead of scores.", rich_help_panel=options.COLUMNS),
    ] = None,
    threshold: options.Threshold = 1.0,
    k: Annotated[
        str | None,
        typer.Option(
            "--k", help=f"Cut-offs, comma-separated; with --standard, the places that are selected.  [default: {CUTS}]"
        ),
    ] = None,
    confidence: Annotated[
        float, options.numeric("--confidence", help="Confidence of the intervals and bounds.")
    ] = 0.95,
    no_relevance: Annotated[
        bool, typer.Option("--no-relevance", help="The log has no relevance labels: leave out what needs them.")
    ] = False,
    compare: Annotated[
        Path | None, typer.Option(help="Other scores of the same queries and items, to be compared with these.")
    ] = None,
    measures: options.Measures = None,
    fail_over: Annotated[
        list[str] | None,
        typer.Option(
            help="A limit: with eop@10=0.05, exit with 1 if that gap (largest pair) is significantly above it; with "
            "four_fifths@10=0.8 or awrf@10=0.95, where high is better, if it is significantly below. Repeatable."
        ),
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster",
            help="Column of what queries share, such as a user; the same in all rows of a query. Once or twice.",
            rich_help_panel=options.COLUMNS,
        ),
    ] = None,
    items: Annotated[
        bool, typer.Option("--items/--no-items", help="Take items that recur in several lists into account.")
    ] = True,
    min_share: Annotated[
        float, options.numeric("--min-share", help="Set groups aside with a smaller share of the items, as 0.02.")
    ] = 0.0,
    min_count: Annotated[
        int, options.numeric("--min-count", parser=options.whole(0), help="Set groups aside with fewer items.")
    ] = 0,
    many_groups: Annotated[
        bool, typer.Option("--many-groups", help="Every number of a --group column is a group, however many.")
    ] = False,
    no_examples: Annotated[bool, typer.Option("--no-examples", help="Do not name queries of the log.")] = False,
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
    header: options.Header = True,
    as_json: options.Json = False,
    standard: standards.Standard = None,
    sex: standards.Sex = None,
    race: standards.Race = None,
    person: standards.Person = None,
    rate: standards.Rate = None,
    reduce: standards.Reduce = None,
    unknown: standards.Unknown = None,
    engine: engines.Engine = None,
    master: engines.Master = None,
    memory: engines.Memory = None,
) -> None:
    """Say how evenly rankings treat groups, whom they favour and how sure that is. Needs scores or ranks, no model."""
    shape = audit_output.shape_of(format, out, as_json)
    settings: dict[str, Any] = {"query": query, "item": item, "score": rank or score, "format": input_format}
    settings["header"] = header
    form = standards.Form(standard, sex, race, person, rate, reduce, unknown)
    if standard is not None:
        form.refuse(group=group, compare=compare, fail_over=fail_over, cluster=cluster, min_count=min_count)
        form.refuse(qrels=qrels, groups=groups, measures=measures, engine=engine, master=master, memory=memory)
        report = form.audit(file, settings, k=k, rank=rank, min_share=min_share, confidence=confidence)
        standards.write(report, shape, out, file)
        return
    form.refuse_without_standard()
    limits = [limit_of(text) for text in fail_over or []]
    where = engines.engine_of(engine, file, master, memory)
    trec = where == "memory" and (input_format or format_of(file)) == "trec"
    if trec and group is not None:
        raise ConfigError(f"--group must not be given for a TREC run; got {group[0]!r}. Its groups come from --groups.")
    labelled = not no_relevance and not (trec and qrels is None)
    ks = sorted({*options.cut_offs(k or CUTS), *(limit.k for limit in limits if limit.k is not None)})
    further = list(dict.fromkeys([*options.measures(measures), *(limit.further for limit in limits if limit.further)]))
    if not labelled:
        need_no_labels([(f"--fail-over {limit.text}", limit.name) for limit in limits])
        need_no_labels([(f"--measures {name}", name) for name in further])
    settings["qrels"] = qrels
    advice = {
        "relevance": "Name the right column with --relevance, or pass --no-relevance if the log has none.",
        "score": f"Name the right column with --{'rank' if rank else 'score'}"
        + ("." if rank else ", or a column of ranks with --rank."),
    }
    attributes = list(dict.fromkeys(group or ["group"]))
    shared = list(dict.fromkeys(cluster or []))
    if where != "memory":
        engines.refuse(where, compare=compare, qrels=qrels, groups=groups, input_format=input_format)
        engines.refuse(where, group=attributes[1:])
        roles = Roles(
            query,
            relevance if labelled else None,
            attributes[0],
            score,
            rank,
            item,
            None,
            tuple(shared),
            threshold,
            {
                **{role: f"Name the right column with --{role}." for role in ("query", "group", "item", "cluster")},
                **advice,
            },
        )
        how = {"confidence": confidence, "items": items, "min_share": min_share, "min_count": min_count}
        found, read_files = engines.audited(where, file, roles, ks, master=master, memory=memory, **how)
        _finish(
            {attributes[0]: found.without_examples() if no_examples else found}, shape, out, file, read_files, limits
        )
        return
    first, columns = common.read_labelled_rows(
        file,
        [*(("group", column) for column in attributes[1:]), *(("cluster", column) for column in shared)],
        advice,
        **settings,
        relevance=None if no_relevance else relevance,
        group=attributes[0],
        relevance_threshold=threshold,
        groups=groups,
    )
    grouped = [first, *(first.with_group(columns[column]) for column in attributes[1:])]
    for column, data in zip(attributes, grouped, strict=True):
        common.need_groups(data, file, "Name the group column with --group (or, for a TREC run, a file with --groups).")
        if not many_groups:
            _question_numbers(data, file, column)
    data = grouped[0]
    scores = _scores(data, settings["score"], rank)
    common.warn_if_tied(scores, data)
    other = None
    if compare is not None:
        read = common.read_rows([compare], advice, **settings, relevance=None, group=None)
        other = _matched(data, read, _scores(read, settings["score"], rank), compare)
    parts = dict(zip(attributes, grouped, strict=True))
    if len(parts) > 1:
        parts[" & ".join(parts)] = intersection(grouped)
    audits = {
        name: er.audit(
            scores,
            rows,
            ks,
            confidence=confidence,
            labelled=labelled,
            against=other,
            cluster={column: columns[column] for column in shared} or None,
            items=items,
            min_share=min_share,
            min_count=min_count,
            measures=further,
        )
        for name, rows in parts.items()
    }
    if no_examples:
        audits = {name: report.without_examples() for name, report in audits.items()}
    read_files = [*file, *(path for path in (compare, qrels, groups) if path is not None)]
    _finish(audits, shape, out, file, read_files, limits)


def _finish(
    audits: dict[str, Audit],
    shape: str,
    out: Path | None,
    file: list[Path],
    read_files: list[Path],
    limits: list[Limit],
) -> None:
    """Write the audits; exit 1 if a limit is exceeded."""
    _give(audits, shape, out, file, audit_output.made_for(shape, out, read_files))
    several = len(audits) > 1
    failures = [text for name, part in audits.items() for text in exceeded(part, limits, name if several else "")]
    for text in failures:
        process.say(one_line(text))
    if failures:
        raise typer.Exit(1)


def intersection(grouped: list[RankingData]) -> RankingData:
    """Group the same rows by all attributes at once, labelled "female & young"; unknown if any of them is."""
    labels = [data.to_caller(np.array([*map(str, data.group_names), None], object)[data.group]) for data in grouped]
    joined = [None if None in row else " & ".join(row) for row in zip(*labels, strict=True)]
    return grouped[0].with_group(np.array(joined, object))


def _question_numbers(data: RankingData, file: list[Path], column: str) -> None:
    """Refuse hundreds of numbers as groups: most likely they measure something, as an age or a price does."""
    numbers = [name for name in data.group_names if isinstance(name, int | float) or _is_number(str(name))]
    if len(numbers) == data.n_groups > MANY_NUMBERS:
        raise DataError(
            f"{file[0]}: the groups of {column!r} are {data.n_groups} different numbers, such as {numbers[0]}; groups "
            "are categories. Cut them into bands in a column of its own, or pass --many-groups if each is a group."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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


def _give(audits: dict[str, Audit], shape: str, out: Path | None, file: list[Path], made: dict[str, Any]) -> None:
    several = len(audits) > 1
    titles = {name: one_line(f"Audit of {title_of(file[0])}" + (f" by {name}" if several else "")) for name in audits}
    content: str | bytes
    if shape == "xlsx":
        content = workbook(sheets(audits, made))
    elif shape == "json":
        plain = {name: report.to_dict() for name, report in audits.items()}
        whole = {"attributes": plain} if several else next(iter(plain.values()))
        content = common.as_json(whole | {"provenance": made}) + "\n"
    elif shape == "csv":
        content = tidy_table(audits).write_csv()
    elif shape == "html":
        content = er.audit_page([(titles[name], report) for name, report in audits.items()], made=made)
    else:
        content = "\n".join(
            report.markdown(titles[name]) if shape == "md" else report.text(titles[name])
            for name, report in audits.items()
        )
    audit_output.give(content, shape, out, made)
