"""The numbers that the paper prints, to show beside ours: relative fairness increases, tables 1 to 9."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

AVERAGE = "average"
# What the paper says its experiments took.
CPU_HOURS = {"trec": 585, "msmarco": 928}


@cache
def _printed() -> dict[tuple[str, str, str, str, str, str], float]:
    text = files("evenrank.paper").joinpath("tables.csv").read_text(encoding="utf-8")
    out = {}
    for row in csv.DictReader(text.splitlines()):
        # Table 1 repeats the averages of the others, but is the only one with the baselines that were not run.
        key = (row["dataset"], row["statistic"], row["method"], row["notion"], row["grouping"], row["k"])
        out[key] = float(row["percent"]) / 100 if row["percent"] else float("nan")
    return out


def printed(dataset: str, statistic: str, method: str, notion: str, grouping: str, k: str = AVERAGE) -> float:
    """Look up a share that the paper prints.

    Parameters
    ----------
    dataset : str
        "trec" or "msmarco".
    statistic : str
        "max" or "mean".
    method, notion, grouping : str
        As in the sweeps.
    k : str
        A cut-off, or "average".

    Returns
    -------
    float
        The share; NaN if the paper has none there.

    Examples
    --------
    >>> printed("trec", "max", "amortized", "equal_opportunity", "t=3")
    0.48
    """
    return _printed().get((dataset, statistic, method, notion, grouping, k), float("nan"))
