"""The command line's entry, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import sys
import warnings
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer

import evenrank as er
from evenrank.cli import process, spool
from evenrank.cli.audit import audit
from evenrank.cli.bench import bench
from evenrank.cli.bound import bound
from evenrank.cli.demo import demo
from evenrank.cli.export import export
from evenrank.cli.guard import guarded
from evenrank.cli.measures import measures
from evenrank.cli.methods import methods
from evenrank.cli.monitor import monitor
from evenrank.cli.rank import rank
from evenrank.cli.report import report
from evenrank.cli.reproduce import reproduce
from evenrank.cli.select import select
from evenrank.cli.sweep import sweep
from evenrank.cli.train import train
from evenrank.errors import EvenrankError, one_line
from evenrank.io import parquet
from evenrank.quiet import without_place

app = typer.Typer(
    name="evenrank",
    help="Fair learning to rank: see how evenly rankings treat groups, what a smaller gap costs, and train for it.",
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


ON_ROWS = (demo, audit, monitor, train, rank, export, sweep, select, report, bench)
for command in (*ON_ROWS, methods, measures, bound, reproduce):
    app.command()(guarded(command))


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and exit; every expected failure is one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a table with ? for ± is better than a traceback
    warned: set[str] = set()

    def warn_once(message: Warning | str, *_: Any) -> None:
        text = without_place(str(message))
        if text not in warned:
            warned.add(text)
            _say(f"warning: {text}")

    parquet.OWN_PROCESS = arguments is None
    warnings.showwarning = warn_once  # type: ignore[assignment]
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", UserWarning)
    if arguments is None:
        process.end_tidily()
    code = process.flush(_outcome(sys.argv[1:] if arguments is None else arguments))
    if arguments is None:
        with process.quiet_interrupts():
            sys.exit(code)
    sys.exit(code)


def _say(text: str) -> None:
    process.say(one_line(spool.as_named(text)))


def _outcome(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    try:
        result = app(args=arguments or ["--help"], prog_name="evenrank", standalone_mode=False)
    except typer.TyperException as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        context = getattr(error, "ctx", None)
        stop = "" if message.endswith((".", "?")) else "."
        _say(f"{message}{stop} See {context.command_path if context else 'evenrank'} --help.")
        return process.REFUSED
    except BrokenPipeError:
        return _pipe_closed()
    except SystemExit as stop:  # how typer and rich leave when the reader of stdout has gone
        if isinstance(stop.__context__, BrokenPipeError):
            return _pipe_closed()
        if stop.code == process.TERMINATED:
            _say("terminated")
        return stop.code if isinstance(stop.code, int) else 0
    except (KeyboardInterrupt, typer.Abort) as error:
        _say(str(error) or "interrupted")
        return process.INTERRUPTED
    except Exception as error:
        if _was_interrupted(error):
            _say("interrupted")
            return process.INTERRUPTED
        if not isinstance(error, EvenrankError | OSError | MemoryError):
            raise
        if isinstance(error, OSError) and not isinstance(error, EvenrankError):
            subject = "stdout cannot be" if error.filename is None else f"{error.filename}: cannot be read or"
            _say(f"{subject} written ({error.strerror or error}).")
        else:
            _say(str(error) or type(error).__name__)
        return process.REFUSED
    if result == process.INTERRUPTED:
        _say("interrupted")
    return result if isinstance(result, int) else 0


def _pipe_closed() -> int:
    process.abandon_stdout()
    return process.PIPE_CLOSED


def _was_interrupted(error: BaseException | None) -> bool:
    """Ctrl-C in the middle of an import may come out as an ImportError that it caused."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
