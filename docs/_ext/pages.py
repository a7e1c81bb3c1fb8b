"""Pages that are made from the program: commands, public names, methods, measures, benchmarks, schemas, the live demo.

They go into docs/generated/, which is not kept in the repository; the demo goes beside the site.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import api_pages
import benchmark_pages
import command_pages
import demo_pages
import registry_pages
import root_pages
import schema_pages

HERE = Path(__file__).parents[1]
GENERATED = HERE / "generated"
MAKERS = (command_pages, api_pages, registry_pages, benchmark_pages, schema_pages, root_pages)


def write(pages: dict[str, str]) -> None:
    """Each page under its name; a page that has not changed keeps its date, and one that nobody makes goes."""
    for name, text in pages.items():
        path = GENERATED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in GENERATED.rglob("*.*"):
        if path.relative_to(GENERATED).as_posix() not in pages:
            path.unlink()


def make(app: Any, config: Any) -> None:
    pages: dict[str, str] = {}
    for maker in MAKERS:
        pages |= maker.pages()
    write(pages)
    demo_pages.write(HERE / "_build" / "extra")


def setup(app: Any) -> dict[str, bool]:
    app.connect("config-inited", make, priority=1)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
