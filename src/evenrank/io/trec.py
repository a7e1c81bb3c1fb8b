"""TREC runs, ``qid Q0 docid rank score tag``, with judgements (qrels) and groups from files beside them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.io.columns import Columns
from evenrank.io.csv import header, load_table
from evenrank.io.files import Text, load_text
from evenrank.io.records import refuse_ragged, scan
from evenrank.io.values import labels, numbers, shown, whole_ids, whole_labels
from evenrank.row_checks import Locate, listed

RUN = ("qid", "Q0", "item", "rank", "score", "tag")
QRELS = ("qid", "iteration", "item", "relevance")
_SPACES = bytes.maketrans(b"\t\r", b"  ")


def read_trec(paths: Sequence[Path], columns: Columns) -> RankingData:
    """Read a run's scores as the only feature, ``score``; as in trec_eval, the rank column is not looked at.

    Relevance comes from ``qrels`` (0 for an item nobody judged; negative judgements count as 0). Judged items
    that the run did not retrieve are added below those it did, tied at the query's lowest score − 1, so that
    recall, ideal DCG and equal opportunity count them. Without ``qrels`` every relevance is 0.

    Parameters
    ----------
    paths : sequence of Path
        The run's files, read as one.
    columns : Columns
        The caller's choice, with ``qrels`` and ``groups``.
    """
    _refuse_columns(columns)
    run, places = _load(load_text(paths), RUN)
    score = numbers(run["score"], "score", places, ("a finite number", "Drop the row or fill the value."))
    run = run.select("qid", "item", score=pl.Series(score), run_row=pl.int_range(run.height))
    if columns.qrels is None:
        rows = run.with_columns(relevance=pl.lit(0.0), qrels_row=pl.lit(None, pl.Int64))
        judged_at = places
    else:
        path = Path(columns.qrels)
        qrels, judged_at = _load(load_text([path]), QRELS)
        rows = _join(run, _judged(qrels, judged_at), str(path))

    def at(row: int) -> str:
        retrieved = rows["run_row"][row]
        return places(retrieved) if retrieved is not None else judged_at(rows["qrels_row"][row])

    return RankingData.from_arrays(
        rows["score"].to_numpy().reshape(-1, 1),
        rows["relevance"].to_numpy(),
        None if columns.groups is None else _groups(columns.groups, rows["item"]),
        labels(whole_ids(rows["qid"])),
        item_ids=labels(whole_ids(rows["item"])),
        feature_names=("score",),
        relevance_threshold=columns.relevance_threshold,
        locate=at,
    )


def _refuse_columns(columns: Columns) -> None:
    if columns.sample_weight is not None:
        raise ConfigError(f"sample_weight must be None for a TREC run; got {columns.sample_weight!r}.")
    ignored = [name for name in columns.ignore if name != columns.group]
    if ignored:
        raise ConfigError(f"ignore must be empty for a TREC run, which has no features; got {listed(ignored)}.")
    if columns.categorical:
        raise ConfigError(f"categorical must be empty for a TREC run; got {listed(columns.categorical)}.")
    for option, names in (("features", columns.features), ("score", columns.score and (columns.score,))):
        if names and tuple(names) != ("score",):
            raise ConfigError(f"{option} must be 'score', a TREC run's only feature; got {listed(names)}.")


def _load(text: Text, names: Sequence[str]) -> tuple[pl.DataFrame, Locate]:
    """The fields as text, and a callable from a row to its place."""
    data = text.data.translate(_SPACES)
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    tidy = Text(data.replace(b" \n", b"\n").replace(b"\n ", b"\n").lstrip(b" "), text.paths, text.first_lines)
    if not tidy.data.strip():
        raise DataError(f"{text.name}: the file is empty; at least one row is needed.")
    records = scan(tidy, b" ", quotes=False)
    refuse_ragged(records, text, len(names), f"{' '.join(names)!r}")
    schema = {name: pl.String() for name in names}
    # A line before the first: a byte order mark is dropped at the very beginning only.
    plain = b" ".join(b"0" for _ in names) + b"\n" + records.without_blanks()
    frame = pl.read_csv(plain, has_header=False, separator=" ", schema=schema, quote_char=None)[1:]
    return frame, lambda row: text.place(int(records.lines[row]))


def _judged(qrels: pl.DataFrame, at: Locate) -> pl.DataFrame:
    relevance = numbers(qrels["relevance"], "relevance", at, ("a finite number", "Drop the row or fill the value."))
    twice = qrels.select(pl.struct("qid", "item").is_first_distinct())["qid"]
    if not twice.all():
        row = int(twice.arg_min() or 0)
        raise DataError(
            f"{at(row)}: an item must be judged once in a query; {shown(qrels['item'][row])} is judged again "
            f"in query {shown(qrels['qid'][row])}. Keep one row."
        )
    return qrels.select(
        "qid", "item", relevance=pl.Series(np.maximum(relevance, 0.0)), qrels_row=pl.int_range(qrels.height)
    )


def _join(run: pl.DataFrame, judged: pl.DataFrame, source: str) -> pl.DataFrame:
    """Judgements beside the retrieved items, and the judged items the run missed below them."""
    floor = run.group_by("qid").agg(score=pl.col("score").min() - 1.0)
    absent = judged.join(floor, on="qid", how="anti")["qid"].n_unique()
    if absent == judged["qid"].n_unique():
        raise DataError(f"{source}: the judgements and the run must share queries; they have none in common.")
    if absent:
        warnings.warn(f"{absent} judged queries are not in the run and are left out", DataWarning, stacklevel=4)
    retrieved = run.join(judged, on=["qid", "item"], how="left").sort("run_row")
    missed = judged.join(run, on=["qid", "item"], how="anti").join(floor, on="qid", how="inner").sort("qrels_row")
    return pl.concat([retrieved, missed], how="diagonal").with_columns(pl.col("relevance").fill_null(0.0))


def _groups(groups: str | os.PathLike[str] | Mapping[Any, Any], items: pl.Series) -> NDArray[Any]:
    """Each row's label; items that have none are of unknown group."""
    if isinstance(groups, Mapping):
        label_of = {str(item): label for item, label in groups.items()}
    else:
        label_of = _group_table(Path(groups))
    out = np.empty(len(items), dtype=object)
    out[:] = [label_of.get(item) for item in items.to_list()]
    if label_of and all(label is None for label in out):
        source = "groups" if isinstance(groups, Mapping) else groups
        raise DataError(
            f"{source}: the run's items must have groups; none of them has one here. The run has items such as "
            f"{shown(items[0])}, the groups {shown(next(iter(label_of)))}."
        )
    return out


def _group_table(path: Path) -> dict[str, Any]:
    text = load_text([path])
    separator = "\t" if path.name.endswith((".tsv", ".tsv.gz")) else ","
    names = header(text, separator)
    for name in ("item", "group"):
        if name not in names:
            raise DataError(f"{path}: column {name!r} is not in the data; it has {listed(names)}. Rename it.")
    table = load_table(text, separator, names, ("item", "group"))
    label_of: dict[str, Any] = {}
    pairs = zip(table.frame["item"].to_list(), labels(whole_labels(table.frame["group"])).tolist(), strict=True)
    for row, (item, label) in enumerate(pairs):
        if label_of.setdefault(item, label) != label:
            raise DataError(
                f"{text.place(int(table.lines[row]))}: an item must have one group; {shown(item)} has "
                f"{shown(label_of[item])} and {shown(label)}. Keep one row."
            )
    return label_of
