"""An audit's sections laid out as plain text and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenrank.audits.method_words import made_facts
from evenrank.audits.section import Section
from evenrank.audits.sections import sections, summary, verdict_line
from evenrank.wording import no_markup, tidy

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit

WIDTH = 80
WRAP: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}


def made_as(made: Mapping[str, Any], *, markdown: bool) -> str:
    """Write how the numbers were made as a last section of text or Markdown."""
    section = Section("How the numbers were made", tuple(f"{name}: {fact}" for name, fact in made_facts(made)))
    return "\n".join(_markdown_section(section) if markdown else _text_section(section)) + "\n"


def as_text(audit: Audit, heading: str) -> str:
    """Lay an audit out as plain text."""
    return text_of(heading, [summary(audit), verdict_line(audit)], sections(audit))


def text_of(heading: str, lead: Sequence[str], parts_of: Sequence[Section]) -> str:
    """Lay sections out as plain text, 80 columns wide unless names or many cut-offs need more."""
    parts = [tidy(heading), "", *(line for sentence in lead for line in textwrap.wrap(sentence, WIDTH))]
    for section in parts_of:
        parts += _text_section(section)
    return "\n".join(line.rstrip() for line in parts) + "\n"


def _text_section(section: Section) -> list[str]:
    parts = ["", section.heading, "─" * len(section.heading)]
    for sentence in section.sentences:
        parts += textwrap.wrap(sentence, WIDTH, initial_indent="- ", subsequent_indent="  ", **WRAP)
    return [*parts, *_text_table(section), *textwrap.wrap(section.note, WIDTH, **WRAP)]


def _text_table(section: Section) -> list[str]:
    if not section.rows:
        return []
    table = [section.head, *section.rows]
    widths = [max(len(row[j]) for row in table) for j in range(len(section.head))]
    # A label that leaves the numbers no room stands on a line of its own.
    room = max(WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1), 20)
    widths[0] = max(len(row[0]) for row in table if len(row[0]) <= room)
    lines = []
    for row in table:
        label = row[0]
        if len(label) > widths[0]:
            lines.append(label)
            label = ""
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([label.ljust(widths[0]), *cells]))
    return lines


def as_markdown(audit: Audit, heading: str) -> str:
    """Lay an audit out as Markdown."""
    return markdown_of(heading, [summary(audit), verdict_line(audit)], sections(audit))


def markdown_of(heading: str, lead: Sequence[str], parts_of: Sequence[Section]) -> str:
    """Lay sections out as Markdown; of the leading sentences the first is plain and the others are bold."""
    parts = [f"# {no_markup(tidy(heading))}", "", no_markup(lead[0])]
    for sentence in lead[1:]:
        parts += ["", f"**{no_markup(sentence)}**"]
    for section in parts_of:
        parts += _markdown_section(section)
    return "\n".join(parts) + "\n"


def _markdown_section(section: Section) -> list[str]:
    parts = ["", f"## {section.heading}", ""]
    parts += [f"- {no_markup(sentence)}" for sentence in section.sentences]
    if section.rows:
        parts += [_line(section.head), "|".join(["", "---", *["---:"] * (len(section.head) - 1), ""])]
        parts += [_line(row) for row in section.rows]
    return [*parts, "", section.note] if section.note else parts


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(no_markup(cell.strip()) for cell in cells) + " |"
