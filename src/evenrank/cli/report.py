"""`evenrank report`: a run folder as one page."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

import evenrank as er
from evenrank.cli import common, guard, options, show
from evenrank.cli.guard import Input, Output
from evenrank.experiment.run_folder import FILES as RUN_FILES
from evenrank.io.files import write_whole


def report(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The run folder that `evenrank sweep` made."), Input(RUN_FILES)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where the page goes.  [default: RUN/report.html]"), Output()
    ] = None,
    title: Annotated[str, typer.Option(help="The page's heading.")] = "",
    subtitle: Annotated[str, typer.Option(help="One line about the data, below the heading.")] = "",
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: options.Json = False,
) -> None:
    """Write a run folder as one page that opens anywhere: the answer, the trade-off, examples, how it was made.

    It only reads the folder and never trains. A run that is not finished is shown as far as it is.
    """
    path = run / "report.html" if out is None else out
    result = er.Sweep.load(run)
    guard.check(path)
    write_whole(path, result.html(title, subtitle))
    if open_:
        webbrowser.open(path.resolve().as_uri())
    if as_json:
        common.print_json({"report": str(path), "about": result.about.to_dict()})
        return
    show.line(f"The report: {path}")
