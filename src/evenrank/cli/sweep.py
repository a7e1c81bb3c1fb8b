"""`evenrank sweep`: quality against fairness over strengths, methods and folds, into a run folder."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

import evenrank as er
from evenrank.checks import choose
from evenrank.cli import common, options, show, show_sweep
from evenrank.cli.guard import Output
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.experiment.examples import Titles
from evenrank.experiment.run_folder import FILES as RUN_FILES
from evenrank.methods.registry import METHODS
from evenrank.notions import NOTIONS
from evenrank.progress import bar

ALL = "all"
ALIASES = [notion.alias for notion in NOTIONS.values()]


def sweep(
    file: options.File,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The run folder; the same command resumes it."), Output(files=RUN_FILES)
    ] = Path("run"),
    methods: Annotated[
        str, typer.Option(help=f"Comma-separated: {', '.join(METHODS)}; or {ALL} that are installed.")
    ] = "amortized",
    notions: Annotated[str, typer.Option(help=f"Comma-separated: {', '.join(ALIASES)}.")] = ",".join(ALIASES),
    strengths: Annotated[
        list[str] | None,
        typer.Option(
            help="As 0.1,1,10, or for one method as fastar=0.2,0.5; repeatable.  [default: each method's own]"
        ),
    ] = None,
    k: options.Ks = "1,3,5",
    measures: options.Measures = None,
    folds: Annotated[
        int | None,
        options.numeric("--folds", parser=options.whole(2), help="Number of folds of the queries.  [default: 5]"),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Random splits instead of folds: their number, or seeds as 1,2,3.")
    ] = None,
    test: Annotated[Path | None, typer.Option(help="A file of held-out rows to measure on instead of folds.")] = None,
    seed: Annotated[int, options.numeric(parser=options.whole(0), help="Seed of folds, splits and examples.")] = 0,
    solver: Annotated[str, typer.Option(help="exact, gd or sgd.")] = "exact",
    scale: Annotated[str, typer.Option(help="Standardise features by train, dataset or none.")] = "train",
    impute: options.Impute = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A method's own option, as deltr.max_iter=50; repeatable.")
    ] = None,
    jobs: Annotated[
        int, options.numeric("--jobs", "-j", parser=options.whole(-1), help="Number of processes; -1: one per core.")
    ] = 1,
    examples: Annotated[
        int, options.numeric(parser=options.whole(0), help="Number of example queries kept for the report.")
    ] = 100,
    query: options.Query = "qid",
    item: options.Item = None,
    relevance: options.Relevance = "relevance",
    group: options.Groupings = "group",
    query_title: Annotated[
        str | None, typer.Option(help="Column of the query's text, for the report.", rich_help_panel=options.COLUMNS)
    ] = None,
    item_title: Annotated[
        str | None, typer.Option(help="Column of the item's text, for the report.", rich_help_panel=options.COLUMNS)
    ] = None,
    features: options.Features = None,
    ignore: options.Ignore = None,
    categorical: options.Categorical = None,
    sample_weight: options.SampleWeight = None,
    threshold: options.Threshold = 1.0,
    input_format: options.InputFormat = None,
    header: options.Header = True,
    as_json: options.Json = False,
) -> None:
    """Train and measure every strength of the methods and notions by cross-validation, into a run folder.

    If a run was stopped, the same command resumes it.
    """
    chosen = _methods(methods)
    sweep_options: dict[str, Any] = {
        "notions": options.names(notions),
        "strengths": _strengths(strengths or [], chosen),
        "ks": options.cut_offs(k),
        "measures": options.measures(measures),
        "folds": folds,
        "seed": seed,
        "seeds": parse_seeds(seeds),
        "solver": solver,
        "scale": None if choose(scale, ("train", "dataset", "none"), what="--scale") == "none" else scale,
        "impute": impute,
        "settings": parse_settings(settings or []),
        "n_jobs": jobs,
        "examples": examples,
    }
    columns = options.names(group) or ["group"]
    named = {"query": query_title, "item": item_title}
    titles = {kind: title for kind, title in named.items() if title is not None}
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
    roles = {"query": query, "relevance": relevance, "group": columns[0], "item": item, "sample weight": sample_weight}
    left_out = options.ignored(ignore, categorical=categorical, features=features, roles=roles)
    # "item" is no feature unless named, and may hold the ids.
    parts = [name for name in (*columns, *titles.values()) if name not in ("item", *options.several(categorical))]
    ignored = [*parts, *left_out]
    data, texts = read_groupings(file, columns, titles if test is None else {}, {**reading, "ignore": ignored})
    held = None
    if test is not None:
        first = next(iter(data.values()))
        reading |= {"features": list(first.feature_names), "categorical": list(first.categories)}
        held, texts = read_groupings([test], columns, titles, reading, least=1)
    try:
        with bar("sweep", show=not as_json) as progress:
            result = er.sweep(data, chosen, test=held, out=out, titles=texts, progress=progress, **sweep_options)
    except KeyboardInterrupt:
        raise typer.Abort("interrupted; the same command goes on from here") from None
    if as_json:
        common.print_json({**result.to_dict(), "run": str(out)})
        return
    show_sweep.summary(result, every_strength=bool(strengths))
    show_sweep.further(result)
    folder = shlex.quote(str(out))
    show.line(f"Run folder: {out}. Next: evenrank report {folder}, evenrank select {folder}")


# ---------------------------------------------------------------------- what was written


def _methods(text: str) -> list[str]:
    if text == ALL:
        installed = {name: method for name, method in METHODS.items() if not method.extra or find_spec(method.extra)}
        return [name for name, method in installed.items() if not method.by_name]
    return [choose(name, [*METHODS, ALL], what="--methods") for name in options.names(text) or []]


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ConfigError(f"{option} must be numbers, comma-separated; got {text!r}.") from None


def _strengths(texts: Sequence[str], methods: Sequence[str]) -> dict[str, list[float]] | None:
    """Strengths by method; those without a method are for all others."""
    by_method: dict[str, list[float]] = {}
    for text in texts:
        name, named, numbers = text.rpartition("=")
        if named:
            choose(name.strip(), methods, what="a method of --strengths")
        if name.strip() in by_method:
            raise ConfigError(f"--strengths are given twice {f'for {name}' if named else 'for all'}; give them once.")
        by_method[name.strip()] = _numbers(numbers, "--strengths")
        if not by_method[name.strip()]:
            raise ConfigError(f"--strengths must be numbers, comma-separated; got {text!r}.")
    for_others = by_method.pop("", None)
    if for_others is not None:
        by_method = {name: by_method.get(name, for_others) for name in methods}
    return by_method or None


def parse_seeds(text: str | None) -> int | list[int] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts) or parts == ["0"]:
        raise ConfigError(f"--seeds must be a number ≥ 1, or whole numbers ≥ 0, comma-separated; got {text!r}.")
    return [int(part) for part in parts] if "," in text else int(parts[0])


def parse_settings(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Settings by method, from method.option=value."""
    out: dict[str, dict[str, Any]] = {}
    for name, value in options.settings(texts).items():
        method, dot, option = name.partition(".")
        if not dot or not option:
            raise ConfigError(f"--set must be written as method.option=value; got {name!r}.")
        out.setdefault(choose(method, METHODS, what="a method of --set"), {})[option] = value
    return out


# ---------------------------------------------------------------------- what is in the files


def read_groupings(
    file: list[Path], columns: Sequence[str], titles: Mapping[str, str], reading: dict[str, Any], *, least: int = 2
) -> tuple[dict[str, RankingData], Titles | None]:
    """The rows under each grouping, named after its column, and the texts of queries and items, in one reading.

    There must be ``least`` groups: without one of those of training, quality can still be measured.
    """
    labels = [("group", column) for column in columns[1:]]
    labels += [(f"{kind}-title", column) for kind, column in titles.items()]
    data, values = common.read_labelled_rows(file, labels, group=columns[0], **reading)
    groupings = {columns[0]: data} | {column: data.with_group(values[column]) for column in columns[1:]}
    for grouping in groupings.values():
        common.need_groups(grouping, file, "Name the group column with --group.", least)
    if not titles:
        return groupings, None
    if "item" in titles and data.item_ids is None:
        raise DataError(f"{file[0]}: --item-title needs item ids, and there is no item column. Name it with --item.")
    ids = {"query": data.query_ids[data.query_of_row], "item": data.item_ids}
    texts = {kind: _texts(data.with_group(values[column]), ids[kind]) for kind, column in titles.items()}
    return groupings, Titles(texts.get("query", {}), texts.get("item", {}))


def _texts(titled: RankingData, ids: Any) -> dict[Any, str]:
    """By id, from rows whose groups are the texts; the first of several counts."""
    texts: dict[Any, str] = {}
    for key, code in zip(ids.tolist(), titled.group.tolist(), strict=True):
        if code >= 0:
            texts.setdefault(key, str(titled.group_names[code]))
    return texts
