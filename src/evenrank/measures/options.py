"""`Options`: what can be chosen about a measure besides its cut-off, as keywords or in brackets after its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from evenrank.checks import check_number, choose
from evenrank.discounts import DISCOUNTS
from evenrank.errors import ConfigError
from evenrank.row_checks import as_array, as_floats

TARGETS = ("data", "all", "relevant", "equal")
AMONG = ("relevant", "all")
SUM_ERROR = 1e-6  # shares are often written with a few digits


class GroupShares(tuple[tuple[Any, float], ...]):
    """Shares by group label, in the order given."""


@dataclass(frozen=True, repr=False)
class Options:
    """What can be chosen about a measure; None is the measure's own choice.

    Attributes
    ----------
    discount : str or None
        The attention that rank j gets: "log2", 1 / log2(1 + j); "log2_clipped", 1 / log2(max(j, 2)); "rbp", p^(j − 1);
        "geometric", p (1 − p)^(j − 1); "err", p^(j − 1) (1 − u)^(relevant items above); "none", 1 for every rank.
    target : str, mapping, array or None
        The shares that groups should have: "data", those of the list (of all rows, for a measure of all lists
        together); "all", those of all rows; "relevant", those of the list's relevant rows; "equal"; group → share; or
        an array, (G,) or (q, G), in the order of ``group_names`` and ``query_ids``.
    patience : float or None
        The p of discounts, between 0 and 1.
    stop : float or None
        The u of "err": the chance to stop at a relevant item, from 0 to 1.
    step : int or None
        Every how many ranks a list is looked at.
    protected : Any
        The label of the protected group.
    among : str or None
        Whose exposure counts: that of "relevant" rows, or of "all".
    smoothing : float or None
        What is added to each group's count, at least 0.

    Examples
    --------
    >>> Options.of("target=equal, discount=rbp, patience=0.8")
    Options(discount='rbp', target='equal', patience=0.8)
    >>> str(Options(target={"a": 0.25, "b": 0.75}, step=5))
    'target=a:0.25/b:0.75,step=5'
    """

    discount: str | None = None
    target: Any = None
    patience: float | None = None
    stop: float | None = None
    step: int | None = None
    protected: Any = None
    among: str | None = None
    smoothing: float | None = None

    def __post_init__(self) -> None:
        if self.discount is not None:
            choose(self.discount, DISCOUNTS, what="discount")
        if self.target is not None:
            object.__setattr__(self, "target", _checked_target(self.target))
        if self.patience is not None:
            check_number(self.patience, "patience", above=0, below=1)
        if self.stop is not None:
            check_number(self.stop, "stop", least=0, most=1)
        if self.step is not None:
            check_number(self.step, "step", least=1, whole=True)
        if self.among is not None:
            choose(self.among, AMONG, what="among")
        if self.smoothing is not None:
            check_number(self.smoothing, "smoothing", least=0)

    @classmethod
    def of(cls, text: str) -> Options:
        """Read options as they stand in brackets after a measure's name.

        Parameters
        ----------
        text : str
            ``name=value`` pairs with commas between them; shares are written ``target=label:0.3/other:0.7``.

        Returns
        -------
        Options
            The options.
        """
        values: dict[str, Any] = {}
        for part in filter(str.strip, text.split(",")):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or name not in OPTIONS or not value or name in values:
                known = ", ".join(OPTIONS)
                raise ConfigError(
                    f"options of a measure are name=value, each once, of {known}, as in 'awrf@10(target=equal)'; "
                    f"got {part.strip()!r}."
                )
            values[name] = _READ.get(name, str)(value)
        return cls(**values)

    def given(self) -> dict[str, Any]:
        """Give the options that are not None, by name."""
        return {name: value for name in OPTIONS if (value := getattr(self, name)) is not None}

    def __repr__(self) -> str:
        return f"Options({', '.join(f'{name}={value!r}' for name, value in self.given().items())})"

    def __str__(self) -> str:
        return ",".join(f"{name}={_written(value)}" for name, value in self.given().items())


OPTIONS = tuple(field.name for field in fields(Options))


def _number(text: str) -> Any:
    """A number, or the text as it is, which the option's check then refuses."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _target(text: str) -> Any:
    if ":" not in text:
        return text
    pairs = [part.rpartition(":") for part in text.split("/")]
    return {label.strip(): _number(share.strip()) for label, _, share in pairs}


_READ = {"target": _target, "patience": _number, "stop": _number, "step": _number, "smoothing": _number}


def _written(value: Any) -> str:
    if isinstance(value, GroupShares):
        return "/".join(f"{label}:{share!r}" for label, share in value)
    if isinstance(value, tuple):
        return f"array{np.shape(value)}".replace(" ", "")
    return str(value)


def _checked_target(target: Any) -> Any:
    """A target that can be compared and kept: a name, `GroupShares`, or tuples of shares."""
    if isinstance(target, str):
        return choose(target, TARGETS, what="target")
    by_group = isinstance(target, Mapping | GroupShares)
    labels = list(dict(target)) if by_group else None
    shares = as_floats(as_array(list(dict(target).values()) if by_group else target, "target"), "target")
    good = shares.ndim in (1, 2) and shares.size and np.isfinite(shares).all() and (shares >= 0).all()
    if not good or np.abs(shares.sum(axis=-1) - 1).max() > SUM_ERROR:
        raise ConfigError(
            f"target must be one of {', '.join(TARGETS)}, or shares ≥ 0 of sum 1 by group; got {_short(target)}."
        )
    if labels is not None:
        return GroupShares(zip(labels, shares.tolist(), strict=True))
    return tuple(shares.tolist()) if shares.ndim == 1 else tuple(map(tuple, shares.tolist()))


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}…"
