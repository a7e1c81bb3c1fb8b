"""Logged rankings with a known truth: designs that break audits, each with a fair ranker or one that leans to group b.

Every design gives one data set: padded tables of lists, a group, a relevance and a score per row, and which lists or
items belong together. `lists_of` makes of it what `evenrank.inference` takes, by the plainest means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from evenrank.inference import ItemSums, Lists

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Rows:
    """One data set: (lists, longest) tables; ``inside`` says which cells hold a row."""

    inside: np.ndarray
    is_a: np.ndarray
    relevant: np.ndarray
    score: np.ndarray
    cluster: np.ndarray
    item: np.ndarray | None = None


def ragged(lengths: np.ndarray) -> np.ndarray:
    return np.arange(lengths.max()) < lengths[:, None]


def rows(rng: Rng, inside: np.ndarray, is_a: np.ndarray, rate: np.ndarray | float, lean: float, **more: object) -> Rows:
    """Scores that see the relevance and, by ``lean``, group b; the rest is noise."""
    relevant = rng.random(inside.shape) < rate
    score = rng.standard_normal(inside.shape) + relevant + lean * ~is_a
    return Rows(inside, is_a & inside, relevant & inside, score, np.arange(len(inside)), **more)  # type: ignore[arg-type]


def mixed(rng: Rng, queries: int, low: int = 6, high: int = 12) -> tuple[np.ndarray, np.ndarray]:
    inside = ragged(rng.integers(low, high + 1, queries))
    return inside, rng.random(inside.shape) < rng.beta(4, 4, (queries, 1))


def baseline(rng: Rng, lean: float) -> Rows:
    inside, is_a = mixed(rng, 300)
    return rows(rng, inside, is_a, rng.beta(2, 3, (300, 1)), lean)


def lengths_confounded(rng: Rng, lean: float) -> Rows:
    short = rng.random(300) < 0.5
    inside = ragged(np.where(short, 5, 20))
    is_a = rng.random(inside.shape) < np.where(short, 0.7, 0.2)[:, None]
    return rows(rng, inside, is_a, 0.4, lean)


def relevance_confounded(rng: Rng, lean: float) -> Rows:
    inside = ragged(rng.integers(8, 13, 300))
    share = rng.beta(2, 2, (300, 1))
    return rows(rng, inside, rng.random(inside.shape) < share, 0.1 + 0.7 * share, lean)


def strong_dependence(rng: Rng, lean: float) -> Rows:
    """Each list leans by itself, to one group as often as to the other."""
    inside, is_a = mixed(rng, 300)
    made = rows(rng, inside, is_a, 0.4, lean)
    return replace(made, score=made.score + rng.normal(0, 1.5, (300, 1)) * np.where(is_a, 0.5, -0.5))


def unequal_lengths(rng: Rng, lean: float) -> Rows:
    inside = ragged(np.clip(np.exp(rng.normal(2, 1, 300)), 2, 150).astype(int))
    is_a = rng.random(inside.shape) < rng.beta(4, 4, (300, 1))
    return rows(rng, inside, is_a, 0.3, lean)


def rare(carrying: int) -> Callable[[Rng, float], Rows]:
    def design(rng: Rng, lean: float) -> Rows:
        inside = ragged(rng.integers(6, 13, 300))
        is_a = np.zeros(inside.shape, bool)
        is_a[:carrying, 0] = True
        return rows(rng, inside, is_a, 0.4, lean)

    return design


def rare_twins(rng: Rng, lean: float) -> Rows:
    """Items come in pairs of one group that rise and fall together; 25 lists have one pair of group a."""
    inside = ragged(2 * rng.integers(4, 8, 300))
    is_a = np.zeros(inside.shape, bool)
    is_a[:25, :2] = True
    made = rows(rng, inside, is_a, 0.4, lean)
    score = made.score.copy()
    score[:, 1::2] = score[:, ::2] + 0.001 * score[:, 1::2]
    return replace(made, score=score)


def one_percent(rng: Rng, lean: float) -> Rows:
    inside = ragged(rng.integers(6, 13, 300))
    return rows(rng, inside, rng.random(inside.shape) < 0.01, 0.4, lean)


def graded(rng: Rng, lean: float) -> Rows:
    inside, is_a = mixed(rng, 300)
    grade = rng.binomial(4, rng.beta(1, 2, (300, 1)), inside.shape)
    made = rows(rng, inside, is_a, 0.0, lean)
    return replace(made, relevant=(grade >= 1) & inside, score=made.score + 0.7 * grade)


def heavy_ties(rng: Rng, lean: float) -> Rows:
    made = baseline(rng, lean)
    return replace(made, score=np.round(made.score / 1.5))


def rare_ties(rng: Rng, lean: float) -> Rows:
    made = rare(25)(rng, lean)
    return replace(made, score=np.round(made.score / 1.5))


def users(number: int, sizes: Callable[[Rng], np.ndarray], share: float = 0.5) -> Callable[[Rng, float], Rows]:
    """Users with several queries; each user leans, to one group as often as to the other."""

    def design(rng: Rng, lean: float) -> Rows:
        user = np.repeat(np.arange(number), sizes(rng))
        inside = ragged(rng.integers(6, 13, len(user)))
        is_a = rng.random(inside.shape) < share
        made = rows(rng, inside, is_a, 0.4, lean)
        own = rng.normal(0, 1, number)[user][:, None]
        return replace(made, score=made.score + own * np.where(is_a, 0.5, -0.5), cluster=user)

    return design


def recurring(in_a: int, skew: float = 0.0, items: int = 60) -> Callable[[Rng, float], Rows]:
    """Lists of 12 of the same items, whose quality is their own."""

    def design(rng: Rng, lean: float) -> Rows:
        quality = rng.standard_normal(items)
        of_a = rng.permutation(items) < in_a
        popular = np.exp(skew * rng.standard_normal(items))
        order = np.argsort(rng.exponential(1 / popular, (300, items)), axis=1)[:, :12]
        made = rows(rng, np.ones((300, 12), bool), of_a[order], 0.4, lean, item=order)
        return replace(made, score=made.score + quality[order])

    return design


def few_lists(rng: Rng, lean: float) -> Rows:
    inside = ragged(np.full(8, 40))
    return rows(rng, inside, rng.random(inside.shape) < 0.25, 0.4, lean)


def long_lists(rng: Rng, lean: float) -> Rows:
    inside = ragged(np.full(60, 200))
    is_a = np.broadcast_to(np.arange(200) < 21, inside.shape)
    return rows(rng, inside, is_a, 0.3, lean)


def dependent_few(rng: Rng, lean: float) -> Rows:
    """Twenty long lists that each lean by themselves."""
    inside = ragged(np.full(20, 30))
    is_a = rng.random(inside.shape) < 0.5
    made = rows(rng, inside, is_a, 0.4, lean)
    return replace(made, score=made.score + rng.normal(0, 1.0, (20, 1)) * np.where(is_a, 0.5, -0.5))


def zipf(rng: Rng) -> np.ndarray:
    return np.maximum(1, (60 / np.arange(1, 81)).astype(int))


@dataclass(frozen=True)
class Design:
    """A way to draw data, and how far the unfair ranker leans in it."""

    draw: Callable[[Rng, float], Rows]
    lean: float
    ks: tuple[int, ...] = (1, 3)
    notes: str = field(default="")


DESIGNS: dict[str, Design] = {
    "baseline": Design(baseline, 0.25),
    "lengths confounded": Design(lengths_confounded, 0.25),
    "relevance confounded": Design(relevance_confounded, 0.25),
    "strong dependence": Design(strong_dependence, 0.3),
    "unequal lengths": Design(unequal_lengths, 0.3),
    "rare, 10 lists": Design(rare(10), 1.5),
    "rare, 25 lists": Design(rare(25), 1.0),
    "rare, 60 lists": Design(rare(60), 0.6),
    "1 % group": Design(one_percent, 1.0),
    "graded": Design(graded, 0.25),
    "heavy ties": Design(heavy_ties, 0.3),
    "40 users": Design(users(40, lambda rng: np.full(40, 10)), 0.5),
    "recurring items": Design(recurring(30), 0.8),
    "80 unequal users": Design(users(80, zipf), 0.5),
    "recurring, 8 of 60": Design(recurring(8, skew=1.0), 1.0),
    "rare twins, 25 lists": Design(rare_twins, 0.8),
    "rare, ties": Design(rare_ties, 1.0),
    "few lists": Design(few_lists, 0.5),
    "20 leaning lists": Design(dependent_few, 0.6),
    "long lists": Design(long_lists, 0.4, ks=(1, 10)),
}


def selection(made: Rows, k: int) -> tuple[np.ndarray, bool]:
    """The probability of each row to be in its list's top k under random order of ties, and whether all are 0 or 1."""
    score = np.where(made.inside, made.score, -np.inf)
    order = np.sort(score, axis=1)[:, ::-1]
    last = order[:, [min(k, order.shape[1]) - 1]]  # the score of the k-th place
    above, level = score > last, (score == last) & made.inside
    share = (k - above.sum(axis=1, keepdims=True)) / np.maximum(level.sum(axis=1, keepdims=True), 1)
    chosen = np.where(above, 1.0, np.where(level, np.minimum(share, 1.0), 0.0))
    chosen = np.where(made.inside.sum(axis=1, keepdims=True) <= k, made.inside.astype(float), chosen)
    return chosen, bool(np.isin(chosen, (0.0, 1.0)).all())


def lists_of(made: Rows, notion: str, k: int) -> tuple[Lists, ItemSums | None]:
    """What the statistics take, for all rows ("dp") or the relevant ones ("eop")."""
    at_stake = made.inside if notion == "dp" else made.relevant
    chosen, whole = selection(made, k)
    of_a, of_b = made.is_a & at_stake, ~made.is_a & at_stake
    x = np.where(at_stake, chosen, 0.0)
    a, b = of_a.sum(axis=1).astype(float), of_b.sum(axis=1).astype(float)
    kept = a + b > 0
    sums = (a, b, (x * of_a).sum(axis=1), (x * of_b).sum(axis=1), (x**2).sum(axis=1))
    lists = Lists(*(each[kept] for each in sums), (made.cluster[kept],), whole)
    if made.item is None:
        return lists, None
    n = np.maximum(a + b, 1)[:, None]
    value = np.where(at_stake, x - x.sum(axis=1, keepdims=True) / n, 0.0)
    group = np.where(at_stake, made.is_a - a[:, None] / n, 0.0)
    shared = (a > 0)[:, None] & (b > 0)[:, None]
    count = int(made.item.max()) + 1
    is_a = np.zeros(count, bool)
    is_a[made.item[made.is_a]] = True
    there = np.bincount(made.item[at_stake], minlength=count) > 0
    totals = [
        np.bincount(made.item.ravel(), v.ravel(), minlength=count)[there]
        for v in (value, group, at_stake + 0.0, x, at_stake & shared)
    ]
    return lists, ItemSums(is_a[there], *totals)
