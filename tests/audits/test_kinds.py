"""A summary of kinds of lists, each standing for many, gives the audit of those many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import evenrank as er
from engine_cases import assert_same
from evenrank.audits.pairs import binned
from evenrank.inference import Residuals

Summary = er.audits.Summary
pytestmark = pytest.mark.filterwarnings("ignore::evenrank.DataWarning")


def lists(seed, number, *, groups, digits, labelled, most):
    """Different lists, and how often each occurs."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, number)
    rows = int(lengths.sum())
    qid = np.repeat(np.arange(number), lengths)
    group = np.array([*groups, None], object)[rng.integers(0, len(groups) + 1, rows)]
    relevance = rng.integers(0, 2, rows) if labelled else np.zeros(rows)
    return qid, group, relevance, np.round(rng.normal(size=rows), digits), rng.integers(1, most + 1, number)


def repeated(qid, group, relevance, scores, times):
    """The rows of all lists; copy c of list j is query 100 j + c."""
    rows = [np.flatnonzero(qid == j) for j in range(len(times)) for _ in range(times[j])]
    ids = [
        np.full(len(some), 100 * qid[some[0]] + c)
        for some, c in zip(rows, np.concatenate([*map(np.arange, times)]), strict=True)
    ]
    at = np.concatenate(rows)
    data = er.RankingData.from_arrays(np.zeros((len(at), 0)), relevance[at], group[at], np.concatenate(ids))
    return scores[at], data


class Copies:
    """The ids of the copies of each list."""

    def __init__(self, times):
        self.times = times

    def __getitem__(self, place):
        return [100 * place + c for c in range(self.times[place])]


def of_lists(times):
    """Residuals of kinds brought to their lists."""
    starts = np.concatenate([[0], np.cumsum(times)])

    def over_lists(residuals):
        found = []
        for each in residuals:
            codes = np.concatenate([np.arange(starts[j], starts[j + 1]) for j in each.codes] or [np.zeros(0, int)])
            found.append(binned(Residuals(codes.astype(np.int64), np.repeat(each.values, times[each.codes]))))
        return found

    return over_lists


@pytest.mark.parametrize(
    ("seed", "number", "groups", "digits", "labelled", "most"),
    [
        (0, 40, "ab", 1, True, 6),
        (1, 40, "ab", 9, True, 6),
        (2, 60, "abc", 9, True, 3),
        (3, 40, "abcd", 1, False, 5),
        (4, 5, "ab", 9, True, 2),
        (5, 900, "ab", 9, True, 7),  # more lists than bins
        (6, 30, "ab", 9, True, 1),
    ],
)
def test_kinds_of_lists_stand_for_lists(seed, number, groups, digits, labelled, most):
    qid, group, relevance, scores, times = lists(
        seed, number, groups=groups, digits=digits, labelled=labelled, most=most
    )
    every, data = repeated(qid, group, relevance, scores, times)
    whole = Summary.of(every, data, [1, 3, 5], labelled=labelled)
    once = er.RankingData.from_arrays(np.zeros((len(qid), 0)), relevance, group, qid)
    kinds = replace(
        Summary.of(scores, once, [1, 3, 5], labelled=labelled),
        times=times.astype(np.float64),
        query_ids=Copies(times),
        copied=whole.copies,
        binned=of_lists(times),
    )
    assert kinds.n_queries == whole.n_queries == times.sum()
    assert_same(er.audit(whole), er.audit(kinds))


def test_kinds_within_clusters_stand_for_lists_of_one_cluster():
    qid, group, relevance, scores, times = lists(7, 60, groups="ab", digits=9, labelled=True, most=4)
    every, data = repeated(qid, group, relevance, scores, times)
    user = {"user": data.to_caller(data.query_ids[data.query_of_row]) // 100 % 20}
    whole = Summary.of(every, data, [1, 3], cluster=user)
    once = er.RankingData.from_arrays(np.zeros((len(qid), 0)), relevance, group, qid)
    kinds = replace(
        Summary.of(scores, once, [1, 3], cluster={"user": qid % 20}),
        times=times.astype(np.float64),
        query_ids=Copies(times),
        copied=whole.copies,
    )
    assert_same(er.audit(whole), er.audit(kinds))
