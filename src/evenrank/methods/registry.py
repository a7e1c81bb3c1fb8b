"""The methods, as data: commands, sweeps, model files, pages and documentation all read this table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.linear.strengths import strength_grid
from evenrank.methods import runs
from evenrank.methods.method import IN, POST, Method, Sees, Strength, larger_group
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
    return 1e6


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

BLIND, AWARE = Sees(), Sees(group_at_serving=True)
RERANKS = Sees(group_at_training=False, group_at_serving=True, labels=False)
ADAPTS = Sees(group_at_serving=True, other_lists=True)
UNLABELLED = Sees(group_at_serving=True, labels=False)

# Options of the commands, by the parameter's name.
FAIRNESS = ("notion", "alpha", "max_violation", "target", "k")
LINEAR = ("solver", "loss", "ridge", "group_aware", "verbose")
# Options of a sweep's linear training.
TRAINING = ("loss", "ridge", "fit_intercept", "learning_rate", "max_iter", "epochs", "batch_queries", "batch_items")


def _regularized(
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
    )


def _deltr(name: str, label: str, title: str, *, aware: bool = False, larger: bool = False) -> Method:
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
        knobs=("gamma", "group_aware", "verbose", *(() if larger else ("protected",))),
        settings=("weighting", "max_iter", "tolerance"),
        fixed={"group_aware": True} if aware else {},
        larger=larger,
    )


def _fastar(name: str, label: str, title: str, *, adjust: bool = True, larger: bool = False) -> Method:
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
    )


def _offset(name: str, label: str, title: str, sees: Sees) -> Method:
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
    )


def _mapped(
    name: str,
    label: str,
    title: str,
    home: tuple[str, str],
    strength: Strength,
    sees: Sees,
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
    )


def _boosted(name: str, label: str, title: str, home: tuple[str, str], **quiet: int) -> Method:
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
        knobs=(*FAIRNESS, "scope"),
        settings=None,
        fixed=quiet,
        with_settings=dict.fromkeys(quiet, 0),
        by_notion=True,
    )


METHODS = {
    method.name: method
    for method in (
        _regularized(
            "amortized", "amortized", "fairness regularisation, gaps pooled over all queries (the paper's method)"
        ),
        _regularized(
            "per_query",
            "per-query",
            "fairness regularisation, gaps within each query (the paper's ablation)",
            scope="per_query",
        ),
        _regularized(
            "amortized_aware", "amortized, group seen", "as amortized, the model seeing the group itself", aware=True
        ),
        _regularized(
            "centered",
            "centered",
            "as amortized, gaps of the scores less their query's mean, which alone can change a ranking",
            target="centered",
        ),
        _regularized(
            "centered_pairwise",
            "centered, pairwise",
            "as centered, trained on differences within queries",
            target="centered",
            loss="pairwise",
        ),
        _deltr("deltr", "DELTR", "ListNet with a penalty on disparate exposure"),
        _deltr("deltr_aware", "DELTR, group seen", "DELTR with the protected flag as a feature", aware=True),
        _deltr(
            "deltr_larger", "DELTR, larger protected", "DELTR with the larger group as the protected one", larger=True
        ),
        Method(
            "deltr_published",
            "DELTR, published",
            "DELTR as its package trains it: the protected flag as a feature, 3000 steps, one model at a time",
            kind=IN,
            model="linear",
            strength=GAMMA,
            sees=AWARE,
            home=("evenrank.linear.deltr", "DELTR"),
            run=runs.deltr_published,
            knobs=(),
            settings=("max_iter", "learning_rate"),
            fixed={"reference": True},
            by_name=True,
            saves=False,
        ),
        _fastar("fastar", "FA*IR", "FA*IR: a minimum of protected items in every prefix, significance adjusted"),
        _fastar("fastar_unadjusted", "FA*IR, unadjusted", "FA*IR without the adjustment", adjust=False),
        _fastar(
            "fastar_larger", "FA*IR, larger protected", "FA*IR with the larger group as the protected one", larger=True
        ),
        Method(
            "controller",
            "controller",
            "lists served in turn, each shifted against the gap of those before it",
            kind=POST,
            model="",
            strength=PUSH,
            sees=Sees(group_at_serving=True, other_lists=True),
            home=("evenrank.rerankers.controller", "FairController"),
            run=runs.controller,
            knobs=("notion", "gain"),
            settings=("value", "limit", "memory", *TRAINING),
            by_notion=True,
            by_k=True,
            in_turn=True,
            saves=False,
        ),
        _offset("offset", "offset", "one number per group added to its scores, chosen on the top k", AWARE),
        _offset(
            "offset_adaptive",
            "offset, adaptive",
            "as offset, chosen anew on the lists to be ranked, without labels",
            ADAPTS,
        ),
        _mapped(
            "quantile_match",
            "quantile match",
            "protected items get the others' score of the same percentile",
            ("evenrank.rerankers.quantiles", "QuantileMatch"),
            PART,
            UNLABELLED,
            knobs=("protected",),
        ),
        _mapped(
            "quantile_barycentre",
            "quantile barycentre",
            "groups' scores moved to their common distribution (CFA)",
            ("evenrank.rerankers.quantiles", "QuantileBarycentre"),
            THETA,
            UNLABELLED,
        ),
        _mapped(
            "eopp_transform",
            "opportunity transform",
            "relevant items of all groups get one distribution of scores",
            ("evenrank.rerankers.opportunity", "EqualOpportunityTransform"),
            PART,
            AWARE,
            settings=("n_quantiles",),
        ),
        _boosted(
            "lightgbm",
            "LightGBM",
            "LightGBM's trees (LambdaMART) and the gap",
            ("evenrank.lightgbm", "FairLGBMRanker"),
            verbose=-1,
        ),
        _boosted(
            "xgboost", "XGBoost", "XGBoost's trees (LambdaMART) and the gap", ("evenrank.xgboost", "FairXGBRanker")
        ),
        Method(
            "mlp",
            "network",
            "a neural network (ListNet) and the gap",
            model="mlp",
            extra="torch",
            home=("evenrank.torch", "FairNeuralRanker"),
            run=runs.neural,
            kind=IN,
            strength=PENALTY,
            sees=BLIND,
            knobs=(*FAIRNESS, "scope", "verbose"),
            settings=None,
            by_notion=True,
        ),
    )
}
