"""CITATION.cff has what the Citation File Format asks for, and says the same as the package and the page on citing.

The schema itself (1.2.0) was checked with cffconvert --validate, which needs other versions of our own dependencies.
"""

from __future__ import annotations

import re

import evenrank as er
from doc_blocks import ROOT

TEXT = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
REQUIRED = ("cff-version", "message", "title", "authors")


def top(name: str) -> str:
    found = re.search(rf"^{name}: *(.*)$", TEXT, re.M)
    assert found, f"CITATION.cff lacks {name}"
    return found[1].strip().strip('"')


def test_what_the_format_requires() -> None:
    for name in REQUIRED:
        top(name)
    assert top("cff-version") == "1.2.0"
    assert top("type") == "software"
    keys = [line.partition(":")[0] for line in TEXT.splitlines() if re.match(r"[a-z]", line)]
    assert len(keys) == len(set(keys))


def test_it_agrees_with_the_package() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{er.__version__}"' in project
    assert top("version") == er.__version__
    assert f'license = "{top("license")}"' in project
    assert top("repository-code") in project


def test_the_page_on_citing_says_the_same() -> None:
    page = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    assert f"version = {{{er.__version__}}}" in page
    for text in ("2102.05996", "10.24432/C5NC77", "Konstantinov"):
        assert text in page
        assert text in TEXT
