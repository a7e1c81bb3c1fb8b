"""The command line's entry, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import os
import sys
import warnings
from io import TextIOWrapper
from typing import Annotated, Any

import typer

import evenrank as er
from evenrank.cli.audit import audit
from evenrank.cli.bound import bound
from evenrank.cli.demo import demo
from evenrank.cli.methods import methods
from evenrank.cli.rank import rank
from evenrank.cli.report import report
from evenrank.cli.reproduce import reproduce
from evenrank.cli.select import select
from evenrank.cli.sweep import sweep
from evenrank.cli.train import train
from evenrank.errors import EvenrankError
from evenrank.quiet import without_place

INTERRUPTED = 130

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


for command in (demo, audit, train, rank, sweep, select, report, methods, bound, reproduce):
    app.command()(command)


def _say(text: str) -> None:
    print("evenrank: " + " ".join(text.split()), file=sys.stderr)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; every expected failure is one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a table with ? for ± is better than a traceback
    said: set[str] = set()

    def warn_once(message: Warning | str, *_: Any) -> None:
        text = without_place(str(message))
        if text not in said:
            said.add(text)
            _say(f"warning: {text}")

    warnings.showwarning = warn_once  # type: ignore[assignment]
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", UserWarning)
    given = sys.argv[1:] if arguments is None else arguments
    try:
        result = app(args=given or ["--help"], prog_name="evenrank", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        if code == INTERRUPTED:
            _say("interrupted")
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
    except (KeyboardInterrupt, typer.Abort) as error:
        _say(str(error) or "interrupted")
        code = INTERRUPTED
    sys.exit(code)
