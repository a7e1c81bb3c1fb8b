"""The evaluation sets of boosted rankers, in the forms of both libraries or as `RankingData`."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from evenrank.boosting.frames import as_training
from evenrank.boosting.rows import in_order, stored_rows, without_query
from evenrank.categories import Categories
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.row_checks import unmasked


def as_sets(given: Any) -> list[Any] | None:
    """Give evaluation sets as a list.

    Parameters
    ----------
    given : list, tuple, RankingData or None
        Pairs of X and y, or `RankingData`; one alone need not be in a list.

    Returns
    -------
    list or None
        Pairs, or `RankingData`.
    """
    if given is None:
        return None
    alone = isinstance(given, RankingData) or (
        isinstance(given, tuple) and not any(isinstance(each, RankingData) for each in given)
    )
    sets = [given] if alone else list(given)
    of_data = [isinstance(each, RankingData) for each in sets]
    if any(of_data) and not all(of_data):
        raise ConfigError("eval_set must be pairs (X, y), or RankingData; got some of both.")
    for each in sets if not any(of_data) else ():
        if not isinstance(each, tuple | list) or len(each) != 2:
            got = type(each).__name__ + (f" of {len(each)}" if isinstance(each, tuple | list) else "")
            raise ConfigError(f"each eval_set must be a pair (X, y), or a RankingData; got {got}.")
    return sets


def own_weights(sets: list[Any] | None) -> list[Any] | None:
    """Give the weights of rows that evaluation sets bring, each (n,) or None; None if none has any."""
    weights = [each.sample_weight if isinstance(each, RankingData) else None for each in sets or ()]
    return weights if any(weight is not None for weight in weights) else None


def eval_rows(
    sets: list[Any] | None,
    eval_qid: Any,
    eval_group: Any,
    names: tuple[str, ...] | None = None,
    categories: Categories = MappingProxyType({}),
    like: Any = None,
) -> tuple[Any, Any, list[Any]]:
    """Bring evaluation sets to stored order.

    Parameters
    ----------
    sets : list or None
        What `as_sets` gives.
    eval_qid, eval_group : list or None
        See `evenrank.lightgbm.FairLGBMRanker.fit`.
    names, categories, like : optional
        Of the training rows; see `as_training`.

    Returns
    -------
    tuple
        The sets as pairs, with the rows of a query together; the sizes of their queries; and the orders of their rows.
    """
    if sets is None:
        return None, eval_group, []
    if sets and isinstance(sets[0], RankingData):
        if eval_qid is not None or eval_group is not None:
            raise ConfigError("an eval_set of RankingData has its queries; leave out eval_qid and eval_group.")
        pairs = [(as_training(data, names, categories, like), data.relevance) for data in sets]
        return pairs, [np.diff(data.query_ptr) for data in sets], [data.row_order for data in sets]
    parted = [without_query(X, eval_qid, eval_group) for X, _ in sets]
    if eval_qid is None and any(ids is not None for _, ids in parted):
        if any(ids is None for _, ids in parted):
            raise ConfigError("every eval_set, or none, must have a column 'qid'; or pass eval_qid.")
        eval_qid = [ids for _, ids in parted]
    sets = [(as_training(X, names, categories, like), y) for (X, _), (_, y) in zip(parted, sets, strict=True)]
    if eval_qid is None:
        if sets and eval_group is None:
            raise ConfigError("pass eval_qid or eval_group, the queries of each eval_set.")
        check_number_of(eval_group, sets, "eval_group", "sizes of queries")
        return [_checked(X, y, None) for X, y in sets], eval_group, [None] * len(sets)
    check_number_of(eval_qid, sets, "eval_qid", "query ids")
    stored, sizes, orders = [], [], []
    for (X, y), ids in zip(sets, eval_qid, strict=True):
        n = len(stored_rows(ids, None, _rows(X), "eval_qid"))
        rows = RankingData.from_arrays(np.zeros((n, 0)), np.zeros(n), None, ids)
        stored.append(_checked(X, y, rows.row_order))
        sizes.append(np.diff(rows.query_ptr))
        orders.append(rows.row_order)
    return stored, sizes, orders


def _rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _checked(X: Any, y: Any, order: Any) -> tuple[Any, Any]:
    """Features and relevance in stored order, one of each per row."""
    y = stored_rows(unmasked(y, "y"), order, _rows(X), "y of an eval_set")
    return in_order(X, order), y


def check_number_of(parts: Any, sets: list[Any], name: str, what: str) -> None:
    """Refuse an argument that does not have one part for each evaluation set.

    Parameters
    ----------
    parts : sequence or None
        The argument.
    sets : list
        The sets.
    name, what : str
        What an error calls the argument and its parts.
    """
    if parts is not None and len(parts) != len(sets):
        raise ConfigError(f"{name} must have the {what} of each of the {len(sets)} eval_set; got {len(parts)}.")


def each_in_order(parts: Any, pairs: Any, orders: list[Any], name: str) -> Any:
    """Bring a column of each evaluation set to stored order.

    Parameters
    ----------
    parts : sequence or None
        One column per evaluation set.
    pairs, orders : list
        The sets and orders that `eval_rows` gave.
    name : str
        What an error calls the column.

    Returns
    -------
    list or None
        The columns.
    """
    if parts is None or pairs is None:
        return None
    check_number_of(parts, pairs, name, "values")
    return [stored_rows(part, order, len(y), name) for part, (_, y), order in zip(parts, pairs, orders, strict=True)]
