"""`Exported`: a model written for an engine, with all files that an upload needs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.export.emulate import emulate, matrix
from evenrank.export.prepare import Prepared

# Every file that an export may write.
FILES = (
    "README.md",
    "definition.json",
    "definition.txt",
    "features.json",
    "model.json",
    "model.onnx",
    "rank-profile.txt",
    "upload.sh",
)
FASTAR = "fastar.json"


@dataclass(frozen=True, eq=False)
class Exported:
    """A ranker in the form of one engine.

    Attributes
    ----------
    engine : str
        The engine.
    version : str or None
        The version it is meant for; None is the newest.
    model_type : str
        What the engine calls this kind of model.
    definition : str or bytes
        The model's definition.
    features : tuple of str
        The names of the feature set, in its order.
    normalizers : dict
        Feature → the engine's normalizer; empty if there is none.
    files : dict
        Name → content of every file that `write` writes.
    prepared : Prepared
        The model it was made of.
    fills : bool
        The feature set gives 0 for a missing value, before the model sees it.
    """

    engine: str
    version: str | None
    model_type: str
    definition: str | bytes
    features: tuple[str, ...]
    normalizers: Mapping[str, Any]
    files: Mapping[str, str | bytes]
    prepared: Prepared = field(repr=False)
    fills: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of the export should know."""
        return self.prepared.notes

    @property
    def shift(self) -> float:
        """What was added to every score, as asked for."""
        return self.prepared.shift

    def score(self, rows: Any, groups: ArrayLike | None = None, **options: Any) -> NDArray[Any]:
        """Score rows as the engine does.

        Parameters
        ----------
        rows : array-like, frame or RankingData
            The model's own features, (n, d), by the names of training; NaN or None is missing.
        groups : array-like, optional
            The group label of each row, (n,), where the model adds offsets; a `RankingData` has them.
        **options : Any
            Further arguments of `emulate`, such as Vespa's ``evaluator``.

        Returns
        -------
        ndarray
            Scores, (n,), in the order of the rows.
        """
        values, _ = matrix(rows, self.prepared.columns)
        if self.fills:
            values = np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)
        if self.prepared.groups or self.prepared.offsets:
            values = np.concatenate([values, self._group_columns(rows, groups)], axis=1)
        if self.engine != "onnx":
            options = {
                "features": self.features,
                "normalizers": self.normalizers,
                "model_type": self.model_type,
            } | options
        scores = emulate(self.engine, self.definition, values, self.version, **options)
        return np.asarray(rows.to_caller(scores)) if isinstance(rows, RankingData) else scores

    def _group_columns(self, rows: Any, groups: Any) -> NDArray[np.float64]:
        """What the engine is told of each row's group: indicators, (n, groups), or its offset, (n, 1)."""
        labels = self.prepared.groups or tuple(self.prepared.offsets)
        if isinstance(rows, RankingData) and groups is None:
            codes = {name: code for code, name in enumerate(rows.group_names)}
            is_of = np.stack([rows.group == codes.get(label, -2) for label in labels], axis=1)
        elif groups is None:
            raise ConfigError("this model adds an offset per group: pass groups, the label of each row.")
        else:
            given = np.asarray(groups, dtype=object)
            n = rows.n_rows if isinstance(rows, RankingData) else len(rows)
            if given.shape != (n,):
                raise DataError(f"groups must be one label per row, ({n},); got shape {given.shape}.")
            given = rows.to_stored(given) if isinstance(rows, RankingData) else given
            is_of = np.stack([given == label for label in labels], axis=1)
        if self.prepared.groups:
            return is_of.astype(np.float64)
        return (is_of * np.array(list(self.prepared.offsets.values()))).sum(axis=1, keepdims=True)  # type: ignore[no-any-return]

    def write(self, folder: str | PathLike[str], more: Mapping[str, str | bytes] | None = None) -> list[Path]:
        """Write all files: the definition, the feature set, the upload request and a README.

        Files are first made elsewhere in the folder and then put in their places, so that a failure leaves none.

        Parameters
        ----------
        folder : path
            The folder, which is made if it is not there. Files of an earlier export in it are replaced or removed.
        more : mapping, optional
            Name → content of further files.

        Returns
        -------
        list of Path
            The files.
        """
        target, files = Path(folder), {**self.files, **(more or {})}
        try:
            target.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".export-", dir=target) as made:
                for name, content in files.items():
                    data = content.encode() if isinstance(content, str) else content
                    (Path(made) / name).write_bytes(data)
                for name in files:
                    os.replace(Path(made) / name, target / name)
            for name in (*FILES, FASTAR):
                if name not in files:
                    (target / name).unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError(
                f"{folder}: cannot be written ({error.strerror or error}). Choose another output."
            ) from None
        return [target / name for name in files]
