"""The layers of the code as a drawing, from the table in ARCHITECTURE.md."""

from __future__ import annotations

import re
from html import escape

ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+?) \|$", re.M)
UNIT = re.compile(r"`([^`]+)`")
COLOURS = {
    "light": {"ink": "#1a1c1e", "soft": "#52595f", "band": "#eef4f8", "chip": "#ffffff", "line": "#9db8ca"},
    "dark": {"ink": "#e6e9ec", "soft": "#aeb8c0", "band": "#1b2730", "chip": "#0f161b", "line": "#4d6a7d"},
}
WIDTH, LEFT, CHIP, GAP, LETTER = 960, 56, 26, 8, 7.4


def _chips(names: list[str]) -> tuple[list[tuple[str, float, int, float]], int]:
    """Name, left end, line and width of each chip, and how many lines there are."""
    placed, x, line = [], float(LEFT), 0
    for name in names:
        width = len(name) * LETTER + 18
        if x + width > WIDTH - 16:
            x, line = float(LEFT), line + 1
        placed.append((name, x, line, width))
        x += width + GAP
    return placed, line + 1


def drawn(text: str, theme: str) -> str:
    colours = COLOURS[theme]
    bands, y = [], 8.0
    for number, units, _ in ROW.findall(text):
        chips, lines = _chips([name.removesuffix("/") for name in UNIT.findall(units)])
        height = lines * (CHIP + 6) + 10
        parts = [f'<rect x="8" y="{y:.0f}" width="{WIDTH - 16}" height="{height}" rx="8" fill="{colours["band"]}"/>']
        parts.append(f'<text x="20" y="{y + 25:.0f}" fill="{colours["soft"]}" font-size="13">{number}</text>')
        for name, x, line, width in chips:
            top = y + 8 + line * (CHIP + 6)
            parts.append(
                f'<rect x="{x:.0f}" y="{top:.0f}" width="{width:.0f}" height="{CHIP}" rx="5" fill="{colours["chip"]}" '
                f'stroke="{colours["line"]}"/><text x="{x + 9:.0f}" y="{top + 17:.0f}" fill="{colours["ink"]}" '
                f'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">{escape(name)}</text>'
            )
        bands.append("".join(parts))
        y += height + 6
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 2:.0f}" width="{WIDTH}" '
        f'height="{y + 2:.0f}" font-family="system-ui, sans-serif">{"".join(bands)}</svg>\n'
    )
