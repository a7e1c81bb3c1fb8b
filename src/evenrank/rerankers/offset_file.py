"""What a fitted `GroupOffset` says and keeps: a warning where nothing changes, and what its model file holds."""

from __future__ import annotations

import warnings
from typing import Any

from evenrank.checks import check_k
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.notions import as_notion
from evenrank.rankers import model_file
from evenrank.rerankers.chances import Chances
from evenrank.rerankers.moving import SAME


def warn_unchanged(reranker: Any, n_queries: int, *, stacklevel: int) -> None:
    """Warn where a gap is left as it is.

    Parameters
    ----------
    reranker : GroupOffset
        The re-ranker, fitted.
    n_queries : int
        The number of lists it was fitted to.
    stacklevel : int
        The caller's, as in `warnings.warn`.
    """
    if not reranker.gap_before_ > SAME or (reranker._change.any() and reranker._most):
        return
    lists = "list" if n_queries == 1 else "lists"
    gap = f"the {as_notion(reranker.notion).name} gap of {reranker.gap_before_:.3g} in {n_queries:,} {lists}"
    fact = f"{gap} is no more than chance; all offsets are 0. Fit on more lists, or with shrink=False."
    if reranker._change.any():
        fact = f"{gap} stays: what shrink and max_ndcg_loss leave of the offsets would not lower it; all are 0."
    if reranker.shrink or reranker._change.any():
        warnings.warn(fact, DataWarning, stacklevel=stacklevel)


def chosen_content(reranker: Any) -> dict[str, Any]:
    """Give what a fitted re-ranker chose and learned, in plain values.

    Parameters
    ----------
    reranker : GroupOffset
        The re-ranker.

    Returns
    -------
    dict
        The entries of the file.
    """
    return {
        "start": reranker._start.tolist(),
        "change": reranker._change.tolist(),
        "most": reranker._most,
        "gaps": [reranker.gap_before_, reranker.gap_after_],
        "reference": reranker._reference,
        "sentinels": [reranker._centre, reranker._reach],
        "chances": [[fit.score.tolist(), fit.chance.tolist()] for fit in reranker.chances_],
    }


def read_cut_offs(content: dict[str, Any], name: str) -> int | list[int]:
    """Read the cut-offs: a number where there is one, or several.

    Parameters
    ----------
    content : dict
        The content of the file.
    name : str
        The name that an error gives the file.

    Returns
    -------
    int or list of int
        The cut-offs.
    """
    ks = model_file.need(content, "ks", list, name=name)
    try:
        cut_offs = [check_k(k) for k in ks]
        if not cut_offs:
            raise ConfigError("'ks' is empty.")
    except ConfigError as error:
        raise DataError(f"{name}: {error} Was the file edited?") from None
    return cut_offs if len(cut_offs) > 1 else cut_offs[0]


def read_chosen(content: dict[str, Any], groups: tuple[Any, ...], name: str) -> dict[str, Any]:
    """Read what `chosen_content` gave.

    Parameters
    ----------
    content : dict
        The content of the file.
    groups : tuple
        The labels of the groups.
    name : str
        The name that an error gives the file.

    Returns
    -------
    dict
        Attributes of the re-ranker.

    Raises
    ------
    DataError
        If an entry is missing or damaged.
    """
    start, change = (model_file.numbers(key, content.get(key), len(groups), name=name) for key in ("start", "change"))
    most = float(model_file.numbers("most", [content.get("most")], 1, name=name)[0])
    before, after = model_file.numbers("gaps", content.get("gaps"), 2, name=name).tolist()
    centre, reach = model_file.numbers("sentinels", content.get("sentinels"), 2, name=name).tolist()
    reference = model_file.need(content, "reference", int, name=name)
    if not 0 <= reference < len(groups):
        raise DataError(f"{name}: 'reference' must be the number of a group; got {reference}.")
    fits = model_file.need(content, "chances", list, name=name)
    if len(fits) != len(groups):
        raise DataError(f"{name}: 'chances' must have one entry per group; got {len(fits)} for {len(groups)}.")
    chances = tuple(Chances(*model_file.rising_points(fit, "chances", name=name)) for fit in fits)
    if any(fit.chance[0] < 0 or fit.chance[-1] > 1 for fit in chances):
        raise DataError(f"{name}: 'chances' must be from 0 to 1. Was the file edited?")
    return {
        "group_names_": groups,
        "chances_": chances,
        "gap_before_": before,
        "gap_after_": after,
        "_start": start,
        "_change": change,
        "_most": most,
        "_reference": reference,
        "_centre": centre,
        "_reach": reach,
    }
