"""Links, anchors and pictures of the documentation as it stands in the repository."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from doc_blocks import FENCE, ROOT, pages

LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"|^:target: (\S+)$", re.M)
PICTURE = re.compile(r"^:(?:::\{picture\}|phone:) ([\w-]+)\.(\w+)$", re.M)
PICTURES = ROOT / "docs" / "pictures"
ALL = [*pages(), ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "README.md"]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#{1,6} (.+)$", text, re.M)
    plain = [re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def targets(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
    return [next(filter(None, found)) for found in LINK.findall(text)]


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for target in targets(page):
        path, _, anchor = target.partition("#")
        if re.match(r"https?:|mailto:", target) or "demo/" in path or "generated/" in path:
            continue  # the first are checked by readers, the others in the built site
        there = (page.parent / path).resolve() if path else page
        if not there.exists():
            there = there.with_name(there.name + ".md")
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            wrong.append(target)
    assert not wrong, f"{page.relative_to(ROOT)}: {wrong}"


def test_links_and_anchors_are_found() -> None:
    assert sum(len(targets(page)) for page in ALL) > 150
    assert "what-one-must-not-conclude" in anchors(ROOT / "docs" / "reading-an-audit.md")


def test_every_picture_is_made_used_and_small() -> None:
    record = json.loads((PICTURES / "pictures.json").read_text(encoding="utf-8"))
    kept = {path.name for path in PICTURES.iterdir() if path.suffix in (".svg", ".png")}
    assert kept == set(record), "run `make pictures`"
    text = "".join(page.read_text(encoding="utf-8") for page in ALL)
    named = {f"{name}-{theme}.{ending}" for name, ending in PICTURE.findall(text) for theme in ("light", "dark")}
    named |= set(re.findall(r"pictures/([\w.-]+)", text)) | {f"architecture-{theme}.svg" for theme in ("light", "dark")}
    assert named - {"pictures.json"} == kept
    assert all((PICTURES / name).stat().st_size < 1_000_000 for name in kept)
    assert all({"made by", "shown", "date", "commit"} <= set(about) for about in record.values())
