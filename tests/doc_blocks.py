"""The code in the documentation: found, and run in the order of its page.

What runs: fenced blocks of Python, with prompts (then outputs must agree) or without, and every line of a shell block
that begins with ``evenrank``. A comment above a block, ``<!-- not run: why -->``, marks one that cannot run here.
"""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evenrank.cli import main

ROOT = Path(__file__).parents[1]
FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>```+)(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=indent)(?P=ticks) *$", re.S | re.M
)
MARK = re.compile(r"<!-- not run: (.+?) -->\s*$")
SHELL = ("", "sh", "console", "bash")
# What a block needs beyond the core: a word in it, and the module.
NEEDS = {
    "lightgbm": "lightgbm",
    "LGBM": "lightgbm",
    "xgboost": "xgboost",
    "XGB": "xgboost",
    "er.torch": "torch",
    "mlp": "torch",
    "onnx": "onnxruntime",
    ".xlsx": "xlsxwriter",
    "ir_measures": "ir_measures",
    "er.spark": "pyspark",
    "engine spark": "pyspark",
    "er.duckdb": "duckdb",
    "engine duckdb": "duckdb",
    "dask": "dask",
}


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    not_run: str  # the reason, "" if it runs

    @property
    def commands(self) -> list[list[str]]:
        """The arguments of each evenrank command, without what is said beside it."""
        if self.language not in SHELL:
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        said = [re.split(r" {3,}(?!-)", line.strip(), maxsplit=1)[0] for line in lines]
        return [shlex.split(line, comments=True)[1:] for line in said if re.match(r"evenrank( |$)", line)]

    @property
    def runs(self) -> bool:
        return not self.not_run and (self.language == "python" or bool(self.commands))

    @property
    def needs(self) -> set[str]:
        """The libraries beyond the core that it needs."""
        return {module for word, module in NEEDS.items() if word in self.text}

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        mark = MARK.search(text[: found.start()])
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found["language"].strip(), found["text"], mark[1] if mark else "")


def pages() -> list[Path]:
    """Every page that a reader sees; those that are made from the program hold nothing of their own."""
    docs = [path for path in (ROOT / "docs").rglob("*.md") if not {"_build", "generated"} & set(path.parts)]
    return sorted(docs) + [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]


def run_page(page: Path, *, extras: bool = False) -> list[Block]:
    """Run a page's blocks in the folder at hand; gives those that were left out because they need more than the core.

    With ``extras`` only those that need a library which is not installed are left out.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    left: list[Block] = []
    for block in blocks(page):
        if not block.runs:
            continue
        if block.needs and (not extras or any(find_spec(module) is None for module in block.needs)):
            left.append(block)
            continue
        if block.language != "python":
            for arguments in block.commands:
                _command(arguments, block)
        elif ">>>" in block.text:
            _prompts(block, names)
        else:
            exec(compile("\n" * block.line + block.text, str(block.page), "exec", dont_inherit=True), names)
    return left


def _command(arguments: list[str], block: Block) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    # A monitor or a limit that finds something ends with 1.
    allowed = (0, 1) if arguments[0] == "monitor" or "--fail-over" in arguments else (0,)
    assert ended.value.code in allowed, f"{block}: evenrank {shlex.join(arguments)} ended with {ended.value.code}"


def _prompts(block: Block, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, str(block), str(block.page), block.line)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not said, "".join(said)
