"""Missing values and categories in sweeps: which methods take them, and numbers in their place for the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenrank.checks import choose
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.methods.method import Method, Part, Task
from evenrank.methods.registry import METHODS
from evenrank.rankers.imputing import RULES, Imputer
from evenrank.row_checks import listed


def run(method: Method, task: Task) -> Iterable[Part]:
    """Run a method; for one that takes numbers only, the setting "impute" fills its rows first.

    What stands for missing values and categories is learned on the task's training rows.

    Parameters
    ----------
    method, task
        As ``method.run`` takes them.

    Returns
    -------
    iterable of Part
        Test scores, as ``method.run`` gives them.
    """
    if method.takes_missing:
        return method.run(method, task)
    settings = dict(task.settings)
    rule = settings.pop("impute", None)
    task = replace(task, settings=settings)
    if rule is not None:
        imputer = Imputer.fit(task.train[0], rule)
        train = imputer.transform_groupings(task.train, with_parent=task.scale == "dataset")
        task = replace(task, train=train, test=imputer.transform_groupings(task.test))
    return method.run(method, task)


def with_impute(
    settings: Mapping[str, Mapping[str, Any]] | None,
    methods: Sequence[str],
    impute: str | None,
    sources: Iterable[RankingData],
) -> dict[str, Mapping[str, Any]]:
    """Give each method that takes numbers only the rule by which missing values are filled.

    Parameters
    ----------
    settings : mapping of str to mapping, optional
        Method → its options.
    methods : sequence of str
        The methods to be run.
    impute : str, optional
        "mean" or "median".
    sources : iterable of RankingData
        The rows.

    Returns
    -------
    dict
        Method → its options.

    Raises
    ------
    DataError
        If rows have missing values or categories that a method does not take and nothing says how to fill.
    """
    out = {name: dict(options) for name, options in (settings or {}).items()}
    numeric = [name for name in methods if not METHODS[name].takes_missing]
    if impute is not None:
        choose(impute, RULES, what="impute")
        out |= {name: {"impute": impute, **out.get(name, {})} for name in numeric}
    unfilled = [name for name in numeric if out.get(name, {}).get("impute") is None]
    if unfilled and any(data.missing_features or data.categories for data in sources):
        able = ", ".join(name for name, method in METHODS.items() if method.takes_missing)
        raise DataError(
            f"{listed(unfilled)} cannot take missing values or categories, which the data has; {able} can. Pass "
            "impute='median' (--impute median), or leave those features out with ignore= (--ignore)."
        )
    return {name: options for name, options in out.items() if options}
