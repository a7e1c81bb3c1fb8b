"""Measures of lists by window: each is made of ratios of sums over lists, which are kept by kind of list and bin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.audits.summary import Summary
from evenrank.data import RankingData
from evenrank.errors import DataError
from evenrank.measures import Asked, Evaluation, MeasureAt
from evenrank.measures.exposure_measures import exposure_rates
from evenrank.measures.options import GroupShares
from evenrank.monitoring.parts import FILLER
from evenrank.monitoring.series import BINS, COLUMNS, LONGEST, Series, Table, clusterings
from evenrank.monitoring.watched import asked_at

MOST_RELEVANT = 5  # lists with 2**4 relevant items or more are of one kind
LARGE = 2 / 3  # the share of a list's items from which a group makes a kind of its own


def sums_of_lists(asked: Asked, ev: Evaluation) -> tuple[list[tuple[str, str]], NDArray[Any], NDArray[Any]]:
    """Compute each list's part of the numerators and denominators that a measure is made of.

    Parameters
    ----------
    asked : Asked
        A measure that has an interval, other than the gaps of pairs.
    ev : Evaluation
        One ranking.

    Returns
    -------
    labels : list of (str, str)
        What each ratio is of: ("", "") all of the list, (group, "") or two groups.
    top, size : ndarray
        (q, r) each; 0 where a list has no value.
    """
    measure = asked.measure
    groups = [str(name) for name in ev.data.group_names]
    ev = ev.with_options(measure.chosen(asked.options))
    if measure.name == "exposure_ratio":
        top, size = (table[:, :, 0] for table in exposure_rates(ev, asked.k, "items", pooled=False))
    elif measure.sums is not None:
        top, size = measure.sums(ev, asked.k)
    else:
        values = measure.per_query(ev, asked.k)[:, None]
        exists = ~np.isnan(values)
        return [("", "")], np.where(exists, values, 0.0), exists.astype(float)
    if measure.kind == "shares":  # the two halves have the same denominators
        half = top.shape[1] // 2
        top, size = top[:, :half] - top[:, half:], size[:, :half]
    labels = [(name, "") for name in groups]
    if measure.of_pairs:
        labels = [(a, b) for a in groups for b in groups if a != b]
    elif measure.kind == "mean":
        labels = [("", "")]
    return labels, np.nan_to_num(top), np.nan_to_num(size)


def kinds_of_lists(asked: Asked, data: RankingData) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort lists into kinds, each compared with its own.

    Parameters
    ----------
    asked : Asked
        The measure.
    data : RankingData
        The lists.

    Returns
    -------
    kind : ndarray
        (q,): by length over the cut-off and, if labels bear on the measure, by the number of relevant items, both in
        octaves.
    mix : ndarray
        (q,): the group that has more than two thirds of the items of known group, −1 if none has; −1 for a measure
        that does not know groups.
    """
    needs = asked.measure.needs
    octave = np.rint(np.log2(np.maximum(data.lengths, 1) / (asked.k or 1)))
    kind = np.clip(octave, 0, LONGEST).astype(np.int64)
    query = data.query_of_row
    if "relevance" in needs:
        relevant = np.bincount(query, data.relevant, data.n_queries)
        level = np.clip(np.rint(np.log2(np.maximum(relevant, 1))) + 1, 1, MOST_RELEVANT) * (relevant > 0)
        kind += (LONGEST + 1) * level.astype(np.int64)
    mix = np.full(data.n_queries, -1)
    if "groups" in needs:
        known = data.group >= 0
        cells = np.bincount(
            query[known] * data.n_groups + data.group[known], minlength=data.n_queries * data.n_groups
        ).reshape(data.n_queries, data.n_groups)
        mix = np.where(cells.max(1) > LARGE * cells.sum(1), cells.argmax(1), -1)
    return kind, mix


def field_table(
    names: Sequence[str],
    k: int,
    scores: NDArray[Any],
    data: RankingData,
    window: NDArray[np.int64],
    windows: int,
    ids: NDArray[np.uint64],
    summary: Summary,
    query_names: NDArray[Any],
) -> Table:
    """Sum up what measures need of lists, by window, kind of list and bin.

    Parameters
    ----------
    names : sequence of str
        Measures, as `watched` writes them.
    k : int
        The monitor's cut-off.
    scores, data
        The rows, scores in stored order; the lists of ``summary``.
    window, windows, ids
        As in `series.table_of`.
    summary : Summary
        The same lists, for their clusters.
    query_names : ndarray
        (q,): what errors call the lists.

    Returns
    -------
    Table
        The sums.
    """
    cluster_names, codes = clusterings(summary, ids)
    tables = [Table((), np.zeros(0, np.int64), np.zeros((0, COLUMNS)), windows)]
    ranked = Evaluation.of(scores, data) if names else None
    for name in names:
        assert ranked is not None
        asked = asked_at(name, k)
        part = with_groups_of(asked, data)
        ev = ranked if part is data else replace(ranked, data=part, shared={}, _kept={})
        labels, top, size = sums_of_lists(asked, ev)
        strange = ~np.isfinite(top).all(axis=1)
        if strange.any():
            raise DataError(
                f"{name} is infinite in {int(strange.sum()):,} lists, such as query {query_names[strange.argmax()]!s}, "
                "and cannot be watched there. Choose options that keep it finite, as smoothing=1 for skew."
            )
        kind, mix = kinds_of_lists(asked, part)
        kinds, of_list = np.unique(np.stack([kind, mix]), axis=1, return_inverse=True)
        mixes = [str(part.group_names[one]) if one >= 0 else "" for one in kinds[1].tolist()]
        for cluster, code in zip(cluster_names, codes, strict=True):
            series = [
                Series(MeasureAt.of(name).name, asked.k or 0, a, b, cluster, int(one), mixed)
                for a, b in labels
                for one, mixed in zip(kinds[0].tolist(), mixes, strict=True)
            ]
            place = window * BINS + code
            keys, values = [], []
            for j in range(len(labels)):
                rows = np.flatnonzero(size[:, j] > 0)
                keys.append(((j * len(mixes) + of_list.reshape(-1)[rows]) * windows * BINS) + place[rows])
                values.append(np.stack([top[rows, j], size[rows, j], np.ones(len(rows))], axis=1))
            key = np.concatenate(keys)
            there, new = np.unique(key // (windows * BINS), return_inverse=True)
            key = new.reshape(-1) * windows * BINS + key % (windows * BINS)
            tables.append(Table(tuple(series[j] for j in there), key, np.concatenate(values), windows))
    return Table.sum_of([(table, np.arange(windows)) for table in tables], windows)


def with_groups_of(asked: Asked, data: RankingData) -> RankingData:
    """Give data that knows all groups of a measure's target and its protected group, also those without a row."""
    target = asked.options.target
    wanted = [label for label, _ in target] if isinstance(target, GroupShares) else []
    wanted += [] if asked.options.protected is None else [asked.options.protected]
    known = [name for name in data.group_names if not str(name).startswith(FILLER)]
    lacking = [label for label in dict.fromkeys(wanted) if str(label) not in set(map(str, known))]
    return replace(data, group_names=(*known, *lacking), parent=None) if lacking else data
