"""`ScoreColumn`: scores that the rows bring along, in the place of a ranker."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.rankers import model_file

KIND = "ScoreColumn"


class ScoreColumn:
    """What a re-ranker is fitted to if the scores are given and not trained: one column of the rows.

    Parameters
    ----------
    column : str
        The name of the column; it is read as a feature.
    """

    group_names_: tuple[Any, ...] = ()

    def __init__(self, column: str) -> None:
        self.column = column

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the column's name; ``deep`` is taken for scikit-learn's sake."""
        return {"column": self.column}

    def fit(self, data: RankingData) -> ScoreColumn:
        """Learn nothing."""
        return self

    def predict(self, data: RankingData) -> NDArray[np.float64]:
        """Give the column, (n,), in the caller's row order."""
        return np.asarray(data.to_caller(data.column(self.column)), np.float64)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON model file.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        model_file.write(model_file.header(self), path)

    @classmethod
    def from_content(cls, content: dict[str, Any], name: str) -> ScoreColumn:
        """Make it of a model file already read as JSON; see `FairLinearRanker.from_content`."""
        return cls(model_file.need(model_file.need(content, "parameters", dict, name=name), "column", str, name=name))
