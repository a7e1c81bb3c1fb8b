"""`Table`: rows of numbers with labels, as text, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

FORMATS = ("text", "markdown", "latex", "csv")
SUFFIXES = {"text": ".txt", "markdown": ".md", "latex": ".tex", "csv": ".csv"}
# LaTeX's own characters, for texts that come from data.
ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    character: "\\" + character for character in "&%$#_{}"
}


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes
    ----------
    labels : tuple of str
        Its label columns.
    cells : tuple of str
        One cell per further column.
    rule : bool
        Draw a line above it.
    """

    labels: tuple[str, ...]
    cells: tuple[str, ...]
    rule: bool = False


@dataclass(frozen=True)
class Table:
    """A table ready to be written.

    Attributes
    ----------
    title : str
        What it shows.
    heads : tuple of str
        Names of the label columns.
    columns : tuple of str
        Names of the other columns, which are set flush right.
    rows : tuple of Row
        The rows.
    numbers : tuple of tuple of float
        The cells as plain numbers for CSV, (rows, columns); NaN where there is none.
    note : str
        A sentence below the table.
    """

    title: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    numbers: tuple[tuple[float, ...], ...] = field(default=())
    note: str = ""

    def as_format(self, name: str) -> str:
        """Write the table in one of `FORMATS`."""
        return {"text": self.text, "markdown": self.markdown, "latex": self.latex, "csv": self.csv}[name]()

    def text(self) -> str:
        """Write plain columns, with a rule where a new part begins."""
        lines = [self.heads + self.columns, *(row.labels + row.cells for row in self.rows)]
        widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]

        def laid_out(cells: Sequence[str]) -> str:
            pads: list[Callable[[str, int], str]] = [
                str.ljust if j < len(self.heads) else str.rjust for j in range(len(cells))
            ]
            return "  ".join(pad(cell, width) for pad, cell, width in zip(pads, cells, widths, strict=True)).rstrip()

        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        out = [self.title, "", laid_out(lines[0]), rule]
        for number, (row, line) in enumerate(zip(self.rows, lines[1:], strict=True)):
            if row.rule and number:
                out.append(rule)
            out.append(laid_out(line))
        return "\n".join([*out, *(["", self.note] if self.note else [])]) + "\n"

    def markdown(self) -> str:
        """Write a Markdown table."""

        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cell.replace("|", r"\|").replace("\n", " ") for cell in cells) + " |"

        out = [f"**{self.title}**", "", line(self.heads + self.columns)]
        out.append("|" + "---|" * len(self.heads) + "---:|" * len(self.columns))
        out += [line(row.labels + row.cells) for row in self.rows]
        return "\n".join([*out, *(["", self.note] if self.note else [])]) + "\n"

    def latex(self) -> str:
        """Write a table environment with the rules of the booktabs package."""

        def line(cells: Sequence[str]) -> str:
            return " & ".join(map(escaped, cells)) + r" \\"

        body = []
        for number, row in enumerate(self.rows):
            if row.rule and number:
                body.append(r"\midrule")
            body.append(line(row.labels + row.cells))
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{escaped(self.title)}{' ' + escaped(self.note) if self.note else ''}}}",
                r"\centering",
                rf"\begin{{tabular}}{{{'l' * len(self.heads)}{'r' * len(self.columns)}}}",
                r"\toprule",
                line(self.heads + self.columns),
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def csv(self) -> str:
        """Write plain numbers, not rounded; empty where there is none."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.heads + self.columns)
        for row, numbers in zip(self.rows, self.numbers, strict=True):
            writer.writerow([*row.labels, *("" if math.isnan(number) else repr(number) for number in numbers)])
        return out.getvalue()


def escaped(text: str) -> str:
    """Escape text so that LaTeX sets it as it is."""
    return "".join(ESCAPES.get(character, character) for character in text)
