"""The commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer
from numpy.typing import NDArray

import evenrank as er
from evenrank.cli import options, show
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning, EvenrankError
from evenrank.io.columns import MissingColumn
from evenrank.io.files import write_whole
from evenrank.io.registry import format_of, read
from evenrank.rankers.progress import bar

app = typer.Typer(
    name="evenrank",
    help="Fair learning to rank: see how evenly rankings treat groups, what more evenness costs, and train for it.",
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(f"evenrank {er.__version__}")
        raise typer.Exit


@app.command()
def demo(
    group: Annotated[str, typer.Option(help="Groups by age, sex or sex+age.")] = "age",
    k: options.Ks = "1,3,5",
    solver: Annotated[str, typer.Option(help="exact or gd.")] = "exact",
    seed: Annotated[int, options.numeric(parser=options.whole(0), help="Seed of the candidate lists.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the page goes.")] = Path("report.html"),
    as_json: options.Json = False,
) -> None:
    """The main job on bundled real data: sweep strengths over 5 folds, print what is free, write report.html."""
    from evenrank.page.report import render

    ks = options.cut_offs(k)
    options.output(out, [])
    data = er.datasets.german_credit(group, seed=seed)
    with bar("sweep", show=not as_json and sys.stderr.isatty()) as progress:
        result = er.sweep(
            data, ks=ks, folds=er.datasets.german_credit_folds(data), seed=seed, solver=solver, progress=progress
        )
    subtitle = (
        f"German Credit as a ranking task: {data.n_queries} candidate lists of {data.n_rows // data.n_queries} "
        f"applicants, groups by {group}; {result.about['models']} models trained and measured in "
        f"{result.about['seconds']:.1f} s."
    )
    made = (
        f"evenrank {er.__version__}, solver {solver}, 5 folds over disjoint applicants, seed {seed}. Data: Statlog "
        "(German Credit Data), Hans Hofmann, UCI Machine Learning Repository, doi 10.24432/C5NC77, CC BY 4.0."
    )
    write_whole(out, render(result, title="How evenly can credit applicants be ranked?", subtitle=subtitle, made=made))
    if as_json:
        _print_json({**result.to_dict(), "report": str(out)})
        return
    show.sweep(result, subtitle)
    show.line(f"The page with the trade-off plots: {out}")


@app.command()
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
    data = _read(
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
    _need_groups(data, file, "Name the group column with --group (or, for a TREC run, a file with --groups).")
    scores = data.to_caller(data.column(score))
    _warn_if_tied(scores, data)
    unjudged = format == "trec" and qrels is None
    report = show.audit_values(scores, data, ks, labelled=not no_relevance and not unjudged)
    if as_json:
        _print_json(report)
    else:
        show.audit(report)


@app.command()
def train(
    file: options.File,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file.")] = Path("model.json"),
    notion: Annotated[str, typer.Option(help="dp, eop or eod (or their full names).")] = "equal_opportunity",
    alpha: Annotated[float, options.numeric(help="Strength of the fairness term; 0 is an ordinary ranker.")] = 1.0,
    scope: Annotated[str, typer.Option(help="amortized or per_query.")] = "amortized",
    solver: Annotated[str, typer.Option(help="exact, gd or sgd.")] = "exact",
    loss: Annotated[str, typer.Option(help="squared or logistic.")] = "squared",
    ridge: Annotated[float, options.numeric(help="Weight of the squared weights.")] = 0.0,
    group_aware: Annotated[bool, typer.Option("--group-aware", help="Let the model see the group.")] = False,
    seed: Annotated[int, options.numeric(parser=options.whole(0), help="Seed of sgd.")] = 0,
    query: options.Query = "qid",
    item: options.Item = None,
    relevance: options.Relevance = "relevance",
    group: options.Group = "group",
    features: options.Features = None,
    threshold: options.Threshold = 1.0,
    k: options.Ks = "1,3,5,10",
    format: options.Format = None,
    as_json: options.Json = False,
) -> None:
    """Train one fair ranker on the rows and write it to a model file (JSON)."""
    ks = options.cut_offs(k)
    options.output(out, file)
    data = _read(
        file,
        query=query,
        item=item,
        relevance=relevance,
        group=group,
        features=options.names(features),
        relevance_threshold=threshold,
        format=format,
    )
    if alpha > 0 or group_aware:
        _need_groups(data, file, "Name the group column with --group, or train without groups with --alpha 0.")
    ranker = er.FairLinearRanker(
        notion,
        alpha,
        scope,
        solver,
        group_aware,
        loss=loss,
        ridge=ridge,
        relevance_threshold=threshold,
        seed=seed,
        verbose=not as_json and sys.stderr.isatty(),
    )
    began = time.perf_counter()
    ranker.fit(data)
    seconds = time.perf_counter() - began
    scores = ranker.predict(data)
    _warn_if_tied(scores, data)
    asked = {"notion": notion, "alpha": alpha, "solver": solver, "features": data.n_features}
    report = {"model": str(out), "seconds": seconds, **asked, **show.audit_values(scores, data, ks, labelled=True)}
    ranker.save(out)
    if as_json:
        _print_json(report)
        return
    show.audit(report, title=f"On the training rows ({notion}, strength {alpha:g})")
    show.line(f"Trained on {data.n_features} features in {seconds:.2f} s. Model file: {out}")


@app.command()
def rank(
    file: options.File,
    model: Annotated[Path, typer.Option("--model", "-m", help="A model file of `evenrank train`.")] = Path(
        "model.json"
    ),
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to: .csv .jsonl .parquet; default: print CSV.")
    ] = None,
    top: Annotated[
        int | None, options.numeric("--top", parser=options.whole(1), help="Keep the first so many of each query.")
    ] = None,
    query: options.Query = "qid",
    item: options.Item = None,
    group: Annotated[str | None, typer.Option("--group", help="Group column, for a group-aware model.")] = None,
    format: options.Format = None,
    as_json: options.Json = False,
) -> None:
    """Score the rows with a model file and write them in ranked order: query, item, rank, score."""
    if out is not None:
        options.output(out, [*file, model], list(show.WRITERS))
    if not model.exists():
        raise ConfigError(f"{model}: there is no such model file. Make one with evenrank train, or name it with -m.")
    ranker = er.load(model)
    aware = ranker.group_offset_ is not None
    data = _read(
        file,
        {"features": f"{model} was trained with it: rank rows that have the {len(ranker.feature_names_)} features."},
        query=query,
        item=item,
        relevance=None,
        group=(group or "group") if aware else group,
        features=list(ranker.feature_names_),
        format=format,
    )
    frame = show.ranked_frame(ranker.predict(data), data, top)
    if out is not None:
        write_whole(out, show.as_bytes(frame, show.WRITERS[out.suffix]))
    if as_json:
        _print_json({"model": str(model), "out": None if out is None else str(out), "rows": frame.to_dicts()})
    elif out is None:
        sys.stdout.write(frame.write_csv())
    else:
        show.line(f"{len(frame)} rows of {data.n_queries} queries, ranked: {out}")


def _read(file: list[Path], advice: Mapping[str, str] = MappingProxyType({}), **settings: Any) -> RankingData:
    """`er.read`, whose advice on a missing column is given in the command line's own terms."""
    try:
        return read(file, **settings)
    except MissingColumn as error:
        usual = f"Name the right column with --{error.role}."
        raise DataError(f"{error.fact} {advice.get(error.role, usual)}") from None


def _need_groups(data: RankingData, file: list[Path], advice: str) -> None:
    if data.n_groups < 2:
        found = f"only {data.group_names[0]!r}" if data.n_groups else "no group labels"
        raise DataError(f"{file[0]}: at least two groups are needed, to compare them; found {found}. {advice}")


def _warn_if_tied(scores: NDArray[Any], data: RankingData) -> None:
    tied = er.Ranking(data.to_stored(scores), data.query_ptr).size == data.lengths[data.query_of_row]
    if tied.all() and data.lengths.max() > 1:
        warnings.warn("all items of a query have the same score: the ranking is arbitrary", DataWarning, stacklevel=2)


def _print_json(value: Any) -> None:
    ascii_only = "utf" not in (sys.stdout.encoding or "utf-8").lower()
    print(json.dumps(show.plain(value), ensure_ascii=ascii_only, indent=1, allow_nan=False))


def _say(text: str) -> None:
    print("evenrank: " + " ".join(text.split()), file=sys.stderr)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every expected failure is one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a table with ? for ± is better than a traceback
    said: set[str] = set()

    def warn_once(message: Warning | str, *_: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            _say(f"warning: {message}")

    warnings.showwarning = warn_once  # type: ignore[assignment]
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", UserWarning)
    given = sys.argv[1:] if arguments is None else arguments
    try:
        result = app(args=given or ["--help"], prog_name="evenrank", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        sys.stdout.flush()
    except typer.TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        context = getattr(error, "ctx", None)
        stop = "" if message.endswith((".", "?")) else "."
        _say(f"{message}{stop} See {context.command_path if context else 'evenrank'} --help.")
        code = 2
    except (EvenrankError, OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it exits
            code = 141
        else:
            _say(str(error) or type(error).__name__)
            code = 2
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted")
        code = 130
    sys.exit(code)
