"""Links that leave docs/: pages of the repository's root stand in the site too, other files are copied beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
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
SIGNATURE = re.compile(r'<dl>\s*(<dd><em class="sig-param">.*?)</dl>', re.S)
DASH = re.compile(r"(\)|</strong>) -- ")  # of fields; quotes and dashes of the text stay as they are written
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#|<)([^)#\s]+)(#[^)\s]*)?(?=\))")


def moved(text: str, folder: Path) -> str:
    """The text of a Markdown file of `folder`, its relative links as seen from the root of the site."""

    def target(found: re.Match[str]) -> str:
        path, anchor = found[1], found[2] or ""
        if path.startswith("/"):
            return found[0]
        there = (folder / path).resolve()
        if not there.is_relative_to(ROOT) or not there.exists():
            return found[0]  # a page that is made beside the site, or a mistake, which the build names
        name = there.relative_to(ROOT).as_posix() + ("/" if there.is_dir() else "")
        if name in PAGES:
            return PAGES[name] + anchor
        if name.startswith("docs/"):
            return "/" + name.removeprefix("docs/") + anchor
        return "/../" + name + anchor

    return LINK.sub(target, text)


def read(app: Any, name: str, source: list[str]) -> None:
    path = Path(app.env.doc2path(name))
    if path.suffix != ".md" or "generated" in path.parts:
        return
    source[0] = moved(source[0], path.parent)
    if name == "index":
        source[0] = whole_menu(source[0])
    elif name == "decisions/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n0*\n```\n"


def whole_menu(text: str) -> str:
    """The front page's menu with the pages on scale, and those that no line of it names, in their places."""
    names = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    listed = {line.strip() for line in text.splitlines()}
    scale = sorted(name for name in names if name.startswith("scale"))
    others = sorted(names - listed - set(scale))
    return text.replace("SCALE-PAGES", "\n".join(scale)).replace("OTHER-PAGES", "\n".join(others))


def barriers(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """What a screen reader stumbles over: captions of the menu that are headings of no level, lists that are none."""
    tree = context.get("furo_navigation_tree")
    if tree:
        context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
    if context.get("body"):
        context["body"] = DASH.sub(r"\1 – ", SIGNATURE.sub(_lines, context["body"]))


def _lines(found: re.Match[str]) -> str:
    """The parameters of a long signature: lines, not a list of definitions that defines nothing."""
    inner = found[1].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")
    return f'<span class="sig-lines">{inner}</span>'


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", read)
    app.connect("html-page-context", barriers, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
