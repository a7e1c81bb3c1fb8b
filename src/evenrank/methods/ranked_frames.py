"""Tables scored by any of our models and put in order, part by part; for files larger than memory and for Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evenrank.checks import check_k
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.io.columns import Columns, Plan, assemble
from evenrank.io.row_files import RankingFiles
from evenrank.io.stream_moments import plain_labels
from evenrank.io.values import labels
from evenrank.io.whole_queries import ROW, joined, refuse_missing, sorted_frames, stand_together
from evenrank.quiet import quiet
from evenrank.ranking import strict_places
from evenrank.row_checks import Locate

SCORE = "evenrank_score"


@dataclass(frozen=True)
class ListRanking:
    """How rows are scored, and lists put in order.

    Attributes
    ----------
    model : ranker
        Any that `evenrank.load` gives; None takes the scores of the one feature.
    columns : Columns
        The caller's choice of columns.
    plan : Plan
        The part of each column.
    top : int or None
        The number of places to keep per query.
    """

    model: Any
    columns: Columns
    plan: Plan
    top: int | None = None

    def __post_init__(self) -> None:
        if self.top is not None:
            check_k(self.top)
        if type(getattr(self.model, "reranker", None)).__name__ == "MultinomialFAStar":
            raise ConfigError(
                "a model of fastar_multinomial looks at the longest of all lists, which must be in memory. Use a model "
                "of --method offset or det_greedy."
            )
        if getattr(self.model, "adapt", False):
            raise ConfigError(
                "a model of offset_adaptive is fitted anew to all lists that are ranked, which must be in memory. Use "
                "a model of --method offset."
            )

    @property
    def carried(self) -> list[str]:
        """The columns that stay beside the score."""
        parts = (self.columns.query, self.plan.item, self.columns.relevance, self.columns.group)
        return list(dict.fromkeys(name for name in parts if name is not None))

    def scored(self, frame: pl.DataFrame, at: Locate) -> pl.DataFrame:
        """Score rows, of whole queries or not.

        Parameters
        ----------
        frame : polars.DataFrame
            The rows.
        at : callable
            From a row to its place, for errors.

        Returns
        -------
        polars.DataFrame
            The carried columns and `SCORE`.
        """
        data = assemble(frame, self.plan, self.columns, at)
        if self.model is None:
            scores = data.to_caller(data.column(data.feature_names[0]))
        else:
            base = getattr(self.model, "base", self.model)
            with quiet():
                scores = base.predict(self._with_groups(data))
        return frame.select(self.carried).with_columns(pl.Series(SCORE, scores))

    def ordered(self, frame: pl.DataFrame, at: Locate) -> pl.DataFrame:
        """Re-rank scored lists, where the model does, and put them in order.

        Parameters
        ----------
        frame : polars.DataFrame
            Rows of whole queries, with `SCORE` and, if rows are numbered, `ROW`.
        at : callable
            From a row to its place, for errors.

        Returns
        -------
        polars.DataFrame
            Query, item, rank, score, relevance, group and row, as far as they are there; queries in their order, each
            from the first place down.
        """
        columns, n = self.columns, frame.height
        relevance = None if columns.relevance is None else frame[columns.relevance].cast(pl.Float64)
        group = None if columns.group is None else plain_labels(frame[columns.group])
        data = RankingData.from_arrays(
            np.zeros((n, 0)),
            np.zeros(n) if relevance is None else relevance.to_numpy(),
            None if group is None else labels(group),
            labels(frame[columns.query]),
            item_ids=None if self.plan.item is None else labels(frame[self.plan.item]),
            relevance_threshold=columns.relevance_threshold,
            locate=at,
        )
        scores = frame[SCORE].to_numpy()
        reranker = getattr(self.model, "reranker", None)
        if reranker is not None:
            scores = reranker.rerank(scores, self._with_groups(data))
        stored = data.to_stored(scores)
        rank = strict_places(stored, data) + 1
        order = np.lexsort((rank, data.query_of_row))
        if self.top is not None:
            order = order[rank[order] <= self.top]
        taken = frame[order if data.row_order is None else data.row_order[order]]
        out = {columns.query: taken[columns.query]}
        if self.plan.item is not None:
            out[self.plan.item] = taken[self.plan.item]
        out |= {"rank": pl.Series(rank[order]), "score": pl.Series(stored[order])}
        if columns.relevance is not None:
            out[columns.relevance] = taken[columns.relevance].cast(pl.Float64)
        if columns.group is not None:
            label = plain_labels(taken[columns.group])
            empty = label == "" if label.dtype == pl.String else pl.repeat(False, len(label), eager=True)
            out[columns.group] = label.set(empty.fill_null(False), None)
        if ROW in taken.columns:
            out["row"] = taken[ROW]
        return pl.DataFrame(out)

    def _with_groups(self, data: RankingData) -> RankingData:
        """A part may have rows of unknown group only; the groups are then those of training."""
        names = tuple(getattr(self.model, "group_names_", ()))
        return data if data.n_groups or self.columns.group is None else replace(data, group_names=names)


def rank_files(files: RankingFiles, model: Any, *, top: int | None = None) -> Iterator[pl.DataFrame]:
    """Score and order the rows of files larger than memory.

    Where the rows of each query stand together they are read once; else their ids and scores go to a temporary file,
    which DuckDB sorts.

    Parameters
    ----------
    files : RankingFiles
        The rows.
    model : ranker
        Any that `evenrank.load` gives; None takes the scores of the column that `scan` was told.
    top : int, optional
        The number of places to keep per query.

    Yields
    ------
    polars.DataFrame
        Lists in the order of their first rows, as ``evenrank rank`` writes them.
    """
    ranking = ListRanking(model, files.columns, files.plan, top)
    query = files.columns.query
    if stand_together(files):
        for frame in joined(_scored(files, ranking), query):
            yield ranking.ordered(frame, _place(files, frame[ROW]))
        return
    with tempfile.TemporaryDirectory(prefix="evenrank-") as folder:
        starts = _spooled(files, ranking, Path(folder))
        for frame in joined(sorted_frames(starts, [*ranking.carried, SCORE], query), query):
            yield ranking.ordered(frame, _place(files, frame[ROW]))


def _spooled(files: RankingFiles, ranking: ListRanking, folder: Path) -> dict[str, int]:
    """Write scored rows to files of a folder; gives each one's first row."""
    starts = {}
    for number, frame in enumerate(_scored(files, ranking)):
        file = folder / f"{number}.parquet"
        try:
            frame.drop(ROW).write_parquet(file, compression="lz4")
        except (OSError, pl.exceptions.ComputeError) as error:
            raise ConfigError(
                f"{tempfile.gettempdir()}: scores cannot be kept there ({getattr(error, 'strerror', None) or error}). "
                "Set TMPDIR to a larger disk, or sort the files by query."
            ) from None
        starts[str(file)] = int(frame[ROW][0])
    return starts


def _scored(files: RankingFiles, ranking: ListRanking) -> Iterator[pl.DataFrame]:
    for start, frame in files.frames(files.plan.needed):
        rows = pl.int_range(start, start + frame.height, dtype=pl.Int64, eager=True)
        refuse_missing(frame[files.columns.query], _place(files, rows))
        yield ranking.scored(frame, _place(files, rows)).with_columns(rows.alias(ROW))


def _place(files: RankingFiles, rows: pl.Series) -> Locate:
    return lambda row: files.place(int(rows[row]))
