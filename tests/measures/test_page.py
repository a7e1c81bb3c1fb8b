"""docs/measures.md: its table is the registry's, and its examples run."""

from __future__ import annotations

import doctest
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import evenrank as er

ROOT = Path(__file__).parents[2]
_SPEC = spec_from_file_location("measures_table", ROOT / "tools" / "measures_table.py")
assert _SPEC is not None
assert _SPEC.loader is not None
tool = module_from_spec(_SPEC)
_SPEC.loader.exec_module(tool)


def test_the_table_is_up_to_date() -> None:
    document = tool.DOCUMENT.read_text(encoding="utf-8")
    assert tool.drawn(document) == document, "run python tools/measures_table.py"
    table = document[document.index(tool.BEGIN) : document.index(tool.END)]
    for row in er.measures_table():
        assert table.count(f"| `{row['name']}{tool.CUT[row['k']]}`") == 1


def test_the_examples_run() -> None:
    failed, tried = doctest.testfile(str(tool.DOCUMENT), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert tried > 5
    assert failed == 0
