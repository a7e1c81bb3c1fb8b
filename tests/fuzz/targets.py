"""The targets of this folder, found by what they have: ``NAME``, ``EXTRA`` and ``run``."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

NOT_TARGETS = {"__main__", "cases", "targets", "test_fuzz"}


def targets() -> dict[str, ModuleType]:
    """Every target by its name."""
    files = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    modules = [import_module(f"fuzz.{name}") for name in files if name not in NOT_TARGETS]
    return {module.NAME: module for module in modules}


def missing(target: ModuleType) -> str:
    """The optional dependency that a target needs and that is not installed, or ''."""
    return target.EXTRA if target.EXTRA is not None and find_spec(target.EXTRA) is None else ""
