"""`evenrank export`: a model file for a search engine or a runtime, checked on rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import evenrank as er
from evenrank.checks import choose
from evenrank.cli import common, options, show
from evenrank.cli.guard import Output
from evenrank.errors import ConfigError
from evenrank.export import ENGINES, WRITERS, Checked, Exported, check, fastar_table
from evenrank.export.exported import FASTAR, FILES
from evenrank.export.nested import pretty
from evenrank.export.prepare import AUTO, NAN, PLAIN, ZERO
from evenrank.export.source import open_model
from evenrank.quiet import quiet


def shift_of(text: str) -> float | str:
    """Parse a number or "auto"."""
    return AUTO if text == AUTO else options.number(text)


def export(
    model: Annotated[
        Path, typer.Argument(help="A model file of evenrank train, LightGBM's model text, or XGBoost's JSON.")
    ],
    to: Annotated[str, typer.Option("--to", help=f"The engine: {', '.join(ENGINES)}.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The folder to write."), Output(files=(*FILES, FASTAR))
    ] = Path("export"),
    name: Annotated[str, typer.Option(help="The model's name in the engine.")] = "evenrank",
    engine_version: Annotated[
        str | None, typer.Option(help="The engine's version, such as 2.19; default: the newest.")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help=f"Trees send a missing value: {NAN} (as in training) or {ZERO} (where 0 goes); refused where the "
            f"engine cannot.  [default: {NAN}, with a warning]"
        ),
    ] = None,
    shift: Annotated[
        Any,
        typer.Option(
            parser=shift_of,
            metavar="<float>|auto",
            help="Add a number to every score; auto: what makes the smallest possible one 0 (trees).",
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(help="A feature's name in the engine, as OLD=NEW, repeatable; or plain: letters, digits, _."),
    ] = None,
    group_field: Annotated[
        str, typer.Option(help="The engine's field of the group, where the model adds an offset per group.")
    ] = "group",
    fastar_p: Annotated[
        float | None,
        options.numeric(help="Write FA*IR's table too, for the --k places: minimum share of protected items."),
    ] = None,
    significance: Annotated[float, options.numeric(help="FA*IR: probability that a fair list fails its test.")] = 0.1,
    protected: Annotated[str | None, typer.Option(help="FA*IR: the protected group.")] = None,
    rows: Annotated[
        list[Path] | None,
        typer.Option("--check", help="Rows to compare the engine's scores with the model's on; repeatable for parts."),
    ] = None,
    k: options.Ks = "10",
    query: options.Query = "qid",
    item: options.Item = None,
    group: options.Group = "group",
    input_format: options.InputFormat = None,
    as_json: options.Json = False,
) -> None:
    """Write a ranker for an engine: definition, feature set, upload request, README.

    --check scores the rows with the engine's own arithmetic (ONNX: with onnxruntime) and with the model, and says how
    far scores differ and how many top-k lists would.
    """
    choose(to, ENGINES, what="--to")
    ks = options.cut_offs(k)
    if not model.exists():
        raise ConfigError(f"{model}: there is no such model file. Make one with evenrank train.")
    with quiet():
        ranker = open_model(model) if rows else model  # only to score rows is the model's library needed
    renamed = _renamed(rename or [])
    exported = WRITERS[to](
        ranker,
        name=name,
        version=engine_version,
        missing=missing,
        shift=shift,
        rename=renamed,
        group_field=group_field,
    )
    checked = None
    if rows:
        with_groups = bool(exported.prepared.groups or exported.prepared.offsets)
        data, _ = common.read_ranked_rows(
            rows,
            {"features": f"{model} was trained with it: check on rows that have all its features."},
            optional=["relevance", *([] if with_groups else ["group"])],
            query=query,
            item=item,
            relevance="relevance",
            group=group,
            features=list(exported.prepared.columns),
            format=input_format,
        )
        with quiet():
            checked = check(exported, ranker, data, ks)
    more = {}
    if fastar_p is not None:
        table = fastar_table(er.FAStar(fastar_p, significance, protected=protected), max(ks))
        more = {FASTAR: pretty(table)}
    files = exported.write(out, more)
    if as_json:
        facts = {
            "engine": to,
            "model_type": exported.model_type,
            "features": list(exported.features),
            "out": str(out),
            "files": [file.name for file in files],
            "notes": list(exported.notes),
            "check": None if checked is None else checked.to_dict(),
        }
        common.print_json(facts)
        return
    _show(exported, checked, out, [file.name for file in files])


def _renamed(texts: list[str]) -> dict[str, str] | str:
    """Features by their old names, which may have equals signs; the engine's have none."""
    if texts == [PLAIN]:
        return PLAIN
    pairs = [text.rpartition("=") for text in texts]
    for text, (old, _, new) in zip(texts, pairs, strict=True):
        if not (old and new):
            raise ConfigError(f"--rename must be written as OLD=NEW; got {text!r}.")
    return {old: new for old, _, new in pairs}


def _show(exported: Exported, checked: Checked | None, out: Path, files: list[str]) -> None:
    show.line(f"{exported.engine}: {exported.model_type}, {len(exported.features)} features. {out}: {', '.join(files)}")
    for note in exported.notes:
        show.line(f"Note: {note}.")
    if checked is None:
        show.line("Not checked: give rows with --check.")
        return
    show.line(
        f"Checked on {checked.rows:,} rows of {checked.queries:,} queries: scores differ by "
        f"{checked.largest_difference:.2g} at most (largest score {checked.largest_score:.3g})."
    )
    for k, count in checked.lists.items():
        swapped = f" Swapped items are {checked.largest_swap:.2g} apart at most." if count else ""
        show.line(f"Top {k}: {count:,} of {checked.queries:,} lists would differ.{swapped}")
