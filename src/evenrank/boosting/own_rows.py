"""Whether a library calls an objective with the rows it was made for; on a cluster each worker has some of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenrank.data import RankingData
from evenrank.errors import ConfigError


def refuse_other_rows(data: RankingData, relevance: Any, library: str) -> None:
    """Refuse labels that are not those of the objective's rows: its gradients would belong to other rows.

    Parameters
    ----------
    data : RankingData
        The rows of the objective.
    relevance : array-like
        The labels that the library trains on, (n,).
    library : str
        "lightgbm" or "xgboost".

    Raises
    ------
    ConfigError
        If they differ, as on a worker of lightgbm.dask, which sees its own rows only.
    """
    given = np.asarray(relevance, np.float32)
    if given.shape == data.relevance.shape and np.array_equal(given, data.relevance.astype(np.float32)):
        return
    raise ConfigError(
        f"this fair_objective is of {data.n_rows} rows; {library} calls it with {given.size} others, as a worker of "
        f"{library}.dask does, which sees its own rows only. Train on several machines with er.xgboost.dask_fit."
    )
