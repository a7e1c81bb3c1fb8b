"""Docstrings as the reference needs them: |gap| is mathematics, not a substitution, and notes stand where they are."""

from __future__ import annotations

import re
from typing import Any

LITERAL = re.compile(r"(``.*?``|`[^`]*`)")
FOOTNOTE = re.compile(r"^(\s*)\.\. \[\d+\]\s*")
IVAR = re.compile(r"^\s*:ivar [^:]+:")
ALIAS = re.compile(r"TypeAliasForwardRef\('([\w.]+)'\)")
MARK = re.compile(r" ?\[\d+\]_")


def _line(text: str) -> str:
    if text.lstrip().startswith((">>>", "...")):
        return text
    text = MARK.sub("", FOOTNOTE.sub(r"\1", text))
    return "".join(part if LITERAL.fullmatch(part) else part.replace("|", r"\|") for part in LITERAL.split(text))


def mend(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    noted: str | None = None  # the margin of a footnote whose lines go on
    for number, line in enumerate(lines):
        footnote = FOOTNOTE.match(line)
        if footnote:
            noted = footnote[1]
        elif not line.strip():
            noted = None
        elif noted is not None:
            line = noted + line.lstrip()
        lines[number] = _line(line)


def attributes(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """``coef_`` is a name, not a link; called after the sections have become fields."""
    lines[:] = [IVAR.sub(lambda found: found[0].replace("_", r"\_"), line) for line in lines]


def types(
    app: Any, what: str, name: str, value: Any, options: Any, signature: str | None, result: str | None
) -> tuple[str | None, str | None]:
    """Aliases of types by their names."""
    return tuple(ALIAS.sub(r"\1", text) if text else text for text in (signature, result))  # type: ignore[return-value]


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", mend, priority=100)
    app.connect("autodoc-process-docstring", attributes, priority=900)
    app.connect("autodoc-process-signature", types)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
