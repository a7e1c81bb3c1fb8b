"""`train` and `rank` of Parquet files larger than memory."""

from __future__ import annotations

import glob
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import evenrank as er
from evenrank.checks import choose
from evenrank.cli import common, show
from evenrank.errors import ConfigError, DataError, one_line
from evenrank.io.columns import MissingColumn
from evenrank.io.limits import byte_limit
from evenrank.io.parquet import checked_footer
from evenrank.io.row_files import RankingFiles, parquet_parts, scan
from evenrank.io.write_frames import write_frames
from evenrank.linear.moment_design import refuse_rows, summed_rows
from evenrank.losses import LOSSES
from evenrank.methods.method import Method
from evenrank.methods.ranked_frames import rank_files
from evenrank.notions import as_notion

MEMORY, STREAM = ENGINES = ("memory", "stream")
# Reading a table into memory takes so many times the bytes of its numbers.
COPIES = 3


def settled(file: list[Path], engine: str | None, *, input_format: str | None) -> tuple[list[Path], bool]:
    """Find the files that are meant, and whether they are read part by part.

    Parameters
    ----------
    file : list of Path
        What the user named; folders and patterns stand for their Parquet files.
    engine : str or None
        What the user asked for; None streams Parquet files that are too large for memory.
    input_format : str or None
        The format that the user named.

    Returns
    -------
    files : list of Path
        The files.
    stream : bool
        Whether to stream them.
    """
    if engine is not None:
        choose(engine, ENGINES, what="--engine")
    many = any(path.is_dir() or (not path.exists() and glob.has_magic(str(path))) for path in file)
    parquet = input_format == "parquet" or (input_format is None and all(path.suffix == ".parquet" for path in file))
    if engine == STREAM and not (many or parquet):
        raise ConfigError(f"--engine stream reads Parquet files; got {file[0].name!r}. Convert it, or leave it out.")
    if many:
        file, parquet = parquet_parts(file), True
    if engine is not None or not parquet or not all(path.is_file() for path in file):
        return file, engine == STREAM
    footers = [checked_footer(path) for path in file]
    size = sum(8 * footer.n_rows * len(footer.names) for footer in footers)
    return file, COPIES * size > byte_limit()


def scanned(
    file: list[Path], advice: Mapping[str, str], *, optional: Sequence[str] = (), **settings: Any
) -> RankingFiles:
    """Scan files as `scan` does, with advice on a missing column, and without optional columns that are missing.

    Parameters
    ----------
    file : list of Path
        The files.
    advice : mapping of str to str
        As in `common.read_rows`.
    optional : sequence of str
        Roles of columns that are taken if the files have them.
    **settings
        As in `scan`.
    """
    while True:
        try:
            return scan(file, **settings)
        except MissingColumn as error:
            if error.role not in optional or settings[error.role] is None:
                raise common.with_advice(error, advice) from None
            settings[error.role] = None


def train_files(
    files: RankingFiles, method: Method, chosen: Mapping[str, Any], out: Path, *, before: bool, as_json: bool
) -> None:
    """Train one linear ranker on files, in one pass over them, and write its model file.

    Parameters
    ----------
    files : RankingFiles
        The rows.
    method : Method
        How to train.
    chosen : mapping
        The options that were given.
    out : Path
        The model file.
    before : bool
        Whether to compare with strength 0.
    as_json : bool
        Whether to print JSON.
    """
    if method.ranker_class() is not er.FairLinearRanker:
        raise ConfigError(
            f"--method {method.name} needs the rows in memory; --engine stream trains linear rankers: amortized, "
            "amortized_aware, centered, centered_pairwise. Allow more memory, or train on some of the queries."
        )
    ranker = method.make(None, chosen)  # type: ignore[arg-type]  # no linear ranker looks at the rows here
    refuse_rows(solver=ranker.solver, scope=ranker.scope, target=ranker.target, loss=ranker.loss)
    if ranker.max_violation is not None:
        raise ConfigError(
            "--max-violation ranks the training rows, which are not in memory. Train strengths with --alpha, rank with "
            "each, and take the weakest whose audit is within it."
        )
    began = time.perf_counter()
    penalised = ranker.alpha > 0
    notion = as_notion(ranker.notion)
    needs = {"group_aware": ranker.group_aware, "target": ranker.target, "within": LOSSES[ranker.loss].within}
    if files.columns.group is None and (penalised or ranker.group_aware):
        raise DataError(f"{files.paths[0]}: at least two groups are needed, to compare them; found no group labels.")
    moments = summed_rows(files, [notion] if penalised or files.columns.group is not None else [], **needs)
    ranker.fit(moments)
    seconds = time.perf_counter() - began
    report: dict[str, Any] = {
        "model": str(out),
        "seconds": seconds,
        "method": method.name,
        "notion": ranker.notion,
        "alpha": ranker.alpha_,
        "solver": ranker.solver,
        "features": len(ranker.feature_names_),
        "rows": moments.n_rows,
        "groups": {str(name): int(rows) for name, rows in zip(moments.group_names, moments.group_rows, strict=True)},
        **_values(ranker, moments),
    }
    if before and ranker.alpha_ > 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model's own training told them
            options = {**ranker.get_params(), "alpha": 0.0}
            plain = er.FairLinearRanker(**options).fit(moments)
        report["before"] = _values(plain, moments)
    ranker.save(out)
    if as_json:
        common.print_json(report)
        return
    change = report.get("before")
    shown = {
        name: " → ".join("none" if part[name] is None else f"{part[name]:.4g}" for part in (change, report) if part)
        for name in ("score_gap", "loss")
    }
    show.line(
        f"Trained on {len(ranker.feature_names_)} features of {moments.n_rows:,} rows in {seconds:.2f} s, read part by "
        f"part ({method.label}, {notion.name}, strength {'0 → ' if change else ''}{ranker.alpha_:.4g}).\n"
        f"Gap of the mean scores: {shown['score_gap']}; mean {ranker.loss} loss: {shown['loss']}. "
        f"For gaps of the top k: evenrank rank, then evenrank audit.\nModel file: {out}"
    )


def _values(ranker: Any, moments: Any) -> dict[str, float | None]:
    """What moments tell of a model: Γ of its scores, and its loss."""
    within = LOSSES[ranker.loss].within
    theta = np.append(ranker.coef_, [] if ranker.group_offset_ is None else ranker.group_offset_[1:])
    second, cross = moments.quadratic(np.zeros(len(theta)), np.ones(len(theta)), within=within)
    full = np.append(theta, ranker.intercept_)
    square = (moments.within_rr if within else moments.rr) / moments.weight
    loss = float(full @ second @ full - 2 * cross @ full + square)
    gap = None
    if moments.notions:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows, pairs = moments.contrasts(moments.notions[0], across=ranker.across)
        gap = float(pairs.value(rows @ theta)) if len(pairs.a) else None
    return {"score_gap": gap, "loss": max(loss, 0.0)}


def write_ranked(
    files: RankingFiles, ranker: Any, *, top: int | None, out: Path | None, model: str | None, as_json: bool
) -> None:
    """Rank files and write the lists, or print them as CSV as they come.

    Parameters
    ----------
    files : RankingFiles
        The rows.
    ranker : ranker or None
        The model; None takes the scores of the one feature.
    top : int or None
        The number of places to keep per query.
    out : Path or None
        The output.
    model : str or None
        The model's file, for JSON.
    as_json : bool
        Whether to print JSON.
    """
    frames = rank_files(files, ranker, top=top)
    if out is not None:
        rows = write_frames(out, frames)
        if as_json:
            common.print_json({"model": model, "out": str(out), "n_rows": rows})
        else:
            show.line(f"{rows} rows, ranked: {out}")
        return
    if as_json:
        raise ConfigError("--json with rows read part by part would hold all of them. Name a file with --out.")
    for number, frame in enumerate(frames):
        table = frame.write_csv(include_header=number == 0)
        sys.stdout.write("\n".join(map(one_line, table.split("\n"))) if sys.stdout.isatty() else table)
