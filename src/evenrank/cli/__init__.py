"""The command line: each verb is an arrow of the data flow. An error is one line on stderr and exit code 2."""

from __future__ import annotations

from evenrank.cli.app import app, main

__all__ = ["app", "main"]
