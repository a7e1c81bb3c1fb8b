"""What a method is (`Method`), and the `Task` and `Part` by which a sweep runs one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.errors import ConfigError, EvenrankError
from evenrank.extras import require
from evenrank.notions import Notion
from evenrank.quiet import first_line, from_library, quiet

ANY = "any"
IN, POST = "in-processing", "post-processing"


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is run on.

    Attributes
    ----------
    train, test : tuple of RankingData
        The rows to train on and to test on, one per grouping; all groupings share their features.
    notions : tuple of str
        The notions to train for.
    strengths : ndarray
        The strengths to try, (strengths,).
    ks : tuple of int
        The cut-offs.
    solver, scale : str
        How linear models are trained, and what features are scaled by (None: not at all).
    seed : int
        Seeds the training.
    settings : Mapping[str, Any]
        Further options of the method.
    own : Mapping[str, Notion]
        The notions that are the user's own, by name.
    """

    train: tuple[RankingData, ...]
    test: tuple[RankingData, ...]
    notions: tuple[str, ...]
    strengths: NDArray[np.float64]
    ks: tuple[int, ...]
    solver: str = "exact"
    scale: str | None = "train"
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Notion] = field(default_factory=dict)

    def notion(self, name: str) -> str | Notion:
        """Give a notion as rankers take it: one of the user's own, or the name."""
        return self.own.get(name, name)


@dataclass(frozen=True, eq=False)
class Part:
    """The test scores of one run.

    Attributes
    ----------
    grouping : int
        The number of the grouping.
    notion : str
        The notion, or `ANY` if the run serves all.
    k : int or None
        The cut-off, if the method is run for each.
    scores : ndarray
        (n, strengths), of the test rows.
    """

    grouping: int
    notion: str
    k: int | None
    scores: NDArray[Any]


@dataclass(frozen=True)
class Sees:
    """What a method may look at.

    Attributes
    ----------
    group_at_training, group_at_serving : bool
        Whether it uses the items' groups to learn, and to order a new list.
    labels : bool
        Whether it needs relevance.
    other_lists : bool
        Whether it uses other lists than the one to be ordered when it serves.
    """

    group_at_training: bool = True
    group_at_serving: bool = False
    labels: bool = True
    other_lists: bool = False

    def given(self, settings: Mapping[str, Any]) -> Sees:
        """Give what the method may look at with these settings: ``group_aware`` shows it the group at serving."""
        return replace(self, group_at_serving=True) if settings.get("group_aware") else self

    def __str__(self) -> str:
        moments = {"training": self.group_at_training, "serving": self.group_at_serving}
        used = [moment for moment, sees in moments.items() if sees]
        group = f"may see the group at {' and at '.join(used)}" if used else "never sees the group"
        return group + ("; may see other lists at serving" if self.other_lists else "")


@dataclass(frozen=True)
class Facts:
    """What is known of a method in general.

    Attributes
    ----------
    guarantee : str
        What holds of its lists, and whether always, on average or with some probability.
    cost : str
        How its work grows.
    reference : str
        Where it was published.
    """

    guarantee: str
    cost: str
    reference: str


@dataclass(frozen=True)
class Strength:
    """The knob that a sweep turns.

    Attributes
    ----------
    name : str
        The method's own name for it.
    meaning : str
        What a larger value asks for, in a few words.
    grid : Callable
        Its default values; 0 is the method's baseline.
    below, most : float
        Values are smaller than the one and at most the other.
    full : Callable, optional
        The strength to take where none is chosen, of the rows to train on.
    full_meaning : str
        What that strength is, in a few words.
    """

    name: str
    meaning: str
    grid: Callable[[], NDArray[np.float64]]
    below: float = np.inf
    most: float = np.inf
    full: Callable[[RankingData], float] | None = None
    full_meaning: str = ""

    @property
    def range(self) -> str:
        """The values it may have, in words; "" if any from 0 on."""
        if np.isfinite(self.below):
            return f"below {self.below:g}"
        return f"at most {self.most:g}" if np.isfinite(self.most) else ""


@dataclass(frozen=True)
class Method:
    """What a method is, what it may see, and how each command gets one.

    Attributes
    ----------
    name, label, title : str
        How commands call it, the heading of a table's column, and what it is in one line.
    kind : str
        "in-processing" (it trains) or "post-processing" (it re-ranks the scores of a trained ranker).
    model : str
        What it trains: "linear", "lightgbm", "xgboost", "mlp"; "" if it trains nothing.
    strength : Strength
        The swept knob.
    sees : Sees
        What it may look at.
    home : tuple of str
        Module and name of its ranker's class, imported when used.
    run : Callable
        How a sweep runs it: task → parts, one after the other, so that the scores of only one are in memory.
    knobs : tuple of str
        Options of `evenrank train` or `evenrank rank` that it takes, by the parameter's name.
    settings : tuple of str or None
        Further options that a sweep may set; None leaves them to the library that trains.
    fixed : Mapping[str, Any]
        Parameters that make it this variant of its ranker.
    larger : bool
        The larger group is the protected one.
    by_notion : bool
        It trains for a notion; otherwise one run serves all.
    by_k : bool
        It is run anew for each cut-off.
    by_name : bool
        It runs where it is named only; "all" leaves it out, because it takes too long.
    in_turn : bool
        It serves list after list, which takes its time: a bench runs it at full strength only.
    extra : str
        The optional dependency it needs.
    saves : bool
        Its ranker has a model file.
    direct : bool
        It re-ranks scores as they are, without having been fitted.
    facts : Facts
        Its guarantee, its cost and its reference.
    takes_missing : bool
        It takes missing values and categories; other methods have a setting "impute", see `evenrank.methods.filling`.
    with_settings : Mapping[str, Any]
        Parameters besides, where the user sets options of the library's own: it shall warn of those it does not know.
    """

    name: str
    label: str
    title: str
    kind: str
    model: str
    strength: Strength
    sees: Sees
    home: tuple[str, str]
    run: Callable[[Method, Task], Iterator[Part]]
    knobs: tuple[str, ...]
    settings: tuple[str, ...] | None = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    larger: bool = False
    by_notion: bool = False
    by_k: bool = False
    by_name: bool = False
    in_turn: bool = False
    extra: str = ""
    saves: bool = True
    direct: bool = False
    facts: Facts = field(kw_only=True)
    takes_missing: bool = False
    with_settings: Mapping[str, Any] = field(default_factory=dict)

    def ranker_class(self) -> Any:
        """Import the class of its ranker.

        Returns
        -------
        type
            The class.

        Raises
        ------
        MissingExtraError
            If the library that it needs is absent.
        """
        if self.extra:
            require(self.extra)
        module, name = self.home
        return getattr(import_module(module), name)

    @property
    def has_exact_path(self) -> bool:
        """Whether exact training makes its path constant beyond the strength at which the training gap is 0."""
        return self.model == "linear" and self.strength.name == "alpha"

    def make(self, data: RankingData, options: Mapping[str, Any]) -> Any:
        """Make its ranker or re-ranker, not yet fitted.

        Parameters
        ----------
        data : RankingData
            The rows that it will train on or re-rank.
        options : mapping
            Parameters of the ranker; those that decide the variant are set by the method.

        Returns
        -------
        ranker
            An object of the method's class.

        Raises
        ------
        ConfigError
            For an option that the ranker does not have.
        """
        given = {**self.fixed, **options}
        if self.larger:
            given["protected"] = larger_group(data)
        try:
            return self.ranker_class()(**given)
        except TypeError as error:
            name = str(error).rpartition("argument ")[2].strip("'")
            if name not in given:
                raise
            raise ConfigError(f"{name!r} is not an option of {self.name}.") from None

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Refuse settings of a sweep that the method does not have.

        Parameters
        ----------
        settings : mapping
            Option names and their values.

        Raises
        ------
        ConfigError
            For the first that is not known.
        """
        known_names = (*(self.settings or ()), *(() if self.takes_missing else ("impute",)))
        for name in settings:
            if self.settings is not None and name not in known_names:
                known = ", ".join(known_names)
                raise ConfigError(f"setting {self.name}.{name} is not known; the settings of {self.name} are: {known}.")


def larger_group(data: RankingData) -> Any:
    """Find the label of the largest group.

    Parameters
    ----------
    data : RankingData
        The rows to train on.

    Returns
    -------
    label
        The first in order, of groups equally large.
    """
    return data.group_names[int(np.argmax(np.bincount(data.group[data.group >= 0], minlength=data.n_groups)))]


@contextmanager
def refusals(name: str, settings: Mapping[str, Any]) -> Iterator[None]:
    """Turn an error of the library that trains, or of the options it was given, into a ConfigError of one line."""
    try:
        with quiet():
            yield
    except EvenrankError:
        raise
    except Exception as error:
        reason = first_line(error)
        if not settings and from_library(error):
            raise ConfigError(f"{name} does not train on these rows: {reason}") from None
        if not settings:
            raise
        given = " and ".join(f"{option}={value}" for option, value in settings.items())
        raise ConfigError(f"{name} does not take {given}: {reason}") from None
