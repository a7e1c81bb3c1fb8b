"""The installed package as a user without extras has it: nothing is missing from it, and every command works.

`make test-wheel` builds wheel and sdist, installs each in a clean environment and runs these tests there, with nothing
of the source tree on the path. Elsewhere they are skipped.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import sysconfig
from importlib import metadata, util
from pathlib import Path

import pytest

import evenrank as er
from evenrank.cli.app import app
from evenrank.extras import EXTRA_OF

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src" / "evenrank"
PACKAGE = Path(er.__file__).parent
pytestmark = [
    pytest.mark.wheel,
    pytest.mark.skipif(PACKAGE == SOURCE, reason="for an installed package; run by make test-wheel"),
]
ADAPTERS = ("lightgbm", "torch", "xgboost")
# Every command with arguments that it can run on without an extra; the first ones make what the later ones read.
COMMANDS = {
    "demo": ["--out", "demo.html"],
    "sweep": ["rows.csv", "--strengths", "0.1,1", "--folds", "2", "--k", "1,3", "-o", "run"],
    "report": ["run"],
    "select": ["run", "--notion", "eop"],
    "train": ["rows.csv", "-o", "model.json"],
    "rank": ["rows.csv", "-m", "model.json", "-o", "ranked.csv"],
    "export": ["model.json", "--to", "opensearch", "-o", "export", "--check", "rows.csv"],
    "audit": ["ranked.csv", "-o", "audit.html"],
    "monitor": ["ranked.csv", "-o", "monitor.html"],
    "bench": [
        "rows.csv",
        "--methods",
        "amortized,offset",
        "--folds",
        "3",
        "--seeds",
        "1",
        "--k",
        "3",
        "-j",
        "1",
        "-o",
        "bench",
    ],
    "bound": ["-N", "652", "-m", "7", "--min-share", "0.2"],
    "methods": [],
    "measures": [],
}
WITH_DATA = {"reproduce"}  # needs data that may not be bundled


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sysconfig.get_path("scripts")) / "evenrank"
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of rows."""
    made = tmp_path_factory.mktemp("user")
    data = er.datasets.german_credit("age", lists=30)
    with (made / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["qid", "item", "relevance", "group", *(f"x{i}" for i in range(5))])
        for row in range(data.n_rows):
            query = data.query_ids[data.query_of_row[row]]
            group = data.group_names[data.group[row]]
            writer.writerow([query, row, data.relevance[row], group, *data.features[row, :5]])
    return made


# ---------------------------------------------------------------------- what is in it


def test_it_is_the_installed_package():
    assert PACKAGE.is_relative_to(sysconfig.get_path("purelib"))
    assert not [path for path in sys.path if Path(path) == SOURCE.parent]


def test_no_extra_is_installed():
    assert not [module for module in EXTRA_OF if util.find_spec(module)]


def test_every_file_of_the_source_is_in_it():
    wanted = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*") if path.is_file()}
    wanted = {name for name in wanted if "__pycache__" not in name}
    installed = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*") if path.is_file()}
    assert {"py.typed", "page/templates/report.html", "page/report.js", "paper/tables.csv"} <= wanted
    assert wanted <= installed


def test_licences_come_with_it():
    named = {Path(str(file)).name for file in metadata.files("evenrank") or [] if "licenses" in Path(str(file)).parts}
    assert named >= {"LICENSE", "THIRD_PARTY_NOTICES.txt"}


def test_it_says_what_it_is():
    about = metadata.metadata("evenrank")
    assert about["Version"] == er.__version__
    assert about.get_all("Project-URL")
    required = [line for line in metadata.requires("evenrank") or [] if "extra ==" not in line]
    assert any(line.lower().startswith("jinja2") for line in required)


# ---------------------------------------------------------------------- Python


def test_every_public_name_is_there():
    for name in er.__all__:
        if name in ADAPTERS:
            with pytest.raises(er.MissingExtraError, match=rf"pip install 'evenrank\[{name}\]'"):
                getattr(er, name)
        else:
            assert getattr(er, name) is not None


def test_import_is_silent():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import evenrank"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# ---------------------------------------------------------------------- the command line


def test_the_commands_tried_are_all_there_are():
    registered = {command.callback.__name__ for command in app.registered_commands}
    assert set(COMMANDS) | WITH_DATA == registered, "a command that is new needs a line in COMMANDS"


def test_every_command_works(folder):
    for name, arguments in COMMANDS.items():
        done = run(folder, name, *arguments)
        assert (done.returncode, done.stderr) == (0, ""), f"evenrank {name}: {done.stderr}"
    for page in (folder / "demo.html", folder / "run" / "report.html"):
        text = page.read_text(encoding="utf-8")
        assert "University of Washington Interactive Data Lab" in text
        assert "Redistributions in binary form" in text
    assert "<h1>" in (folder / "audit.html").read_text(encoding="utf-8")
    assert json.loads((folder / "model.json").read_text())


@pytest.mark.parametrize("name", [*COMMANDS, *WITH_DATA])
def test_every_command_has_help(folder, name):
    done = run(folder, name, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: evenrank {name}")


@pytest.mark.parametrize("model", ["lightgbm", "xgboost", "mlp"])
def test_what_needs_an_extra_says_so_in_one_line(folder, model):
    done = run(folder, "train", "rows.csv", "--model", model, "-o", f"{model}.json")
    assert done.returncode == 2
    assert re.fullmatch(r"evenrank: .*pip install 'evenrank\[\w+\]'\n", done.stderr)
    assert not (folder / f"{model}.json").exists()


def test_reproduce_asks_for_its_data(folder):
    done = run(folder, "reproduce", "trec", "--data", "nowhere")
    assert done.returncode == 2
    assert re.fullmatch(r"evenrank: .*nowhere.*\n", done.stderr)
