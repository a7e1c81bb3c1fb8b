"""The commands, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import evenrank as er
from evenrank.cli import options, show
from evenrank.errors import ConfigError, EvenrankError
from evenrank.io.files import write_whole
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
    seed: Annotated[int, typer.Option(help="Seed of the candidate lists.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the page goes.")] = Path("report.html"),
    as_json: options.Json = False,
) -> None:
    """The main job on bundled real data: sweep strengths over 5 folds, print what is free, write report.html."""
    from evenrank.page.report import render

    ks = options.cut_offs(k)
    data = er.datasets.german_credit(group, seed=seed)
    with bar("sweep", show=not as_json) as progress:
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
    qrels: Annotated[Path | None, typer.Option(help="Judgements of a TREC run.")] = None,
    groups: Annotated[Path | None, typer.Option(help="CSV with columns item,group, for a TREC run.")] = None,
    as_json: options.Json = False,
) -> None:
    """How evenly do these rankings treat the groups? Point values; needs a score column (or a TREC run), no model."""
    ks = options.cut_offs(k)
    data = er.read(
        file,
        query=query,
        relevance=None if no_relevance else relevance,
        group=group,
        item=item,
        relevance_threshold=threshold,
        score=None if qrels else score,
        qrels=qrels,
        groups=groups,
    )
    scores = data.to_caller(data.column("score" if qrels else score))
    report = show.audit_values(scores, data, ks, labelled=not no_relevance)
    if as_json:
        _print_json(report)
    else:
        show.audit(report)


@app.command()
def train(
    file: options.File,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file.")] = Path("model.json"),
    notion: Annotated[str, typer.Option(help="dp, eop or eod (or their full names).")] = "equal_opportunity",
    alpha: Annotated[float, typer.Option(help="Strength of the fairness term; 0 is an ordinary ranker.")] = 1.0,
    scope: Annotated[str, typer.Option(help="amortized or per_query.")] = "amortized",
    solver: Annotated[str, typer.Option(help="exact, gd or sgd.")] = "exact",
    loss: Annotated[str, typer.Option(help="squared or logistic.")] = "squared",
    ridge: Annotated[float, typer.Option(help="Weight of the squared weights.")] = 0.0,
    group_aware: Annotated[bool, typer.Option("--group-aware", help="Let the model see the group.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of sgd.")] = 0,
    query: options.Query = "qid",
    item: options.Item = None,
    relevance: options.Relevance = "relevance",
    group: options.Group = "group",
    features: options.Features = None,
    threshold: options.Threshold = 1.0,
    k: options.Ks = "1,3,5,10",
    as_json: options.Json = False,
) -> None:
    """Train one fair ranker on the rows and write it to a model file (JSON)."""
    ks = options.cut_offs(k)
    data = er.read(
        file,
        query=query,
        item=item,
        relevance=relevance,
        group=group,
        features=options.names(features),
        relevance_threshold=threshold,
    )
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
    ranker.save(out)
    report = show.audit_values(ranker.predict(data), data, ks, labelled=True)
    report = {"model": str(out), "seconds": seconds, "notion": notion, "alpha": alpha, "solver": solver, **report}
    if as_json:
        _print_json(report)
        return
    show.audit(report, title=f"On the training rows ({notion}, strength {alpha:g})")
    show.line(f"Trained in {seconds:.2f} s. Model file: {out}")


@app.command()
def rank(
    file: options.File,
    model: Annotated[Path, typer.Option("--model", "-m", help="A model file of `evenrank train`.")] = Path(
        "model.json"
    ),
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to: .csv .jsonl .parquet; default: print CSV.")
    ] = None,
    top: Annotated[int | None, typer.Option("--top", help="Keep the first so many of each query.")] = None,
    query: options.Query = "qid",
    item: options.Item = None,
    group: Annotated[str | None, typer.Option("--group", help="Group column, for a group-aware model.")] = None,
    as_json: options.Json = False,
) -> None:
    """Score the rows with a model file and write them in ranked order: query, item, rank, score."""
    ranker = er.load(model)
    aware = ranker.group_offset_ is not None
    data = er.read(
        file,
        query=query,
        item=item,
        relevance=None,
        group=(group or "group") if aware else group,
        features=list(ranker.feature_names_),
    )
    frame = show.ranked_frame(ranker.predict(data), data, top)
    if as_json:
        _print_json({"model": str(model), "rows": frame.to_dicts()})
    elif out is None:
        sys.stdout.write(frame.write_csv())
    else:
        writers = {".csv": frame.write_csv, ".jsonl": frame.write_ndjson, ".parquet": frame.write_parquet}
        if out.suffix not in writers:
            raise ConfigError(f"--out must end in {', '.join(writers)}; got {out.name!r}.")
        write_whole(out, show.as_bytes(writers[out.suffix]))
        show.line(f"{len(frame)} rows of {data.n_queries} queries, ranked: {out}")


def _print_json(value: Any) -> None:
    print(json.dumps(show.plain(value), ensure_ascii=False, indent=1, allow_nan=False))


def _say(text: str) -> None:
    print("evenrank: " + " ".join(text.split()), file=sys.stderr)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every expected failure is one line and exit code 2."""
    warnings.showwarning = lambda message, *_: _say(f"warning: {message}")
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", UserWarning)
    given = sys.argv[1:] if arguments is None else arguments
    try:
        result = app(args=given or ["--help"], prog_name="evenrank", standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except typer.TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        _say(f"{message} See evenrank --help.")
        code = 2
    except (EvenrankError, OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):
            sys.stderr.close()
            code = 141
        else:
            _say(str(error) or type(error).__name__)
            code = 2
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted")
        code = 130
    sys.exit(code)
