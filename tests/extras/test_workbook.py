"""Audits as workbooks: one sheet per table, every text a text, nothing that a spreadsheet would run."""

from __future__ import annotations

import io
import zipfile
from xml.etree import ElementTree

import numpy as np
import pytest

import evenrank as er
from evenrank.audits.workbook import sheets, workbook

pytestmark = pytest.mark.extras
pytest.importorskip("xlsxwriter", reason="run `make test-extras`")
SPACE = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
MADE = {"files": [{"name": "=rows.csv", "sha256": "ab"}], "command": "@SUM(1)", "seed": 0}


def read(content):
    """The cells of each sheet, as the file holds them: (kind, value) by sheet name."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        shared = ElementTree.fromstring(file.read("xl/sharedStrings.xml"))
        texts = ["".join(part.text or "" for part in entry.iter(f"{{{SPACE['m']}}}t")) for entry in shared]
        names = [
            sheet.get("name")
            for sheet in ElementTree.fromstring(file.read("xl/workbook.xml")).iterfind(".//m:sheet", SPACE)
        ]
        tables = {}
        for number, name in enumerate(names, 1):
            sheet = ElementTree.fromstring(file.read(f"xl/worksheets/sheet{number}.xml"))
            assert sheet.find(".//m:f", SPACE) is None  # no formula anywhere
            tables[name] = [
                [
                    texts[int(cell.findtext("m:v", None, SPACE))]
                    if cell.get("t") == "s"
                    else cell.findtext("m:v", None, SPACE)
                    for cell in row
                ]
                for row in sheet.iterfind(".//m:row", SPACE)
            ]
        return tables


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(0)
    group, relevance = np.tile(["=1+1", "b"], 60), rng.integers(0, 2, 120)
    data = er.RankingData.from_arrays(np.zeros((120, 0)), relevance, group, np.repeat(np.arange(20), 6))
    return er.audit(rng.normal(size=120), data, [1, 2], against=rng.normal(size=120))


def test_one_sheet_per_table_with_the_numbers_of_the_audit(audit):
    tables = read(workbook(sheets({"group": audit}, MADE)))
    assert list(tables) == [
        "about", "conclusions", "impact ratios", "tests", "rates", "measures", "shares", "certified", "queries",
        "compared", "compared by pair", "plans", "methods",
    ]  # fmt: skip
    head, *rows = tables["impact ratios"]
    assert len(rows) == len(audit.categories)
    assert [float(row[head.index("rate")]) for row in rows] == pytest.approx([row.rate for row in audit.categories])
    assert len(tables["tests"]) == 1 + 2 * len(audit.pairs)
    assert len(tables["conclusions"]) == 1 + len(audit.conclusions())


def test_no_text_begins_like_a_formula_and_no_number_is_missing_for_nan(audit):
    tables = read(workbook(sheets({"=attribute": audit}, MADE)))
    cells = [cell for rows in tables.values() for row in rows[1:] for cell in row if cell is not None]
    assert not [cell for cell in cells if cell[:1] in "=@+" and cell[:1]]
    assert "'=1+1" in cells
    assert "'@SUM(1)" in cells
    assert "nan" not in cells
    assert any(row[1] == "SHA-256 of =rows.csv" for row in tables["about"])


def test_control_characters_and_endless_texts_fit():
    rows = {"t": [{"text": "a\x00b\x1b\n" + "x" * 40_000, "number": float("inf"), "none": float("nan")}]}
    (_, row) = read(workbook(rows))["t"]
    assert len(row[0]) == 32_767
    assert row[0].startswith("a b")
    assert row[1] == "inf"
