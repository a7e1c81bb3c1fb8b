"""How numbers, names and data are written: every table, sentence and page takes its words from here."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from evenrank.errors import one_line

FOUR_FIFTHS = 0.8  # of the highest group's selection rate, which the four-fifths rule asks of every other
ROUNDING = 1e-12  # no number that is printed is smaller, but for rounding
MOST_GROUPS = 12  # that a line names
NONE = "–"  # stands for what is not defined
# How a spreadsheet knows a formula; tabs and line ends before it are dropped.
FORMULAS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")

TITLES = {
    "ndcg": "NDCG",
    "precision": "precision",
    "recall": "recall",
    "demographic_parity": "demographic parity gap",
    "equal_opportunity": "equal opportunity gap",
    "equalized_odds": "equalized odds gap",
    "exposure_gap": "exposure gap",
    "four_fifths": "lowest/highest rate",
    "awrf(discount=log2)": "AWRF (1 is even)",
    "max_skew": "highest skew (0 is even)",
    "min_skew": "lowest skew (0 is even)",
}
SHORT_TITLES = {"ndcg": "NDCG", "precision": "P"}


def impact_ratio(ratio: float | None) -> str:
    """Write a ratio in two digits, and in as many as show that it is below four fifths where it is.

    >>> impact_ratio(0.8235), impact_ratio(0.7996), impact_ratio(0.79999)
    ('0.82', '0.7996', '0.79999')
    """
    if ratio is None:
        return NONE
    digits = 2
    while digits < 6 and round(ratio, digits) >= FOUR_FIFTHS > ratio + ROUNDING:
        digits += 1
    return f"{ratio:.{digits}f}"


def spoken(name: str) -> str:
    """Write a name of the program as people do.

    >>> spoken("equal_opportunity")
    'equal opportunity'
    """
    return name.replace("_", " ")


def short_title(measure: str, k: object) -> str:
    """Write a measure of quality and its cut-off, short enough for a heading.

    >>> short_title("ndcg", 5), short_title("precision", "k")
    ('NDCG@5', 'P@k')
    """
    return f"{SHORT_TITLES.get(measure, spoken(measure))}@{k}"


def title(measure: str, k: int | None = None) -> str:
    """Write a measure and its cut-off as sentences do.

    >>> title("equal_opportunity", 3)
    'equal opportunity gap at 3'
    """
    return TITLES[measure] + ("" if k is None else f" at {k}")


def notion_title(measure: str) -> str:
    """Write the notion that a gap is of.

    >>> notion_title("equal_opportunity")
    'equal opportunity'
    """
    return TITLES[measure].removesuffix(" gap")


def tidy(text: str) -> str:
    """Bring text from a file onto one line and free it of control characters."""
    return "".join(mark if mark.isprintable() else " " for mark in text).strip()


def quoted(name: str) -> str:
    """Write a name from a file in quotes."""
    return f'"{tidy(name)}"'


def no_formula(text: str) -> str:
    r"""Write a name so that no spreadsheet takes it for a formula and no terminal obeys it.

    >>> no_formula("=1+1"), no_formula("-1"), no_formula("a=b"), no_formula("a\x1b[31m")
    ("'=1+1", '-1', 'a=b', 'a\\x1b[31m')
    """
    text = one_line(text)
    return "'" + text if tidy(text).startswith(FORMULAS) and not PLAIN_NUMBER.fullmatch(tidy(text)) else text


def no_markup(text: str) -> str:
    """Write names from a file in Markdown as they are; code in backticks stays code.

    >>> print(no_markup("a_b<i>"))
    a\\_b\\<i\\>
    """
    for mark in "\\|*_<>[]#":
        text = text.replace(mark, "\\" + mark)
    return text


def name_cell(text: str, width: int) -> str:
    """Write a name from a file as a table's cell: short, and no formula when the table is pasted into a spreadsheet.

    >>> name_cell("a long name", 6), name_cell("=1+1", 6), name_cell("-1", 6)
    ('a lon…', "'=1+1", '-1')
    """
    text = no_formula(tidy(text))
    return text if len(text) <= width else text[: width - 1] + "…"


def three_digits(value: float) -> str:
    """Write a number with three decimals; what rounds to 0 has no sign.

    >>> three_digits(0.12345), three_digits(float("nan")), three_digits(-0.0001)
    ('0.123', '–', '0.000')
    """
    # A last digit of a sum, which depends on the order of its parts, must not decide how it is rounded.
    return NONE if math.isnan(value) else f"{round(round(value, 12), 3) + 0.0:.3f}"


def number(value: float) -> str:
    """Write a number ≥ 0 with three decimals, or with as many as show that it is not 0.

    >>> number(0.12345), number(0.00021), number(0.0)
    ('0.123', '.0002', '0.000')
    """
    if ROUNDING < value < 0.0005:
        return f"{value:.4f}"[1:] if value >= 0.00005 else "<.0001"
    return three_digits(value)


def signed(value: float) -> str:
    """Write a difference with its sign, and 0 without one.

    >>> signed(0.0123), signed(-0.0001)
    ('+0.012', '0.000')
    """
    return f"{value:+.3f}" if abs(value) >= 0.0005 else "0.000"


def p_value(value: float) -> str:
    """Write a p-value, or a probability.

    >>> p_value(0.0372), p_value(0.00042), p_value(3e-9), p_value(float("nan"))
    ('0.037', '0.0004', '<.0001', '–')
    """
    if math.isnan(value):
        return NONE
    return "<.0001" if value < 0.0001 else f"{value:.4f}" if value < 0.001 else f"{value:.3f}"


def span(low: float, high: float) -> str:
    """Write the ends of an interval.

    >>> span(0.02, 0.074)
    '0.020–0.074'
    """
    return NONE if math.isnan(low) or math.isnan(high) else f"{number(low)}–{number(high)}"


def with_error(value: float, error: float) -> str:
    """Write a mean and its error; an error that is not known is left out.

    >>> with_error(0.5, 0.01), with_error(0.5, float("nan"))
    ('0.500 ± 0.010', '0.500')
    """
    return three_digits(value) + ("" if math.isnan(value) or math.isnan(error) else f" ± {error:.3f}")


def percent(share: float, sign: str = "") -> str:
    """Write a share in whole per cent, without a minus before 0; ``sign="+"`` shows the sign.

    >>> percent(0.256), percent(-0.001), percent(0.1, "+")
    ('26%', '0%', '+10%')
    """
    return NONE if math.isnan(share) else f"{round(share, 2) + 0.0:{sign}.0%}"


def shares(groups: Mapping[str, float]) -> str:
    """Write each group with its share.

    >>> shares({"a": 0.2, "b": 0.8})
    'a 20%, b 80%'
    """
    largest = sorted(groups, key=lambda name: -groups[name])[:MOST_GROUPS]
    named = [f"{tidy(name)} {share:.0%}" for name, share in groups.items() if name in largest]
    return ", ".join(named) + (f" and {len(groups) - len(named)} more" if len(groups) > len(named) else "")


def data_line(
    *,
    rows: int,
    queries: int,
    relevant: float | None,
    groups: Mapping[str, float],
    unknown: float = 0.0,
    aside: float = 0.0,
) -> str:
    """Write what the data is in one line.

    >>> data_line(rows=1200, queries=100, relevant=0.61, groups={"a": 0.2, "b": 0.7}, unknown=0.1)
    '1,200 rows, 100 queries, 61% relevant; groups: a 20%, b 70%, unknown 10%'
    """
    labels = "no labels" if relevant is None else f"{relevant:.0%} relevant"
    rest = (f", set aside {aside:.0%}" if aside else "") + (f", unknown {unknown:.0%}" if unknown else "")
    lists = "1 query" if queries == 1 else f"{queries:,} queries"
    return f"{rows:,} rows, {lists}, {labels}; groups: {shares(groups) or 'none'}{rest}"
