"""The command line: each verb is an arrow of the data flow. An error is one line on stderr and exit code 2."""

from __future__ import annotations

from evenrank.cli import process

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    arguments : list of str, optional
        What follows ``evenrank``; by default what the program was started with.
    """
    process.open_streams()
    process.tidy_terminal()
    if arguments is None:
        process.ignore_signals_at_the_end()
    with process.quiet_interrupts():
        from evenrank.cli.app import run
    run(arguments)
