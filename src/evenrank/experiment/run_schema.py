"""What the files of a run folder must hold: checked when they are read, so that all that comes after can rely on it.

A check is a function of a value and of where it stands. It returns nothing, or raises `Breach` with the rule that is
broken. `check_config`, `check_examples` and `check_record` turn a breach into one `DataError` that names the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from evenrank.errors import DataError
from evenrank.experiment.curves import SPREADS
from evenrank.experiment.examples import unpack
from evenrank.methods.method import ANY
from evenrank.notions import NOTIONS

Check = Callable[[Any, str], None]

SHORT = 77  # characters of a value that a message shows
LARGEST = 2**53  # whole numbers up to here are exact everywhere, also in the page's script
MOST_PLACES = 1000  # of a list; more would be memory for nothing
DEEPEST = 20  # lists within lists in a setting
ROUNDING = 1e-6  # a share may exceed 1 by so much
NEEDED = ("ndcg", "precision", "four_fifths")  # measures that every run has, besides those of its notions


class Breach(Exception):
    """A value that breaks a rule; the message says where it stands, the rule and the value."""

    def __init__(self, where: str, rule: str, value: Any) -> None:
        super().__init__(f"{where or 'its content'} must be {rule}; found {short(value)}")


def short(value: Any) -> str:
    """A value as it stands in a file, cut to what a message can show."""
    try:
        text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= SHORT else text[:SHORT] + "…"


# ---------------------------------------------------------------------- checks of one value


def text(value: Any, where: str) -> None:
    if not isinstance(value, str):
        raise Breach(where, "a text", value)


def name(value: Any, where: str) -> None:
    """A text that a table can hold: not half a character, which UTF-8 cannot."""
    text(value, where)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Breach(where, "a text without half characters", value) from None


def flag(value: Any, where: str) -> None:
    if not isinstance(value, bool):
        raise Breach(where, "true or false", value)


def number(least: float = -math.inf, most: float = math.inf) -> Check:
    limits = (
        "" if least == -math.inf else f" of at least {least:g}" if most == math.inf else f" in {least:g} … {most:g}"
    )
    slack = ROUNDING if most == 1 else 0.0

    def check(value: Any, where: str) -> None:
        # Whole numbers are compared as they are: one of 400 digits fits into no float.
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1.7e308:
            raise Breach(where, f"a finite number{limits}", value)
        if not least - slack <= value <= most + slack:
            raise Breach(where, f"a number{limits}", value)

    return check


def whole(least: int, most: int = LARGEST) -> Check:
    def check(value: Any, where: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise Breach(where, f"a whole number in {least} … {most}", value)

    return check


def one_of(*choices: Any) -> Check:
    def check(value: Any, where: str) -> None:
        if not isinstance(value, str | None) or value not in choices:
            raise Breach(where, "one of " + ", ".join(short(choice) for choice in choices), value)

    return check


def optional(check: Check) -> Check:
    """Null, or what the check allows."""
    return lambda value, where: None if value is None else check(value, where)


def listed(each: Check, least: int = 0, *, distinct: bool = False, length: int | None = None) -> Check:
    def check(value: Any, where: str) -> None:
        if not isinstance(value, list) or len(value) < least:
            raise Breach(where, f"a list of at least {least}" if least else "a list", value)
        if length is not None and len(value) != length:
            raise Breach(where, f"a list of {length}", value)
        for place, entry in enumerate(value):
            each(entry, f"{where}[{place}]")
        if distinct and len({json.dumps(entry, sort_keys=True) for entry in value}) < len(value):
            raise Breach(where, "a list whose entries differ", value)

    return check


def table(each: Check) -> Check:
    """An object of any names."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise Breach(where, "an object", value)
        for key, entry in value.items():
            name(key, f"a name in {where}")
            each(entry, f"{where}.{key}")

    return check


def fields(required: Mapping[str, Check], others: Mapping[str, Check] | None = None) -> Check:
    """An object with the required names; others are checked where they are there, and unknown ones are let pass."""
    known = {**required, **(others or {})}

    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise Breach(where, "an object", value)
        for key in required:
            if key not in value:
                raise Breach(where, f"an object with {key!r}", sorted(value))
        for key, entry in value.items():
            if key in known:
                known[key](entry, f"{where}.{key}".lstrip("."))

    return check


def plain(value: Any, where: str, depth: int = 0) -> None:
    """Anything that JSON holds, within reason: the settings of a method are its own affair."""
    if depth > DEEPEST:
        raise Breach(where, f"nested at most {DEEPEST} deep", "more")
    if isinstance(value, list | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            plain(entry, where, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number()(value, where)


# ---------------------------------------------------------------------- the files

COUNT, SHARE = whole(0), number(0, 1)
BLOCK = fields({"method": name, "fold": whole(-(2**63), 2**63 - 1), "seed": whole(0, 2**63 - 1)})
SIZES = {"rows": whole(1), "queries": whole(1), "features": COUNT, "fingerprint": text}
SETTINGS = table(table(plain))
ASKED = fields(
    {
        "methods": listed(name, 1, distinct=True),
        "groupings": listed(name, 1, distinct=True),
        "blocks": listed(BLOCK, 1, distinct=True),
        "notions": listed(one_of(*NOTIONS), 1, distinct=True),
        "strengths": table(listed(number(0), 1)),
        "ks": listed(whole(1), 1, distinct=True),
        "solver": text,
        "scale": optional(text),
        "settings": SETTINGS,
        "split": text,
        "examples": COUNT,
        "places": whole(1, MOST_PLACES),
    }
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
        "notions": listed(one_of(*NOTIONS), 1, distinct=True),
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
    """Refuse a configuration from which no table can be made."""
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
    for measure in measures:
        if not measure.endswith(suffixes):
            raise Breach("measures", f"a name and one of {', '.join(suffixes)}", measure)
    for needed in needed_measures(asked):
        if needed not in measures:
            raise Breach("measures", f"a list with {needed!r}", list(measures))


def needed_measures(asked: dict[str, Any]) -> list[str]:
    """Those without which there is no curve and no choice."""
    return [f"{measure}@{k}" for measure in (*NEEDED, *asked["notions"]) for k in asked["ks"]]


def check_examples(queries: Any, config: dict[str, Any], file: object) -> None:
    """Refuse example queries that are not those of the run."""
    with _refused(str(file), "The command that began the run writes it again."):
        QUERIES(queries, "")
        if len(queries) != config["asked"]["examples"]:
            raise Breach("", f"{config['asked']['examples']} queries", len(queries))


def check_record(record: Any, config: dict[str, Any], lengths: Sequence[int] | None, line: str) -> None:
    """Refuse a block's record that the run did not ask for, or that lacks something.

    ``lengths``: the number of items of each example query, if they are known.
    """
    asked = config["asked"]
    with _refused(line, "Remove the line: the command that began the run does its block again."):
        fields({"block": BLOCK})(record, "")
        block = record["block"]
        if block not in asked["blocks"]:
            raise Breach("block", "one that the run asked for", block)
        strengths = len(asked["strengths"][block["method"]])
        values = table(listed(optional(SHARE), length=strengths))
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
