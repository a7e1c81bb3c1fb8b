"""The frame that the report and the audit share: one file, one look, and no right to load or run anything else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template

from evenrank import __version__


def text_of(name: str) -> str:
    """A file of this package."""
    return files("evenrank.page").joinpath(name).read_text(encoding="utf-8")


def fill(name: str, **parts: str) -> str:
    """A template of this package with its parts, which must be HTML already."""
    return Template(text_of(name)).substitute(parts)


def page(title: str, body: str, *, scripts: Sequence[str] = (), data: Mapping[str, str] | None = None) -> str:
    """A whole page. ``data`` is JSON by id, for the scripts to read.

    The content security policy lets exactly these scripts run and nothing be fetched, so that text which slipped
    through as markup could still do nothing.
    """
    allowed = " ".join(["'unsafe-eval'", *map(_digest, scripts)]) if scripts else "'none'"
    held = [f'<script type="application/json" id="{name}">{text}</script>' for name, text in (data or {}).items()]
    return fill(
        "page.html",
        title=escape(title),
        allowed=allowed,
        style=text_of("look.css") + text_of("page.css"),
        body=body,
        scripts="\n".join([*held, *(f"<script>{script}</script>" for script in scripts)]),
    )


def piece(body: str) -> str:
    """What a notebook shows."""
    return f"<style>{text_of('look.css')}</style>\n<div class='evenrank piece'>{body}</div>"


def signature() -> str:
    return f"Made with evenrank {__version__}. This page is one file and loads nothing from anywhere."


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def table(head: Sequence[str], lines: Sequence[tuple[Sequence[str], str]], *, text: int = 1) -> str:
    """Rows of cells with their attributes (HTML already); the first ``text`` columns are words, the rest numbers."""

    def cell(tag: str, place: int, content: str, more: str = "") -> str:
        kind = " class='text'" if 0 < place < text else ""
        return f"<{tag}{kind}{more}>{escape(content)}</{tag}>"

    top = "".join(cell("th", i, name, " scope='col'") if name else "<td></td>" for i, name in enumerate(head))
    body = "".join(
        f"<tr{attributes}>"
        + "".join(cell("td" if i else "th", i, content, "" if i else " scope='row'") for i, content in enumerate(cells))
        + "</tr>"
        for cells, attributes in lines
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def scrolled(made: str, label: str) -> str:
    """A table that scrolls inside its own box, which the keyboard can reach."""
    return f"<div class='scroll' tabindex='0' role='group' aria-label='{escape(label, quote=True)}'>{made}</div>"
