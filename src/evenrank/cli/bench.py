"""`evenrank bench`: methods side by side on several data sets, strengths chosen on other queries than reported."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

import evenrank as er
from evenrank.checks import choose
from evenrank.cli import common, options, show, show_bench
from evenrank.cli.guard import Output
from evenrank.cli.sweep import ALIASES, parse_seeds, parse_settings, read_groupings
from evenrank.errors import ConfigError, one_line
from evenrank.io.columns import MissingColumn
from evenrank.leaderboard.bench import ALL, CORE
from evenrank.leaderboard.folder import FILES
from evenrank.methods.registry import METHODS
from evenrank.progress import bar

GERMAN = "german_credit"
POOLS = 20  # of applicants: whole pools are dealt into folds, anew for each seed


def bench(
    data: Annotated[
        list[Path],
        typer.Argument(help=f"Data sets: files of rows, the folder of TREC Fair Ranking 2019, or {GERMAN} (bundled)."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The bench's folder; the same command resumes it."), Output(files=FILES)
    ] = Path("bench"),
    methods: Annotated[
        str,
        typer.Option(
            help=f"{CORE} (no extras), {ALL} (those installed too), or comma-separated: {', '.join(METHODS)}."
        ),
    ] = CORE,
    notions: Annotated[str, typer.Option(help=f"Comma-separated: {', '.join(ALIASES)}.")] = ",".join(ALIASES),
    k: options.Ks = "1,2,3,4,5",
    folds: Annotated[int, options.numeric(parser=options.whole(3), help="Number of folds of the queries.")] = 5,
    seeds: Annotated[str, typer.Option(help="Divisions into folds: their number, or seeds as 1,2,3.")] = "10",
    scale: Annotated[str, typer.Option(help="Standardise features by train, dataset or none.")] = "train",
    impute: options.Impute = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A method's own option, as deltr.max_iter=50; repeatable.")
    ] = None,
    jobs: Annotated[
        int, options.numeric("--jobs", "-j", parser=options.whole(-1), help="Number of processes; -1: one per core.")
    ] = -1,
    query: options.Query = "qid",
    item: options.Item = None,
    relevance: options.Relevance = "relevance",
    group: options.Groupings = "group",
    features: options.Features = None,
    ignore: options.Ignore = None,
    categorical: options.Categorical = None,
    sample_weight: options.SampleWeight = None,
    threshold: options.Threshold = 1.0,
    input_format: options.InputFormat = None,
    header: options.Header = True,
    as_json: options.Json = False,
) -> None:
    """Compare methods: strengths are chosen on other queries than reported, folds are drawn anew for each seed.

    If it was stopped, the same command resumes it.
    """
    bench_options: dict[str, Any] = {
        "methods": methods if methods in (CORE, ALL) else options.names(methods),
        "notions": options.names(notions),
        "ks": options.cut_offs(k),
        "folds": folds,
        "seeds": parse_seeds(seeds),
        "scale": None if choose(scale, ("train", "dataset", "none"), what="--scale") == "none" else scale,
        "impute": impute,
        "settings": parse_settings(settings or []),
        "n_jobs": jobs,
    }
    reading = {
        "query": query,
        "item": item,
        "relevance": relevance,
        "features": options.names(features),
        "categorical": options.several(categorical),
        "sample_weight": sample_weight,
        "relevance_threshold": threshold,
        "format": input_format,
        "header": header,
    }
    groups = options.names(group) or ["group"]
    roles = {"query": query, "relevance": relevance, "group": groups[0], "item": item, "sample weight": sample_weight}
    ignored = options.ignored(ignore, categorical=categorical, features=features, roles=roles)
    sources: dict[str, Any] = {}
    absent: list[dict[str, MissingColumn]] = []
    for path in data:
        name = one_line(path.name if path.is_dir() else path.stem)  # bytes that are not UTF-8 are written out
        if name in sources:
            raise ConfigError(f"two data sets are called {name!r}; rename one, as results are told apart by name.")
        strange: dict[str, MissingColumn] = {}
        sources[name] = _source(path, groups, reading, ignored, strange)
        if isinstance(sources[name], dict) and not path.is_dir():
            absent.append(strange)
    for column in ignored:
        if not absent:
            raise ConfigError(f"--ignore leaves columns out of tables, and no data set is one; got {column!r}.")
        if all(column in strange for strange in absent):
            raise absent[0][column]
    try:
        with bar("bench", show=not as_json) as progress:
            result = er.bench(sources, out=out, progress=progress, **bench_options)
    except KeyboardInterrupt:
        raise typer.Abort("interrupted; the same command goes on from here") from None
    if as_json:
        common.print_json({**result.to_dict(), "out": str(out)})
        return
    show_bench.standings(result)
    show.line(f"Table, standings and page in {shlex.quote(str(out))}: {', '.join(FILES[2:])}")


def _source(
    path: Path, columns: list[str], reading: dict[str, Any], ignore: list[str], absent: dict[str, MissingColumn]
) -> Any:
    """The groupings of one data set; ``absent`` gets what is to be ignored and is not there."""
    if str(path) == GERMAN and not path.exists():
        german = er.datasets.german_credit("age", pools=POOLS)
        sex = er.datasets.german_credit("sex", pools=POOLS)
        labels = [sex.group_names[code] for code in sex.to_caller(sex.group).tolist()]
        groupings = {"age": german, "sex": german.with_group(labels)}
        return er.BenchData(groupings, er.datasets.german_credit_folds(german))
    if path.is_dir():
        return er.datasets.trec_fair_2019_groupings(path)
    parts = [column for column in columns if column not in ("item", *reading["categorical"])]
    while True:
        ignored = [*parts, *(column for column in ignore if column not in absent)]
        try:
            return read_groupings([path], columns, {}, {**reading, "ignore": ignored})[0]
        except MissingColumn as error:
            if error.role != "ignore" or error.name not in ignore or error.name in absent:
                raise
            absent[error.name] = error
