"""What RankLib, behind the plugins, makes of an ensemble of trees."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from evenrank.export.errors import accept
from evenrank.export.float32 import Floats, cast
from evenrank.export.json_text import from_text
from evenrank.export.walk import Growing, leaves, running_sum

NAMES = ("LambdaMART", "MART", "Random Forests")
TOKEN = re.compile(r"<(/?)([a-z]+)((?:\s+[a-z]+=\"[^\"]*\")*)\s*>|([^<]+)")


def emulate(definition: Any, rows: Floats) -> Floats:
    """Score rows as RankLib does: x ≤ threshold goes left, in 32 bits, tree after tree.

    Parameters
    ----------
    definition : str
        The text of the model.
    rows : ndarray
        Features in the order of the set, (n, d), without missing values.

    Returns
    -------
    ndarray
        (n,), 32-bit.
    """
    accept(isinstance(definition, str), "a RankLib model must be a text")
    lines = [line.strip() for line in str(definition).splitlines()]
    title = next((line for line in lines if line), "")
    accept(title.startswith("## ") and title[3:].strip() in NAMES, "the first line must name the algorithm")
    text = "".join(line for line in lines if line and not line.startswith("##"))
    growing, weights = _read(text, rows.shape[1])
    values = leaves(growing.grown(np.float32), rows, strict=False)
    return running_sum(values * cast(weights))


def _read(text: str, width: int) -> tuple[Growing, list[float]]:
    """The trees and their weights."""
    growing, weights = Growing(), list[float]()
    open_tags: list[str] = []
    # Of each split that is open: its node (None before it is known), its feature and its place below its parent.
    splits: list[dict[str, Any]] = []
    position, value = 0, ""
    for token in TOKEN.finditer(text):
        accept(token.start() == position, "its XML is damaged")
        position = token.end()
        closing, tag, attributes, plain = token.groups()
        if plain is not None:
            value = plain.strip()
        elif not closing:
            open_tags.append(tag)
            value = ""
            given = dict(re.findall(r"([a-z]+)=\"([^\"]*)\"", attributes))
            if tag == "tree":
                growing.roots.append(len(growing.feature))
                weights.append(_number(given.get("weight", ""), "weight"))
            elif tag == "split":
                splits.append({"side": given.get("pos")})
        else:
            accept(open_tags and open_tags.pop() == tag, "its XML is damaged")
            if tag in ("feature", "threshold", "output"):
                accept(splits, f"a {tag} must stand in a split")
                splits[-1][tag] = _number(value, tag)
                _place(growing, splits, width)
            elif tag == "split":
                accept("node" in splits.pop(), "a split must have a feature and a threshold, or an output")
    accept(position == len(text) and not open_tags and growing.roots, "its XML is damaged")
    return growing, weights


def _place(growing: Growing, splits: list[dict[str, Any]], width: int) -> None:
    """Add the node of the innermost split once all of it is known."""
    split = splits[-1]
    if "output" in split:
        split["node"] = growing.leaf(split["output"])
    elif "feature" in split and "threshold" in split:
        feature = split["feature"]
        accept(feature == int(feature) and 1 <= feature <= width, f"there is no feature {feature:g} in the set")
        split["node"] = growing.split(int(feature) - 1, split["threshold"], missing_left=True)
    else:
        return
    if len(splits) > 1:
        parent = splits[-2].get("node")
        accept(parent is not None and split["side"] in ("left", "right"), "a split must say its side")
        growing.children[int(parent or 0)][split["side"] == "right"] = split["node"]


def _number(text: str, what: str) -> float:
    value = from_text(text)
    accept(value is not None, f"{what} must be a number")
    return float(value or 0.0)
