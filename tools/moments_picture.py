"""Rows, their sums, and what follows from the sums, as a drawing with the sizes of a real run."""

from __future__ import annotations

from html import escape

import numpy as np

import evenrank as er

COLOURS = {
    "light": {"ink": "#1a1c1e", "soft": "#52595f", "box": "#eef4f8", "line": "#7c99ad"},
    "dark": {"ink": "#e6e9ec", "soft": "#aeb8c0", "box": "#1b2730", "line": "#7c99ad"},
}


def sizes() -> tuple[list[int], int, int, int]:
    """Rows of three parts of German Credit, bytes of all rows, and rows and bytes of the sums merged."""
    data = er.datasets.german_credit("age")
    parts = [data.take(np.arange(first, data.n_queries, 3)) for first in range(3)]
    sums = [er.Moments.of(part, ["dp", "eop", "eod"]) for part in parts]
    merged = sums[0] + sums[1] + sums[2]
    arrays = [value for value in vars(merged).values() if isinstance(value, np.ndarray)]
    nested = [value for value in vars(merged).values() if isinstance(value, tuple | list)]
    arrays += [value for group in nested for value in group if isinstance(value, np.ndarray)]
    bytes_of_rows = data.features.nbytes + data.relevance.nbytes + data.group.nbytes
    return [part.n_rows for part in parts], bytes_of_rows, int(merged.n_rows), sum(value.nbytes for value in arrays)


def _box(x: float, y: float, width: float, height: float, lines: list[str], colours: dict[str, str]) -> str:
    look = f'rx="8" fill="{colours["box"]}" stroke="{colours["line"]}"'
    text = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" {look}/>'
    top = y + height / 2 - 9 * (len(lines) - 1)
    for number, line in enumerate(lines):
        ink = colours["ink" if number == 0 else "soft"]
        text += (
            f'<text x="{x + width / 2}" y="{top + 18 * number + 4}" text-anchor="middle" fill="{ink}" '
            f'font-size="{14 if number == 0 else 12}">{escape(line)}</text>'
        )
    return text


def _arrow(x1: float, y1: float, x2: float, y2: float, colours: dict[str, str]) -> str:
    ends = f'x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"'
    return f'<line {ends} stroke="{colours["line"]}" stroke-width="2" marker-end="url(#tip)"/>'


def drawn(theme: str) -> str:
    colours = COLOURS[theme]
    parts, all_bytes, rows, bytes_of_sums = sizes()
    body = ""
    for number, count in enumerate(parts):
        y = 10 + 80 * number
        body += _box(10, y, 170, 60, [f"part {number + 1}", f"{count:,} rows"], colours)
        body += _box(250, y, 150, 60, ["sums", "XᵀX, Xᵀr, sums by cell"], colours)
        body += _arrow(180, y + 30, 246, y + 30, colours) + _arrow(400, y + 30, 466, 120, colours)
    merged = [f"{rows:,} rows as sums", f"{bytes_of_sums / 1e3:.0f} kB instead of {all_bytes / 1e6:.1f} MB"]
    body += _box(470, 80, 210, 80, merged, colours)
    results = [
        ["every strength", "the exact path"],
        ["cross-validation", "subtract a fold"],
        ["descent", "a step costs O(d²)"],
    ]
    for number, lines in enumerate(results):
        y = 10 + 80 * number
        body += _box(750, y, 180, 60, lines, colours) + _arrow(680, 120, 746, y + 30, colours)
    shape = f'<path d="M0,0 L8,4 L0,8 z" fill="{colours["line"]}"/>'
    tip = f'<marker id="tip" markerWidth="9" markerHeight="9" refX="7" refY="4" orient="auto">{shape}</marker>'
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 940 250" width="940" height="250" '
        f'font-family="system-ui, sans-serif"><defs>{tip}</defs>{body}</svg>\n'
    )
