"""The schemas of --json: made from the program as it is, and kept by runs that they were not made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema")
import example_trec  # noqa: E402
import json_schemas  # noqa: E402

# Other options, groups, cut-offs and data than those that the schemas were made from.
OTHER = {
    "audit": [
        "audit log.csv --group race --k 2,4 --json",
        "audit log.parquet --group age --k 7 --confidence 0.9 --min-count 5 --no-examples --json",
        "audit scored.csv --json",
    ],
    "audit --standard": [
        "audit served.csv --standard ll144 --sex sex --race race --k 3 --reduce rows --json",
        "audit log.parquet --standard ll144 --sex age --race race --rate scoring --json",
    ],
    "train": ["train rows.parquet --notion eod --alpha 1 --scope per_query -o a.json --json"],
    "rank": ["rank rows.parquet -m a.json -o b.csv --json"],
    "sweep": ["sweep rows.parquet --methods amortized --notions eop --k 3 --folds 3 -o run3 --json"],
    "select": ["select run3 --notion eop --k 3 --rule knee --json"],
    "report": ["report run3 --subtitle Credit --json"],
    "demo": ["demo --group sex --k 3 --json"],
    "bench": ["bench rows.parquet --methods centered,det_greedy --notions eop --k 2 --folds 4 --seeds 3,4 -j 1 --json"],
    "reproduce": ["reproduce trec --data papers --quick --figures none --seed 5 -j 1 -o again --json"],
    "export": ["export a.json --to vespa --rename plain -o v --check rows.parquet --json"],
    "monitor": ["monitor served.csv --time when --group race --k 2 --window month --json"],
    "bound": ["bound -N 5000 -m 20 --n-features 30 --min-share 0.1 --json"],
}


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    files = {name: json_schemas.FOLDER / f"{json_schemas.file_name(name)}.json" for name in json_schemas.COMMANDS}
    assert set(files.values()) == set(json_schemas.FOLDER.glob("*.json"))
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in files.items()}


def test_the_schemas_are_those_of_the_program(kept: dict[str, Any]) -> None:
    assert kept == json.loads(json.dumps(json_schemas.schemas())), "run python tools/json_schemas.py"


def keys_without_words(schema: dict[str, Any], path: str = "") -> list[str]:
    found = []
    for name, inner in schema.get("properties", {}).items():
        found += [] if "description" in inner else [f"{path}.{name}"]
        found += keys_without_words(inner, f"{path}.{name}")
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        found += keys_without_words(inner, path) if isinstance(inner, dict) else []
    return found


def test_every_key_has_words(kept: dict[str, Any]) -> None:
    without = {name: keys_without_words(schema) for name, schema in kept.items()}
    assert not any(without.values()), {name: keys for name, keys in without.items() if keys}


def test_other_runs_keep_to_them(kept: dict[str, Any], folder: Path) -> None:
    Path("papers").mkdir()
    example_trec.write(Path("papers"), queries=30, papers=9, seed=3)
    assert set(OTHER) | {"methods", "measures"} == set(json_schemas.COMMANDS)
    for name, commands in OTHER.items():
        jsonschema.Draft202012Validator.check_schema(kept[name])
        for command in commands:
            problems = list(jsonschema.Draft202012Validator(kept[name]).iter_errors(json_schemas.printed(command)))
            assert not problems, f"evenrank {command}: {[(list(one.path), one.message[:200]) for one in problems[:3]]}"


def test_a_wrong_output_is_noticed(kept: dict[str, Any], folder: Path) -> None:
    given = json_schemas.printed("audit log.csv --group age --k 5 --json")
    check = jsonschema.Draft202012Validator(kept["audit"])
    assert check.is_valid(given)
    assert not check.is_valid({key: value for key, value in given.items() if key != "verdict"})
    assert not check.is_valid(given | {"conclusions": "none"})
    given["pairs"][0]["count_a"] = "many"
    assert not check.is_valid(given)
