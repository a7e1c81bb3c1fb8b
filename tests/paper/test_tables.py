"""Tables in their four formats."""

from __future__ import annotations

import csv
import io

import pytest

from evenrank.paper.tables import FORMATS, SUFFIXES, Row, Table, escaped

TABLE = Table(
    "50% of a|b",
    ("notion", "grouping"),
    ("ours", "theirs"),
    (
        Row(("equal opportunity", "t_3"), ("48%", "5% (6%)")),
        Row(("average", ""), ("1%", "–"), rule=True),
    ),
    ((0.481, 0.05), (0.01, float("nan"))),
    "A note & more.",
)


def test_text_is_aligned_and_ruled():
    lines = TABLE.text().splitlines()
    assert lines[0] == "50% of a|b"
    assert lines[2] == "notion             grouping  ours   theirs"
    assert lines[3] == lines[5] == "-" * 42
    assert lines[4] == "equal opportunity  t_3        48%  5% (6%)"
    assert lines[6].split() == ["average", "1%", "–"]
    assert lines[-1] == "A note & more."


def test_markdown_escapes_bars_and_sets_numbers_right():
    lines = Table("t", ("a",), ("b",), (Row(("x|y",), ("1",)),), ((1.0,),)).markdown().splitlines()
    assert lines == ["**t**", "", "| a | b |", "|---|---:|", r"| x\|y | 1 |"]


def test_latex_escapes_what_is_its_own():
    text = TABLE.latex()
    assert r"\caption{50\% of a|b A note \& more.}" in text
    assert r"equal opportunity & t\_3 & 48\% & 5\% (6\%) \\" in text
    assert text.count(r"\midrule") == 2
    assert escaped("\\{}~^#$") == r"\textbackslash{}\{\}\textasciitilde{}\textasciicircum{}\#\$"


def test_csv_has_plain_numbers_and_empty_cells():
    read = list(csv.reader(io.StringIO(TABLE.csv())))
    assert read == [
        ["notion", "grouping", "ours", "theirs"],
        ["equal opportunity", "t_3", "0.481", "0.05"],
        ["average", "", "0.01", ""],
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_suffix_and_a_writer(name):
    assert SUFFIXES[name].startswith(".")
    assert "opportunity" in TABLE.as_format(name)
