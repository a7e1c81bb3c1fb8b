"""The live pages: the report and the audit of German Credit, written by the commands themselves, with the log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from outside import ROOT

ROWS = ROOT / "tools" / "example_rows.py"


def write(folder: Path) -> None:
    demo = folder / "demo"
    demo.mkdir(parents=True, exist_ok=True)
    _run(sys.executable, str(ROWS), "log", str(demo / "log.csv"))
    _evenrank("demo", "-o", str(demo / "report.html"))
    _evenrank("audit", "log.csv", "--group", "age", "--k", "1,3,5", "-o", "audit.html", cwd=demo)


def _evenrank(*arguments: str, cwd: Path | None = None) -> None:
    _run(sys.executable, "-m", "evenrank", *arguments, cwd=cwd)


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
