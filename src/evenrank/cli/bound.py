"""`evenrank bound`: what the theory promises, what can be certified, and how many queries it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import evenrank as er
from evenrank.cli import common, options, show
from evenrank.errors import ConfigError
from evenrank.notions import NOTIONS


def bound(
    file: Annotated[
        list[Path] | None,
        typer.Argument(help="Held-out rankings with a score column; N, m and the shares come from it."),
    ] = None,
    queries: Annotated[
        int | None, options.numeric("--queries", "-N", parser=options.whole(1), help="Number of queries.")
    ] = None,
    list_length: Annotated[
        int | None, options.numeric("--list-length", "-m", parser=options.whole(1), help="Items per query.")
    ] = None,
    n_features: Annotated[
        int,
        options.numeric(
            "--n-features", parser=options.whole(1), help="Features of the linear ranker (VC dimension d + 1)."
        ),
    ] = 10,
    min_share: Annotated[
        float | None, options.numeric("--min-share", help="Share of the rarest group (and relevance).")
    ] = None,
    delta: Annotated[float, options.numeric("--delta", help="Probability that a bound may fail.")] = 0.05,
    epsilon: Annotated[
        float, options.numeric("--epsilon", help="How much a bound may add to the gap, for the plan.")
    ] = 0.1,
    k: Annotated[int, options.numeric("--k", parser=options.whole(1), help="Cut-off of the certified gaps.")] = 5,
    query: options.Query = "qid",
    item: options.Item = None,
    relevance: options.Relevance = "relevance",
    group: options.Group = "group",
    score: options.Score = "score",
    threshold: options.Threshold = 1.0,
    as_json: options.Json = False,
) -> None:
    """Say what to add to a gap so that it holds for new queries: the paper's claims, certified bounds, and a plan.

    The paper's bounds are for item-by-item decisions on lists of one length; they are its claims. Certified
    bounds need independent queries that played no part in training, and hold for any top-k selection.
    """
    data = None
    if file:
        data = common.read_rows(
            file, query=query, item=item, relevance=relevance, group=group, score=score, relevance_threshold=threshold
        )
        common.need_groups(data, file, "Name the group column with --group.")
        queries, list_length = queries or data.n_queries, list_length or int(data.lengths.max())
    if queries is None or list_length is None or (min_share is None and data is None):
        raise ConfigError("give --queries, --list-length and --min-share, or a file of held-out rankings.")
    rows: list[dict[str, Any]] = []
    for notion in NOTIONS.values():
        if min_share is not None:
            share = min_share
        else:
            assert data is not None
            share = er.bounds.min_share(data, notion.name, delta).lower
        if min_share is None and not share > 0:
            raise ConfigError(
                f"{notion.name}: with {queries} queries the rarest cell's share may be 0; give --min-share to go on."
            )
        common_settings: dict[str, Any] = {"min_share": share, "delta": delta}
        vc = er.bounds.vc_dimension(n_features)
        additions = {
            "uniform": er.bounds.uniform(
                notion.name, n_queries=queries, list_length=list_length, vc=vc, **common_settings
            ),
            "fixed": er.bounds.fixed(notion.name, n_queries=queries, **common_settings),
            "certified, planned": er.bounds.planned(notion.name, n_queries=queries, **common_settings),
        }
        needed = {
            kind: er.bounds.queries_needed(
                notion.name, epsilon, bound=kind, list_length=list_length, vc=vc, **common_settings
            )
            for kind in er.bounds.KINDS
        }
        row: dict[str, Any] = {"notion": notion.name, "min_share": share, "adds": additions, "queries_needed": needed}
        if data is not None:
            scores = data.to_caller(data.column(score))
            row["certified"] = {
                method: er.bounds.certified(scores, data, f"{notion.alias}@{k}", delta, method=method)
                for method in er.bounds.METHODS
            }
        rows.append(row)
    assumptions = {
        "queries": queries,
        "list_length": list_length,
        "n_features": n_features,
        "delta": delta,
        "epsilon": epsilon,
    }
    if as_json:
        common.print_json({"asked": assumptions, "bounds": [_plain(row) for row in rows]})
    else:
        show.bounds(assumptions, rows, k)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Values of JSON; a vacuous bound is null, so that nobody takes it for a bound."""
    plain = {key: row[key] for key in ("notion", "min_share", "queries_needed")}
    plain["adds"] = {kind: None if value.vacuous else float(value) for kind, value in row["adds"].items()}
    if "certified" in row:
        plain["certified"] = {
            method: {"seen": limit.estimate, "at_most": None if limit.vacuous else limit.bound}
            for method, limit in row["certified"].items()
        }
    return plain
