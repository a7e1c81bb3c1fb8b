"""`evenrank reproduce`: the paper's tables and figures."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import evenrank as er
from evenrank.checks import choose
from evenrank.cli import common, options, show
from evenrank.cli.guard import Output
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.experiment.examples import Titles
from evenrank.paper.printed import CPU_HOURS
from evenrank.paper.reproduce import EXPERIMENTS, PAPER_METHODS, Experiment, Reproduction
from evenrank.paper.reproduce import reproduce as run
from evenrank.progress import bar

FEW_QUERIES = 5000  # fewer give the paper's five epochs too few batches to move the weights
TITLED = 20_000  # the texts of more queries take too long to read
NONE = "none"
Groupings = dict[str, RankingData]


def reproduce(
    experiment: Annotated[str, typer.Argument(help="trec or msmarco.", metavar="trec|msmarco")],
    data: Annotated[Path, typer.Option("--data", help="Folder of the data set's own files.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Where runs, tables and figures go."),
        Output(files=("sweep", "front", "published", "seeds", "tables", "figures")),
    ] = Path("reproduction"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Every fifth strength, the paper's methods, one division into folds.")
    ] = False,
    figures: Annotated[str, typer.Option(help="Formats of the figures: svg, png, svg,png or none.")] = "svg",
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Number of processes; -1: one per core.")] = -1,
    seed: Annotated[int, options.numeric(parser=options.whole(0), help="Seed of folds and batches.")] = 0,
    encoder: Annotated[
        str | None, typer.Option(help="msmarco: folder or name of a BERT-like model; see docs/msmarco.md.")
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="msmarco: where embeddings are kept between runs; default: with the output."),
        Output(files=()),
    ] = None,
    limit: Annotated[
        int | None,
        options.numeric("--limit", parser=options.whole(2), help="msmarco: number of queries to read, from the first."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Run the paper's experiments on its data: all tables (our numbers, the paper's in brackets) and figures.

    If it was stopped, the same command resumes it.
    """
    from evenrank.page.figures import FORMATS, QUALITIES, write_figures

    choose(experiment, EXPERIMENTS, what="the experiment")
    kinds = [] if figures == NONE else [choose(kind, [*FORMATS, NONE], what="--figures") for kind in figures.split(",")]
    if NONE in kinds:
        raise ConfigError(f"--figures must be formats or {NONE} alone; got {figures!r}.")
    if jobs == 0:
        raise ConfigError("--jobs must be a number of processes, or -1 for one per core; got 0.")
    if experiment == "trec" and any(option is not None for option in (encoder, cache, limit)):
        raise ConfigError("--encoder, --cache and --limit are for msmarco; leave them out.")
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out}: is a file; --out must be a folder. Name another.")
    shown = not as_json
    began = time.perf_counter()
    settings, groupings, tests, titles = _loaded(experiment, data, encoder, limit, cache or out, shown)
    loaded = time.perf_counter() - began
    with bar(f"{experiment}: training and measuring", show=shown) as progress:
        reproduction = run(
            settings, groupings, tests, out=out, quick=quick, n_jobs=jobs, titles=titles, seed=seed, progress=progress
        )
    swept = time.perf_counter() - began - loaded
    tables = reproduction.write_tables(out / "tables")
    drawn: list[Path] = []
    if kinds:
        with bar(f"{experiment}: figures", show=shown) as progress:
            drawn_methods = [name for name in PAPER_METHODS if name in reproduction.result.methods]
            drawn = write_figures(
                reproduction.result,
                out / "figures",
                kinds,
                methods=drawn_methods,
                qualities=QUALITIES[:1] if quick else QUALITIES,
                n_jobs=jobs,
                progress=progress,
            )
    seconds = {"loading": loaded, "training and measuring": swept, "whole": time.perf_counter() - began}
    if as_json:
        common.print_json(_as_json(reproduction, seconds, out, tables, drawn))
        return
    _tell(reproduction, settings, groupings, tests, seconds, quick=quick)
    drawings = f", {len(drawn)} figures in {out / 'figures'}" if drawn else ""
    show.line(f"{len(reproduction.tables)} tables in {out / 'tables'}{drawings}.")
    show.line(f"The page to play with: evenrank report {out / 'sweep'}")


def _loaded(
    experiment: str, folder: Path, encoder: str | None, limit: int | None, cache: Path, shown: bool
) -> tuple[Experiment, Groupings, Groupings | None, Titles | None]:
    settings = EXPERIMENTS[experiment]
    if not folder.exists():
        raise DataError(f"{folder}: there is no such folder. Name the data set's folder with --data.")
    if experiment == "trec":
        titles = Titles(*er.datasets.trec_fair_2019_titles(folder))
        return settings, er.datasets.trec_fair_2019_groupings(folder), None, titles
    train, test = _msmarco_files(folder)
    loaded = []
    for name, files in (("training", train), ("test", test)):
        if files:
            with bar(f"msmarco: embeddings of the {name} passages", show=shown) as progress:
                cache.mkdir(parents=True, exist_ok=True)
                loaded.append(
                    er.datasets.msmarco_groupings(files, encoder=encoder, cache=cache, limit=limit, progress=progress)
                )
    tests = loaded[1] if test else None
    tested = next(iter((tests or loaded[0]).values()))
    test_titles = Titles(*er.datasets.msmarco_titles(test or train, limit)) if tested.n_queries <= TITLED else None
    if next(iter(loaded[0].values())).n_queries < FEW_QUERIES:
        settings = replace(settings, solver="exact", scale="train", settings={"ridge": 0.1})
    return settings, loaded[0], tests, test_titles


def _msmarco_files(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files to train on, and those to test on: none where there is no train and dev file to tell apart."""
    if folder.is_file():
        return [folder], []
    endings = (".json", ".jsonl", ".parquet", ".json.gz", ".jsonl.gz")
    files = sorted(file for file in folder.iterdir() if file.name.endswith(endings) and file.is_file())
    train = [file for file in files if file.name.startswith("train")]
    test = [file for file in files if file.name.startswith(("dev", "validation"))]
    if train and test:
        return train, test
    if len(files) != 1:
        raise DataError(
            f"{folder}: needs files train… and dev… (or validation…), or one file to split; "
            f"found {', '.join(file.name for file in files) or 'none'}."
        )
    return files, []


def _tell(
    reproduction: Reproduction,
    settings: Experiment,
    groupings: Groupings,
    tests: Groupings | None,
    seconds: dict[str, float],
    *,
    quick: bool,
) -> None:
    data = next(iter(groupings.values()))
    show.line(
        f"{data.n_queries} queries, {data.n_rows} rows, {data.n_features} features; the paper's numbers in brackets."
    )
    if quick:
        show.line("--quick: every fifth strength, the paper's own methods, two seeds at most. This is no reproduction.")
    if settings.name == "msmarco" and settings.solver != "sgd":
        show.line(
            f"Fewer than {FEW_QUERIES} queries: trained by the exact solver with ridge 0.1 on standardised features, "
            "because the paper's five epochs would hardly move the weights."
        )
    if settings.name == "msmarco" and tests is None:
        show.line("No dev file: each seed holds out a random fifth of the queries.")
    show.line("")
    print(reproduction.brief().text())
    spent = reproduction.seconds
    times = ", ".join(f"{name} {value:.1f}" for name, value in spent.items())
    show.line(f"Seconds in all processes: {times}; together {sum(spent.values()):.0f}.")
    show.line(
        f"Whole: {seconds['whole']:.0f} s on {os.cpu_count()} cores. The paper's own runs, on more data: "
        f"{CPU_HOURS[settings.name]} CPU hours."
    )


def _as_json(
    reproduction: Reproduction, seconds: dict[str, float], out: Path, tables: list[Path], figures: list[Path]
) -> dict[str, Any]:
    return {
        "experiment": reproduction.experiment.name,
        "out": str(out),
        "seconds": seconds,
        "method_seconds": reproduction.seconds,
        "tables": {
            name: {
                "columns": list(table.columns),
                "rows": [
                    {"notion": row.labels[0], "grouping": row.labels[1], "values": list(numbers)}
                    for row, numbers in zip(table.rows, table.numbers, strict=True)
                ],
            }
            for name, table in reproduction.tables.items()
        },
        "files": [str(file) for file in (*tables, *figures)],
    }
