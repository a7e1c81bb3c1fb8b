"""Blocks of the documentation that need LightGBM, XGBoost, torch, ONNX or another extra."""

from __future__ import annotations

from pathlib import Path

import pytest

from doc_blocks import ROOT, blocks, pages, run_page
from doc_files import example_files, folder

__all__ = ["example_files", "folder"]
pytestmark = pytest.mark.extras
PAGES = [page for page in pages() if any(block.runs and block.needs for block in blocks(page))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page: Path, folder: Path) -> None:
    left = run_page(page, extras=True)
    if left:
        pytest.skip(f"needs {sorted(set().union(*(block.needs for block in left)))}")
