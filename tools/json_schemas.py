"""Make the schemas of what --json prints, from what it prints: python tools/json_schemas.py

Each command runs on small bundled data in several ways. A key that every run has is required; what a value can be is
what was seen, a whole number counting as a number. Words for keys are in json_words.py. docs/reference/schemas/ holds
the result; the tests hold other runs against it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import example_rows
import example_trec
from evenrank.notions import NOTIONS
from json_words import KEYS, KEYS_OF

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
# A map from names of the data (groups, measures, files) has one schema for all its values.
MAPS = {
    "groups",
    "selection_rates",
    "measures",
    "counts",
    "sees",
    "strengths",
    "offsets",
    "shares",
    "options",
    "metrics",
    "versions",
}
# So has one of these, in one command's output only.
MAPS_OF = {
    "bench": {"data", "left_out", "rules", "settings"},
    "reproduce": {"method_seconds", "seconds", "tables"},
}
COMMANDS: dict[str, tuple[str, list[str]]] = {
    "audit": (
        "How evenly logged rankings treat groups.",
        [
            "audit log.csv --group age --k 1,5 --json",
            "audit log.csv --group age --k 3 --no-relevance --json",
            "audit log.csv --group sex --k 1,5,10 --cluster user --json",
            "audit log.csv --group age --k 5 --compare other.csv --json",
            "audit few.csv --group age --k 5 --json",
            "audit many.csv --group age --k 5 --json",
        ],
    ),
    "audit --standard": (
        "The tables of a regulation: the bias audit of Local Law 144.",
        [
            "audit log.csv --standard ll144 --sex sex --race race --k 5 --json",
            "audit log.csv --standard ll144 --sex sex --race race --rate scoring --reduce mean --json",
            "audit few.csv --standard ll144 --sex sex --race race --k 2 --json",
        ],
    ),
    "train": (
        "One ranker, and its numbers on the training rows.",
        [
            "train rows.csv --notion dp --alpha 0.1 -o m1.json --json",
            "train rows.csv --notion eop --max-violation 0.05 -o m2.json --json",
            "train rows.csv --method offset --notion dp -o m3.json --json",
        ],
    ),
    "rank": (
        "Rows in their new order.",
        ["rank rows.csv -m m1.json -o r1.csv --json", "rank rows.csv -m m3.json -o r2.csv --json"],
    ),
    "sweep": (
        "Every method, notion and strength over folds.",
        ["sweep rows.csv --methods amortized,fastar --notions dp --k 5 --folds 2 -o run --json"],
    ),
    "select": (
        "A strength by a rule.",
        ["select run --notion dp --k 5 --json", "select run --notion dp --k 5 --rule within --tolerance 0.05 --json"],
    ),
    "report": (
        "The page of a run folder.",
        ["report run --json", "report run -o page.html --title Credit --json"],
    ),
    "demo": ("The sweep of the demo, and its page.", ["demo --k 5 --json"]),
    "bench": (
        "Every method on every data set, with strengths chosen on other queries than reported.",
        [
            "bench rows.csv --methods amortized,fastar,offset --notions dp --k 5 --folds 3 --seeds 2 -j 1 --json",
            "bench rows.csv --methods amortized --notions eop,eod --k 3 --folds 3 --seeds 1 -j 1 -o bench2 --json",
        ],
    ),
    "reproduce": (
        "The paper's tables, with its numbers left out.",
        ["reproduce trec --data trec --quick --figures none -j 1 --json"],
    ),
    "export": (
        "A ranker for an engine.",
        ["export m1.json --to opensearch -o out --json", "export m1.json --to solr -o out2 --check rows.csv --json"],
    ),
    "monitor": (
        "Whether gaps have changed over time.",
        [
            "monitor log.csv --time when --group age --k 5 --json",
            "monitor log.csv --time when --group sex --k 3 --no-relevance --json",
            "monitor log.csv --time when --group age --k 5 --measures awrf@5,dtr,pairwise_gap,group_iaa --json",
        ],
    ),
    "bound": (
        "What can be promised for new queries.",
        [
            "bound log.csv --group age --k 5 --min-share 0.05 --json",
            "bound -N 652 -m 7 --n-features 9 --min-share 0.2 --json",
        ],
    ),
    "methods": ("Every method.", ["methods --json"]),
    "measures": ("Every measure.", ["measures --json"]),
}


def files(folder: Path, lists: int = 40) -> None:
    """The files that the commands read."""
    log, rows = example_rows.log(lists), example_rows.rows(lists)
    number = log["qid"].rank("dense").cast(int) - 1
    log = log.with_columns(
        when=(number // 4).map_elements(
            lambda week: f"2026-{1 + week // 4:02d}-{1 + 7 * (week % 4):02d}", return_dtype=str
        ),
        user=(number // 2).cast(str),
        race=log["item"]
        .str.extract(r"(\d+)$")
        .cast(int)
        .map_elements(lambda person: "ABC"[person % 3], return_dtype=str),
    )
    log.write_csv(folder / "log.csv")
    log.with_columns(score=-log["score"]).write_csv(folder / "other.csv")
    log.head(75).write_csv(folder / "few.csv")
    example_rows.log(300).write_csv(folder / "many.csv")
    (folder / "trec").mkdir()
    example_trec.write(folder / "trec")
    rows.select(rows.columns[:10]).with_columns(score=log["score"]).write_csv(folder / "rows.csv")


def printed(command: str) -> Any:
    """What a command prints, in this process."""
    from evenrank.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        main(command.split())
    try:
        return json.loads(out.getvalue())
    except json.JSONDecodeError:
        sys.exit(f"evenrank {command}: {err.getvalue() or out.getvalue()}")


def schema_of(values: Iterable[Any], key: str = "", *, command: str = "") -> dict[str, Any]:
    """What all these values of one key in a command's output have in common."""
    values = list(values)
    kinds = sorted({_kind(value) for value in values})
    if "integer" in kinds and "number" in kinds:
        kinds.remove("integer")
    if "number" in kinds:  # what is not defined, or infinite, is null
        kinds = sorted({*kinds, "null"})
    made: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds}
    if kinds in ([], ["null"]):  # no run has shown what else it can be
        made = {}
    words = KEYS_OF.get(command, {}).get(key, KEYS.get(key))
    if words:
        made["description"] = words
    objects = [value for value in values if isinstance(value, dict)]
    if objects:
        names = list(dict.fromkeys(name for value in objects for name in value))
        maps = MAPS | MAPS_OF.get(command, set())
        if key in maps or any(" " in name or "@" in name or name.isdigit() or name in NOTIONS for name in names):
            inner = [value for one in objects for value in one.values()]
            made["additionalProperties"] = schema_of(inner, command=command) if inner else {}
        else:
            made["properties"] = {
                name: schema_of((value[name] for value in objects if name in value), name, command=command)
                for name in names
            }
            made["required"] = [name for name in names if all(name in value for value in objects)]
    items = [item for value in values if isinstance(value, list) for item in value]
    if items:
        made["items"] = schema_of(items, command=command)
    return made


def _kind(value: Any) -> str:
    kinds = (
        (type(None), "null"),
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "object")


def schemas() -> dict[str, dict[str, Any]]:
    """The schema of each command, by its name; runs every command in an empty folder."""
    made = {}
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        files(Path(folder))
        for name, (words, commands) in COMMANDS.items():
            head = {"$schema": DIALECT, "title": f"evenrank {name} --json", "description": words}
            made[name] = head | schema_of([printed(command) for command in commands], command=name)
    return made


def file_name(command: str) -> str:
    """The schema's file, without its ending: "audit --standard" is in audit-standard.json."""
    return command.replace(" --", "-")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        (FOLDER / f"{file_name(name)}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
