"""`Bench`: what a bench gives, as a table, as standings of the methods, and as files."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenrank.experiment.curves import DECIMALS
from evenrank.extras import require
from evenrank.leaderboard.folder import BenchFolder
from evenrank.leaderboard.plan import FLOOR
from evenrank.leaderboard.rules import RULES
from evenrank.methods.method import Sees
from evenrank.methods.registry import METHODS
from evenrank.wording import no_formula

TEXTS = ("data", "method", "rule", "grouping", "notion")
NUMBERS = ("gap", "base_gap", "pooled", "base_pooled", "quality", "base_quality", "strength")
COLUMNS = (*TEXTS, "k", "seed", *NUMBERS)
LEAST_CHANGE = -0.005  # of NDCG@k, for a method to be called the best
OF_FLOOR = Sees(group_at_serving=True, other_lists=True)


@dataclass(frozen=True)
class Standing:
    """How one method does on one data set under one rule, averaged over notions, groupings and k.

    Attributes
    ----------
    data, method, rule : str
        What was run, and how its strength was settled.
    reduction : float
        The share by which the mean of the folds' gaps falls below the baseline's, averaged over the settings, then over
        the seeds.
    sd, low, high : float
        Standard deviation, lowest and highest over the seeds, which divide the same queries into other folds.
    pooled : float
        The same reduction, of the gap over the rows of all folds together.
    quality_change, quality_sd : float
        NDCG@k less the baseline's: mean, and standard deviation over the seeds.
    seconds : float
        What one seed takes: all trainings and tests, of every setting and strength.
    seeds : int
        How many seeds are done.
    sees : Sees
        What the method may look at, with its settings.
    """

    data: str
    method: str
    rule: str
    reduction: float
    sd: float
    low: float
    high: float
    pooled: float
    quality_change: float
    quality_sd: float
    seconds: float
    seeds: int
    sees: Sees

    @property
    def is_blind(self) -> bool | None:
        """Whether the method needs neither the group nor other lists when it serves; None for the noise floor."""
        return None if self.method == FLOOR else not (self.sees.group_at_serving or self.sees.other_lists)

    @property
    def label(self) -> str:
        """The method's name as tables have it."""
        return "noise floor" if self.method == FLOOR else METHODS[self.method].label

    @property
    def baseline(self) -> str:
        """What it is held against."""
        model = "" if self.method == FLOOR else METHODS[self.method].model
        return "plain linear ranker" if model in ("", "linear") else f"{self.method} at strength 0"

    def to_dict(self) -> dict[str, Any]:
        """Give plain values by name."""
        return {**asdict(self), "baseline": self.baseline}


class Bench:
    """The table of a bench, one row per data set, method, rule, setting, k and seed of the folds.

    Attributes
    ----------
    columns : dict
        Name → array: ``data, method, rule, grouping, notion`` (texts), ``k, seed``; ``gap, quality`` and the
        baseline's ``base_gap, base_quality`` (means over folds); ``pooled, base_pooled`` (gaps over all folds'
        rows together); ``strength`` (mean over folds; NaN where the baseline was kept).
    seconds : dict
        (data, method, seed) → what the block took.
    config : dict
        What was asked, of what data, with what versions.
    """

    page: ClassVar[Callable[..., str]]  # set by the page layer, which this layer must not import

    def __init__(
        self,
        columns: Mapping[str, NDArray[Any]],
        seconds: Mapping[tuple[str, str, int], float],
        config: Mapping[str, Any],
    ) -> None:
        self.columns, self.seconds, self.config = dict(columns), dict(seconds), dict(config)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Bench:
        """Read a bench's folder. If it was stopped, the blocks it finished are read, with a warning.

        Parameters
        ----------
        folder : path
            Where `bench` wrote it.

        Raises
        ------
        DataError
            The folder holds no bench, or no finished block yet.
        """
        run = BenchFolder(folder)
        config = run.config
        return cls.of(config, run.finished(config))

    @classmethod
    def of(cls, config: Mapping[str, Any], records: Sequence[dict[str, Any]]) -> Bench:
        """Build the table from the blocks' records, in the plan's order whatever the order they were finished in."""
        place = {tuple(block.values()): number for number, block in enumerate(config["asked"]["blocks"])}
        keys = ("data", "method", "seed")
        records = sorted(records, key=lambda record: place[tuple(record["block"][key] for key in keys)])
        rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        for record in records:
            base = {(row["grouping"], row["notion"], row["k"]): row for row in record["base"]}
            for row in record["results"]:
                under = base[row["grouping"], row["notion"], row["k"]]
                numbers = {name: _mean(row[name]) for name in ("gap", "quality", "strength")}
                numbers |= {f"base_{name}": _mean(under[name]) for name in ("gap", "quality")}
                numbers |= {"pooled": _mean([row["pooled"]]), "base_pooled": _mean([under["pooled"]])}
                line = {**record["block"], **row, **numbers}
                for name in COLUMNS:
                    rows[name].append(line[name])
        columns = {name: np.asarray(values, object if name in TEXTS else None) for name, values in rows.items()}
        seconds = {tuple(record["block"][key] for key in keys): float(record["seconds"]) for record in records}
        return cls(columns, seconds, config)

    def __len__(self) -> int:
        return len(self.columns["gap"])

    @property
    def done(self) -> tuple[int, int]:
        """The number of finished blocks, and of those asked for."""
        return len(self.seconds), len(self.config["asked"]["blocks"])

    @property
    def data(self) -> list[str]:
        """The names of the data sets."""
        return list(dict.fromkeys(self.columns["data"].tolist()))

    def standings(
        self, data: str | None = None, *, notion: str | None = None, grouping: str | None = None
    ) -> list[Standing]:
        """Average over settings, k and seeds, the largest reduction first.

        Parameters
        ----------
        data : str, optional
            One of `data`; all by default, one after the other.
        notion, grouping : str, optional
            Average over these settings only.

        Returns
        -------
        list of Standing
            One per data set, method and rule.
        """
        columns = self.columns
        inside = np.ones(len(self), bool)
        for name, value in (("notion", notion), ("grouping", grouping)):
            if value is not None:
                inside &= columns[name] == value
        standings = []
        for of_data in self.data if data is None else [data]:
            of = []
            for method, rule in self._competitors(of_data):
                rows = inside & (columns["data"] == of_data)
                rows &= (columns["method"] == method) & (columns["rule"] == rule)
                if rows.any():
                    of.append(self._standing(of_data, method, rule, np.flatnonzero(rows)))
            standings += sorted(of, key=lambda standing: -np.nan_to_num(standing.reduction, nan=-np.inf))
        return standings

    def _competitors(self, data: str) -> Iterator[tuple[str, str]]:
        rows = self.columns["data"] == data
        yield from dict.fromkeys(
            zip(self.columns["method"][rows].tolist(), self.columns["rule"][rows].tolist(), strict=True)
        )

    def _standing(self, data: str, method: str, rule: str, rows: NDArray[np.int64]) -> Standing:
        values = {name: self.columns[name][rows] for name in NUMBERS}
        seeds, seed = np.unique(self.columns["seed"][rows], return_inverse=True)
        reduction = _by_seed(_reduction(values["gap"], values["base_gap"]), seed)
        settings = self.config["asked"].get("settings", {})
        change = _by_seed(values["quality"] - values["base_quality"], seed)
        return Standing(
            data,
            method,
            rule,
            reduction=_mean(reduction),
            sd=_deviation(reduction),
            low=float(reduction.min()),
            high=float(reduction.max()),
            pooled=_mean(_by_seed(_reduction(values["pooled"], values["base_pooled"]), seed)),
            quality_change=_mean(change),
            quality_sd=_deviation(change),
            seconds=_mean([self.seconds[data, method, number] for number in seeds.tolist()]),
            seeds=len(seeds),
            sees=OF_FLOOR if method == FLOOR else METHODS[method].sees.given(settings.get(method, {})),
        )

    def frame(self, kind: str = "polars") -> Any:
        """Copy the table into a frame, "polars" or "pandas"."""
        texts = {name: self.columns[name].tolist() for name in TEXTS}
        return require(kind).DataFrame({**self.columns, **texts})

    def csv(self) -> str:
        """Write the table as CSV, numbers not rounded; empty where there is none."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in zip(*(self.columns[name].tolist() for name in COLUMNS), strict=True):
            writer.writerow(["" if value != value else _cell(value) for value in row])
        return out.getvalue()

    def best(self, data: str, *, group_blind: bool, least_change: float = LEAST_CHANGE) -> Standing | None:
        """Find the largest reduction among methods that keep quality.

        Parameters
        ----------
        data : str
            The data set.
        group_blind : bool
            Among methods that need neither the group nor other lists when they serve; else among the others.
        least_change : float
            How NDCG@k may change at least.

        Returns
        -------
        Standing or None
            None if no method of that kind lowers the gap and keeps quality.
        """
        for standing in self.standings(data):
            eligible = standing.is_blind is group_blind and standing.reduction > 0
            if eligible and standing.quality_change >= least_change:
                return standing
        return None

    def to_dict(self) -> dict[str, Any]:
        """Give what `--json` prints: the configuration and the standings, overall and by setting."""
        asked = self.config["asked"]
        return {
            "asked": {name: value for name, value in asked.items() if name != "blocks"},
            "blocks": dict(zip(("done", "asked"), self.done, strict=True)),
            "data": self.config["data"],
            "versions": self.config["versions"],
            "left_out": self.config["left_out"],
            "rules": RULES,
            "standings": [standing.to_dict() for standing in self.standings()],
            "settings": [
                {"notion": notion, "grouping": grouping, **standing.to_dict()}
                for data in self.data
                for notion in asked["notions"]
                for grouping in asked["data"][data]
                for standing in self.standings(data, notion=notion, grouping=grouping)
            ],
        }

    def html(self) -> str:
        """Write the bench as one page that needs no network."""
        return self.page(self)


def _cell(value: Any) -> Any:
    """A cell of a CSV, in which no name is a formula."""
    return no_formula(value) if isinstance(value, str) else value


def _mean(values: Any) -> float:
    """Mean of what is defined; NaN if nothing is."""
    array = np.asarray(values, np.float64)
    known = array[~np.isnan(array)]
    return float(known.mean()) if len(known) else float("nan")


def _deviation(values: NDArray[np.float64]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def _reduction(gap: NDArray[np.float64], base: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 − gap / base; NaN where the baseline has no gap."""
    some = np.round(base, DECIMALS) > 0
    return np.where(some, 1 - gap / np.where(some, base, 1.0), np.nan)


def _by_seed(values: NDArray[np.float64], seed: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.array([_mean(values[seed == number]) for number in range(int(seed.max()) + 1)])
