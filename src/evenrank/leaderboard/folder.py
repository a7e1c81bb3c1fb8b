"""`BenchFolder`: a bench on disk, resumed and checked as the run folder of a sweep is.

journal.jsonl   one line per finished block, appended and forced to disk
config.json     the plan, the data's fingerprints and the versions; written once, before the first block
bench.csv       the table, bench.json the standings, bench.md and bench.html: written when the last block is done
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evenrank.errors import DataError
from evenrank.experiment.json_checks import (
    Breach,
    fields,
    listed,
    name,
    number,
    one_of,
    optional,
    plain,
    table,
    text,
    whole,
)
from evenrank.experiment.run_folder import CONFIG, JOURNAL, RunFolder
from evenrank.leaderboard.rules import RULES
from evenrank.notions import NOTIONS

TABLE, SUMMARY, TEXT, PAGE = "bench.csv", "bench.json", "bench.md", "bench.html"
FILES = (CONFIG, JOURNAL, TABLE, SUMMARY, TEXT, PAGE)

BLOCK = fields({"data": name, "method": name, "seed": whole(0, 2**63 - 1)})
FACTS = fields(
    {
        "rows": whole(1),
        "queries": whole(1),
        "features": whole(0),
        "longest": whole(1),
        "fingerprint": text,
        "clusters": text,
    }
)
ASKED = fields(
    {
        "data": table(listed(name, 1, distinct=True)),
        "methods": listed(name, 1, distinct=True),
        "blocks": listed(BLOCK, 1, distinct=True),
        "notions": listed(one_of(*NOTIONS), 1, distinct=True),
        "strengths": table(listed(number(0))),
        "ks": listed(whole(1), 1, distinct=True),
        "folds": whole(3),
        "scale": optional(text),
        "settings": table(table(plain)),
    }
)
BENCH = fields(
    {
        "asked": ASKED,
        "data": table(FACTS),
        "versions": table(text),
        "made": fields({}, {"command": text, "began": text}),
        "left_out": table(text),
    }
)


class BenchFolder(RunFolder):
    """The files of one bench.

    Parameters
    ----------
    path : path-like
        The folder; `opened` makes it.
    """

    command = "bench"
    files = FILES

    def _check_config(self, config: dict[str, Any], file: Path) -> None:
        try:
            BENCH(config, "")
            asked = config["asked"]
            for part, wanted in (("data", config["data"]), ("methods", asked["strengths"])):
                if list(wanted) != list(asked[part]):
                    raise Breach(f"asked.{part}", str(list(wanted)), list(asked[part]))
        except Breach as breach:
            raise DataError(f"{file}: {breach}. Make the bench anew in another folder.") from None

    def _record_check(self, config: dict[str, Any]) -> Callable[[Any, str], None]:
        return lambda record, where: check_record(record, config, where)


def check_record(record: Any, config: dict[str, Any], line: str) -> None:
    """Refuse a block's record that the bench did not ask for, or that lacks something.

    Parameters
    ----------
    record : object
        What the line holds.
    config : dict
        The bench's configuration.
    line : str
        File and line, for the message.

    Raises
    ------
    DataError
        If it breaks a rule.
    """
    asked = config["asked"]
    by_fold = listed(optional(number(0, 1)), length=asked["folds"])
    try:
        fields({"block": BLOCK})(record, "")
        if record["block"] not in asked["blocks"]:
            raise Breach("block", "one that the bench asked for", record["block"])
        groupings = asked["data"][record["block"]["data"]]
        row = {
            "grouping": one_of(*groupings),
            "notion": one_of(*asked["notions"]),
            "k": whole(1),
            "strength": listed(optional(number(0)), length=asked["folds"]),
            "gap": by_fold,
            "quality": by_fold,
            "pooled": optional(number(0, 1)),
        }
        fields(
            {
                "results": listed(fields({"rule": one_of(*RULES), **row}), 1),
                "base": listed(fields(row), 1),
                "seconds": number(0, 1e12),
                "warnings": listed(text),
            }
        )(record, "")
        wanted = {(grouping, notion, k) for grouping in groupings for notion in asked["notions"] for k in asked["ks"]}
        rules = list(dict.fromkeys(result["rule"] for result in record["results"]))
        for rule in (None, *rules):
            rows = record["base"] if rule is None else [row for row in record["results"] if row["rule"] == rule]
            settings = [(row["grouping"], row["notion"], row["k"]) for row in rows]
            if len(settings) != len(wanted) or set(settings) != wanted:
                raise Breach(rule or "base", "one row per grouping, notion and k", [list(one) for one in settings])
    except Breach as breach:
        raise DataError(f"{line}: {breach}. Remove the line: the same command does its block again.") from None
