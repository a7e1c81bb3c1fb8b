"""`RerankedRanker`: a ranker and a re-ranker fitted to its scores, as one model with one file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import evenrank
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.methods.crossfit import crossfit_scores
from evenrank.methods.method import Method
from evenrank.methods.score_column import ScoreColumn
from evenrank.rankers import model_file
from evenrank.rankers.content import FORMAT, VERSION

KIND = "RerankedRanker"
# Options of every command that trains, which mean nothing to given scores.
OF_ROWS = ("relevance_threshold", "random_state", "verbose")


class RerankedRanker:
    """A ranker whose lists are re-ranked.

    Parameters
    ----------
    base : ranker
        Gives scores.
    reranker : re-ranker
        Is fitted to scores of the training rows.
    adapt : bool
        Fit the re-ranker anew, without labels, to the lists that are to be ranked.
    """

    needs_groups = True

    def __init__(self, base: Any, reranker: Any, *, adapt: bool = False) -> None:
        self.base, self.reranker, self.adapt = base, reranker, adapt

    @classmethod
    def make(
        cls, method: Method, trainer: Method | str, data: RankingData, options: Mapping[str, Any]
    ) -> RerankedRanker:
        """Make one, not yet fitted.

        Parameters
        ----------
        method : Method
            The re-ranker's method.
        trainer : Method or str
            The method of the base ranker, which is trained at strength 0; or the column that holds the scores.
        data : RankingData
            The rows.
        options : mapping
            Parameters of the re-ranker, and of the base ranker.

        Returns
        -------
        RerankedRanker
            The two.
        """
        own = method.ranker_class()().get_params()
        reranker = method.make(data, {name: value for name, value in options.items() if name in own})
        rest = {name: value for name, value in options.items() if name not in own}
        if isinstance(trainer, str):
            for name in rest.keys() - {*OF_ROWS}:
                raise ConfigError(f"{name!r} is not an option of {method.name}.")
            return cls(ScoreColumn(trainer), reranker, adapt=method.sees.other_lists)
        base = trainer.make(data, {**rest, trainer.strength.name: 0.0})
        return cls(base, reranker, adapt=method.sees.other_lists)

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """The base ranker's features."""
        return tuple(self.base.feature_names_)

    @property
    def group_names_(self) -> tuple[Any, ...]:
        """The groups of training."""
        return tuple(self.reranker.group_names_)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the re-ranker's parameters; ``deep`` is taken for scikit-learn's sake."""
        return dict(self.reranker.get_params())

    def fit(self, data: RankingData) -> Self:
        """Train the base ranker, and fit the re-ranker to scores of the same rows.

        For the re-ranker each row is scored by a base ranker that was trained on other queries, as new rows will be; so
        up to six base rankers are trained. See `evenrank.methods.crossfit`.

        Parameters
        ----------
        data : RankingData
            The rows.

        Returns
        -------
        RerankedRanker
            The ranker itself.
        """

        def train_scores(train: RankingData, test: RankingData) -> NDArray[np.float64]:
            return np.asarray(deepcopy(self.base).fit(train).predict(test))

        scores = None
        if isinstance(self.base, ScoreColumn):
            scores = self.base.predict(data)
        elif getattr(self.reranker, "learns", True):
            scores = crossfit_scores(data, train_scores)
        self.reranker.fit(scores, data)
        self.base.fit(data)
        return self

    def predict(self, data: RankingData) -> NDArray[np.float64]:
        """Score rows and re-rank them.

        Parameters
        ----------
        data : RankingData
            The rows, with groups; labels are not looked at.

        Returns
        -------
        ndarray
            Scores, (n,), in the caller's row order.
        """
        if not isinstance(data, RankingData):
            raise ConfigError(f"a re-ranked model scores lists: pass a RankingData; got {type(data).__name__}.")
        scores = self.base.predict(data)
        reranker = self.reranker.adapt(scores, data) if self.adapt else self.reranker
        return np.asarray(reranker.rerank(scores, data))

    def save(self, path: str | PathLike[str]) -> None:
        """Write one JSON model file that holds both, and that `evenrank.load` reads.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.base.save(file := Path(folder) / "base.json")
            base = model_file.read(file)
        header = {"format": FORMAT, "version": VERSION, "kind": KIND, "evenrank": evenrank.__version__}
        parts = {"base": base, "reranker": self.reranker.content()}
        groups = parts["reranker"]["groups"]
        model_file.write(header | {"parameters": {"adapt": self.adapt}, "groups": groups} | parts, path)
