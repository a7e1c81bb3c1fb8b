"""No output of any command may be one of its inputs, under whatever name."""

from __future__ import annotations

import inspect
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import evenrank as er
from evenrank.cli.app import app
from evenrank.cli.guard import Input, Output, guarded, roles
from evenrank.errors import ConfigError, DataError
from evenrank.experiment.run_folder import FILES as RUN_FILES

COMMANDS: dict[str, Callable[..., Any]] = {
    command.callback.__name__: inspect.unwrap(command.callback)
    for command in app.registered_commands
    if command.callback is not None
}
# What each command reads and writes; a new command or option must be entered here, and is guarded anyhow.
READ = {
    "demo": set(),
    "audit": {"file", "compare", "qrels", "groups"},
    "monitor": {"file", "reference_state"},
    "train": {"file"},
    "rank": {"file", "model"},
    "export": {"model", "rows"},
    "sweep": {"file", "test"},
    "select": {"run"},
    "report": {"run"},
    "bench": {"data"},
    "methods": set(),
    "measures": set(),
    "bound": {"file"},
    "reproduce": {"data"},
}
WRITTEN = {
    **{name: {"out"} for name in ("demo", "audit", "train", "rank", "export", "sweep", "report", "bench")},
    "monitor": {"out", "state"},
    "reproduce": {"out", "cache"},
}
PAIRS = [
    (command, source, target)
    for command in READ
    for source in sorted(READ[command])
    for target in sorted(WRITTEN.get(command, set()) - {"cache"})
]


def test_every_command_is_guarded_and_every_path_of_it_known():
    assert set(COMMANDS) == set(READ)
    for name, command in COMMANDS.items():
        parts = roles(command)
        assert {part for part, role in parts.items() if isinstance(role, Input)} == READ[name], name
        assert {part for part, role in parts.items() if isinstance(role, Output)} == WRITTEN.get(name, set()), name
        paths = {part for part, hint in get_type_hints(command, include_extras=True).items() if "Path" in str(hint)}
        assert paths == set(parts), name
    for registered in app.registered_commands:
        assert inspect.unwrap(registered.callback) is not registered.callback


def arguments(command: str, source: str, path: Path, out: Path, target: str = "out") -> dict[str, Any]:
    """Every option at its default but for the two paths."""
    given: dict[str, Any] = {}
    for name, parameter in inspect.signature(COMMANDS[command]).parameters.items():
        given[name] = None if parameter.default is inspect.Parameter.empty else parameter.default
    hint = str(get_type_hints(COMMANDS[command])[source])
    given[source] = [path] if "list" in hint else path
    given[target] = out
    return given


def names_of_one_file(folder: Path, name: str) -> dict[str, Path]:
    """Another spelling, a symbolic link, a hard link, and the file in a linked folder; none exists but as that file."""
    (folder / "link" / "deep").mkdir(parents=True)
    suffix = Path(name).suffix
    made = {
        "name": folder / name,
        "spelling": folder / "link" / ".." / "link" / "deep" / ".." / ".." / name,
        "symbolic": folder / f"symbolic{suffix}",
        "hard": folder / f"hard{suffix}",
        "folder": folder / "linked" / name,
    }
    made["symbolic"].symlink_to(folder / name)
    os.link(folder / name, made["hard"])
    (folder / "linked").symlink_to(folder)
    return made


@pytest.mark.parametrize(("command", "source", "target"), PAIRS)
@pytest.mark.parametrize("kind", ["name", "spelling", "symbolic", "hard", "folder"])
def test_no_output_is_an_input(tmp_path, monkeypatch, command, source, target, kind):
    role = roles(COMMANDS[command])[target]
    assert isinstance(role, Output)
    ran = []

    def body(**options: Any) -> None:
        ran.append(options)

    body.__annotations__ = get_type_hints(COMMANDS[command], include_extras=True)
    mine = tmp_path / "mine"
    mine.mkdir()
    folders = source in ("run", "data")
    if folders:
        file = mine / ("config.json" if source == "run" else "tables" if role.files else "rows.json")
        (mine / "corpus").mkdir()
    else:
        file = mine / f"rows{(role.suffixes or ('.csv',))[0]}"
    if role.files is None:
        file.write_text("mine")
        path = names_of_one_file(mine, file.name)[kind]
        refused = arguments(command, source, mine if folders else file, path, target)
    else:
        # The output is a folder, and a file that would be written in it is the input.
        out = tmp_path / "out"
        within = out / role.files[0] if role.files[0] != "sweep" else out / "sweep" / "config.json"
        within.parent.mkdir(parents=True, exist_ok=True)
        source_file = mine / "corpus" / "rows.csv" if folders else file
        source_file.parent.mkdir(exist_ok=True)
        source_file.write_text("mine")
        if kind in ("name", "spelling", "folder"):
            source_file.unlink()
            within.write_text("mine")
            (tmp_path / "other").symlink_to(out)
            shown = {"name": within, "spelling": out / "." / ".." / "out" / within.relative_to(out)}
            source_file = shown.get(kind, tmp_path / "other" / within.relative_to(out))
        elif kind == "symbolic":
            within.symlink_to(source_file)
        else:
            os.link(source_file, within)
        refused = arguments(command, source, source_file.parent if folders else source_file, out)
    if role.suffixes and refused[target].suffix not in role.suffixes:
        pytest.skip("the suffix is refused first")
    with pytest.raises(ConfigError, match=r"--[a-z]+ must not be the input") as caught:
        guarded(body)(**refused)
    assert "\n" not in str(caught.value)
    assert not ran


@pytest.mark.parametrize("pattern", ["r*.csv", "**/*.csv", "[r]ows.csv", "../mine/row?.csv"])
def test_no_output_is_an_input_that_a_pattern_stands_for(tmp_path, pattern):
    def body(**_: Any) -> None:
        raise AssertionError

    body.__annotations__ = get_type_hints(COMMANDS["rank"], include_extras=True)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "rows.csv").write_text("mine")
    (mine / "other.csv").write_text("mine")
    (tmp_path / "link.csv").symlink_to(mine / "rows.csv")
    for out in (mine / "rows.csv", tmp_path / "link.csv"):
        with pytest.raises(ConfigError, match=r"--out must not be the input; got .*rows\.csv"):
            guarded(body)(**arguments("rank", "file", mine / pattern, out))


def test_other_outputs_are_let_through(tmp_path):
    def body(**options: Any) -> None:
        assert not os.listdir(tmp_path / "empty")

    body.__annotations__ = get_type_hints(COMMANDS["audit"], include_extras=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "rows.csv").write_text("mine")
    (tmp_path / "old.md").write_text("old")
    for out in ("new.md", "old.md", os.devnull):
        guarded(body)(**arguments("audit", "file", tmp_path / "rows.csv", tmp_path / out))
    with pytest.raises(DataError, match="is empty"):  # nothing is read from it, and nothing is lost by writing to it
        guarded(body)(**arguments("audit", "file", Path(os.devnull), Path(os.devnull)))


@pytest.fixture(scope="module")
def made_run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "run"
    data = er.datasets.german_credit("age", lists=20, items=6)
    er.sweep(data, notions=["dp"], strengths=[0, 1], ks=[3], folds=2, out=folder)
    return folder


@pytest.mark.parametrize("name", RUN_FILES)
def test_the_report_never_replaces_what_it_is_made_of(run, tmp_path, made_run, name):
    shutil.copytree(made_run, tmp_path / "run")
    before = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()}
    (tmp_path / "run" / "link.html").symlink_to(name)
    (tmp_path / "run" / "report.html").symlink_to(name)
    for more in (["-o", f"run/{name}"], ["-o", f"./run/../run/{name}"], ["-o", "run/link.html"], []):
        found = run("report", "run", *more)
        assert found.code == 2, more
        assert found.err.startswith("evenrank: --out must not be the input; got ")
    assert {name: (tmp_path / "run" / name).read_bytes() for name in before} == before


def test_a_report_in_its_run_folder_is_replaced(run, tmp_path, made_run):
    shutil.copytree(made_run, tmp_path / "run")
    for more in ([], [], ["-o", "run/page.html"], ["-o", "run/page.html"]):
        assert run("report", "run", *more).code == 0
    (tmp_path / "run" / "examples.json").unlink()
    for name in ("run/examples.json", "run/../run/examples.json"):
        assert run("report", "run", "-o", name).code == 2  # it would be read next time


@pytest.mark.parametrize("option", ["--qrels", "--groups"])
def test_what_a_trec_run_comes_with_is_not_replaced(run, tmp_path, option):
    files = {
        "a.run": "1 Q0 d1 1 2 t\n1 Q0 d2 2 1 t\n",
        "qrels.md": "1 0 d1 1\n1 0 d2 0\n",
        "groups.md": "item,group\nd1,a\nd2,b\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    name = f"{option[2:]}.md"
    found = run("audit", "a.run", "--qrels", "qrels.md", "--groups", "groups.md", "-o", name)
    assert (found.code, found.out) == (2, "")
    assert f"--out must not be the input; got '{name}' for both" in found.err
    assert {name: (tmp_path / name).read_text() for name in files} == files


def test_stdout_that_is_the_input(tmp_path, monkeypatch):
    def body(**_: Any) -> None:
        raise AssertionError

    body.__annotations__ = get_type_hints(COMMANDS["rank"], include_extras=True)
    (tmp_path / "rows.csv").write_text("mine")
    given = arguments("rank", "file", tmp_path / "rows.csv", tmp_path / "out.csv") | {"out": None}
    with (tmp_path / "rows.csv").open("a") as file:
        monkeypatch.setattr("evenrank.cli.guard.STDOUT", file.fileno())
        with pytest.raises(ConfigError, match="stdout must not be the input"):
            guarded(body)(**given)
