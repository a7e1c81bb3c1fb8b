"""Values of --set as they are written on a command line."""

from __future__ import annotations

from typing import Any

import pytest

from evenrank.cli import options


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *((".5", 0.5), ("-.5", -0.5), ("5.", 5.0), ("+1", 1), ("1e-3", 0.001), ("+1.5E2", 150.0), (".5e1", 5.0)),
        *(("3", 3), ("-2", -2), ("true", True), ("null", None), ("[1, 2]", [1, 2])),
        *(("gbdt", "gbdt"), (".", "."), ("1_000", "1_000"), ("1.2.3", "1.2.3"), ("e5", "e5"), ("", ""), ("0x1", "0x1")),
    ],
)
def test_usual_spellings_of_numbers_are_numbers_and_the_rest_is_text(written: str, value: Any) -> None:
    found = options.settings([f"x={written}"])["x"]
    assert found == value
    assert type(found) is type(value)


@pytest.fixture
def path(save: Any, logged: Any) -> Any:
    return save(logged.drop("score"), "rows.csv")


@pytest.mark.parametrize("command", ["train", "sweep", "bench"])
@pytest.mark.parametrize("option", ["--categorical", "--features"])
def test_a_column_is_not_ignored_and_used(run: Any, path: Any, command: str, option: str) -> None:
    refused = run(command, path, option, "x0", "--ignore", "x0")
    assert (refused.code, len(refused.lines)) == (2, 1)
    assert f"--ignore x0 contradicts {option} x0; leave one of them out." in refused.err


def test_a_column_that_is_no_feature_anyway_is_said_to_be_one(run: Any, path: Any) -> None:
    done = run("train", path, "--ignore", "group")
    assert done.code == 0
    assert (
        "--ignore group changes nothing: the column has the group and is no feature; name another with --group"
        in done.err
    )
    assert run("train", path, "--ignore", "item").err == ""  # item ids may be left out


def test_a_grouping_may_be_a_feature_of_categories(run: Any, path: Any) -> None:
    given = ("--notions", "dp", "--strengths", "0.1", "--k", "3", "--folds", "3", "--impute", "mean")
    assert run("sweep", path, "--categorical", "group", *given).code == 0
