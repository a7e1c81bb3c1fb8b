"""The methods, as data: the command line, the sweeps and the documentation all read this registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.rankers.fastar import FAStar, protected_code
from evenrank.rankers.path import fairness_path, strength_grid

Run = Callable[[RankingData, RankingData, Sequence[str], NDArray[np.float64], str, int | None], NDArray[np.float64]]


@dataclass(frozen=True)
class Method:
    """What a method is and how a sweep runs it.

    Attributes
    ----------
    kind : "in-processing" (it trains) or "post-processing" (it re-ranks the scores of the strength-0 model)
    strength : its own name for the swept knob
    grid : its default strengths; 0 is its baseline
    run : (train, test, notions, strengths, solver, k) → test scores, (n, notions · strengths) or (n, strengths)
    by_notion : it trains for a notion; otherwise one run serves all
    by_k : it is run anew for each cut-off
    """

    name: str
    title: str
    kind: str
    strength: str
    grid: Callable[[], NDArray[np.float64]]
    run: Run
    by_notion: bool = False
    by_k: bool = False


def share_grid() -> NDArray[np.float64]:
    """FA*IR's shares 0.02, 0.04, …, 0.98, after 0 for the untouched ranking."""
    return np.arange(50) / 50


def _regularized(
    train: RankingData,
    test: RankingData,
    notions: Sequence[str],
    strengths: NDArray[np.float64],
    solver: str,
    k: int | None,
    *,
    scope: str,
) -> NDArray[np.float64]:
    return fairness_path(train, list(notions), strengths, solver, scope).scores(test)


def _deltr(
    train: RankingData,
    test: RankingData,
    notions: Sequence[str],
    strengths: NDArray[np.float64],
    solver: str,
    k: int | None,
    *,
    group_aware: bool,
) -> NDArray[np.float64]:
    from evenrank.rankers.deltr import deltr_path

    return deltr_path(train, strengths, group_aware=group_aware)[0].scores(test)


def _fastar(
    train: RankingData,
    test: RankingData,
    notions: Sequence[str],
    strengths: NDArray[np.float64],
    solver: str,
    k: int | None,
    *,
    adjust: bool,
) -> NDArray[np.float64]:
    """Re-rank the strength-0 model's scores by the table for k; share 0 leaves them alone."""
    plain = fairness_path(train, "demographic_parity", [0.0], solver).scores(test)[:, 0]
    protected = train.group_names[protected_code(train, None)]
    out = np.repeat(plain[:, None], len(strengths), axis=1)
    shares = strengths > 0
    if shares.any():
        out[:, shares] = FAStar(strengths[shares], adjust=adjust, protected=protected).rerank(plain, test, k)
    return out


METHODS = {
    method.name: method
    for method in (
        Method(
            "amortized",
            "fairness regularisation, gaps pooled over all queries (the paper's method)",
            "in-processing",
            "alpha",
            strength_grid,
            partial(_regularized, scope="amortized"),
            by_notion=True,
        ),
        Method(
            "per_query",
            "fairness regularisation, gaps within each query (the paper's ablation)",
            "in-processing",
            "alpha",
            strength_grid,
            partial(_regularized, scope="per_query"),
            by_notion=True,
        ),
        Method(
            "deltr",
            "ListNet with a penalty on disparate exposure",
            "in-processing",
            "gamma",
            strength_grid,
            partial(_deltr, group_aware=False),
        ),
        Method(
            "deltr_aware",
            "DELTR with the protected flag as a feature",
            "in-processing",
            "gamma",
            strength_grid,
            partial(_deltr, group_aware=True),
        ),
        Method(
            "fastar",
            "FA*IR: a minimum of protected items in every prefix, significance adjusted",
            "post-processing",
            "p",
            share_grid,
            partial(_fastar, adjust=True),
            by_k=True,
        ),
        Method(
            "fastar_unadjusted",
            "FA*IR without the adjustment",
            "post-processing",
            "p",
            share_grid,
            partial(_fastar, adjust=False),
            by_k=True,
        ),
    )
}
