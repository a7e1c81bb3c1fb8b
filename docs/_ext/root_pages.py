"""Pages of the site whose text stands in the root of the repository: architecture, changelog, contributing, benchmarks."""

from __future__ import annotations

import re

from outside import PAGES, ROOT, moved

FILES = {name: page for name, page in PAGES.items() if name.endswith(".md") and page.startswith("/generated/")}
MERMAID = re.compile(r"<!-- import graph.*?<!-- end of import graph -->", re.S)
PICTURE = """
:::{{figure}} /pictures/architecture-{theme}.svg
:class: only-{theme}
:alt: The layers of the code, each importing only from those before it

Drawn from the code's imports by `tools/pictures.py`. {ARCHITECTURE} lists each of them.
:::
"""


def pages() -> dict[str, str]:
    made = {}
    for name, page in FILES.items():
        path = ROOT / name
        text = moved(path.read_text(encoding="utf-8"), path.parent)
        picture = "".join(PICTURE.format(theme=theme, ARCHITECTURE="`ARCHITECTURE.md`") for theme in ("light", "dark"))
        made[page.removeprefix("/generated/")] = MERMAID.sub(picture, text)
    return made
