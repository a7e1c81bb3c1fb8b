"""The data sets of `boosting_robust.py`: lists of 2 to 1,000 items, groups of 2 to 50 %."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import evenrank as er

MSLR_GROUP = "134"  # clicks for this query; the column itself stays out of the features


HOSTILE = ("tiny", "merit", "lengths", "revealed", "three", "even")


def made(
    queries: int,
    length: tuple[int, int],
    share: float,
    *,
    graded: bool,
    hidden: bool,
    seed: int,
) -> er.RankingData:
    """Lists in which group b, a ``share`` of the items, is disfavoured by what tells merit.

    ``hidden``: no other feature shows the group; else one does, with noise.
    """
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.uniform(np.log(length[0]), np.log(length[1]), queries)).round().astype(int)
    qid = np.repeat(np.arange(queries), lengths)
    n = len(qid)
    b = rng.random(n) < share
    X = rng.normal(size=(n, 12))
    X[:, 0] -= 0.5 * b
    X[:, 1] -= 0.3 * b
    if not hidden:
        X[:, 2] += 1.2 * b
    X[:, 11] = rng.normal(size=queries)[qid]
    merit = X[:, 0] + 0.6 * X[:, 1] + 0.5 * X[:, 3] * X[:, 4] + 0.4 * np.sin(2 * X[:, 5]) + rng.normal(size=n)
    # Binary: a tenth of all items is relevant, in short lists 30 %.
    ends = (
        np.quantile(merit, [0.6, 0.8, 0.92, 0.98]) if graded else np.quantile(merit, [0.9 if length[1] > 20 else 0.7])
    )
    return er.RankingData.from_arrays(X, np.searchsorted(ends, merit), np.where(b, "b", "a"), qid)


def hostile(kind: str, *, quick: bool, seed: int = 0) -> er.RankingData:
    """Lists that nothing was chosen on, each with one thing that can go wrong.

    "tiny": lists of 5, a group of 2 %, graded. "merit": group b is less relevant beyond what features tell. "lengths":
    group b is in long lists alone, where fewer are selected. "revealed": a feature is the group. "three": three groups,
    5 % unknown, short binary lists of which many are selected whole. "even": the groups differ in nothing. Another
    ``seed`` draws the same design anew.
    """
    first = 100 + HOSTILE.index(kind)
    rng = np.random.default_rng((first, seed) if seed else first)
    queries = {"tiny": 1200, "merit": 300, "lengths": 250, "revealed": 300, "three": 900, "even": 300}[kind]
    queries = queries // 3 if quick else queries
    shortest, longest = {"tiny": (5, 5), "lengths": (8, 60), "three": (2, 12)}.get(kind, (10, 30))
    lengths = rng.integers(shortest, longest + 1, queries)
    qid = np.repeat(np.arange(queries), lengths)
    n = len(qid)
    share = {"tiny": 0.02, "merit": 0.3, "three": 0.4}.get(kind, 0.25)
    b = rng.random(n) < share
    if kind == "lengths":
        b &= lengths[qid] > 30
    X = rng.normal(size=(n, 15))
    if kind != "even":
        X[:, 0] -= 0.6 * b
        X[:, 3] -= 0.4 * b
        X[:, 6] += 1.0 * b
    if kind == "revealed":
        X[:, 14] = b
    X[:, 13] = rng.exponential(size=queries)[qid]
    merit = 0.9 * X[:, 0] + np.abs(X[:, 1]) + 0.7 * X[:, 2] * (X[:, 3] > 0) + 0.5 * X[:, 4] + rng.normal(size=n)
    if kind == "merit":
        merit -= 0.8 * b
    levels = [0.7] if kind in ("revealed", "three") else [0.5, 0.75, 0.9, 0.97]
    group = np.where(b, "b", "a").astype(object)
    if kind == "three":
        group[b & (rng.random(n) < 0.25)] = "c"
        group[rng.random(n) < 0.05] = None
    return er.RankingData.from_arrays(X, np.searchsorted(np.quantile(merit, levels), merit), group, qid)


def mslr(folder: Path) -> er.RankingData:
    """The sample of MSLR-WEB: 43 queries of about 116 documents, graded; 3 % were clicked for the query."""
    data = er.read(folder / "mslr_web_5k" / "msn1.fold1.train.5k.txt", format="letor", group=None)
    features, names = np.asarray(data.features), data.feature_names
    kept = [j for j, name in enumerate(names) if name != MSLR_GROUP]
    group = np.where(features[:, names.index(MSLR_GROUP)] > 0, "clicked", "not clicked")
    return er.RankingData.from_arrays(features[:, kept], data.relevance, group, data.query_of_row)


def cutoff(name: str) -> int:
    return 3 if name in ("short", "trec", "tiny", "three") else 5


def sets(
    folder: Path | None, *, quick: bool, large: bool = False, seed: int = 0
) -> dict[str, tuple[bool, Callable[[], er.RankingData]]]:
    """Name → whether the constants were chosen on it, and how to get it."""
    size = (lambda n: max(50, n // 4)) if quick else (lambda n: n)
    found: dict[str, tuple[bool, Any]] = {
        "plain": (True, lambda: made(size(300), (8, 24), 0.35, graded=True, hidden=False, seed=0)),
        "rare": (True, lambda: made(size(200), (30, 60), 0.03, graded=True, hidden=False, seed=1)),
        "short": (True, lambda: made(20_000 if large else size(1000), (5, 7), 0.5, graded=False, hidden=True, seed=2)),
        "long": (True, lambda: made(50, (50, 300) if quick else (100, 1000), 0.1, graded=True, hidden=False, seed=3)),
    }
    if folder is not None and (folder / "mslr_web_5k").exists():
        found["mslr"] = (True, lambda: mslr(folder))
    if folder is not None and (folder / "trec_fair_2019").exists():
        found["trec"] = (True, lambda: er.datasets.trec_fair_2019(folder / "trec_fair_2019"))
    for kind in HOSTILE:
        found[kind] = (False, lambda kind=kind: hostile(kind, quick=quick, seed=seed))
    return found
