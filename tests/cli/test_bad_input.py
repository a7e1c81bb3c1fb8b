"""Every kind of bad input gives one line that says what is wrong and what to do, exit code 2, and no output file.

What is accepted although it looks odd is in a table of its own, with the warnings it gives.
"""

from __future__ import annotations

import gzip
import io
import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest

import evenrank as er
from evenrank.errors import ConfigError

HEAD = "qid,item,relevance,group,score,x,y\n"
LINES = [
    f"q{q},{i},{(i + q) % 2},{'ab'[min(i, 2) % 2]},{0.1 * i + 0.01 * q:.2f},{i * q % 5},{i % 3}\n"
    for q in range(6)
    for i in range(4)
]
GOOD = HEAD + "".join(LINES)
ROW = "q0,1,1,b,0.10,0,1\n"  # the file's third line
FRAME = pl.read_csv(io.StringIO(GOOD))


def parquet(frame: pl.DataFrame = FRAME) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def row(text: str) -> str:
    """The good table with another third line."""
    assert GOOD.count(ROW) == 1
    return GOOD.replace(ROW, text + "\n")


def column(name: str, values: list[object]) -> str:
    return FRAME.with_columns(pl.Series(name, values)).write_csv()


MODEL = {
    "format": "evenrank-model",
    "version": 1,
    "kind": "FairLinearRanker",
    "parameters": {"alpha": 0.5},
    "intercept": 0.5,
    "weights": {"x": 1.0, "y": -0.5},
    "groups": ["a", "b"],
}
FILES: dict[str, str | bytes] = {
    "good.csv": GOOD,
    "good.parquet": parquet(),
    "good.letor": "1 qid:1 1:2 2:3\n0 qid:1 1:1 2:1\n",
    "good.run": "1 Q0 d1 1 0.5 tag\n1 Q0 d2 2 0.4 tag\n",
    "groups.csv": "item,group\nd1,a\nd2,b\n",
    "model.json": json.dumps(MODEL),
    "out.json": "mine",
    "out.csv": "mine",
    "folder/inside.csv": GOOD,
}


@dataclass(frozen=True)
class Case:
    """A command, what its line must say, and the files it needs beside `FILES`."""

    command: str
    says: str
    files: dict[str, str | bytes] = field(default_factory=dict)


def audit(content: str | bytes, says: str, name: str = "bad.csv", options: str = "") -> Case:
    return Case(f"audit {name} {options}", says, {name: content})


def train(content: str | bytes, says: str, name: str = "bad.csv", options: str = "") -> Case:
    return Case(f"train {name} -o out.json {options}", says, {name: content})


def model(change: dict[str, object] | str, says: str) -> Case:
    content = change if isinstance(change, str) else json.dumps(MODEL | change)
    return Case("rank good.csv -m bad.json -o out.csv", says, {"bad.json": content})


IN_THE_FILE = {
    "no query column": audit(
        GOOD.replace("qid", "id", 1), "query column 'qid' is not in the data; it has 'id', 'item'"
    ),
    "no relevance column": audit(
        GOOD.replace("relevance", "label", 1), "with --relevance, or pass --no-relevance if the log has none."
    ),
    "no relevance to train on": train(GOOD.replace("relevance", "label", 1), "right column with --relevance."),
    "no group column": audit(GOOD.replace("group", "sex", 1), "group column 'group' is not in the data"),
    "no score column": audit(
        GOOD.replace("score", "s", 1), "Name the right column with --score, or a column of ranks with --rank."
    ),
    "no item column of that name": Case("audit good.csv --item doc", "Name the right column with --item."),
    "no weight column of that name": Case(
        "train good.csv --sample-weight w", "Name the right column with --sample-weight."
    ),
    "no feature of that name": Case(
        "train good.csv -o out.json --features x,z", "good.csv: features column 'z' is not in the data; it has 'qid'"
    ),
    "NaN feature": train(row("q0,1,1,b,0.10,nan,1"), "missing values (NaN) in 'x', first in row 1. Train"),
    "infinite feature": train(
        row("q0,1,1,b,0.10,0,-inf"), "bad.csv:3: feature 'y' must be a finite number; got '-inf'"
    ),
    "text in a number": train(
        row("q0,1,1,b,0.10,much,1"), "bad.csv:3: feature 'x' must be a finite number; got 'much'"
    ),
    "empty feature": train(row("q0,1,1,b,0.10,,1"), "missing values (NaN) in 'x', first in row 1. Train"),
    "null in Parquet": train(
        parquet(FRAME.with_columns(x=pl.when(pl.col("x") != 4).then("x"))),
        "missing values (NaN) in 'x', first",
        "bad.parquet",
    ),
    "negative relevance": audit(row("q0,1,-1,b,0.10,0,1"), "bad.csv:3: relevance must be a finite number ≥ 0; got -1."),
    "empty relevance": audit(row("q0,1,,b,0.10,0,1"), "bad.csv:3: relevance must be a finite number ≥ 0; got no value"),
    "text relevance": audit(row("q0,1,n/a,b,0.10,0,1"), "bad.csv:3: relevance must be a finite number ≥ 0; got 'n/a'"),
    "relevance column of text": audit(GOOD, "bad.csv:2: relevance 'group' must be a", options="--relevance group"),
    "infinite relevance": audit(row("q0,1,inf,b,0.10,0,1"), "bad.csv:3: relevance must be a finite number"),
    "one group": audit(
        GOOD.replace(",b,", ",a,"), "bad.csv: at least two groups are needed, to compare them; found only"
    ),
    "one group to train on": train(
        GOOD.replace(",b,", ",a,"), "found only 'a'. Name the group column with --group, or"
    ),
    "no group labels": audit(column("group", [None] * 24), "found no group labels. Name the group column with --group"),
    "no groups to train on": train(column("group", [""] * 24), "found no group labels. Name the group column with"),
    "empty file": audit("", "bad.csv: the file is empty; a header and at least one row are needed."),
    "blank lines only": audit("\n\r\n\n", "bad.csv: the file is empty"),
    "header only": audit(HEAD, "bad.csv: the file has a header but no rows; at least one is needed."),
    "Parquet without rows": audit(parquet(FRAME.clear()), "bad.parquet: the file has no rows", "bad.parquet"),
    "truncated Parquet": audit(parquet()[:700], "bad.parquet: is not a Parquet file, or is damaged", "bad.parquet"),
    "not Parquet": audit(GOOD, "bad.parquet: is not a Parquet file, or is damaged or cut short", "bad.parquet"),
    "Parquet called csv": audit(parquet(), "bad.csv: is a Parquet file; UTF-8 text is needed."),
    "workbook called csv": audit(b"PK\x03\x04\x14\0", "bad.csv: is a zip archive or an Excel workbook; UTF-8"),
    "item twice in a query": audit(row("q0,0,1,b,0.10,0,1"), "bad.csv:3: item 0 occurs twice in query 'q0' (first at"),
    "Latin-1": audit(
        GOOD.replace(",b,", ",ü,").encode("latin-1"), "bad.csv:3: text must be UTF-8; found the byte 0xfc."
    ),
    "UTF-16": audit(GOOD.encode("utf-16"), "bad.csv: the file is UTF-16; UTF-8 is needed. Save it again as UTF-8."),
    "NUL byte": audit(row("q0,1,1,b\0,0.10,0,1"), "bad.csv:3: text must not hold NUL bytes"),
    "damaged gzip": audit(b"\x1f\x8b\x08\0cut", "bad.csv.gz: the gzip file is damaged or cut short.", "bad.csv.gz"),
    "short row": audit(row("q0,1,1,b,0.10,0"), "bad.csv:3: a row must have 7 fields, as the header has; got 6."),
    "long row": audit(row("q0,1,1,b,0.10,0,1,2"), "bad.csv:3: a row must have 7 fields, as the header has; got 8."),
    "unclosed quote": audit(row('q0,1,1,"b,0.10,0,1'), "bad.csv:3: a quoted field is never closed."),
    "stray quote": audit(row('q0,1,1,b"b"b,0.10,0,1'), "bad.csv:3: a quote must enclose a whole field"),
    "semicolons": audit(GOOD.replace(",", ";"), "query column 'qid' is not in the data; it has 'qid;item;relevance"),
    "column named twice": audit(GOOD.replace("x,y", "x,x"), "bad.csv:1: column names must differ; 'x' occurs twice."),
    "bad JSON line": audit(
        FRAME.write_ndjson().replace('"qid":"q0"', '"qid":', 1), "bad.jsonl:1: each line must be one JSON", "bad.jsonl"
    ),
    "JSON array": audit(FRAME.write_json(), "bad.jsonl: the file is a JSON array; one object per line", "bad.jsonl"),
    "pretty JSON array": audit(json.dumps(FRAME.to_dicts(), indent=2), "is a JSON array; one object", "bad.jsonl"),
    "JSON line of another kind": audit(FRAME.write_ndjson() + "7\n", "bad.jsonl:25: each line must be a", "bad.jsonl"),
    "nested JSON": audit(
        FRAME.with_columns(pl.concat_list("qid")).write_ndjson(),
        "column 'qid' must hold plain values; got",
        "bad.jsonl",
    ),
    "LETOR without qid": audit("1 1:2 2:3\n", "bad.letor:1: a query id, as in 'qid:7', must follow", "bad.letor"),
    "a table called txt": audit(GOOD, "pass format='csv' (--input-format csv).", "bad.txt"),
    "LETOR without groups": Case("train good.letor -o out.json", "good.letor: at least two groups are needed"),
    "LETOR without that feature": Case("audit good.letor", "feature 'score' is not in the data; it has 1 to 2."),
    "LETOR without features": train("1 qid:1\n0 qid:1\n", "at least one feature", "bad.letor", "--alpha 0"),
    "text score": audit(row("q0,1,1,b,high,0,1"), "bad.csv:3: score must be a finite number; got 'high'."),
    "score column of text": Case("audit good.csv --score group", "good.csv:2: score 'group' must be a finite number"),
    "empty query id": audit(row(",1,1,b,0.10,0,1"), "bad.csv:3: qid must not be empty. Fill it or drop the row."),
    "empty item id": audit(row("q0,,1,b,0.10,0,1"), "bad.csv:3: item_ids must not be empty."),
    "no feature columns": train("qid,relevance,group\n1,1,a\n1,0,b\n", "training needs at least one feature"),
    "query column as group": Case(
        "audit good.csv --group qid", "the query column must have no other part; 'qid' is also"
    ),
    "query column as item": Case("audit good.csv --item qid", "'qid' is also the item column."),
    "parts of different columns": Case(
        "audit good.csv bad.csv", "parts of one table must have the same columns", {"bad.csv": "qid,z\n1,2\n"}
    ),
    "parts of different formats": Case(
        "audit good.csv good.parquet", "files of one format; got 'good.csv' and 'good.pa"
    ),
    "a part twice": Case("audit good.csv good.csv", "good.csv: is named twice; each part must be named once."),
    "TREC run without groups": Case("audit good.run", "for a TREC run, a file with --groups"),
    "groups of other items": Case(
        "audit good.run --groups bad.csv",
        "The run has items such as 'd1', the groups 'e1'",
        {"bad.csv": "item,group\ne1,a\n"},
    ),
    "groups without a column": Case(
        "audit good.run --groups bad.csv", "bad.csv: column 'group' is not", {"bad.csv": "item,sex\nd1,a\n"}
    ),
    "judgements of other queries": Case(
        "audit good.run --groups groups.csv --qrels bad.txt", "must share queries", {"bad.txt": "9 0 d1 1\n"}
    ),
    "short TREC row": audit("1 Q0 d1 1 0.5\n", "bad.run:1: a row must have 6 fields", "bad.run", "--groups groups.csv"),
    "judgements for a table": Case("audit good.csv --qrels bad.txt", "qrels is for TREC runs only"),
}
IN_THE_COMMAND = {
    "k of 0": Case("audit good.csv --k 0", "--k must be whole numbers ≥ 1, comma-separated; got '0'."),
    "negative k": Case("audit good.csv --k -1", "--k must be whole numbers ≥ 1, comma-separated; got '-1'."),
    "text k": Case("audit good.csv --k 1,three", "--k must be whole numbers ≥ 1, comma-separated; got '1,three'."),
    "no k": Case("train good.csv -o out.json --k ''", "--k must be whole numbers ≥ 1, comma-separated; got ''."),
    "demo at k of 0": Case("demo -o out.json --k 0", "--k must be whole numbers ≥ 1"),
    "unknown notion": Case(
        "train good.csv -o out.json --notion fair", "demographic_parity (dp), equal_opportunity (eop)"
    ),
    "unknown solver": Case(
        "train good.csv -o out.json --solver adam", "solver must be one of exact, gd, sgd; got 'adam'."
    ),
    "solver of a sweep": Case("demo -o out.json --solver adam", "solver must be one of exact, gd, sgd; got 'adam'."),
    "unknown scope": Case(
        "train good.csv -o out.json --scope all", "scope must be one of amortized, per_query; got 'all'"
    ),
    "unknown loss": Case(
        "train good.csv -o out.json --loss l1", "loss must be one of squared, pairwise, logistic; got 'l1'."
    ),
    "unknown grouping": Case(
        "demo -o out.json --group height", "group must be one of sex, age, sex+age; got 'height'."
    ),
    "unknown format": Case(
        "audit good.csv --input-format xls", "format must be one of csv, tsv, jsonl, parquet, letor, trec"
    ),
    "unknown output format": Case("audit good.csv --format xls", "--format must be one of text, json, md, html"),
    "two output formats": Case("audit good.csv --format md --json", "ask for different outputs; give one of them."),
    "no such rank column": Case("audit good.csv --rank r", "Name the right column with --rank."),
    "limit without a value": Case("audit good.csv --fail-over eop@3", "a measure and a limit, as eop@10=0.05; got"),
    "limit above 1": Case("audit good.csv --fail-over eop@3=5", "is from 0 to 1, as eop@10=0.05; got"),
    "limit without an interval": Case("audit good.csv --fail-over gini@3=0.5", "gini has no interval"),
    "limit that needs labels": Case(
        "audit good.csv --no-relevance --fail-over eop@3=0.5", "equal_opportunity needs relevance labels"
    ),
    "audit over its input": Case("audit good.csv -o good.csv", "--out must not be the input"),
    "confidence of 1": Case("audit good.csv --confidence 1", "confidence must be between 0 and 1"),
    "negative alpha": Case("train good.csv -o out.json --alpha -1", "alpha must be a finite number ≥ 0; got -1.0."),
    "text alpha": Case(
        "train good.csv -o out.json --alpha x", "'--strength': must be a number; got 'x'. See evenrank train"
    ),
    "NaN alpha": Case("train good.csv -o out.json --alpha nan", "alpha must be a finite number ≥ 0; got nan."),
    "infinite alpha": Case("train good.csv -o out.json --alpha inf", "alpha must be a finite number ≥ 0; got inf."),
    "negative ridge": Case("train good.csv -o out.json --ridge -1", "ridge must be a finite number ≥ 0; got -1.0."),
    "NaN threshold": Case("train good.csv -o out.json --threshold nan", "threshold must be a finite number; got nan."),
    "negative seed": Case(
        "train good.csv -o out.json --solver sgd --seed -1", "'--seed': must be a whole number ≥ 0; got"
    ),
    "fractional seed": Case("demo -o out.json --seed 1.5", "'--seed': must be a whole number ≥ 0; got '1.5'."),
    "top 0": Case("rank good.csv -o out.csv --top 0", "'--top': must be a whole number ≥ 1; got '0'."),
    "ignored column misspelt": Case(
        "train good.csv -o out.json --ignore X1", "good.csv: ignore column 'X1' is not in the data (did you mean 'x'?)"
    ),
    "ignored column misspelt, Parquet": Case(
        "train good.parquet -o out.json --ignore y,scoer",
        "ignore column 'scoer' is not in the data (did you mean 'score",
    ),
    "ignored column misspelt, by parts": Case(
        "train good.parquet -o out.json --engine stream --ignore scoer",
        "(did you mean 'score'?); it has 'qid', 'item', 'relevance', 'group', 'score', 'x', 'y'. Name the right column",
    ),
    "ignored column misspelt in a sweep": Case(
        "sweep good.csv --out new --ignore scoer", "good.csv: ignore column 'scoer' is not in the data (did you mean"
    ),
    "ignored column misspelt in a bench": Case(
        "bench good.csv --out new --ignore scoer", "good.csv: ignore column 'scoer' is not in the data (did you"
    ),
    "ignored column in none of the tables": Case(
        "bench good.csv other.csv --out new --ignore y,z", "good.csv: ignore column 'z' is not", {"other.csv": GOOD}
    ),
    "ignored column without a table": Case(
        "bench german_credit --out new --ignore age",
        "--ignore leaves columns out of tables, and no data set is one; got 'age'",
    ),
    "ignored feature that is no number": Case(
        "train good.letor --group 2 -o out.json --ignore price",
        "good.letor: feature 'price' is not in the data; it has",
    ),
    "feature named twice": Case("train good.csv -o out.json --features x,y,x", "'x' is named twice. Name it once."),
    "output in no folder": Case(
        "train good.csv -o new/m.json", "new/m.json: the folder 'new' does not exist. Create it"
    ),
    "page in no folder": Case("demo -o new/r.html", "new/r.html: the folder 'new' does not exist. Create it first."),
    "output is a folder": Case("train good.csv -o folder", "folder: is a folder; the output must be a file."),
    "output is the input": Case("train good.csv -o good.csv", "--out must not be the input; got 'good.csv' for both."),
    "output is the model": Case("rank good.csv -o ./model.json", "--out must end in .csv, .jsonl, .parquet"),
    "output of unknown format": Case(
        "rank good.csv -o out.txt", "--out must end in .csv, .jsonl, .parquet; got 'out.txt'"
    ),
    "output may not be written": Case("train good.csv -o /proc/m.json", "/proc/m.json: cannot be written"),
    "unknown suffix": audit("PK", "; got '.xlsx'. Rename the file or name its format (csv, tsv", "rows.xlsx"),
    "k separated by spaces": Case("audit good.csv --k 1 3 5", "3: there is no such file. Check the path."),
    "no such file": Case("audit nowhere.csv", "nowhere.csv: there is no such file. Check the path."),
    "folder as input": Case("audit folder", "folder: is a folder; a file is needed. Name the files in it."),
    "folder as a table": Case("audit folder --input-format csv", "folder: is a folder; a file is needed."),
    "unknown command": Case("adit good.csv", "No such command 'adit'. Did you mean 'audit'? See evenrank --help."),
    "unknown option": Case("audit good.csv --scores s", "No such option: --scores"),
    "no file named": Case("audit", "Missing argument 'file'. See evenrank audit --help."),
    "option without value": Case("audit good.csv --k", "Option '--k' requires an argument."),
    "argument too many": Case("demo good.csv", "unexpected extra argument"),
}
IN_THE_MODEL = {
    "no model file": Case("rank good.csv -m m.json -o out.csv", "m.json: there is no such model file. Make one with"),
    "model cut short": model(json.dumps(MODEL)[:90], "bad.json is not an evenrank model: it is not JSON (line 1)."),
    "rows as model": Case("rank good.csv -m good.csv -o out.csv", "good.csv is not an evenrank model"),
    "Parquet as model": Case("rank good.csv -m good.parquet -o out.csv", "good.parquet is not an evenrank model"),
    "folder as model": Case("rank good.csv -m folder -o out.csv", "cannot read the model file folder"),
    "other JSON": model('{"weights": {}}', 'it has no "format": "evenrank-model".'),
    "other version": model({"version": 3}, "bad.json has model version 3; this evenrank reads versions 1 and 2."),
    "other kind": model({"kind": "Forest"}, "bad.json holds a 'Forest'; this evenrank knows FairLinearRanker"),
    "other parameter": model({"parameters": {"beta": 1}}, "has no parameter 'beta'."),
    "weight of text": model({"weights": {"x": "a lot"}}, "'weights' must hold 1 finite numbers"),
    "no weights": model({"weights": None}, "'weights' is missing or damaged"),
    "other features": model({"weights": {"x": 1, "z": 1}}, "bad.json was trained with it: rank rows that have the 2"),
    "group the rows lack": Case("rank good.csv --group sex -o out.csv", "group column 'sex' is not in the data"),
}
REFUSED = IN_THE_FILE | IN_THE_COMMAND | IN_THE_MODEL

NOTE = "column 'score' is left out of the features by its name"  # what training on these files says
EMPTY = "relevant rows have no item of group 'a', 'b'; the violation is NaN"
ARBITRARY = "all items of a query have the same score: the ranking is arbitrary"
ACCEPTED = {
    "constant feature": train(column("y", [1] * 24), "", options="--alpha 0"),
    "all features constant": train(column("x", [1] * 24), ARBITRARY, options="--features x"),
    "constant relevance": train(column("relevance", [1] * 24), f"{ARBITRARY}|irrelevant rows have no item of"),
    "nothing relevant": audit(column("relevance", [0] * 24), f"{EMPTY}|{EMPTY}"),
    "threshold above all": Case("audit good.csv --threshold 5", f"{EMPTY}|{EMPTY}"),
    "some unknown groups": audit(row("q0,1,1,,0.10,0,1"), ""),
    "one-item queries": audit(GOOD + "q7,1,1,a,0.5,1,1\nq8,1,0,b,0.5,1,1\n", ""),
    "queries of one group": audit(GOOD + "q7,1,1,a,0.5,1,1\nq7,2,0,a,0.5,1,1\n", ""),
    "ids of 30 digits": audit(GOOD.replace("q0", "9" * 30).replace("q1", "9" * 29 + "8"), ""),
    "text column": train(
        FRAME.with_columns(city=pl.lit("Berlin")).write_csv(), "column 'city' is not numeric and is left out"
    ),
    "unnamed first column": train(
        "," + GOOD.replace("\nq", "\n1,q"), "column 1 has no name and is left out of the features (a row index?)"
    ),
    "group of one relevant kind": audit(
        FRAME.with_columns(relevance=(pl.col("group") == "a").cast(int)).write_csv(),
        "relevant rows have no item of group 'b'|irrelevant rows have no item of group 'a'|relevant rows have no item",
    ),
    "byte order mark, CRLF and blank lines": audit(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode() + b"\r\n", ""),
    "gzip by another name": audit(gzip.compress(GOOD.encode()), ""),
    "k written carelessly": Case("audit good.csv --k ' 3,,1, 3'", ""),
    "k beyond every list": Case("audit good.csv --k 1000000000000", ""),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path


def place(files: dict[str, str | bytes], folder: Path) -> None:
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_table_is_long_enough() -> None:
    assert len(REFUSED) >= 45


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_line(run, folder, name):
    case = REFUSED[name]
    place(FILES | case.files, folder)
    before = contents(folder)
    found = run(*shlex.split(case.command))
    assert found.code == 2
    assert found.out == ""
    assert len(found.lines) == 1
    assert all(NOTE in warning for warning in found.warnings)
    assert found.err.startswith("evenrank: ")
    assert case.says in found.err
    assert "=None" not in found.err  # the library's words, not the command line's
    assert contents(folder) == before


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_with_a_warning_where_it_matters(run, folder, name):
    case = ACCEPTED[name]
    place(FILES | case.files, folder)
    found = run(*shlex.split(case.command))
    assert (found.code, found.lines) == (0, [])
    expected = case.says.split("|") if case.says else []
    others = [warning for warning in found.warnings if NOTE not in warning]
    trained = case.command.startswith("train") and "--features" not in case.command
    assert len(found.warnings) - len(others) == trained
    assert len(others) == len(expected), found.err
    for warning, says in zip(others, expected, strict=True):
        assert says in warning
    assert ("out.json" in case.command) == (contents(folder)["out.json"] != b"mine")


def test_a_bench_ignores_what_one_of_its_tables_has(run, folder, monkeypatch):
    seen = {}

    def bench(sources, **_):
        seen.update({name: source["group"].feature_names for name, source in sources.items()})
        raise ConfigError("enough.")

    monkeypatch.setattr(er, "bench", bench)
    place(FILES | {"other.csv": FRAME.with_columns(w=pl.col("y") * 2).write_csv()}, folder)
    found = run("bench", "good.csv", "other.csv", "--out", "new", "--ignore", "w,y")
    assert (found.code, found.lines) == (2, ["evenrank: enough."])
    assert seen == {"good": ("x",), "other": ("x",)}
