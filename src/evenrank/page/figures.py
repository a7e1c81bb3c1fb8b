"""Figures as files: the page's chart descriptions drawn as SVG or PNG."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from evenrank.checks import choose
from evenrank.experiment.trials import Sweep
from evenrank.io.files import write_whole
from evenrank.page.charts import against_strength, label_of, methods_by_notion, tradeoff
from evenrank.threads import in_processes
from evenrank.wording import spoken

FORMATS = ("svg", "png")
QUALITIES = ("ndcg", "precision")
TYPICAL_K, TYPICAL_NOTION = 3, "equal_opportunity"  # of the paper's Figure 1


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
    """Draw each method against its strength and the trade-off of all, one panel per k, and the paper's own figures.

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
    from joblib import delayed

    for kind in formats:
        choose(kind, FORMATS, what="figure format")
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    names = figure_names(sweep, methods, qualities)
    described = chain(
        (_describe(sweep, methods, *figure) for figure in names),
        (figure for quality in qualities for figure in composed(sweep, methods, quality)),
    )
    wanted = len(names) + 2 * len(qualities) * len(sweep.groupings)
    several = (delayed(_write)(figure, target, formats) for figure in described)
    files: list[Path] = []
    for number, written in enumerate(in_processes(several, n_jobs, ordered=True)):
        files += written
        if progress is not None:
            progress((number + 1) / wanted)
    return files


def composed(
    sweep: Sweep, methods: Sequence[str] | None = None, quality: str = "ndcg"
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Describe the paper's composed figures of each grouping, at k = 3 if the sweep has it.

    Parameters
    ----------
    sweep : Sweep
        The sweep.
    methods : sequence of str, optional
        The columns; all methods by default.
    quality : str
        The measure on the right axis.

    Yields
    ------
    tuple of str and dict
        File name and description: ``figure1-…``, one notion (equal opportunity if the sweep has it) under every method;
        then ``grid-…``, every notion under every method.
    """
    k = TYPICAL_K if TYPICAL_K in sweep.ks else sweep.ks[len(sweep.ks) // 2]
    first = TYPICAL_NOTION if TYPICAL_NOTION in sweep.notions else sweep.notions[0]
    columns = sweep.methods if methods is None else methods
    folds = f"mean ± {sweep.spread} over {sweep.about.folds or '?'} {sweep.about.repeats}"
    for grouping in sweep.groupings:
        where = f"{grouping}, " if len(sweep.groupings) > 1 else ""
        for kind, notion in (("figure1", first), ("grid", None)):
            described = methods_by_notion(sweep, k, methods=columns, notion=notion, grouping=grouping, quality=quality)
            what = spoken(notion) if notion else "every notion and method"
            title = {"text": f"{what}, {where}k = {k}", "subtitle": f"Held-out lists; {folds}.", "anchor": "start"}
            yield _file_name(kind, grouping, quality), {**described, "title": title}


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
    return name, {**described, "title": f"{label_of(method)}: {title}"}


def _write(described: tuple[str, dict[str, Any]], folder: Path, formats: Sequence[str]) -> list[Path]:
    name, description = described
    files = [folder / f"{name}.{kind}" for kind in formats]
    for file, kind in zip(files, formats, strict=True):
        write_whole(file, draw(description, kind))
    return files


def _file_name(*parts: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.=-]+", "_", "-".join(parts))
