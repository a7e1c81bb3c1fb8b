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
