"""The paper's experiments on its data, and the strongest front against a plain search."""

from __future__ import annotations

import json

import numpy as np
import pytest

import evenrank as er
from evenrank.paper import summary
from evenrank.paper.front import best_front
from evenrank.paper.reproduce import EXPERIMENTS, FASTAR_KS, reproduce


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("trec")


@pytest.fixture(scope="module")
def groupings(shared_data):
    return er.datasets.trec_fair_2019_groupings(shared_data("trec_fair_2019"))


@pytest.fixture(scope="module")
def made(groupings, folder):
    seen: list[float] = []
    out = reproduce(EXPERIMENTS["trec"], groupings, out=folder, quick=True, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1
    return out


def test_every_table_of_the_paper_is_made(made):
    numbered = {name.partition("-")[0] for name in made.tables}
    assert {f"table{number}" for number in range(1, 10)} <= numbered
    assert made.tables["table4-max-fastar"].columns == (*(f"k={k}" for k in FASTAR_KS), "average")
    assert made.tables["table2-max-amortized"].columns == ("k=1", "k=2", "k=3", "k=4", "k=5", "average")
    assert {name for name in made.tables if name.endswith("-precision")} == {
        f"{name}-precision" for name in made.tables if not name.endswith("-precision")
    }


def test_table_1_has_our_numbers_and_the_papers(made):
    table = made.tables["table1"]
    ours = summary.reductions(made.result, "max", "amortized", [1, 2, 3, 4, 5])
    assert np.array(table.numbers)[:9, 0] == pytest.approx(ours.mean(axis=1))
    assert table.rows[0].labels == ("equal opportunity", "t=3")
    assert table.rows[0].cells[0].endswith("(48%)")
    assert table.rows[9].cells[0].endswith("(39%)")
    assert "(" not in made.tables["table1-precision"].text().split("\n", 1)[1]
    assert made.brief().rows[9].cells[0].endswith("(39%/27%)")


def test_ours_come_out_near_an_independent_run(made):
    """47 % and 26 % were found for the nine settings; six strengths of 26 and other folds leave some points."""
    average = made.tables["table1"].numbers[9]
    assert average[0] == pytest.approx(0.47, abs=0.1)
    assert average[1] == pytest.approx(0.26, abs=0.1)


def test_the_best_front_is_measured_against_the_group_blind_model(made):
    base = made.result.curve("dp", 3, method="amortized", grouping="t=4")
    found = best_front(made.result, made.front, "dp", "t=4", 3)
    assert found.violation[0] == base.violation[0]
    assert found.quality[0] == base.quality[0]
    fairest = np.inf
    for sweep in (made.result, made.front):
        for method in sweep.methods:
            curve = sweep.curve("dp", 3, method=method, grouping="t=4")
            for i in range(len(curve.strengths)):
                allowed = curve.quality_error[i] + base.quality_error[0]
                if base.quality[0] - curve.quality[i] <= allowed:
                    fairest = min(fairest, curve.violation[i])
    assert found.violation[found.best] <= fairest + 1e-12
    best = np.array(made.tables["table1"].numbers)[:, -2]
    ours = np.array(made.tables["table1"].numbers)[:, 0]
    assert (best >= ours - 1e-12).all()


def test_tables_are_written_in_four_formats(made, tmp_path):
    *files, captions = made.write_tables(tmp_path)
    assert len(files) == 4 * len(made.tables)
    assert {file.suffix for file in files} == {".txt", ".md", ".tex", ".csv"}
    told = json.loads(captions.read_text(encoding="utf-8"))
    assert list(told) == list(made.tables)
    for file in files:
        text = file.read_text(encoding="utf-8")
        table = made.tables[file.stem]
        assert told[file.stem].startswith(table.title)
        assert table.note in told[file.stem]
        # A CSV file begins with its header, so that any reader takes it; the others hold their captions.
        assert text.startswith("notion,grouping,") if file.suffix == ".csv" else table.title.split("@")[0] in text


def test_the_same_call_goes_on_from_its_folders(made, groupings, folder):
    journal = folder / "sweep" / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[: len(whole) // 2])  # a run that was stopped
    (folder / "sweep" / "trials.parquet").unlink()
    again = reproduce(EXPERIMENTS["trec"], groupings, out=folder, quick=True)
    assert again.tables["table1"].text() == made.tables["table1"].text()
    assert again.tables["table1"].numbers == made.tables["table1"].numbers
