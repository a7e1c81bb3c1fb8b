"""Every Python block and every evenrank command of the documentation runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from doc_blocks import ROOT, Block, blocks, pages, run_page

PAGES = [page for page in pages() if any(block.runs for block in blocks(page))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page: Path, folder: Path) -> None:
    left = run_page(page)
    if len(left) == sum(block.runs for block in blocks(page)):
        pytest.skip("every block needs an extra; run by `make test-extras`")


def test_most_blocks_are_found() -> None:
    found = [block for page in pages() for block in blocks(page)]
    assert sum(block.runs for block in found) > 50
    assert sum(bool(block.not_run) for block in found) < 20


def test_a_command_is_read_without_what_is_said_beside_it() -> None:
    text = "evenrank audit log.csv --k 5   # why\nevenrank rank  new.csv -m model.json     a word\n$ ls\n"
    block = Block(ROOT / "README.md", 1, "sh", text, "")
    assert block.commands == [["audit", "log.csv", "--k", "5"], ["rank", "new.csv", "-m", "model.json"]]


def test_a_wrong_block_fails(tmp_path: Path, folder: Path) -> None:
    for text in (
        "```python\n>>> 1 + 1\n3\n```\n",
        "```python\nraise ValueError\n```\n",
        "```sh\nevenrank audit none.csv\n```\n",
    ):
        page = ROOT / "docs" / "nowhere.md"
        found = [Block(page, 1, block.language, block.text, "") for block in _of(text, tmp_path)]
        assert len(found) == 1
        with pytest.raises((AssertionError, ValueError)):
            run_page(tmp_path / "page.md")


def _of(text: str, folder: Path) -> list[Block]:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return list(blocks(page))
