"""`About`: what a sweep was asked, of what data, and what it took; noted because a run folder keeps no rows."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from evenrank.bounds import min_share
from evenrank.data import RankingData
from evenrank.experiment.examples import group_texts
from evenrank.experiment.plan import Plan
from evenrank.methods.registry import METHODS
from evenrank.notions import Notion, bind

Shares = Mapping[str, Mapping[str, Mapping[str, float | None]]]


@dataclass(frozen=True)
class Lists:
    """Rows per query: the median and the largest number."""

    median: float
    longest: int


@dataclass(frozen=True)
class Blocks:
    """Parts of the run that are done, of those asked for."""

    done: int = 1
    asked: int = 1


@dataclass(frozen=True)
class Made:
    """The command that began the run, and when, in UTC."""

    command: str = ""
    began: str = ""


@dataclass(frozen=True)
class About:
    """What a `Sweep` was asked, of what data, and what it took.

    Each default is what stands for a value that an older run folder did not note.

    Attributes
    ----------
    rows, queries, features : int
        Sizes of the data.
    groups : dict
        Label → share of the rows; with several groupings, grouping → label → share.
    folds : int or None
        The number of folds or seeds; None if it was not noted.
    repeats : str
        What ``folds`` counts: "folds" or "seeds".
    spread : str
        What the errors are: "standard error" (folds) or "standard deviation" (seeds).
    seed : int
    solver, scale : str
        Of the linear methods; ``scale`` None leaves the features as they are.
    settings : dict
        Method → its own options.
    notions : tuple of str
        Those asked for; empty if they were not noted.
    tested, tested_each : int or None
        Queries tested in all, and the fewest that one model is tested on; None if they were not noted.
    lists : Lists or None
        Lengths of the lists; None if they were not noted.
    relevant_share : float or None
        Share of the rows that are relevant; None if it was not noted.
    shares : dict
        Grouping → notion → the shares that bounds need (``theorem``, ``longest``; None where there is none).
    models : int
        Models trained and measured.
    seconds : float
        Spent on them.
    blocks : Blocks
        How much of the run is done.
    fingerprint : str
        A digest of the data; "" if it was not noted.
    versions : dict
        Package → version.
    made : Made or None
        The command and when it began; None if it was not noted.

    Examples
    --------
    >>> About.from_dict({"rows": 20, "queries": 4, "features": 3, "groups": {"a": 0.5, "b": 0.5}}).solver
    'exact'
    """

    rows: int = 0
    queries: int = 0
    features: int = 0
    groups: Mapping[str, Any] = field(default_factory=dict)
    folds: int | None = None
    repeats: str = "folds"
    spread: str = "standard error"
    seed: int = 0
    solver: str = "exact"
    scale: str | None = "train"
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notions: tuple[str, ...] = ()
    tested: int | None = None
    tested_each: int | None = None
    lists: Lists | None = None
    relevant_share: float | None = None
    shares: Shares = field(default_factory=dict)
    models: int = 0
    seconds: float = 0.0
    blocks: Blocks = field(default_factory=Blocks)
    fingerprint: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    made: Made | None = None

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> About:
        """Make it from what `to_dict` gave, or from an older version's: what is missing gets its default.

        Parameters
        ----------
        content : mapping
            Names of attributes → plain values; other names are left out.
        """
        known = {part.name for part in fields(cls)}
        values = {name: value for name, value in content.items() if name in known}
        values = {name: value for name, value in values.items() if value is not None or name == "scale"}
        for name, kind in PARTS.items():
            if isinstance(values.get(name), Mapping):
                part_names = {part.name for part in fields(kind)}
                values[name] = kind(**{key: value for key, value in values[name].items() if key in part_names})
        if "notions" in values:
            values["notions"] = tuple(values["notions"])
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Give plain values by name, for ``config.json`` and ``--json``; what was not noted is left out."""
        content = {name: value for name, value in asdict(self).items() if value is not None or name == "scale"}
        return content | {"notions": list(self.notions)}

    def before_run(self) -> dict[str, Any]:
        """Give `to_dict` without what is known only after the run, or stands elsewhere in ``config.json``."""
        return {name: value for name, value in self.to_dict().items() if name not in AFTER}

    def shares_of(self, grouping: str) -> dict[str, float]:
        """Look up each group's share of the rows under a grouping, in the order of the groups' numbers."""
        groups = self.groups.get(grouping)
        if isinstance(groups, Mapping):
            return dict(groups)
        by_grouping = any(isinstance(shares, Mapping) for shares in self.groups.values())
        return {} if by_grouping else dict(self.groups)


PARTS: dict[str, type[Lists] | type[Blocks] | type[Made]] = {"lists": Lists, "blocks": Blocks, "made": Made}
AFTER = ("models", "seconds", "blocks", "fingerprint", "versions", "made")


def about_plan(plan: Plan, seed: int, spread: str, repeats: int) -> About:
    """Describe a sweep that is about to run.

    Parameters
    ----------
    plan : Plan
        What decides its numbers.
    seed : int
        As the caller gave it.
    spread : str
        "standard error" (folds) or "standard deviation" (seeds).
    repeats : int
        The number of folds or seeds.
    """
    data = next(iter(plan.groupings.values()))
    groups = {
        name: {label: float((grouping.group == code).mean()) for code, label in enumerate(group_texts(grouping))}
        for name, grouping in plan.groupings.items()
    }
    longest = int(data.lengths.max())
    return About(
        rows=data.n_rows,
        queries=data.n_queries,
        features=data.n_features,
        groups=next(iter(groups.values())) if len(groups) == 1 else groups,
        folds=repeats,
        repeats="folds" if spread == "standard error" else "seeds",
        spread=spread,
        seed=int(seed),
        solver=plan.solver,
        scale=plan.scale,
        settings={name: dict(method_settings) for name, method_settings in plan.settings.items()},
        notions=plan.notions,
        tested=next(iter(plan.tested.values())).n_queries,
        tested_each=_tested_each(plan),
        lists=Lists(float(np.median(data.lengths)), longest),
        relevant_share=float(data.relevant.mean()),
        shares={
            name: {notion: _shares(grouping, plan.own.get(notion, notion), longest) for notion in plan.notions}
            for name, grouping in plan.groupings.items()
        },
    )


def about_run(config: Mapping[str, Any], models: int, seconds: float, done: int) -> About:
    """Describe a run from its configuration and what it took.

    Parameters
    ----------
    config : mapping
        The content of ``config.json``; older folders noted some of it elsewhere.
    models : int
        The number of models trained.
    seconds : float
        The seconds they took.
    done : int
        The number of finished blocks.
    """
    asked = config["asked"]
    splits = {(block["fold"], block["seed"]) for block in asked["blocks"]}
    noted = {name: asked[name] for name in ("solver", "scale", "settings", "notions")}
    noted |= {"folds": len(splits), "seed": min(seed for _, seed in splits)}
    took = {"models": models, "seconds": seconds, "blocks": Blocks(done, len(asked["blocks"]))}
    origin = {"fingerprint": config["data"]["fingerprint"], "versions": config["versions"], "made": config["made"]}
    return About.from_dict({**noted, **config["about"], **took, **origin})


def made_now(methods: Sequence[str]) -> dict[str, Any]:
    """Note the versions and the command that a run begins with, as ``config.json`` has them."""
    began = datetime.now(UTC).isoformat(timespec="seconds")
    return {"versions": _versions(methods), "made": asdict(Made(_command(), began))}


def _tested_each(plan: Plan) -> int:
    """The fewest queries that a model is tested on."""
    if plan.fold_of is None:
        return next(iter(plan.tested.values())).n_queries
    folds = {block.fold for block in plan.blocks}
    return min(int((fold_of == fold).sum()) for fold_of in plan.fold_of for fold in folds)


def _shares(data: RankingData, notion: str | Notion, longest: int) -> dict[str, float | None]:
    """The paper's least share of a cell (``theorem``), and the rarest compared cell's share of a longest list."""
    cells = bind(notion, data, scope="per_query", training=True).cell_weight.sum(axis=1)
    return {
        "theorem": min_share(data, notion).estimate if isinstance(notion, str) else None,  # which is of three notions
        "longest": float(cells.min() / (data.n_queries * longest)),
    }


def _versions(methods: Sequence[str]) -> dict[str, str]:
    out = {"python": platform.python_version()}
    extras = [METHODS[name].extra for name in methods if METHODS[name].extra]
    for package in ("evenrank", "numpy", "scipy", "scikit-learn", *extras):
        for distribution in (package, f"{package}-cpu"):
            try:
                out[package] = version(distribution)
                break
            except PackageNotFoundError:
                continue
    return out


def _command() -> str:
    program = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
    return shlex.join([program, *sys.argv[1:]])
