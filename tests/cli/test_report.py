"""`evenrank report`: the page of a run folder."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

from pages import Page, small_sweep


@pytest.fixture
def folder(tmp_path):
    small_sweep(out=tmp_path / "RUN", notions=["dp"])
    return tmp_path / "RUN"


def test_the_page_is_put_into_the_folder(run, folder):
    done = run("report", str(folder))
    assert (done.code, done.err) == (0, "")
    assert done.out == f"The report: {folder / 'report.html'}\n"
    page = Page((folder / "report.html").read_text(encoding="utf-8"))
    assert page.texts("title") == ["How evenly can these items be ranked?"]
    assert page.json("data")["notions"][0]["name"] == "demographic parity"
    # The folder is still a run, and a run that goes on is not disturbed by its page.
    assert run("report", str(folder)).code == 0


def test_a_title_a_place_and_json(run, folder):
    done = run("report", str(folder), "-o", "page.html", "--title", "Mine", "--subtitle", "Of ours", "--json")
    assert done.json()["report"] == "page.html"
    assert done.json()["about"]["queries"] == 25
    page = Page(Path("page.html").read_text(encoding="utf-8"))
    assert page.texts("h1") == ["Mine"]
    assert "Of ours" in page.texts("p")
    assert not (folder / "report.html").exists()


def test_it_is_opened_if_asked(run, folder, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert run("report", str(folder)).code == 0
    assert opened == []
    assert run("report", str(folder), "--open").code == 0
    assert opened == [(folder / "report.html").resolve().as_uri()]


def test_a_run_that_is_not_finished_is_shown_with_a_warning(run, folder):
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:3]))
    done = run("report", str(folder))
    assert done.code == 0
    assert "not finished, 3 of 5 blocks" in done.err
    page = Page((folder / "report.html").read_text(encoding="utf-8"))
    assert any("3 of 5 parts are done" in text for text in page.texts("p"))


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_what_is_no_run_is_refused_in_a_line(run, tmp_path, name):
    (tmp_path / "empty").mkdir()
    done = run("report", str(tmp_path / name))
    assert done.code == 2
    assert len(done.lines) == 1
    assert name in done.lines[0]


def test_an_output_that_cannot_be_written_is_refused(run, folder):
    done = run("report", str(folder), "-o", "no/such/folder/page.html")
    assert done.code == 2
    assert len(done.lines) == 1


def test_the_command_is_noted(folder):
    made = json.loads((folder / "config.json").read_text())["made"]
    assert made["command"]
