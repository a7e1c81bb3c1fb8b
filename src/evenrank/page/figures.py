"""Figures as files: the page's chart descriptions drawn as SVG or PNG."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evenrank.checks import choose
from evenrank.experiment.trials import Sweep
from evenrank.io.files import write_whole
from evenrank.page.charts import against_strength, tradeoff
from evenrank.wording import spoken

FORMATS = ("svg", "png")
QUALITIES = ("ndcg", "precision")


def draw(description: dict[str, Any], kind: str = "svg") -> bytes:
    """Draw a Vega-Lite description.

    Parameters
    ----------
    description : dict
        What `evenrank.page.charts` makes.
    kind : str
        "svg" or "png".

    Returns
    -------
    bytes
        The content of the file.
    """
    import vl_convert

    # A label on each of hundreds of points costs more than drawing them, and helps nobody in a file.
    description = {**description, "config": {**description.get("config", {}), "aria": False}}
    if choose(kind, FORMATS, what="figure format") == "svg":
        return str(vl_convert.vegalite_to_svg(description)).encode()
    return bytes(vl_convert.vegalite_to_png(description, scale=2))


def figure_names(
    sweep: Sweep, methods: Sequence[str] | None = None, qualities: Sequence[str] = QUALITIES
) -> list[tuple[str, str, str, str | None, str]]:
    """List the figures of a sweep.

    Parameters
    ----------
    sweep : Sweep
        The sweep.
    methods, qualities : sequence of str, optional
        Which to draw; all by default.

    Returns
    -------
    list of tuple
        (file name, grouping, notion, method, quality); a method of None stands for the trade-off of all methods.
    """
    return [
        (_file_name(grouping, notion, method or "tradeoff", quality), grouping, notion, method, quality)
        for quality in qualities
        for grouping in sweep.groupings
        for notion in sweep.notions
        for method in (None, *(sweep.methods if methods is None else methods))
    ]


def write_figures(
    sweep: Sweep,
    folder: str | os.PathLike[str],
    formats: Sequence[str] = ("svg",),
    *,
    methods: Sequence[str] | None = None,
    qualities: Sequence[str] = QUALITIES,
    n_jobs: int = 1,
    progress: Callable[[float], None] | None = None,
) -> list[Path]:
    """Draw every figure with one panel per k: each method against its strength, and the trade-off of all.

    Parameters
    ----------
    sweep : Sweep
        The sweep.
    folder : path-like
        Where the files go; made if it is missing.
    formats : sequence of str
        "svg", "png" or both.
    methods, qualities : sequence of str, optional
        Which to draw; all by default.
    n_jobs : int
        Number of processes.
    progress : callable, optional
        Called with the share that is done.

    Returns
    -------
    list of Path
        The files.
    """
    from joblib import Parallel, delayed

    for kind in formats:
        choose(kind, FORMATS, what="figure format")
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    names = figure_names(sweep, methods, qualities)
    several = (delayed(_write)(_describe(sweep, methods, *figure), target, formats) for figure in names)
    files: list[Path] = []
    for number, written in enumerate(Parallel(n_jobs=n_jobs, return_as="generator")(several)):
        files += written
        if progress is not None:
            progress((number + 1) / len(names))
    return files


def _describe(
    sweep: Sweep,
    methods: Sequence[str] | None,
    name: str,
    grouping: str,
    notion: str,
    method: str | None,
    quality: str,
) -> tuple[str, dict[str, Any]]:
    title = ", ".join([spoken(notion), *([grouping] if len(sweep.groupings) > 1 else [])])
    if method is None:
        described = tradeoff(sweep, notion=notion, grouping=grouping, methods=methods, quality=quality)
        return name, {**described, "title": title}
    described = against_strength(sweep, notion=notion, grouping=grouping, methods=[method], quality=quality)
    return name, {**described, "title": f"{spoken(method)}: {title}"}


def _write(described: tuple[str, dict[str, Any]], folder: Path, formats: Sequence[str]) -> list[Path]:
    name, description = described
    files = [folder / f"{name}.{kind}" for kind in formats]
    for file, kind in zip(files, formats, strict=True):
        write_whole(file, draw(description, kind))
    return files


def _file_name(*parts: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.=-]+", "_", "-".join(parts))
