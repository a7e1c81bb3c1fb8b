"""What methods of one family share: strengths, what they may see, options, and how a sweep runs them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.linear.strengths import strength_grid
from evenrank.methods import runs
from evenrank.methods.method import IN, POST, Facts, Method, Sees, Strength, larger_group
from evenrank.rankers.matching import protected_code


def share_grid() -> NDArray[np.float64]:
    """List FA*IR's shares 0.02, 0.04, …, 0.98, after 0 for the untouched ranking."""
    return np.arange(50) / 50


def gain_grid() -> NDArray[np.float64]:
    """List the controller's gains, after 0 for the untouched ranking: from too small to too large."""
    return np.array([0.0, 0.3, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0])


def part_grid() -> NDArray[np.float64]:
    """List the parts 0, 0.1, …, 1 of a full change."""
    return np.arange(11) / 10


def path_end(train: RankingData) -> float:
    """Give a strength far beyond α*, from which on an exact path is constant."""
    return runs.PATH_END


def beyond_grid() -> NDArray[np.float64]:
    """List parts of the way from strength 0 to α*, and up to a quarter beyond."""
    return np.array([0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25])


def protected_share(train: RankingData) -> float:
    """Give the protected group's share of the rows, which FA*IR then asks for in every prefix."""
    return float((train.group == protected_code(train, None)).mean())


def larger_share(train: RankingData) -> float:
    """Give the largest group's share of the rows."""
    return float((train.group == train.group_names.index(larger_group(train))).mean())


def default_gain(train: RankingData) -> float:
    """Give the gain that a controller has where none is asked for."""
    from evenrank.rerankers.controller import GAIN

    return GAIN


def whole_change(train: RankingData) -> float:
    """Give the strength that asks for the whole change."""
    return 1.0


WEIGHT = "weight of evenness in training"
ALPHA = Strength("alpha", WEIGHT, strength_grid, full=path_end, full_meaning="α*: the training gap is 0")
BEYOND = Strength("length", "part of the way to α*, where the training gap is 0, or beyond it", beyond_grid, most=2)
GAMMA = Strength("gamma", WEIGHT, strength_grid)
PUSH = Strength(
    "gain", "how hard the running gap is pushed back", gain_grid, full=default_gain, full_meaning="its default"
)
# Trees and networks have no end of a path.
PENALTY = Strength("alpha", WEIGHT, strength_grid)
SHARE = Strength("p", "share asked for", share_grid, below=1, full=protected_share, full_meaning="the group's share")
LARGER_SHARE = replace(SHARE, full=larger_share)
PART = Strength("strength", "part of the full change", part_grid, most=1, full=whole_change, full_meaning="1")
THETA = replace(PART, name="theta")
# Less than the whole takes a program of whole numbers per list.
FORGONE = replace(PART, meaning="part of the best quality that may be lost", grid=lambda: np.array([0.0, 1.0]))

BLIND, AWARE = Sees(), Sees(group_at_serving=True)
RERANKS = Sees(group_at_training=False, group_at_serving=True, labels=False)
ADAPTS = Sees(group_at_serving=True, other_lists=True)
ITEMS = Sees(group_at_training=False)
DRAWS = Sees(group_at_training=False, group_at_serving=True)
UNLABELLED = Sees(group_at_serving=True, labels=False)

TOP_K = "none for the top k"
REGULARIZED = Facts(
    f"at full strength the training scores have no gap; {TOP_K}",
    "one linear system for all strengths",
    "Konstantinov and Lampert, 2021",
)
SORTED = "a sort per list"
DRAWN = "dozens of sorts per list; with three groups or more, some small linear programs too"
DELTR_FACTS = Facts(TOP_K, "a gradient descent per strength", "Zehlike and Castillo, WWW 2020")
FASTAR_FACTS = Facts(
    "every prefix has its minimum of protected items, if the list has them: always",
    f"{SORTED}; a table per k, kept",
    "Zehlike et al., CIKM 2017",
)
OFFSET_FACTS = Facts("the least gap of the rows it is fitted to; on new lists none", SORTED, "evenrank")
BOOSTED_FACTS = Facts(TOP_K, "that of the library's own trees, and a pass over the rows per tree", "evenrank")

# Options of the commands, by the parameter's name.
FAIRNESS = ("notion", "alpha", "max_violation", "target", "k")
LINEAR = ("solver", "loss", "ridge", "impute", "group_aware", "verbose")
# Options of a sweep's linear training.
TRAINING = ("loss", "ridge", "fit_intercept", "learning_rate", "max_iter", "epochs", "batch_queries", "batch_items")


def regularized(
    name: str, label: str, title: str, *, scope: str = "amortized", aware: bool = False, **others: str
) -> Method:
    return Method(
        name,
        label,
        title,
        home=("evenrank.linear.ranker", "FairLinearRanker"),
        run=runs.group_aware if aware else runs.regularized,
        kind=IN,
        model="linear",
        strength=ALPHA,
        sees=AWARE if aware else BLIND,
        knobs=tuple(knob for knob in (*FAIRNESS, *LINEAR) if knob not in others),
        settings=tuple(option for option in TRAINING if option not in others),
        fixed={"scope": scope} | ({"group_aware": True} if aware else {}) | others,
        by_notion=True,
        facts=REGULARIZED if scope == "amortized" else replace(REGULARIZED, cost="a quadratic program per strength"),
    )


def deltr(name: str, label: str, title: str, *, aware: bool = False, larger: bool = False) -> Method:
    return Method(
        name,
        label,
        title,
        kind=IN,
        model="linear",
        strength=GAMMA,
        sees=AWARE if aware else BLIND,
        home=("evenrank.linear.deltr", "DELTR"),
        run=runs.deltr,
        knobs=("gamma", "impute", "group_aware", "verbose", *(() if larger else ("protected",))),
        settings=("weighting", "max_iter", "tolerance"),
        fixed={"group_aware": True} if aware else {},
        larger=larger,
        facts=DELTR_FACTS,
    )


def fastar(name: str, label: str, title: str, *, adjust: bool = True, larger: bool = False) -> Method:
    return Method(
        name,
        label,
        title,
        kind=POST,
        model="",
        strength=LARGER_SHARE if larger else SHARE,
        sees=RERANKS,
        home=("evenrank.rerankers.fastar", "FAStar"),
        run=runs.fastar,
        knobs=("p", "significance", *(() if larger else ("protected",))),
        settings=("significance", *TRAINING),
        fixed={"adjust": adjust},
        larger=larger,
        by_k=True,
        saves=False,
        direct=True,
        facts=FASTAR_FACTS,
    )


def offset(name: str, label: str, title: str, sees: Sees) -> Method:
    return Method(
        name,
        label,
        title,
        kind=POST,
        model="",
        strength=PART,
        sees=sees,
        home=("evenrank.rerankers.offset", "GroupOffset"),
        run=runs.offset,
        knobs=("notion", "strength", "k"),
        settings=("shrink", "max_ndcg_loss", *TRAINING),
        by_notion=True,
        by_k=True,
        facts=OFFSET_FACTS,
    )


def mapped(
    name: str,
    label: str,
    title: str,
    home: tuple[str, str],
    strength: Strength,
    sees: Sees,
    facts: Facts,
    *,
    knobs: tuple[str, ...] = (),
    settings: tuple[str, ...] = (),
) -> Method:
    return Method(
        name,
        label,
        title,
        kind=POST,
        model="",
        strength=strength,
        sees=sees,
        home=home,
        run=runs.mapped,
        knobs=(strength.name, *knobs),
        settings=(*settings, *TRAINING),
        facts=facts,
    )


def prefixes(name: str, label: str, title: str, home: tuple[str, str], facts: Facts, **fixed: str) -> Method:
    """Make a method that holds every prefix to shares of the groups."""
    return Method(
        name,
        label,
        title,
        kind=POST,
        model="",
        strength=PART,
        sees=UNLABELLED,
        home=home,
        run=runs.prefixes,
        knobs=("strength", *(("target",) if fixed else ("p", "significance"))),
        settings=TRAINING if fixed else ("significance", "adjust", *TRAINING),
        fixed=fixed,
        by_k=True,
        direct=True,
        facts=facts,
    )


def exposed(name: str, label: str, title: str, constraint: str, guarantee: str, sees: Sees = DRAWS) -> Method:
    """Make a method that draws rankings of fair exposure."""
    cost = DRAWN if sees.group_at_serving else "a sort per item of a list"
    return Method(
        name,
        label,
        title,
        kind=POST,
        model="",
        strength=PART,
        sees=sees,
        home=("evenrank.rerankers.exposure", "ExposureRanker"),
        run=runs.exposed,
        knobs=("strength", "slack", "seed"),
        settings=("slack", *TRAINING),
        fixed={"constraint": constraint},
        saves=False,
        direct=True,
        facts=Facts(guarantee, cost, "Singh and Joachims, KDD 2018"),
    )


def boosted(name: str, label: str, title: str, home: tuple[str, str], **quiet: int) -> Method:
    return Method(
        name,
        label,
        title,
        model=name,
        extra=name,
        home=home,
        run=runs.boosted,
        kind=IN,
        strength=PENALTY,
        sees=BLIND,
        knobs=(*FAIRNESS, "scope", "group_aware"),
        settings=None,
        fixed=quiet,
        takes_missing=True,
        with_settings=dict.fromkeys(quiet, 0),
        by_notion=True,
        facts=BOOSTED_FACTS,
    )
