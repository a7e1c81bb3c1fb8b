"""What the files of a run folder must hold; checked when they are read, so that later code can rely on it.

`check_config`, `check_examples` and `check_record` turn a breach of a rule into one `DataError` that names the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from evenrank.errors import DataError
from evenrank.experiment.curves import SPREADS
from evenrank.experiment.examples import unpack
from evenrank.experiment.json_checks import (
    Breach,
    fields,
    flag,
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
from evenrank.methods.method import ANY
from evenrank.notions import NOTIONS

MOST_PLACES = 1000  # of a list; more would be memory for nothing
NEEDED = ("ndcg", "precision", "four_fifths")  # measures that every run has, besides those of its notions

COUNT, SHARE = whole(0), number(0, 1)
BLOCK = fields({"method": name, "fold": whole(-(2**63), 2**63 - 1), "seed": whole(0, 2**63 - 1)})
SIZES = {"rows": whole(1), "queries": whole(1), "features": COUNT, "fingerprint": text}
SETTINGS = table(table(plain))
ASKED = fields(
    {
        "methods": listed(name, 1, distinct=True),
        "groupings": listed(name, 1, distinct=True),
        "blocks": listed(BLOCK, 1, distinct=True),
        "notions": listed(name, 1, distinct=True),
        "strengths": table(listed(number(0), 1)),
        "ks": listed(whole(1), 1, distinct=True),
        "solver": text,
        "scale": optional(text),
        "settings": SETTINGS,
        "split": text,
        "examples": COUNT,
        "places": whole(1, MOST_PLACES),
    },
    {"measures": listed(name, 1, distinct=True), "own": table(text)},
)
ABOUT = fields(
    {"rows": whole(1), "queries": whole(1), "features": COUNT, "groups": table(plain)},
    {
        "folds": whole(1),
        "repeats": one_of("folds", "seeds"),
        "spread": one_of(*SPREADS),
        "seed": whole(0, 2**63 - 1),
        "solver": text,
        "scale": optional(text),
        "settings": SETTINGS,
        "notions": listed(name, 1, distinct=True),
        "tested": whole(1),
        "tested_each": whole(0),
        "lists": fields({"median": number(0), "longest": whole(1)}),
        "relevant_share": SHARE,
        "shares": table(table(fields({"theorem": optional(SHARE), "longest": optional(SHARE)}))),
    },
)
CONFIG = fields(
    {
        "asked": ASKED,
        "data": fields(SIZES, {"test": fields(SIZES)}),
        "versions": table(text),
        "made": fields({}, {"command": text, "began": text}),
        "measures": listed(name, 1, distinct=True),
        "about": ABOUT,
    }
)
PACKED = fields({"shape": listed(COUNT, length=3), "zlib": text})
ITEM = fields({"id": text, "title": text, "relevance": number(), "relevant": flag, "groups": table(optional(text))})
QUERIES = listed(fields({"id": text, "title": text, "items": listed(ITEM, 1)}))


@contextmanager
def _refused(subject: str, remedy: str) -> Iterator[None]:
    try:
        yield
    except Breach as breach:
        raise DataError(f"{subject}: {breach}. {remedy}") from None


def check_config(config: Any, file: object) -> None:
    """Refuse a configuration from which no table can be made.

    Parameters
    ----------
    config : object
        What the file holds.
    file : object
        The file, for the message.

    Raises
    ------
    DataError
        If it breaks a rule.
    """
    with _refused(str(file), "Make the run anew in another folder."):
        CONFIG(config, "")
        asked, about = config["asked"], config["about"]
        if list(asked["strengths"]) != asked["methods"]:
            raise Breach("asked.strengths", "those of asked.methods", sorted(asked["strengths"]))
        for method, grid in asked["strengths"].items():
            if grid[0] != 0 or any(after <= before for before, after in pairwise(grid)):
                raise Breach(f"asked.strengths.{method}", "0 and larger numbers, ascending", grid)
        for block in asked["blocks"]:
            one_of(*asked["methods"])(block["method"], "asked.blocks: method")
        for notion in asked["notions"]:
            one_of(*NOTIONS, *asked.get("own", ()))(notion, "asked.notions")
        if about.get("notions", asked["notions"]) != asked["notions"]:
            raise Breach("about.notions", "those of asked.notions", about["notions"])
        _check_groups(about["groups"], asked["groupings"])
        _check_measures(config["measures"], asked)


def _check_groups(groups: dict[str, Any], groupings: Sequence[str]) -> None:
    """The groups' shares, by grouping if there are several."""
    if len(groupings) == 1:
        table(SHARE)(groups, "about.groups")
        return
    fields({grouping: table(SHARE) for grouping in groupings})(groups, "about.groups")


def _check_measures(measures: Sequence[str], asked: dict[str, Any]) -> None:
    suffixes = tuple(f"@{k}" for k in asked["ks"])
    extra = asked.get("measures", [])
    for measure in measures:
        if measure not in extra and not measure.endswith(suffixes):
            raise Breach("measures", f"a name and one of {', '.join(suffixes)}", measure)
    for needed in needed_measures(asked):
        if needed not in measures:
            raise Breach("measures", f"a list with {needed!r}", list(measures))


def needed_measures(asked: dict[str, Any]) -> list[str]:
    """List the measures that curves and choices need; ``asked`` is the configuration's plan."""
    return [f"{measure}@{k}" for measure in (*NEEDED, *asked["notions"]) for k in asked["ks"]]


def check_examples(queries: Any, config: dict[str, Any], file: object) -> None:
    """Refuse example queries that are not those of the run.

    Parameters
    ----------
    queries : object
        What the file holds.
    config : dict
        The run's configuration.
    file : object
        The file, for the message.

    Raises
    ------
    DataError
        If they break a rule.
    """
    with _refused(str(file), "The command that began the run writes it again."):
        QUERIES(queries, "")
        if len(queries) != config["asked"]["examples"]:
            raise Breach("", f"{config['asked']['examples']} queries", len(queries))


def check_record(record: Any, config: dict[str, Any], lengths: Sequence[int] | None, line: str) -> None:
    """Refuse a block's record that the run did not ask for, or that lacks something.

    Parameters
    ----------
    record : object
        What the line holds.
    config : dict
        The run's configuration.
    lengths : sequence of int or None
        The number of items of each example query, if they are known.
    line : str
        File and line, for the message.

    Raises
    ------
    DataError
        If it breaks a rule.
    """
    asked = config["asked"]
    with _refused(line, "Remove the line: the command that began the run does its block again."):
        fields({"block": BLOCK})(record, "")
        block = record["block"]
        if block not in asked["blocks"]:
            raise Breach("block", "one that the run asked for", block)
        strengths = len(asked["strengths"][block["method"]])
        values = table(listed(optional(number()), length=strengths))
        part = {"grouping": one_of(*asked["groupings"]), "notion": one_of(*asked["notions"], ANY)}
        fields(
            {
                "table": listed(fields({**part, "values": values}), 1),
                "tops": listed(fields({**part, "k": optional(whole(1)), "queries": listed(COUNT), "top": PACKED})),
                "seconds": number(0, 1e12),
                "warnings": listed(text),
            }
        )(record, "")
        _check_table(record["table"], config)
        for place, top in enumerate(record["tops"]):
            _check_top(top, asked, strengths, lengths, f"tops[{place}]")


def _check_table(parts: Sequence[dict[str, Any]], config: dict[str, Any]) -> None:
    """Every grouping with every notion, or with none: once each."""
    asked = config["asked"]
    present = [(part["grouping"], part["notion"]) for part in parts]
    wanted = [
        {(grouping, notion) for grouping in asked["groupings"] for notion in notions}
        for notions in (asked["notions"], [ANY])
    ]
    if len(set(present)) < len(present) or set(present) not in wanted:
        raise Breach("table", "one part per grouping and notion", [list(part) for part in present])
    for part in parts:
        for measure in part["values"]:
            if measure not in config["measures"]:
                raise Breach("table.values", "measures of the run", measure)
            if measure not in asked.get("measures", ()):
                listed(optional(SHARE))(part["values"][measure], f"table.values.{measure}")
        for measure in needed_measures(asked):
            if measure not in part["values"]:
                raise Breach("table.values", f"an object with {measure!r}", sorted(part["values"]))


def _check_top(
    top: dict[str, Any], asked: dict[str, Any], strengths: int, lengths: Sequence[int] | None, where: str
) -> None:
    queries = top["queries"]
    if len(set(queries)) < len(queries) or any(query >= asked["examples"] for query in queries):
        raise Breach(f"{where}.queries", f"different numbers below {asked['examples']}", queries)
    if top["k"] is not None and top["k"] not in asked["ks"]:
        raise Breach(f"{where}.k", "one of asked.ks", top["k"])
    if top["top"]["shape"] != [len(queries), asked["places"], strengths]:
        raise Breach(f"{where}.top.shape", str([len(queries), asked["places"], strengths]), top["top"]["shape"])
    try:
        items = unpack(top["top"])
    except ValueError:
        raise Breach(f"{where}.top.zlib", "packed item numbers that fill the shape", top["top"]["zlib"]) from None
    for query, places in zip(queries, items, strict=True):
        if (places < -1).any() or (lengths is not None and (places >= lengths[query]).any()):
            raise Breach(f"{where}.top.zlib", f"items of query {query}", [int(places.min()), int(places.max())])
