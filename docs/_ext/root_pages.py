"""Pages whose text stands outside docs/: architecture, changelog, contributing, notes on benchmarks."""

from __future__ import annotations

import re

from outside import PAGES, ROOT, moved

FILES = {name: page for name, page in PAGES.items() if name.endswith(".md") and page.startswith("/generated/")}
MERMAID = re.compile(r"<!-- import graph.*?<!-- end of import graph -->", re.S)
PICTURE = """
:::{picture} architecture.svg
:alt: The layers of the code, each importing only from those before it

Drawn from the table above by `tools/pictures.py`. `ARCHITECTURE.md` lists every import.
:::
"""


def pages() -> dict[str, str]:
    made = {}
    for name, page in FILES.items():
        path = ROOT / name
        text = moved(path.read_text(encoding="utf-8"), path.parent)
        made[page.removeprefix("/generated/")] = MERMAID.sub(PICTURE, text)
    return made
