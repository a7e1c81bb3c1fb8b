"""Links that leave docs/: pages of the repository's root stand in the site too, and its other files are copied beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# Files outside docs/ that are pages of the site, and where.
PAGES = {
    "ARCHITECTURE.md": "/generated/architecture.md",
    "CHANGELOG.md": "/generated/changelog.md",
    "CONTRIBUTING.md": "/generated/contributing.md",
    "benchmarks/README.md": "/generated/benchmarks-notes.md",
    "benchmarks/": "/generated/benchmarks-notes.md",
    "README.md": "/index.md",
    "docs/decisions/": "/decisions/README.md",
}
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#|<)([^)#\s]+)(#[^)\s]*)?(?=\))")


def moved(text: str, folder: Path) -> str:
    """The text of a Markdown file of `folder`, its relative links as seen from the root of the site."""

    def target(found: re.Match[str]) -> str:
        path, anchor = found[1], found[2] or ""
        if path.startswith("/"):
            return found[0]
        there = (folder / path).resolve()
        if not there.is_relative_to(ROOT):
            return found[0]
        name = there.relative_to(ROOT).as_posix() + ("/" if there.is_dir() else "")
        if name in PAGES:
            return PAGES[name] + anchor
        if name.startswith("docs/"):
            return "/" + name.removeprefix("docs/") + anchor
        return "/../" + name + anchor

    return LINK.sub(target, text)


def read(app: Any, name: str, source: list[str]) -> None:
    path = Path(app.env.doc2path(name))
    if path.suffix == ".md" and "generated" not in path.parts:
        source[0] = moved(source[0], path.parent)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
