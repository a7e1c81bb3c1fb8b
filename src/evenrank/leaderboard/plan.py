"""`BenchPlan`: what a bench will do, one block per data set, method and seed of the folds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.experiment.plan import digest_of, fingerprint

if TYPE_CHECKING:
    from evenrank.leaderboard.runner import BenchRunner

PLAIN = "amortized"  # its strength 0 is the baseline of everything linear
FLOOR = "noise_floor"  # stands in a block for the method that sees the test rows too


@dataclass(frozen=True, eq=False)
class BenchData:
    """A data set of a bench.

    Attributes
    ----------
    groupings : mapping of str to RankingData
        The same rows under each grouping.
    clusters : ndarray, optional
        A number per query, (q,): queries with the same number stay in one fold, because they share items or users.
    """

    groupings: Mapping[str, RankingData]
    clusters: NDArray[Any] | None = None

    def fold_of(self, folds: int, seed: int) -> NDArray[np.int64]:
        """Draw the fold of each query, (q,)."""
        data = next(iter(self.groupings.values()))
        if self.clusters is None:
            return data.folds(folds, seed)
        names, cluster = np.unique(self.clusters, return_inverse=True)
        fold = np.empty(len(names), np.int64)
        fold[np.random.default_rng(seed).permutation(len(names))] = np.arange(len(names)) % folds
        return fold[cluster]


@dataclass(frozen=True)
class BenchBlock:
    """One method on one data set, under one division into folds.

    Attributes
    ----------
    data : str
        The data set's name.
    method : str
        The method's name in the registry, or `FLOOR`.
    seed : int
        The seed of the folds and of training.
    """

    data: str
    method: str
    seed: int


@dataclass(frozen=True, eq=False)
class BenchPlan:
    """Everything that decides the numbers of a bench.

    Attributes
    ----------
    sources : mapping of str to BenchData
        The data sets by name.
    blocks : tuple of BenchBlock
        In the order of the table.
    notions : tuple of str
        The notions to train for and to measure.
    grids : mapping of str to ndarray
        Each method's strengths.
    ks : tuple of int
        The cut-offs.
    folds : int
        The number of folds.
    scale : str or None
        How linear methods standardise features.
    settings : mapping of str to mapping
        Each method's options.
    """

    sources: Mapping[str, BenchData]
    blocks: tuple[BenchBlock, ...]
    notions: tuple[str, ...]
    grids: Mapping[str, NDArray[np.float64]]
    ks: tuple[int, ...]
    folds: int
    scale: str | None
    settings: Mapping[str, Mapping[str, Any]]

    def without_floor(self) -> list[str]:
        """Name the data sets that have no noise floor."""
        with_floor = {block.data for block in self.blocks if block.method == FLOOR}
        return [name for name in self.sources if name not in with_floor]

    def runner(self) -> BenchRunner:
        """Make what runs the blocks."""
        from evenrank.leaderboard.runner import BenchRunner

        return BenchRunner(self)

    def asked(self) -> dict[str, Any]:
        """Give the configuration in plain values; with the same data it gives the same numbers."""
        return {
            "data": {name: list(source.groupings) for name, source in self.sources.items()},
            "methods": list(self.grids),
            "blocks": [asdict(block) for block in self.blocks],
            "notions": list(self.notions),
            "strengths": {name: grid.tolist() for name, grid in self.grids.items()},
            "ks": list(self.ks),
            "folds": self.folds,
            "scale": self.scale,
            "settings": {name: dict(chosen) for name, chosen in self.settings.items()},
        }

    def facts(self) -> dict[str, Any]:
        """Give each data set's sizes and a digest of every value in it."""
        facts = {}
        for name, source in self.sources.items():
            data = next(iter(source.groupings.values()))
            facts[name] = {
                "rows": data.n_rows,
                "queries": data.n_queries,
                "features": data.n_features,
                "longest": int(data.lengths.max()),
                "fingerprint": fingerprint(source.groupings),
                "clusters": "" if source.clusters is None else digest_of([np.unique(source.clusters, True, True)[2]]),
            }
        return facts
