"""`evenrank audit`: how evenly logged rankings treat groups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenrank.cli import common, options, show
from evenrank.io.registry import format_of


def audit(
    file: options.File,
    query: options.Query = "qid",
    item: options.Item = None,
    relevance: options.Relevance = "relevance",
    group: options.Group = "group",
    score: options.Score = "score",
    threshold: options.Threshold = 1.0,
    k: options.Ks = "1,3,5,10",
    no_relevance: Annotated[
        bool, typer.Option("--no-relevance", help="The log has no labels: demographic parity and exposure only.")
    ] = False,
    qrels: Annotated[Path | None, typer.Option(help="Judgements of a TREC run; without, it has no labels.")] = None,
    groups: Annotated[Path | None, typer.Option(help="CSV with columns item,group, for a TREC run.")] = None,
    format: options.Format = None,
    as_json: options.Json = False,
) -> None:
    """How evenly do these rankings treat the groups? Point values; needs a score column (or a TREC run), no model."""
    ks = options.cut_offs(k)
    format = format or format_of(file)
    data = common.read_rows(
        file,
        {"relevance": "Name the right column with --relevance, or pass --no-relevance if the log has none."},
        query=query,
        relevance=None if no_relevance else relevance,
        group=group,
        item=item,
        relevance_threshold=threshold,
        score=score,
        qrels=qrels,
        groups=groups,
        format=format,
    )
    common.need_groups(data, file, "Name the group column with --group (or, for a TREC run, a file with --groups).")
    scores = data.to_caller(data.column(score))
    common.warn_if_tied(scores, data)
    unjudged = format == "trec" and qrels is None
    report = show.audit_values(scores, data, ks, labelled=not no_relevance and not unjudged)
    if as_json:
        common.print_json(report)
    else:
        show.audit(report)
