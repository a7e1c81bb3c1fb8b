"""`evenrank bound`: what the theory promises, what can be certified, and how many queries it takes."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

import evenrank as er
from evenrank.cli import common, options, show
from evenrank.data import RankingData
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
    longest: Annotated[
        float | None,
        options.numeric("--longest", help="Longest list there can be; default: -m, or the longest in the file."),
    ] = None,
    min_share: Annotated[
        float | None, options.numeric("--min-share", help="Share of the rarest group (and relevance) in a list.")
    ] = None,
    groups: Annotated[
        int | None,
        options.numeric("--groups", parser=options.whole(2), help="Number of groups (default: 2, or the file's)."),
    ] = None,
    next_queries: Annotated[
        int | None,
        options.numeric(
            "--next", parser=options.whole(1), help="Certify the gap in so many further queries, not the population's."
        ),
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
    """Say how much larger a gap may be on new queries: the paper's claims, certified bounds, and a plan.

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
        groups = groups or data.n_groups
    if queries is None or list_length is None or (min_share is None and data is None):
        raise ConfigError("give --queries, --list-length and --min-share, or a file of held-out rankings.")
    if next_queries is not None and data is None:
        raise ConfigError("--next needs a file of held-out rankings.")
    if longest is not None and data is None and longest < list_length:
        raise ConfigError(f"--longest must be at least --list-length, {list_length}; got {longest:g}.")
    rows: list[dict[str, Any]] = []
    for notion in NOTIONS.values():
        shares = _shares(notion.name, data, min_share, list_length, longest, delta, queries)
        vc = er.bounds.vc_dimension(n_features)
        paper: dict[str, Any] = {"min_share": shares["paper"], "delta": delta}
        plan: dict[str, Any] = {"min_share": shares["certified"], "delta": delta, "groups": groups or 2}
        additions = {
            "uniform": er.bounds.uniform(notion.name, n_queries=queries, list_length=list_length, vc=vc, **paper),
            "fixed": er.bounds.fixed(notion.name, n_queries=queries, **paper),
            "certified, planned": er.bounds.planned(notion.name, n_queries=queries, **plan),
        }
        needed = {
            kind: er.bounds.queries_needed(
                notion.name,
                epsilon,
                bound=kind,
                list_length=list_length,
                vc=vc,
                **(plan if kind == "hoeffding" else paper),
            )
            for kind in er.bounds.KINDS
        }
        row: dict[str, Any] = {
            "notion": notion.name,
            "min_share": shares["paper"],
            "certified_share": shares["certified"],
            "adds": additions,
            "queries_needed": needed,
        }
        if data is not None:
            scores = data.to_caller(data.column(score))
            row["certified"] = {
                method: er.bounds.certified(
                    scores,
                    data,
                    f"{notion.alias}@{k}",
                    delta,
                    method=method,
                    longest=longest,
                    next_queries=next_queries,
                )
                for method in er.bounds.METHODS
            }
        rows.append(row)
    assumptions = {
        "queries": queries,
        "list_length": list_length,
        "longest": longest if longest is not None else list_length if data is None else er.bounds.longest_list(data),
        "longest_assumed": longest is None,
        "groups": groups or 2,
        "next_queries": next_queries,
        "each_or_joint": "each",
        "n_features": n_features,
        "delta": delta,
        "epsilon": epsilon,
    }
    if as_json:
        common.print_json({"asked": assumptions, "bounds": [_plain(row) for row in rows]})
    else:
        show.bounds(assumptions, rows, k)


def _shares(
    notion: str,
    data: RankingData | None,
    min_share: float | None,
    list_length: int,
    longest: float | None,
    delta: float,
    queries: int,
) -> dict[str, float]:
    """The rarest cell's share of lists (for the paper's claims), and the cells' share of the longest (for plans)."""
    if min_share is not None:
        return {"paper": min_share, "certified": min_share * list_length / (longest or list_length)}
    assert data is not None
    paper = er.bounds.min_share(data, notion, delta).lower
    certified = er.bounds.certified_share(data, notion, longest=longest)
    if not min(paper, certified) > 0:
        raise ConfigError(
            f"{notion}: with {queries} queries the rarest cell's share may be 0; give --min-share to go on."
        )
    return {"paper": paper, "certified": certified}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Values of JSON; a bound of 1 or more is a number that says nothing, and is marked so."""
    plain = {key: row[key] for key in ("notion", "min_share", "certified_share", "queries_needed")}
    plain["adds"] = {kind: float(value) if isfinite(value) else None for kind, value in row["adds"].items()}
    plain["says_nothing"] = {kind: value.vacuous for kind, value in row["adds"].items()}
    if "certified" in row:
        plain["certified"] = {
            method: {
                "seen": limit.estimate,
                "at_most": limit.bound,
                "says_nothing": limit.vacuous,
                "next_queries": limit.next_queries,
                "condition": limit.condition,
            }
            for method, limit in row["certified"].items()
        }
    return plain
