"""Plain English: words that we do not use, "per" instead of "a", titles, a front page of two minutes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doc_blocks import FENCE, ROOT, pages

# What we do not write, and what we write instead.
BANNED = {
    r"\bdebias\w*": "lower the gap, mitigate",
    r"\bfix(es|ed|ing)? (the )?bias": "lower the gap",
    r"\bfor free\b|\bcomes? free\b|\bfree (cut|reduction|strength|gain)s?\b": "at no significant quality loss",
    r"\bunbiased ranking": "a more even ranking",
    r"\bprovably fair\b": "what is certified, and how far",
    r"\bleverag(e|es|ing)\b": "use",
    r"\butili[sz](e|es|ing)\b": "use",
    r"\bseamless(ly)?\b|\bcutting-edge\b|\bstate-of-the-art\b|\brobustly\b": "what it does, and how well",
    r"\bsimply\b|\bobviously\b|\bof course\b": "nothing: what is simple need not be said to be",
    r"\d ?(?:ms|µs|s|MB|GB|kB|bytes|items|rows|lists|models|seconds|numbers|lines) an? "
    r"(?:query|list|row|model|second|item|group|fold|batch|step|page|seed|core|pair|cell|tree|file)\b": '"per"',
}
OURS = [page for page in pages() if "decisions" not in page.parts] + [ROOT / "CHANGELOG.md"]
CODE = re.compile(r"`[^`\n]*`")


def prose(page: Path) -> str:
    """The text of a page, without code and without the names of others' works."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return re.sub(r"\*[^*\n]+\*(?!\*)", "", CODE.sub("", text)) if page.name == "cite.md" else CODE.sub("", text)


@pytest.mark.parametrize("page", OURS, ids=lambda page: str(page.relative_to(ROOT)))
def test_plain_words(page: Path) -> None:
    text = prose(page)
    found = [
        f"{match[0]!r}: say {instead}"
        for pattern, instead in BANNED.items()
        for match in re.finditer(pattern, text, re.I)
    ]
    assert not found, f"{page.relative_to(ROOT)}: {found}"


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("it takes 3 ms a query", True),
        ("it takes 3 ms per query", False),
        ("we debias the ranker", True),
        ("40 rows a list", True),
        ("a list of 40 rows", False),
        ("the reduction comes free", True),
    ],
)
def test_the_patterns_find_what_they_should(text: str, bad: bool) -> None:
    assert any(re.search(pattern, text, re.I) for pattern in BANNED) == bad


def test_every_page_begins_with_its_title() -> None:
    for page in pages():
        text = re.sub(r"\A---\n.*?\n---\n", "", page.read_text(encoding="utf-8"), flags=re.S)
        assert text.lstrip().startswith("# "), page


def test_the_front_page_takes_two_minutes_and_the_readme_a_screen_or_two() -> None:
    text = re.sub(r"^:.*$|^---$|^hide-toc.*$", "", prose(ROOT / "docs" / "index.md"), flags=re.M)  # nobody reads these
    words = len(re.findall(r"\w+", re.sub(r"\]\([^)]*\)(\{[^}]*\})?", "]", text)))
    assert words > 200
    assert words < 450, f"{words} words: at 225 per minute that is more than two minutes"
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
