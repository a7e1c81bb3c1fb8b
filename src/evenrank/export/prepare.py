"""What all writers do first: read the model, choose names, and bring offsets, shifts and missing values into it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import check_number, choose
from evenrank.errors import ConfigError, DataWarning
from evenrank.export.model import Forest, Linear, Network, Scorer
from evenrank.export.source import describe
from evenrank.export.versions import parse
from evenrank.row_checks import listed

NAN, ZERO = "nan", "zero"
AUTO, PLAIN = "auto", "plain"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}")


class Options(TypedDict, total=False):
    """What every ``to_…`` takes besides the model; `to_opensearch` explains it."""

    name: str
    version: str | None
    missing: str | None
    shift: float | str | None
    rename: Mapping[str, str] | str | None
    group_field: str


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model ready to be written for one engine.

    Attributes
    ----------
    scorer : Forest, Linear or Network
        Over the engine's features.
    columns : tuple of str
        The model's own names of its features, in the order of the set.
    groups : tuple
        The labels whose indicators follow as features: 1 for an item of the group, 0 for others.
    offsets : mapping
        Group → what is to be added to the score of its items, where the engine takes that as an input of its own.
    name, group_field : str
        The name of the model, and the field that holds the group.
    shift : float
        What was added to every score.
    missing : str, optional
        "nan", "zero" or None, as it was asked for.
    notes : tuple of str
        What the reader should know.
    """

    scorer: Scorer
    columns: tuple[str, ...]
    groups: tuple[Any, ...]
    offsets: Mapping[Any, float]
    name: str
    group_field: str
    shift: float
    missing: str | None
    notes: tuple[str, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """The engine's names of all features."""
        return self.scorer.features

    @property
    def own(self) -> tuple[str, ...]:
        """The engine's names of the model's own features."""
        return self.features[: len(self.columns)]


def prepare(
    model: Any,
    engine: str,
    *,
    group_feature: Callable[[str, Any, int], str] | None,
    name: str = "evenrank",
    version: str | None = None,
    missing: str | None = None,
    shift: float | str | None = None,
    rename: Mapping[str, str] | str | None = None,
    group_field: str = "group",
    check_name: Callable[[str], str | None] = lambda name: None,
) -> Prepared:
    """Read a model and make it ready for an engine.

    Parameters
    ----------
    model : ranker, booster or path
        As `describe` takes it.
    engine : str
        The engine, as messages call it.
    name, version, missing, shift, rename, group_field
        As `to_opensearch` takes them.
    group_feature : Callable
        Field, label and number of a group → the name of its indicator; None leaves offsets to an input of their own.
    check_name : Callable
        A feature's name → what is wrong with it for this engine, or None.

    Returns
    -------
    Prepared
        The model.
    """
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise ConfigError(f"name must be letters, digits, '_', '.' or '-' and begin with a letter; got {name!r}.")
    if not isinstance(group_field, str) or FIELD.fullmatch(group_field) is None:
        raise ConfigError(
            f"group_field must be letters, digits, '_' or '.' and begin with a letter; got {group_field!r}."
        )
    parse(version)
    if missing is not None:
        choose(missing, (NAN, ZERO), what="missing")
    described = describe(model)
    columns = described.features
    renamed = plain_names(columns, check_name) if rename == PLAIN else _renamed(columns, rename or {})
    scorer = replace(described.scorer, features=renamed)
    scorer = _plus(scorer, described.unknown)
    offsets = {
        label.item() if isinstance(label, np.generic) else label: number - described.unknown
        for label, number in described.offsets.items()
        if number != described.unknown
    }
    groups: tuple[Any, ...] = ()
    if offsets and group_feature is not None:
        indicators = [group_feature(group_field, label, number) for number, label in enumerate(offsets)]
        scorer, groups, offsets = (
            _with_offsets(scorer, indicators, np.array(list(offsets.values()))),
            tuple(offsets),
            {},
        )
    for number, feature in enumerate(scorer.features):
        wrong = check_name(feature) if feature.strip() and feature.isprintable() else "it is empty or not printable"
        if wrong:
            way = (
                "--rename 'OLD=NEW' or --rename plain (rename=)"
                if number < len(columns)
                else "--group-field (group_field=)"
            )
            raise ConfigError(f"{engine} cannot take the feature {feature!r}: {wrong}. Rename it with {way}.")
    if len(set(scorer.features)) < len(scorer.features):
        twice = next(feature for feature in scorer.features if scorer.features.count(feature) > 1)
        raise ConfigError(f"two features would be called {twice!r}. Give each another name with --rename (rename=).")
    scorer, added = _shifted(scorer, shift)
    if missing == ZERO and isinstance(scorer, Forest):
        scorer = scorer.missing_as_zero()
    notes = list(described.notes)
    if groups:
        notes.append(
            f"the group of an item counts at serving: a feature for each of {listed(groups)} is 1 where {group_field} "
            "has that label; an item of unknown group has 0 in all of them"
        )
    if offsets:
        notes.append("the group of an item counts at serving: its offset is an input; that of an unknown group is 0")
    if added:
        notes.append(f"{added!r} is added to every score, as asked for; the order of items is the same")
    return Prepared(scorer, columns, groups, offsets, name, group_field, added, missing, tuple(notes))


def plain_names(names: Sequence[str], wrong: Callable[[str], str | None] = lambda name: None) -> tuple[str, ...]:
    """Make names of letters, digits and underscores, each once and none of them ``wrong`` for the engine.

    >>> plain_names(["price", "own housing=yes", "own housing=no", "own_housing_no", "2nd"])
    ('price', 'own_housing_yes', 'own_housing_no', 'own_housing_no_2', 'f_2nd')
    """
    plain: list[str] = []
    for name in names:
        base = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "f"
        base = f"f_{base}" if not base[0].isalpha() or wrong(base) else base
        tried = (base if number == 1 else f"{base}_{number}" for number in count(1))
        plain.append(next(name for name in tried if name not in plain))
    return tuple(plain)


def _renamed(columns: tuple[str, ...], rename: Mapping[str, str] | str) -> tuple[str, ...]:
    if isinstance(rename, str):
        raise ConfigError(f"rename must be {PLAIN!r}, or the new name of each feature to rename; got {rename!r}.")
    strange = next((name for name in rename if name not in columns), None)
    if strange is not None:
        raise ConfigError(f"rename names {strange!r}, which is no feature of the model. Check the spelling.")
    return tuple(str(rename.get(name, name)) for name in columns)


# ---------------------------------------------------------------------- offsets and shifts


def _with_offsets(scorer: Scorer, indicators: Sequence[str], offsets: NDArray[np.float64]) -> Scorer:
    """Add a feature for each group, which is 1 for its items, and what it adds to the score, (groups,)."""
    d = len(scorer.features)
    names = (*scorer.features, *indicators)
    if isinstance(scorer, Linear):
        return replace(scorer, features=names, coef=np.append(scorer.coef, offsets))
    if isinstance(scorer, Network):
        return _network_with(scorer, names, offsets)
    roots = len(scorer.left) + 3 * np.arange(len(offsets))
    ends = np.full(len(offsets), -1)

    def nodes(own: NDArray[Any], root: Any, left: Any, right: Any) -> NDArray[Any]:
        each = np.stack([np.broadcast_to(part, len(offsets)) for part in (root, left, right)], axis=1)
        return np.concatenate([own, each.ravel().astype(own.dtype)])

    return replace(
        scorer,
        features=names,
        roots=np.concatenate([scorer.roots, roots]),
        feature=nodes(scorer.feature, d + np.arange(len(offsets)), 0, 0),
        at_most=nodes(scorer.at_most, 0.5, 0, 0),
        left=nodes(scorer.left, roots + 1, ends, ends),
        right=nodes(scorer.right, roots + 2, ends, ends),
        missing_left=nodes(scorer.missing_left, True, True, True),
        value=nodes(scorer.value, 0.0, 0.0, offsets),
    )


def _network_with(network: Network, names: tuple[str, ...], offsets: NDArray[np.float64]) -> Network:
    """Lead the indicators, which are 0 or 1, past the hidden layers: ReLU leaves them as they are."""
    count = len(offsets)
    layers = []
    for number, (weight, bias) in enumerate(network.layers):
        last = number == len(network.layers) - 1
        passed = offsets[:, None] if last else np.eye(count)
        block = np.zeros((weight.shape[0] + count, weight.shape[1] + (0 if last else count)))
        block[: weight.shape[0], : weight.shape[1]] = weight
        block[weight.shape[0] :, 0 if last else weight.shape[1] :] = passed
        layers.append((block.astype(np.float32), bias if last else np.append(bias, np.zeros(count, np.float32))))
    center, spread = np.append(network.center, np.zeros(count)), np.append(network.spread, np.ones(count))
    return Network(names, center, spread, layers)


def _plus(scorer: Scorer, number: float) -> Scorer:
    """Add a number to every score."""
    if not number:
        return scorer
    if isinstance(scorer, Forest):
        return replace(scorer, base=scorer.base + number)
    if isinstance(scorer, Linear):
        return replace(scorer, intercept=scorer.intercept + number)
    weight, bias = scorer.layers[-1]
    return replace(scorer, layers=[*scorer.layers[:-1], (weight, (bias + number).astype(np.float32))])


def _shifted(scorer: Scorer, shift: float | str | None) -> tuple[Scorer, float]:
    if shift is None:
        return scorer, 0.0
    if shift == AUTO:
        if not isinstance(scorer, Forest):
            raise ConfigError("the scores of this model have no smallest value. Give shift a number.")
        leaves = np.where(scorer.left < 0, scorer.value, np.inf)
        lowest = scorer.base + float(np.minimum.reduceat(leaves, scorer.roots).sum())
        shift = float(np.float32(max(0.0, -lowest) * (1 + 2.0**-20)))
    check_number(shift, "shift")
    return _plus(scorer, float(shift)), float(shift)


# ---------------------------------------------------------------------- missing values


def check_missing(prepared: Prepared, engine: str, rule: str, goes_left: NDArray[np.bool_]) -> tuple[str, ...]:
    """Warn, or refuse where it was asked for, if an engine sends a missing value elsewhere than the model does.

    Parameters
    ----------
    prepared : Prepared
        The model.
    engine, rule : str
        The engine, and what it does, in words.
    goes_left : ndarray
        Where it sends a missing value at each node, (nodes,).

    Returns
    -------
    tuple of str
        A note, if there is something to say.
    """
    forest = prepared.scorer
    if not isinstance(forest, Forest):
        return ()
    astray = (forest.missing_left != goes_left) & (forest.left >= 0) & (forest.feature < len(prepared.columns))
    if not astray.any():
        return ()
    feature = forest.features[forest.feature[np.argmax(astray)]]
    fact = (
        f"{engine} {rule}; at {int(astray.sum())} of {len(forest.inner)} splits (first: {feature!r}) the model sends "
        "a missing value elsewhere"
    )
    if prepared.missing is not None:
        raise ConfigError(f"{fact}. Fill missing values before ranking and leave --missing (missing=) out.")
    warnings.warn(f"{fact}. Fill missing values before ranking.", DataWarning, stacklevel=4)
    return (f"{fact}: fill missing values before ranking",)
