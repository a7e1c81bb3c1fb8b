"""`evenrank rank`: rows ordered by a model, or re-ranked."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import evenrank as er
from evenrank.checks import choose
from evenrank.cli import common, options, show, streaming
from evenrank.cli.guard import Output
from evenrank.errors import ConfigError, DataWarning, one_line
from evenrank.io.files import write_whole
from evenrank.methods.method import Method
from evenrank.methods.registry import METHODS
from evenrank.notions import ALIASES
from evenrank.quiet import quiet
from evenrank.rankers.matching import model_columns

SHARES = {"p": (), "target": ("data", "equal")}
LABELLED = ("equal_opportunity", "equalized_odds")
RERANKERS = [method.name for method in METHODS.values() if method.direct]


def rank(
    file: options.File,
    model: Annotated[Path, typer.Option("--model", "-m", help="A model file of `evenrank train`.")] = Path(
        "model.json"
    ),
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The output file: .csv .jsonl .parquet; default: print CSV."),
        Output(suffixes=tuple(show.WRITERS)),
    ] = None,
    top: Annotated[
        int | None, options.numeric("--top", parser=options.whole(1), help="Number of items to keep per query.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help=f"Re-rank the scores: {', '.join(RERANKERS)}; see evenrank methods.")
    ] = None,
    p: Annotated[
        str | None,
        typer.Option(
            help="FA*IR: minimum share of protected items; of several groups a share for each, as b=0.3,c=0.2.  "
            "[default: 0.5; of several groups those of the rows]"
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Det: each group's share: data, equal, or as a=0.5,b=0.3.  [default: data]"),
    ] = None,
    strength: Annotated[
        float | None, options.numeric(help="Det, exposure: the part of the change to make.  [default: 1]")
    ] = None,
    slack: Annotated[float | None, options.numeric(help="Exposure: how far groups may be apart.  [default: 0]")] = None,
    theta: Annotated[
        float | None, options.numeric(help="Equity of attention: the part of DCG to keep.  [default: 0]")
    ] = None,
    seed: Annotated[
        int | None, options.numeric(parser=options.whole(0), help="Exposure: seeds the draws.  [default: 0]")
    ] = None,
    significance: Annotated[
        float | None, options.numeric(help="FA*IR: probability that a fair list fails its test.  [default: 0.1]")
    ] = None,
    protected: Annotated[str | None, typer.Option(help="FA*IR: the protected group; default: the smaller.")] = None,
    k: Annotated[
        int | None,
        options.numeric(
            "--k", parser=options.whole(1), help="Places that count; default: all for FA*IR, 5 for the controller."
        ),
    ] = None,
    notion: Annotated[
        str | None, typer.Option(help="Controller: dp, or merit (relevance is then the score).  [default: dp]")
    ] = None,
    gain: Annotated[
        float | None, options.numeric(help="Controller: how hard the gap so far is pushed back.  [default: 3]")
    ] = None,
    score: Annotated[
        str | None, typer.Option("--score", help="Take the scores from this column instead of a model.")
    ] = None,
    query: options.Query = "qid",
    item: options.Item = None,
    relevance: Annotated[
        str | None, typer.Option(help="Column of the relevance, carried along ('relevance' if there is one).")
    ] = None,
    group: Annotated[str | None, typer.Option(help="Column of the group ('group' if there is one).")] = None,
    engine: options.Engine = None,
    input_format: options.InputFormat = None,
    header: options.Header = True,
    as_json: options.Json = False,
) -> None:
    """Write the rows in ranked order (query, item, rank, score, row of the file), by a model or a score column.

    Group and relevance are carried along if the file has them, so that the result can be audited. --method fastar and
    det_* re-rank each list so that every prefix has enough of each group; exposure_* draw rankings that give groups
    their exposure on average; controller and equity_of_attention serve the lists in the order of the file, each making
    up for those before it.
    """
    knobs = {"p": p, "significance": significance, "protected": protected, "k": k, "notion": notion, "gain": gain}
    knobs |= {"target": target, "strength": strength, "slack": slack, "theta": theta, "seed": seed}
    chosen = {name: value for name, value in knobs.items() if value is not None}
    reranker = _reranker(method, chosen)
    ranker = None
    if score is None:
        if not model.exists():
            raise ConfigError(
                f"{model}: there is no such model file. Make one with evenrank train, or name it with -m."
            )
        with quiet():
            ranker = er.load(model)
        if not hasattr(ranker, "predict"):
            kind = type(ranker).__name__
            raise ConfigError(f"{model} holds a {kind} alone, which gives no scores. Make one with evenrank train.")
    by_group = reranker is not None and reranker.sees.group_at_serving
    wanted, categorical = ((score or "score",), ()) if ranker is None else model_columns(ranker)
    aware = getattr(ranker, "group_offset_", None) is not None or getattr(ranker, "needs_groups", False)
    file, stream = streaming.settled(file, engine, input_format=input_format)
    advice = {"features": f"{model} was trained with it: rank rows that have the {len(wanted)} features."}
    columns: dict[str, Any] = {
        "optional": [
            *(["relevance"] if relevance is None else []),
            *(["group"] if group is None and not aware and not by_group else []),
        ],
        "query": query,
        "item": item,
        "relevance": relevance or "relevance",
        "group": group or "group",
        **({"score": score} if ranker is None else {"features": wanted, "categorical": categorical}),
    }
    if stream:
        if reranker is not None:
            raise ConfigError(
                f"--method {method} looks at all rows, which must be in memory. Rank part by part with a model of "
                "evenrank train --method offset, or allow more memory."
            )
        rows = streaming.scanned(file, advice, **columns)
        streaming.write_ranked(rows, ranker, top=top, out=out, model=None if score else str(model), as_json=as_json)
        return
    data, has_relevance = common.read_ranked_rows(file, advice, format=input_format, header=header, **columns)
    with quiet():
        scores = data.to_caller(data.column(wanted[0])) if ranker is None else ranker.predict(data)
    if reranker is not None:
        if by_group:
            least = 2 if protected is None else 1  # else the smaller of two is protected
            common.need_groups(data, file, "Name the group column with --group.", least)
        if protected is not None:
            chosen["protected"] = options.label(protected, data.group_names)
            if data.n_groups == 1 and chosen["protected"] not in data.group_names:
                only = f"no row is of the protected group {protected!r}, all are of {data.group_names[0]!r}"
                warnings.warn(f"{only}: every list keeps its order", DataWarning, stacklevel=2)
        for name, words in SHARES.items():
            if name in chosen:
                chosen[name] = options.shares(str(chosen[name]), f"--{name}", data.group_names, words)
        drawn = {"seed": chosen.pop("seed")} if "seed" in chosen else {}
        chosen.pop("k", None)
        scores = reranker.make(data, chosen).rerank(scores, data, k, **drawn)
    names = {
        "query": query,
        "item": item or "item",
        "relevance": (relevance or "relevance") if has_relevance else None,
        "group": group or "group",
    }
    frame = show.ranked_frame(scores, data, top, names)
    if out is not None:
        write_whole(out, show.as_bytes(frame, show.WRITERS[out.suffix]))
    if as_json:
        common.print_json(
            {"model": None if score else str(model), "out": None if out is None else str(out), "rows": frame.to_dicts()}
        )
    elif out is None:
        table = frame.write_csv()
        # Data for a program stays as it is; on a terminal, ids must not be obeyed.
        sys.stdout.write("\n".join(map(one_line, table.split("\n"))) if sys.stdout.isatty() else table)
    else:
        show.line(f"{len(frame)} rows of {data.n_queries} queries, ranked: {out}")


def _reranker(name: str | None, chosen: Mapping[str, Any]) -> Method | None:
    """The re-ranker of that name, which must take the options given."""
    if name is not None and choose(name, METHODS, what="--method") not in RERANKERS:
        raise ConfigError(f"{name} is trained, not applied to a ranking. Use evenrank train --method {name}.")
    method = None if name is None else METHODS[name]
    strange = [f"--{option}" for option in chosen if method is None or option not in (*method.knobs, "k")]
    if strange:
        verb = "is" if len(strange) == 1 else "are"
        place = f"not for --method {name}" if method else "for --method"
        raise ConfigError(f"{' and '.join(strange)} {verb} {place}; leave out, or name another method.")
    if ALIASES.get(chosen.get("notion", ""), chosen.get("notion")) in LABELLED:
        raise ConfigError(
            f"--notion {chosen['notion']} asks how likely items are to be relevant, which this command does not know. "
            "Use dp, or a model of evenrank train --method offset_adaptive."
        )
    return method
