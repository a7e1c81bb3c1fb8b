"""Logged rankings with a known truth for verdicts over many gaps: several groups, users, items, short and long lists.

A fair ranker's scores do not depend on the group; what depends on something else (a user's taste, an item's quality) is
drawn alike for all groups. The unfair one takes `lean` from the scores of the last group. (A taste that varies by user
is no fair setting for a rare group: what it gains from those who like it is more than what it loses from the others.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import audit_designs
import evenrank as er

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Log:
    """Rows of logged rankings: one entry per row."""

    query: np.ndarray
    group: np.ndarray
    relevance: np.ndarray
    score: np.ndarray
    cluster: np.ndarray | tuple[np.ndarray, np.ndarray] | None = None
    item: np.ndarray | None = None

    def data(self) -> er.RankingData:
        names = [f"group {code}" for code in range(int(self.group.max()) + 1)]
        return er.RankingData.from_arrays(
            np.zeros((len(self.query), 0)),
            self.relevance,
            self.group,
            self.query,
            item_ids=self.item,
            group_names=names,
        )


@dataclass(frozen=True)
class VerdictDesign:
    """A way to draw a log, how far the unfair ranker leans in it, and what the audit is asked."""

    draw: Callable[[Rng, float], Log]
    lean: float
    ks: tuple[int, ...] = (1, 3)
    labelled: bool = True


def scored(
    rng: Rng, lengths: np.ndarray, shares: list[float] | np.ndarray, lean: float, relevant: float = 0.4
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lists of random groups; scores see the relevance and, by ``lean``, the last group."""
    query = np.repeat(np.arange(len(lengths)), lengths)
    group = rng.choice(len(shares), len(query), p=shares)
    relevance = (rng.random(len(query)) < relevant).astype(int)
    score = rng.standard_normal(len(query)) + relevance - lean * (group == len(shares) - 1)
    return query, group, relevance, score


def several(shares: list[float], queries: int = 150, low: int = 6, high: int = 14) -> Callable[[Rng, float], Log]:
    def draw(rng: Rng, lean: float) -> Log:
        return Log(*scored(rng, rng.integers(low, high + 1, queries), shares, lean))

    return draw


def one_tiny(rng: Rng, lean: float) -> Log:
    """Six groups, one of them two items; the last group is behind."""
    query, group, relevance, score = scored(rng, np.full(80, 12), [0.3, 0.2, 0.2, 0.15, 0.15], lean)
    group = np.where(group == 4, 5, group)
    group[rng.choice(np.flatnonzero(group == 0), 2, replace=False)] = 4
    return Log(query, group, relevance, score)


def two_items(rng: Rng, lean: float) -> Log:
    return Log(*scored(rng, np.full(400, 2), [0.5, 0.5], lean))


def long_rare(rng: Rng, lean: float) -> Log:
    return Log(*scored(rng, np.full(40, 150), [0.95, 0.05], lean, 0.2))


def heavy_tails(rng: Rng, lean: float) -> Log:
    """A few very long lists hold most rows; half of the lists have at most four."""
    lengths = np.minimum((rng.pareto(1.1, 150) * 3 + 2).astype(int), 600)
    return Log(*scored(rng, lengths, [0.65, 0.35], lean))


def users_of(
    number: int, each: int, shares: list[float], taste: float, low: int = 6, high: int = 10
) -> Callable[[Rng, float], Log]:
    """Users with several queries, who like one group more than another by a taste of their own, drawn alike for all."""

    def draw(rng: Rng, lean: float) -> Log:
        user = np.repeat(np.arange(number), rng.poisson(each - 1, number) + 1)
        query, group, relevance, score = scored(rng, rng.integers(low, high + 1, len(user)), shares, lean)
        own = rng.normal(0, taste, (number, len(shares)))[user[query], group]
        return Log(query, group, relevance, score + own, cluster=user[query])

    return draw


def users_and_days(rng: Rng, lean: float) -> Log:
    """Queries of 30 users on 25 days; users and days lean, to one group as often as to the other. Both are named."""
    user, day = rng.integers(0, 30, 300), rng.integers(0, 25, 300)
    query, group, relevance, score = scored(rng, rng.integers(6, 11, 300), [0.5, 0.5], lean)
    own = rng.normal(0, 0.7, 30)[user] + rng.normal(0, 0.7, 25)[day]
    return Log(query, group, relevance, score + own[query] * (group - 0.5), cluster=(user[query], day[query]))


def catalogue(
    items: int, in_lists: int, lists: int, shares: list[float], quality: float, skew: float = 0.0, users: int = 0
) -> Callable[[Rng, float], Log]:
    """Lists of items of one catalogue; each item has a group and a quality of its own, and users may have a taste."""

    def draw(rng: Rng, lean: float) -> Log:
        counts = np.round(np.cumsum([0, *shares]) * items).astype(int)
        of_item = rng.permutation(np.repeat(np.arange(len(shares)), np.diff(counts)))
        popular = np.exp(skew * rng.standard_normal(items))
        item = np.argsort(rng.exponential(1 / popular, (lists, items)), axis=1)[:, :in_lists].ravel()
        query = np.repeat(np.arange(lists), in_lists)
        relevance = (rng.random(len(item)) < 0.4).astype(int)
        group = of_item[item]
        score = rng.standard_normal(len(item)) + relevance + quality * rng.standard_normal(items)[item]
        score -= lean * (group == len(shares) - 1)
        user = None
        if users:
            user = rng.integers(0, users, lists)[query]
            score += rng.normal(0, 0.7, (users, len(shares)))[user, group]
        return Log(query, group, relevance, score, user, item)

    return draw


def seldom_recurring(twice: float, quality: float) -> Callable[[Rng, float], Log]:
    """Most items stand in one list, some in two; what they carry is large."""

    def draw(rng: Rng, lean: float) -> Log:
        query, group, relevance, score = scored(rng, np.full(150, 8), [0.7, 0.3], lean)
        item = np.arange(len(query))
        later = rng.permutation(np.flatnonzero((query >= 75) & (rng.random(len(query)) < 2 * twice)))
        for code in (0, 1):
            mine = later[group[later] == code]
            first = np.flatnonzero((query < 75) & (group == code))
            mine = mine[: len(first)]
            item[mine] = rng.permutation(first)[: len(mine)]
        score = score + quality * rng.standard_normal(len(query))[item]
        return Log(query, group, relevance, score, item=item)

    return draw


def confounded_thrice(rng: Rng, lean: float) -> Log:
    """Length, relevance and groups go together, over three groups."""
    kind = rng.integers(0, 3, 200)
    lengths = np.array([4, 9, 18])[kind]
    query = np.repeat(np.arange(200), lengths)
    shares = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.15, 0.25, 0.6]])[kind][query]
    group = (rng.random((len(query), 1)) > shares.cumsum(axis=1)).sum(axis=1)
    relevance = (rng.random(len(query)) < np.array([0.7, 0.4, 0.15])[kind][query]).astype(int)
    score = rng.standard_normal(len(query)) + 1.5 * relevance - lean * (group == 2)
    return Log(query, group, relevance, score)


def graded_ties(rng: Rng, lean: float) -> Log:
    """Scores are grades of 0 to 4, so that most places are shared."""
    query, group, relevance, _ = scored(rng, rng.integers(5, 16, 150), [0.6, 0.4], 0.0)
    relevance = rng.binomial(3, 0.2 + 0.3 * rng.random(150)[query])
    score = np.round(relevance + rng.standard_normal(len(query)) - lean * (group == 1))
    return Log(query, group, relevance, np.clip(score, 0, 4))


def families(rng: Rng, lean: float) -> Log:
    """Rows of a list come in families of up to five of one group that rise and fall together."""
    lengths = np.full(120, 20)
    query = np.repeat(np.arange(120), lengths)
    family = query * 20 + rng.integers(0, 5, len(query))
    group = rng.permutation(len(query) + 1)[family] % 10 // 7  # three in ten families
    relevance = (rng.random(len(query)) < 0.3).astype(int)
    score = 1.5 * rng.standard_normal(len(query))[family] + 0.5 * rng.standard_normal(len(query)) + relevance
    return Log(query, group, relevance, score - lean * (group == 1))


def copies(rng: Rng, lean: float) -> Log:
    """Forty lists, each logged six times with the same items and nearly the same scores; what they share is named."""
    query, group, relevance, score = scored(rng, np.full(40, 10), [0.5, 0.5], lean)
    times = 6
    again = np.concatenate([query + 40 * copy for copy in range(times)])
    noise = 0.05 * rng.standard_normal(times * len(query))
    every = (np.tile(part, times) for part in (group, relevance, score))
    group, relevance, score = every
    return Log(again, group, relevance, score + noise, cluster=again % 40)


def of_study(name: str) -> VerdictDesign:
    """A design of `audit_designs.py`, in which the unfair ranker leans to group b."""
    design = audit_designs.DESIGNS[name]

    def draw(rng: Rng, lean: float) -> Log:
        rows = design.draw(rng, lean)
        inside = rows.inside
        query = np.broadcast_to(np.arange(len(inside))[:, None], inside.shape)[inside]
        lists = np.arange(len(inside))
        return Log(
            query,
            np.where(rows.is_a, 1, 0)[inside],
            rows.relevant[inside].astype(int),
            rows.score[inside],
            None if (rows.cluster == lists).all() else rows.cluster[query],
            None if rows.item is None else rows.item[inside],
        )

    return VerdictDesign(draw, design.lean, design.ks)


NEW = {
    "three groups": VerdictDesign(several([0.5, 0.3, 0.2]), 0.4),
    "three groups, one of 3 %": VerdictDesign(several([0.57, 0.4, 0.03]), 1.0),
    "six groups, one of 2 items": VerdictDesign(one_tiny, 0.7, (3,), labelled=False),
    "two-item lists": VerdictDesign(two_items, 0.4, (1,)),
    "long lists, 5 % group": VerdictDesign(long_rare, 0.4, (3, 10)),
    "heavy-tailed lengths": VerdictDesign(heavy_tails, 0.4, (1, 5)),
    "confounded, three groups": VerdictDesign(confounded_thrice, 0.5),
    "grades as scores": VerdictDesign(graded_ties, 0.4),
    "families in lists": VerdictDesign(families, 0.6, (1, 5)),
    "eight lists, four cut-offs": VerdictDesign(several([0.7, 0.3], 8, 15, 40), 0.9, (1, 3, 5, 10)),
    "30 users, three groups": VerdictDesign(users_of(30, 8, [1 / 3] * 3, 0.7), 0.8),
    "30 users and 25 days": VerdictDesign(users_and_days, 0.7),
    "40 lists, six copies each": VerdictDesign(copies, 0.7),
    "catalogue, three groups": VerdictDesign(catalogue(90, 10, 150, [0.4, 0.3, 0.3], 0.8), 1.0),
    "catalogue and users": VerdictDesign(catalogue(100, 10, 240, [0.5, 0.5], 0.5, users=40), 0.8),
    "catalogue, 5 of 100": VerdictDesign(catalogue(100, 15, 150, [0.95, 0.05], 1.0), 1.5, (3, 5)),
    "catalogue, 12 of 100, skewed": VerdictDesign(catalogue(100, 12, 150, [0.88, 0.12], 1.0, skew=1.5), 1.5, (3, 5)),
    "items recur in 1.1 lists": VerdictDesign(seldom_recurring(0.1, 3.0), 1.2),
    "items recur in 1.4 lists": VerdictDesign(seldom_recurring(0.4, 3.0), 1.2),
}
DESIGNS = {name: of_study(name) for name in audit_designs.DESIGNS} | NEW
