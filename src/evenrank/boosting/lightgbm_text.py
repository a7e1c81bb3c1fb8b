"""LightGBM's model text, checked line by line, as LightGBM itself reads it without checks.

Its reader trusts every count, size and index of the text, and a wrong one reads or writes memory of others. So the text
is held to the one form LightGBM writes: each line in its place, each array of its length, each tree whole. What passes
goes to LightGBM as it stands, byte for byte, up to the end of its trees. The rest of the text (importances, parameters
of training, a parser) is left out: LightGBM finds nothing to read there.
"""

from __future__ import annotations

import json
import re

import numpy as np
from numpy.typing import NDArray

from evenrank.boosting.trees import Stored, Tree, need, reached
from evenrank.rankers.content import parse_json

FORMAT = "v4"
NUMBER = r"-?[0-9]{1,25}(?:\.[0-9]{1,25})?(?:e[+-][0-9]{1,3})?"
WHOLE = r"-?[0-9]{1,10}"
NUMBERS = re.compile(rf"{NUMBER}(?: {NUMBER})*")
WHOLES = re.compile(rf"{WHOLE}(?: {WHOLE})*")
END = rf"(?:{NUMBER}|-?inf|-?nan)"
INFO = re.compile(rf"none|\[{END}:{END}\]|{WHOLE}(?::{WHOLE})*")
NAME = re.compile(r"[^\x00-\x20\x7f]+")
# Those with one score per row. What follows the name says how scores are shown, as LightGBM writes it.
OBJECTIVES = re.compile(
    r"lambdarank|rank_xendcg|regression(?:_l1)?(?: sqrt)?|huber|fair|poisson|quantile|mape|gamma|tweedie|"
    rf"cross_entropy(?:_lambda)?|binary sigmoid:{NUMBER}"
)
INT32, UINT32 = (-(2**31), 2**31 - 1), (0, 2**32 - 1)
MISSING_TYPES = 3  # none, zero, NaN: bits 2 and 3 of a decision; bit 0 is categorical, bit 1 the way of missing values
LINEAR = "\nparameters:\n[linear_tree: 1]\n\nend of parameters\n"
CATEGORIES = "pandas_categorical:"


class Lines:
    """The text's lines, taken one after the other."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.at = 0

    def peek(self) -> str:
        return self.lines[self.at] if self.at < len(self.lines) else ""

    def line(self, expected: str) -> None:
        got = self.peek()
        need(got == expected, f"line {self.at + 1} must be {expected!r}; got {got[:40]!r}")
        self.at += 1

    def value(self, key: str) -> str:
        """Read what follows ``key=`` on the next line."""
        got = self.peek()
        need(got.startswith(f"{key}="), f"line {self.at + 1} must give {key}; got {got[:40]!r}")
        self.at += 1
        return got[len(key) + 1 :]

    def wholes(self, key: str, count: int, bounds: tuple[int, int] = INT32) -> NDArray[np.int64]:
        text = self.value(key)
        words = text.split(" ") if text else []
        need(len(words) == count and fits(WHOLES, text), f"{key} (line {self.at}) must be {count} whole numbers")
        numbers = np.array(words, dtype=np.int64)
        good = ((numbers >= bounds[0]) & (numbers <= bounds[1])).all()
        need(good, f"{key} (line {self.at}) has a number outside {bounds[0]} to {bounds[1]}")
        return numbers

    def numbers(self, key: str, count: int, *, endless: bool = False) -> NDArray[np.float64]:
        """Read finite numbers; with ``endless``, "inf" too."""
        text = self.value(key)
        words = text.split(" ") if text else []
        finite = [word for word in words if word != "inf"] if endless else words
        good = len(words) == count and fits(NUMBERS, " ".join(finite))
        numbers = np.array(words if good else [], dtype=np.float64)
        good = good and int(np.isfinite(numbers).sum()) == len(finite)
        need(good, f"{key} (line {self.at}) must be {count} finite numbers")
        return numbers


def fits(pattern: re.Pattern[str], text: str) -> bool:
    return not text or pattern.fullmatch(text) is not None


def checked_text(text: str, n_features: int) -> str:
    """Read the part of LightGBM's model text that decides scores; `Damaged` where LightGBM might stumble over it."""
    lines = Lines(text)
    linear = any(tree.linear for tree in _stored(lines, n_features).trees)
    body = "\n".join(lines.lines[: lines.at]) + "\n"
    return f"{body}{LINEAR if linear else ''}\n{CATEGORIES}{_categories(lines)}\n"


def read_text(text: str) -> Stored:
    """Read the trees of LightGBM's model text, with the same checks as `checked_text`.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    Stored
        The trees and what is around them.
    """
    last = re.search(r"^max_feature_idx=([0-9]{1,9})$", text, re.MULTILINE)
    need(last, "it has no max_feature_idx")
    assert last is not None
    return _stored(Lines(text), int(last[1]) + 1)


def _stored(lines: Lines, n_features: int) -> Stored:
    """Take all lines up to the end of the trees."""
    names, objective, average, sizes = _header(lines, n_features)
    trees = []
    for number, size in enumerate(sizes.tolist()):
        first = lines.at
        trees.append(_tree(lines, number, n_features))
        actual = sum(len(line) + 1 for line in lines.lines[first : lines.at])
        need(actual == size, f"tree_sizes gives tree {number} {size} bytes; it has {actual}")
    lines.line("end of trees")
    return Stored(n_features, names, objective, tuple(trees), average=average)


def _header(lines: Lines, n_features: int) -> tuple[tuple[str, ...], str, bool, NDArray[np.int64]]:
    """The features' names, the objective, whether trees are averaged, and the sizes of the trees."""
    for line in ("tree", f"version={FORMAT}", "num_class=1", "num_tree_per_iteration=1", "label_index=0"):
        lines.line(line)
    lines.line(f"max_feature_idx={n_features - 1}")
    objective = ""
    if lines.peek().startswith("objective="):
        objective = lines.value("objective")
        need(OBJECTIVES.fullmatch(objective), f"objective {objective[:40]!r} is not one of a ranker's")
    average = lines.peek() == "average_output"
    if average:
        lines.line("average_output")
    names = lines.value("feature_names").split(" ")
    need(len(names) == n_features and all(map(NAME.fullmatch, names)), f"feature_names must be {n_features} names")
    if lines.peek().startswith("monotone_constraints="):
        lines.wholes("monotone_constraints", n_features, (-1, 1))
    infos = lines.value("feature_infos").split(" ")
    need(len(infos) == n_features and all(map(INFO.fullmatch, infos)), f"feature_infos must be {n_features} ranges")
    count = lines.peek().count(" ") + 1 if lines.peek() != "tree_sizes=" else 0
    sizes = lines.wholes("tree_sizes", count, (0, INT32[1]))
    lines.line("")
    return tuple(names), objective, average, sizes


def _tree(lines: Lines, number: int, n_features: int) -> Tree:
    """Take one tree; its leaves follow the inner nodes."""
    where = f"tree {number}"
    lines.line(f"Tree={number}")
    leaves = int(lines.wholes("num_leaves", 1, (1, INT32[1]))[0])
    inner = leaves - 1
    n_cat = int(lines.wholes("num_cat", 1, (0, inner))[0])
    features = lines.wholes("split_feature", inner)
    need(((features >= 0) & (features < n_features)).all(), f"{where} splits a feature outside the {n_features}")
    lines.numbers("split_gain", inner)
    thresholds = lines.numbers("threshold", inner, endless=True)  # inf: a missing value on the other side
    decisions = lines.wholes("decision_type", inner, (0, 4 * MISSING_TYPES - 1))
    children = [lines.wholes(f"{side}_child", inner, (-leaves, inner - 1)) for side in ("left", "right")]
    # A leaf's number is stored as its complement: leaf 0 is -1.
    ends = np.full(leaves, -1)
    left, right = (np.concatenate([np.where(child < 0, inner + ~child, child), ends]) for child in children)
    need(reached(left, right, where).all(), f"{where} has nodes that nothing leads to")
    values = lines.numbers("leaf_value", leaves)
    # A tree that is one leaf may lack the weight and number of its rows.
    lines.numbers("leaf_weight", 0 if inner == 0 and lines.peek() == "leaf_weight=" else leaves)
    lines.wholes("leaf_count", 0 if inner == 0 and lines.peek() == "leaf_count=" else leaves, (0, INT32[1]))
    lines.numbers("internal_value", inner)
    lines.numbers("internal_weight", inner)
    lines.wholes("internal_count", inner, (0, INT32[1]))
    _categorical(lines, n_cat, thresholds[decisions % 2 == 1], where)
    linear = lines.wholes("is_linear", 1, (0, 1))[0] == 1
    if linear:
        _linear_leaves(lines, leaves, n_features, where)
    lines.numbers("shrinkage", 1)
    lines.line("")
    lines.line("")
    decisions = np.concatenate([decisions, np.zeros(leaves, np.int64)])
    return Tree(
        np.concatenate([features, ends]),
        np.concatenate([thresholds, np.zeros(leaves)]),
        left,
        right,
        np.concatenate([np.zeros(inner), values]),
        decisions & 2 > 0,
        decisions >> 2,
        decisions % 2 == 1,
        bool(linear),
    )


def _categorical(lines: Lines, n_cat: int, splits: NDArray[np.float64], where: str) -> None:
    """Sets of categories as bits: where each set begins, the words, and the splits that name one of them."""
    named = (splits >= 0) & (splits < n_cat) & (splits == np.floor(splits))
    need(named.all(), f"{where} has a split by categories it does not hold")
    if n_cat == 0:
        return
    bounds = lines.wholes("cat_boundaries", n_cat + 1, (0, INT32[1]))
    need(bounds[0] == 0 and (np.diff(bounds) >= 0).all(), f"cat_boundaries of {where} do not ascend from 0")
    lines.wholes("cat_threshold", int(bounds[-1]), UINT32)


def _linear_leaves(lines: Lines, leaves: int, n_features: int, where: str) -> None:
    constants = lines.peek().partition("=")[2].split(" ")
    lines.numbers("leaf_const", leaves)
    need(_none_tiny(constants), f"leaf_const of {where} has a number too small for LightGBM to read")
    counts = lines.wholes("num_features", leaves, (0, n_features))
    for key, pattern in (("leaf_features", WHOLES), ("leaf_coeff", NUMBERS)):
        text = lines.value(key)
        words = text.split()
        good = len(words) == counts.sum() and fits(pattern, " ".join(words)) and text == _by_leaf(words, counts)
        need(good, f"{key} of {where} must be {counts.sum()} numbers, leaf by leaf")
        if key == "leaf_features":
            outside = [word for word in words if not 0 <= int(word) < n_features]
            need(not outside, f"{where} has a leaf with a feature outside the {n_features}")
        else:
            need(np.isfinite(np.array(words, np.float64)).all(), f"{key} of {where} must be finite")
            need(_none_tiny(words), f"{key} of {where} has a number too small for LightGBM to read")


def _none_tiny(words: list[str]) -> bool:
    """Whether each number is 0 as written or a normal one: any other raises an error in C++ that ends the process."""
    tiny = np.abs(np.array(words, np.float64)) < np.finfo(np.float64).tiny
    return all(not re.search("[1-9]", words[at].partition("e")[0]) for at in np.flatnonzero(tiny))


def _by_leaf(words: list[str], counts: NDArray[np.int64]) -> str:
    """Numbers leaf by leaf with the spaces LightGBM writes."""
    out, first = "", 0
    for count in counts.tolist():
        out += " ".join(words[first : first + count]) + " " * (2 if count else 1)
        first += count
    return out


def _categories(lines: Lines) -> str:
    """The categories of a data frame's columns, which the last line gives as JSON."""
    last = next((line for line in reversed(lines.lines[lines.at :]) if line), "")
    if not last.startswith(CATEGORIES):
        return "null"
    columns = parse_json(last[len(CATEGORIES) :])
    plain = columns is None or (
        isinstance(columns, list)
        and all(isinstance(column, list) for column in columns)
        and all(value is None or isinstance(value, str | int | float) for column in columns for value in column)
    )
    need(plain, "the categories of its columns must be lists of labels")
    return json.dumps(columns)


def with_objective(text: str, name: str, *, learns: bool = True) -> str:
    """Give LightGBM's model text with the name of its objective, which it lacks after training with one of one's own.

    Parameters
    ----------
    text : str
        The model text.
    name : str
        LightGBM's name of the objective.
    learns : bool
        Whether the objective is the one that the trees were grown by, so that `Booster.refit` may go on with it: then
        the parameters of training name it too.

    Returns
    -------
    str
        The text, otherwise as it was.
    """
    head, line, rest = text.partition("\nfeature_names=")
    lines = [part for part in head.split("\n") if not part.startswith("objective=")]
    at = next(number for number, part in enumerate(lines) if part.startswith("max_feature_idx=")) + 1
    if learns:
        trees, mark, parameters = rest.partition("\nparameters:\n")
        rest = trees + mark + parameters.replace("[objective: custom]\n", f"[objective: {name}]\n", 1)
    return "\n".join([*lines[:at], f"objective={name}", *lines[at:]]) + line + rest
