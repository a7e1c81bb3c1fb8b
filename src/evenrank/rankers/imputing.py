"""`Imputer`: numbers for rankers that take nothing else, learned on the training rows and saved with the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.categories import Categories, renumbered
from evenrank.checks import choose
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.rankers import model_file
from evenrank.rankers.content import short
from evenrank.rankers.matching import match_features
from evenrank.rankers.parameters import is_label
from evenrank.row_checks import blank_like, freeze

RULES: dict[str, Callable[..., Any]] = {"mean": np.mean, "median": np.median}


@dataclass(frozen=True, eq=False)
class Imputer:
    """What stands for missing values and categories.

    A missing number becomes the mean or the median of the feature's values in the training rows (0 if it has none
    there), whatever the rows' weights. Categories become one column of 0 and 1 for each category of the training rows;
    a missing or a new category is 0 in all of them.

    Attributes
    ----------
    features : tuple of str
        The features of the training rows.
    fill : ndarray
        What stands for a missing value of each feature, (d,); 0 for features of categories.
    categories : mapping of str to tuple
        The labels of each feature that holds categories.
    """

    features: tuple[str, ...]
    fill: NDArray[np.float64]
    categories: Categories

    @classmethod
    def fit(cls, data: RankingData, rule: str) -> Imputer:
        """Learn from the training rows.

        Parameters
        ----------
        data : RankingData
            The training rows.
        rule : str
            "mean" or "median".

        Returns
        -------
        Imputer
            What stands for their missing values.
        """
        typical = RULES[choose(rule, RULES, what="impute")]
        fill, categories = np.zeros(data.n_features), {}
        for j, name in enumerate(data.feature_names):
            values = np.asarray(data.features[:, j], np.float64)
            values = values[~np.isnan(values)]
            if name in data.categories:  # those of these rows only: others may be known from rows to be tested
                present = np.unique(values).astype(int).tolist()
                categories[name] = tuple(data.categories[name][code] for code in present)
            elif len(values):
                fill[j] = typical(values)
        return cls(data.feature_names, fill, categories)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that rankers see."""
        parts = (
            [f"{name}={label}" for label in self.categories[name]] if name in self.categories else [name]
            for name in self.features
        )
        return tuple(column for part in parts for column in part)

    def transform(self, data: RankingData, *, with_parent: bool = False) -> RankingData:
        """Give rows with numbers only, in columns that rankers see.

        Parameters
        ----------
        data : RankingData
            The rows, with the features of training.
        with_parent : bool
            Transform the data they were taken from too, of which ``scale="dataset"`` takes statistics.

        Returns
        -------
        RankingData
            The rows.
        """
        place = match_features(data, self.features)
        own = tuple(np.array(data.feature_names, object)[place])
        categories = {
            name: data.categories[of_data]
            for name, of_data in zip(self.features, own, strict=True)
            if of_data in data.categories
        }
        columns = self.columns
        out = blank_like(data.features, (data.n_rows, len(columns)))
        for rows, block in data.blocks():
            known = renumbered(block[:, place], self.features, categories, self.categories)
            at = 0
            for j, name in enumerate(self.features):
                if name in self.categories:
                    width = len(self.categories[name])
                    out[rows, at : at + width] = known[:, j, None] == np.arange(width)
                else:
                    width = 1
                    out[rows, at] = np.where(np.isnan(known[:, j]), self.fill[j], known[:, j])
                at += width
        parent = self.transform(data.parent) if with_parent and data.parent is not None else None
        numbers: dict[str, Any] = {
            "features": freeze(out),
            "feature_names": columns,
            "categories": {},
            "has_missing": False,
        }
        return replace(data, **numbers, parent=parent)

    def transform_groupings(
        self, groupings: Sequence[RankingData], *, with_parent: bool = False
    ) -> tuple[RankingData, ...]:
        """Transform the same rows under several groupings, which go on sharing their features.

        Parameters
        ----------
        groupings : sequence of RankingData
            The same rows under different groups.
        with_parent
            As in `transform`.

        Returns
        -------
        tuple of RankingData
            The rows with numbers only.
        """
        first = self.transform(groupings[0], with_parent=with_parent)
        numbers: dict[str, Any] = {"features": first.features, "feature_names": first.feature_names, "categories": {}}
        return first, *(replace(other, **numbers, has_missing=False, parent=first.parent) for other in groupings[1:])

    def content(self) -> dict[str, Any]:
        """Give it as plain values for a model file."""
        return {
            "features": list(self.features),
            "fill": self.fill.tolist(),
            "categories": {name: list(labels) for name, labels in self.categories.items()},
        }

    @classmethod
    def from_content(cls, content: Any, name: str) -> Imputer:
        """Make it of a model file's entry; ``name`` is what errors call the file."""
        if not isinstance(content, dict):
            raise DataError(f"{name}: 'imputer' is damaged; got {short(content)}.")
        features = model_file.names(content, "features", name=name)
        fill = model_file.numbers("fill", content.get("fill"), len(features), name=name)
        return cls(features, fill, read_categories(content, features, name))


def read_categories(content: dict[str, Any], features: Sequence[str], name: str) -> dict[str, tuple[Any, ...]]:
    """Read the categories of features from a model file.

    Parameters
    ----------
    content : dict
        The entry that holds them; older files have none.
    features : sequence of str
        The model's features.
    name : str
        What errors call the file.

    Returns
    -------
    dict
        The labels of each feature that holds categories.
    """
    entry = content.get("categories", {})
    good = isinstance(entry, dict) and all(
        feature in features
        and isinstance(labels, list)
        and all(map(is_label, labels))
        and len(set(labels)) == len(labels)
        for feature, labels in entry.items()
    )
    if not good:
        raise DataError(f"{name}: 'categories' must hold the labels of features, each once; got {short(entry)}.")
    return {feature: tuple(labels) for feature, labels in entry.items()}
