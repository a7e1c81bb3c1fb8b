"""What re-rankers that learn from scores share: parameters, checks, model files, and scores with their ties settled."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.rankers import model_file
from evenrank.rankers.matching import match_groups
from evenrank.ranking import Ranking
from evenrank.row_checks import as_floats, listed


class ScoreReranker:
    """Base of re-rankers that are fitted to scores and groups; subclasses fit, rerank and have a ``content``."""

    group_names_: tuple[Any, ...]
    learns = True  # from scores, which then must be of rows that the scorer was not trained on

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the parameters by name, as scikit-learn does.

        Parameters
        ----------
        deep : bool
            Taken for scikit-learn's sake.

        Returns
        -------
        dict
            Names and values.
        """
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name, as scikit-learn does.

        Parameters
        ----------
        **parameters
            Names and values.

        Returns
        -------
        ScoreReranker
            The re-ranker itself.
        """
        type(self).__init__(self, **{**self.get_params(), **parameters})
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def save(self, path: str | PathLike[str]) -> None:
        """Write a JSON model file, which `evenrank.load` reads.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        model_file.write(self.content(), path)

    def content(self) -> dict[str, Any]:
        """Give what the model file holds, in plain values."""
        raise NotImplementedError

    # ------------------------------------------------------------------ for subclasses

    def _with(self, **parameters: Any) -> Self:
        """A copy with other parameters that keeps what `fit` has found."""
        new = type(self)(**{**self.get_params(), **parameters})
        new.__dict__ |= {name: value for name, value in self.__dict__.items() if name not in new.get_params()}
        return new

    def _check_fitted(self, before: str) -> None:
        if not hasattr(self, "group_names_"):
            from evenrank.rankers.base import NotFittedError  # scikit-learn takes long to import

            raise NotFittedError(f"this {type(self).__name__} is not fitted yet. Call fit before {before}.")

    def _groups(self, data: RankingData) -> NDArray[np.int64]:
        """Each row's group, (n,), as a code into those of `fit`, -1 if unknown; one that `fit` never saw is refused."""
        self._check_fitted("rerank")
        self._need_groups(data)
        return match_groups(data, self.group_names_)

    def _need_groups(self, data: RankingData, least: int = 1) -> None:
        need_groups(type(self).__name__, data, least)


def need_groups(name: str, data: RankingData, least: int) -> None:
    """Refuse what is no data, and data with fewer groups than a re-ranker needs.

    Parameters
    ----------
    name : str
        What an error calls the re-ranker.
    data : RankingData
        The rows.
    least : int
        How many groups there must be.

    Raises
    ------
    DataError
        If there are fewer.
    """
    if not isinstance(data, RankingData):
        raise DataError(f"{name} takes scores and then a RankingData; got {type(data).__name__} for the data.")
    data.need_labels(name)
    if data.n_groups < least:
        number = "two groups" if least > 1 else "group labels"
        has = listed(data.group_names) or "none"
        raise DataError(f"{name} needs {number}; the data has {has}. Name the column of the group.")


def one_column(scores: ArrayLike, data: RankingData) -> NDArray[Any]:
    """Check scores in the caller's row order, (n,), and bring them to stored order; their type stays.

    Parameters
    ----------
    scores : array-like
        The scores.
    data : RankingData
        The rows.

    Returns
    -------
    ndarray
        (n,).
    """
    stored = data.to_stored(scores)
    if stored.ndim != 1:
        raise DataError(f"scores to re-rank must be one column, ({data.n_rows},); got shape {stored.shape}.")
    return stored


@dataclass(frozen=True, eq=False)
class Settled:
    """Scores of which those that count as tied are equal, so that they stay tied whatever is added to them.

    Attributes
    ----------
    score : ndarray
        (n,), float64, in stored order: each tied block has its largest score.
    order : ndarray
        The rows of each list from the best down, (n,).
    first : ndarray
        Where in ``order`` the block of each row of ``order`` begins, (n,).
    """

    score: NDArray[np.float64]
    order: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, stored: NDArray[Any], data: RankingData) -> Settled:
        """Settle scores in stored order, (n,)."""
        ranking = Ranking(stored, data.query_ptr)
        place = ranking if ranking.untied else Ranking(stored, data.query_ptr, ties="input")
        list_start = np.repeat(data.query_ptr[:-1], data.lengths)
        order = np.empty(data.n_rows, np.int64)
        order[list_start + place.first] = np.arange(data.n_rows)
        values = as_floats(stored, "scores")
        if ranking.untied:
            return cls(values, order, np.arange(data.n_rows))
        block = list_start + ranking.first
        return cls(values[order[block]], order, block[order])
