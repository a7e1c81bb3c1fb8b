"""Ranked lists by week, of known lean."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

import evenrank as er


def rows(
    weeks: int = 12,
    lists: int = 25,
    items: int = 8,
    *,
    lean: Any = 0.0,
    share: float = 0.4,
    seed: int = 0,
    groups: tuple[str, str] = ("a", "b"),
) -> pl.DataFrame:
    """Rows with times; ``lean``, a number or one per week, is added to the scores of the second group."""
    rng = np.random.default_rng(seed)
    n = weeks * lists * items
    week = np.repeat(np.arange(weeks), lists * items)
    second = rng.random(n) < share
    relevance = (rng.random(n) < 0.4).astype(float)
    by_week = np.broadcast_to(np.asarray(lean, float), weeks)
    score = rng.gumbel(size=n) + relevance + second * by_week[week]
    day = np.repeat(rng.integers(0, 7, weeks * lists), items)
    times = [str(date(2026, 1, 5) + timedelta(days=int(7 * w + d))) for w, d in zip(week, day, strict=True)]
    return pl.DataFrame(
        {
            "qid": np.repeat(np.arange(weeks * lists), items),
            "item": rng.permutation(n),
            "relevance": relevance,
            "group": np.where(second, groups[1], groups[0]),
            "score": score,
            "when": times,
        }
    )


def taken(frame: pl.DataFrame) -> tuple[np.ndarray, er.RankingData, np.ndarray]:
    """Scores, data and times of a frame, as `Monitor.update` takes them."""
    data = er.RankingData.from_frame(frame.drop("when"), features=["score"], item="item")
    return frame["score"].to_numpy(), data, frame["when"].to_numpy()
