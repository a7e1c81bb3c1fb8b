"""What is noted about a sweep, in memory, in a run folder and in JSON."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

import evenrank as er
from evenrank.experiment.about import Blocks, Lists, Made
from evenrank.experiment.run_folder import RunFolder
from evenrank.experiment.run_schema import ABOUT
from evenrank.page.provenance import how_made
from evenrank.page.report import report_page

# The names a run's JSON has had since folders exist; scripts read them.
NAMES = [
    *("rows", "queries", "features", "groups", "folds", "repeats", "spread", "seed", "solver", "scale", "settings"),
    *("notions", "tested", "tested_each", "lists", "relevant_share", "shares"),
    *("models", "seconds", "blocks", "fingerprint", "versions", "made"),
]
LATER = ["models", "seconds", "blocks", "fingerprint", "versions", "made"]


@pytest.fixture(scope="module")
def data():
    return er.datasets.german_credit("age", lists=12, items=8)


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("about") / "run"
    er.sweep(data, notions=["dp"], strengths=[0.1], ks=[3], folds=3, seed=4, scale=None, out=folder, examples=2)
    return folder


def test_it_is_typed_and_frozen(data, run):
    about = er.Sweep.load(run).about
    assert isinstance(about, er.About)
    assert [field.name for field in fields(er.About)] == NAMES
    assert (about.rows, about.queries, about.folds, about.seed, about.models) == (96, 12, 3, 4, 6)
    assert about.notions == ("demographic_parity",)
    assert about.lists == Lists(median=8.0, longest=8)
    assert about.blocks == Blocks(done=3, asked=3)
    assert about.scale is None
    with pytest.raises(FrozenInstanceError):
        about.rows = 1


def test_json_has_the_names_it_always_had(run):
    content = er.Sweep.load(run).to_dict()["about"]
    assert list(content) == NAMES
    assert content["scale"] is None
    assert content["notions"] == ["demographic_parity"]
    assert content["lists"] == {"median": 8.0, "longest": 8}
    assert content["blocks"] == {"done": 3, "asked": 3}
    assert set(content["made"]) == {"command", "began"}
    assert json.loads(json.dumps(content)) == content


def test_a_run_folder_notes_what_was_known_when_it_began(run):
    noted = json.loads((run / "config.json").read_text())["about"]
    assert list(noted) == [name for name in NAMES if name not in LATER]
    ABOUT(noted, "about")


def test_there_and_back(run):
    about = er.Sweep.load(run).about
    assert er.About.from_dict(about.to_dict()) == about
    assert er.About.from_dict(json.loads(json.dumps(about.to_dict()))) == about


def test_what_an_older_folder_lacks_has_a_default():
    about = er.About.from_dict({"rows": 9, "queries": 3, "features": 2, "groups": {"a": 1.0}, "later": 1})
    assert about == er.About(rows=9, queries=3, features=2, groups={"a": 1.0})
    assert (about.folds, about.repeats, about.spread, about.seed) == (None, "folds", "standard error", 0)
    assert (about.solver, about.scale, about.notions, about.blocks) == ("exact", "train", (), Blocks(1, 1))
    assert about.lists is about.tested is about.made is None
    assert "lists" not in about.to_dict()
    made = er.About.from_dict({"made": {"command": "x", "host": "y"}}).made
    assert made == Made(command="x", began="")


def test_an_older_folder_says_in_what_was_asked_what_it_did_not_note(run):
    config = json.loads((run / "config.json").read_text())
    assert config["asked"]["scale"] is None
    config["about"] = {name: config["about"][name] for name in ("rows", "queries", "features", "groups")}
    result = er.Sweep.of(config, [{**record, "tops": []} for record in RunFolder(run).blocks()], [])
    assert result.about.blocks == Blocks(3, 3)
    assert (result.about.folds, result.about.seed, result.about.scale) == (3, 4, None)
    assert result.about.notions == ("demographic_parity",)
    assert ("Training", "solver exact, features as they are") in how_made(result)
    assert "No bound can be stated" in report_page(result)


def test_groups_of_one_grouping_or_several(data):
    one = er.About(groups={"a": 0.25, "b": 0.75})
    assert one.shares_of("group") == {"a": 0.25, "b": 0.75}
    several = replace(one, groups={"age": {"a": 1.0}, "sex": {"f": 0.5, "m": 0.5}})
    assert several.shares_of("sex") == {"f": 0.5, "m": 0.5}
    assert several.shares_of("other") == {}


def test_columns_are_arrays(run):
    result = er.Sweep.load(run)
    kinds = {name: values.dtype.kind for name, values in result.columns.items()}
    assert {name: kinds.pop(name) for name in ("grouping", "method", "notion")} == dict.fromkeys(
        ("grouping", "method", "notion"), "O"
    )
    assert {name: kinds.pop(name) for name in ("fold", "seed")} == {"fold": "i", "seed": "i"}
    assert set(kinds.values()) == {"f"}
    assert all(values.shape == (6,) for values in result.columns.values())


def test_lists_become_the_same_table(run):
    result = er.Sweep.load(run)
    lists = {name: values.tolist() for name, values in result.columns.items()}
    again = er.Sweep(lists, result.ks, result.about)
    assert again.frame().equals(result.frame(), null_equal=True)
    assert again.frame().schema == result.frame().schema
    assert again.to_dict() == result.to_dict()
    assert all(type(name) is str for name in (*result.methods, *result.groupings, *result.notions))
    first = next(iter(result))
    assert (type(first.method), type(first.fold), type(first.strength)) == (str, int, float)
    assert np.array_equal(again.by_repeat("ndcg@3", "dp", method="amortized", grouping="group")[0], [0, 0.1])
