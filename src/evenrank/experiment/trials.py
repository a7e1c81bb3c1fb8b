"""`Sweep`: the table of trials that a sweep gives, its curves, and its files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.errors import ConfigError
from evenrank.experiment.about import About, about_run
from evenrank.experiment.curves import Curve, mean_and_error
from evenrank.experiment.examples import Examples, unpack
from evenrank.experiment.run_folder import RunFolder
from evenrank.extras import require
from evenrank.io.files import write_whole
from evenrank.methods.method import ANY
from evenrank.notions import NotionLike, as_notion
from evenrank.wording import no_formula

KEYS = ("grouping", "method", "notion", "strength", "fold", "seed", "seconds")
TEXTS = ("grouping", "method", "notion")


@dataclass(frozen=True)
class Trial:
    """One trained and measured model.

    ``params`` and ``metrics`` are flat and named with letters, digits and underscores only, so that they go into
    MLflow and similar trackers as they are (``mlflow.log_params(trial.params)``).
    """

    method: str
    notion: str
    strength: float
    fold: int
    seed: int
    values: dict[str, float]
    seconds: float
    grouping: str = ""

    @property
    def params(self) -> dict[str, Any]:
        """What the model was trained with, by name."""
        return {name: getattr(self, name) for name in KEYS if name != "seconds"}

    @property
    def metrics(self) -> dict[str, float]:
        """Measures as ``ndcg_at_3``, ``ndkl_at_10_target_equal``; those that are not defined are left out."""
        named = {_plain(name): value for name, value in self.values.items() if not np.isnan(value)}
        return named | {"seconds": self.seconds}


def _plain(name: str) -> str:
    """Give a measure's name with nothing but letters, digits and underscores."""
    return re.sub(r"\W+", "_", name.replace("@", "_at_")).strip("_")


class Sweep:
    """The table of trials, one row per trial, with what was asked.

    Attributes
    ----------
    columns : dict
        Name → array with one value per trial, (trials,): ``grouping, method, notion`` (texts), ``strength, fold, seed,
        seconds`` and the measures.
    ks : tuple of int
        The cut-offs.
    about : About
        What was asked, of what data, how long it took.
    examples : Examples or None
        Rankings of example queries.
    """

    page: ClassVar[Callable[..., str]]  # set by the page layer, which this layer must not import

    def __init__(
        self,
        columns: Mapping[str, ArrayLike],
        ks: Sequence[int],
        about: About | Mapping[str, Any],
        examples: Examples | None = None,
    ) -> None:
        self.columns = {name: _column(name, values) for name, values in columns.items()}
        self.ks = tuple(ks)
        self.about = about if isinstance(about, About) else About.from_dict(about)
        self.examples = examples
        self._tables: dict[tuple[str, ...], tuple[Any, Any]] = {}

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Sweep:
        """Read a run folder. If the run was stopped, the blocks it finished are read, with a warning.

        Parameters
        ----------
        folder : path
            Where `sweep` wrote the run.

        Raises
        ------
        DataError
            The folder holds no run, or no finished block yet.
        """
        run = RunFolder(folder)
        config = run.config
        records = run.finished(config)
        examples = run.examples_or_none(config)
        if examples is None:
            records = [{**record, "tops": []} for record in records]
        return cls.of(config, records, examples or [])

    @classmethod
    def of(cls, config: dict[str, Any], records: Sequence[dict[str, Any]], examples: list[dict[str, Any]]) -> Sweep:
        """Build the table from the blocks' records, in the plan's order whatever the order they were finished in."""
        asked = config["asked"]
        place = {tuple(block.values()): number for number, block in enumerate(asked["blocks"])}
        ordered = sorted(records, key=lambda record: place[tuple(record["block"].values())])
        names = config["measures"]
        pieces: dict[str, list[Any]] = {name: [] for name in (*KEYS, *names)}
        tops: dict[Any, NDArray[np.int16]] = {}
        for record in ordered:
            block = record["block"]
            grid = np.asarray(asked["strengths"][block["method"]], np.float64)
            seconds = record["seconds"] / (len(record["table"]) * len(grid))
            for part in record["table"]:
                same = {"grouping": part["grouping"], "notion": part["notion"], "seconds": seconds}
                same |= {name: block[name] for name in ("method", "fold", "seed")}
                for name, value in same.items():
                    pieces[name].append(_column(name, [value] * len(grid)))
                pieces["strength"].append(grid)
                for name in names:
                    values = part["values"].get(name) or [None] * len(grid)
                    pieces[name].append(np.asarray(values, np.float64))  # None is NaN
            for saved in record["tops"]:
                which = (block["method"], saved["grouping"], saved["notion"], saved["k"])
                shape = (len(examples), asked["places"], len(grid))
                table = tops.setdefault(which, np.full(shape, -1, np.int16))
                items = unpack(saved["top"])
                for number, query in enumerate(saved["queries"]):
                    if table[query, 0, 0] < 0:  # the first repeat that tested it
                        table[query] = items[number]
        columns = {name: np.concatenate(parts) for name, parts in pieces.items()}
        took = float(sum(record["seconds"] for record in records))
        about = about_run(config, len(columns["fold"]), took, len(records))
        return cls(columns, asked["ks"], about, Examples(examples, tops) if examples else None)

    def __len__(self) -> int:
        return len(self.columns["strength"])

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order of the table."""
        return list(dict.fromkeys(self.columns["method"].tolist()))

    @property
    def groupings(self) -> list[str]:
        """Names of the groupings, in the order of the table."""
        return list(dict.fromkeys(self.columns["grouping"].tolist())) if "grouping" in self.columns else [""]

    @property
    def notions(self) -> list[str]:
        """The notions asked for; a method that knows no notions is measured by each of them."""
        return list(self.about.notions or dict.fromkeys(self.columns["notion"].tolist()))

    @property
    def spread(self) -> str:
        """What the errors of its curves are: "standard error" (folds) or "standard deviation" (seeds)."""
        return self.about.spread

    def notion_name(self, notion: NotionLike) -> str:
        """Look up the full name of a notion: one of the sweep's by its name, or any by name, alias or itself."""
        return notion if isinstance(notion, str) and notion in self.notions else as_notion(notion).name

    def frame(self, kind: str = "polars") -> Any:
        """Copy the trials into a frame, one row per trial.

        Parameters
        ----------
        kind : str
            "polars" or "pandas".
        """
        if kind not in ("polars", "pandas"):
            raise ConfigError(f"kind must be 'polars' or 'pandas'; got {kind!r}.")
        texts = {name: self.columns[name].tolist() for name in TEXTS if name in self.columns}
        return require(kind).DataFrame({**self.columns, **texts})

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the trials to a file, whole or not at all.

        Parameters
        ----------
        path : path
            Its suffix, .parquet or .csv, decides the format.
        """
        from io import BytesIO

        writers = {".parquet": "write_parquet", ".csv": "write_csv"}
        suffix = Path(path).suffix
        if suffix not in writers:
            raise ConfigError(f"{path}: trials are written to {', '.join(writers)}; got {suffix!r}.")
        content = BytesIO()
        frame = self.frame()
        if suffix == ".csv":
            import polars as pl

            frame = frame.with_columns(pl.col(pl.String).map_elements(no_formula, return_dtype=pl.String))
        getattr(frame, writers[suffix])(content)
        write_whole(path, content.getvalue())

    def __iter__(self) -> Iterator[Trial]:
        return self.trials()

    def trials(self) -> Iterator[Trial]:
        """Go through the trials, in the order of the table."""
        for row in self.frame().iter_rows(named=True):
            identity = {name: row.pop(name) for name in KEYS if name in row}
            yield Trial(values=row, **identity)

    def curve(
        self,
        notion: NotionLike,
        k: int,
        *,
        method: str | None = None,
        quality: str = "ndcg",
        grouping: str | None = None,
    ) -> Curve:
        """Collect one method's curve for one notion, measured by that notion at k.

        Parameters
        ----------
        notion : str or Notion
            Its name or alias, or itself.
        k : int
            The cut-off, one of `ks`.
        method, grouping : str, optional
            By default the first of the sweep.
        quality : str
            "ndcg" or "precision".

        Raises
        ------
        ConfigError
            The sweep has no such curve.
        """
        name = self.notion_name(notion)
        method, grouping = method or self.methods[0], self.groupings[0] if grouping is None else grouping
        quality_name, violation_name = f"{quality}@{k}", f"{name}@{k}"
        if violation_name not in self.columns or quality_name not in self.columns:
            raise self._no_curve(name, k, method, quality, grouping)
        strengths, quality_values, quality_error = self.along(quality_name, notion, method=method, grouping=grouping)
        if not len(strengths):
            raise self._no_curve(name, k, method, quality, grouping)
        _, violation, violation_error = self.along(violation_name, notion, method=method, grouping=grouping)
        return Curve(
            method,
            name,
            quality_name,
            violation_name,
            strengths,
            quality_values,
            quality_error,
            violation,
            violation_error,
            grouping,
        )

    def along(
        self, column: str, notion: NotionLike, *, method: str, grouping: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Average a column over the repeats: strengths, means and errors, (strengths,) each; empty if not swept."""
        strengths, table = self.by_repeat(column, notion, method=method, grouping=grouping)
        if not len(strengths):
            return strengths, strengths, strengths
        return strengths, *mean_and_error(table, self.spread)

    def by_repeat(
        self, column: str, notion: NotionLike, *, method: str, grouping: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Look up the strengths, and a column's value in each fold or seed, (strengths, repeats)."""
        strengths, order = self._layout(self.notion_name(notion), method, grouping)
        return strengths, self.columns[column].astype(np.float64, copy=False)[order]

    def _layout(self, notion: str, method: str, grouping: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The strengths and which row holds each (strength, repeat), (strengths, repeats)."""
        key = (notion, method, grouping)
        if key not in self._tables:
            chosen = np.isin(self.columns["notion"], [notion, ANY]) & (self.columns["method"] == method)
            rows = np.flatnonzero(chosen & (self.columns.get("grouping", np.array("", object)) == grouping))
            strength, fold, seed = (self.columns[name][rows] for name in ("strength", "fold", "seed"))
            strengths = np.unique(strength)
            rows = rows[np.lexsort([seed, fold, strength])]
            self._tables[key] = strengths, rows.reshape(max(1, len(strengths)), -1)
        return self._tables[key]

    def _no_curve(self, notion: str, k: int, method: str, quality: str, grouping: str) -> ConfigError:
        where = f", grouping {grouping!r}" if len(self.groupings) > 1 or grouping not in self.groupings else ""
        known = f", groupings {self.groupings}" if where else ""
        return ConfigError(
            f"the sweep has no curve for {notion} at k={k}, method {method!r}{where} and {quality!r}; "
            f"it has notions {self.notions}, k in {list(self.ks)}, methods {self.methods}{known}."
        )

    def curves(self, quality: str = "ndcg") -> list[Curve]:
        """List every curve: grouping by grouping, method by method, notion by notion, k by k."""
        return [
            self.curve(notion, k, method=method, quality=quality, grouping=grouping)
            for grouping in self.groupings
            for method in self.methods
            for notion in self.notions
            for k in self.ks
        ]

    def html(self, title: str = "", subtitle: str = "") -> str:
        """Write the report as one page that needs no network."""
        return self.page(self, subtitle=subtitle, **({"title": title} if title else {}))

    def _repr_html_(self) -> str:
        return self.page(self, whole=False)

    def to_dict(self) -> dict[str, Any]:
        """Give what `--json` prints: the configuration and the curves.

        Each curve has its means, its errors and the reductions of its gap at no significant quality loss.
        """
        return {"about": self.about.to_dict(), "curves": [curve.to_dict() for curve in self.curves()]}


def _column(name: str, values: ArrayLike) -> NDArray[Any]:
    """One value per trial, (trials,): texts as objects, whose length is their own."""
    return np.asarray(values, object if name in TEXTS else None)
