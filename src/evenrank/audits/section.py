"""`Section`: a part of a document, which text, Markdown and HTML lay out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """A heading, sentences and a table; a row whose first cell is indented belongs to the one above it."""

    heading: str
    sentences: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""
