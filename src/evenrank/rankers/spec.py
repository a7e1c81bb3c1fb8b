"""`FairnessSpec`: what a fair ranker is asked for, in one object that trainers pass inward."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from evenrank.checks import check_k, check_number, choose
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.measures import MeasureAt
from evenrank.notions import SCOPES, Notion, NotionLike, as_notion
from evenrank.targets import TARGETS


@dataclass(frozen=True)
class FairnessSpec:
    """What is evened out, in what value, over what, and how strongly.

    Attributes
    ----------
    notion : str, Notion, callable or row masks
        The notion of fairness.
    alpha : float
        The strength of the term.
    target : str
        The value that is evened out; see `evenrank.targets`.
    scope : str
        "amortized" over all queries, or "per_query".
    k : int
        The cut-off of target "topk" and of the gap that is reported and asked for.
    temperature : float, optional
        Softness of the targets that have one.
    max_violation : float, optional
        Instead of ``alpha``: the gap of the top k to reach on the training rows.
    """

    notion: NotionLike = "equal_opportunity"
    alpha: float = 1.0
    target: str = "score"
    scope: str = "amortized"
    k: int = 5
    temperature: float | None = None
    max_violation: float | None = None

    def __post_init__(self) -> None:
        as_notion(self.notion)
        choose(self.target, TARGETS, what="target")
        choose(self.scope, SCOPES, what="scope")
        check_k(self.k)
        if self.max_violation is None:
            check_number(self.alpha, "alpha", least=0)
        else:
            check_number(self.max_violation, "max_violation", least=0)

    @classmethod
    def of(cls, ranker: Any) -> FairnessSpec:
        """Take it from a ranker's parameters of these names."""
        return cls(**{field.name: getattr(ranker, field.name) for field in fields(cls) if hasattr(ranker, field.name)})

    @property
    def bounded(self) -> bool:
        """Whether a gap is asked for instead of a strength."""
        return self.max_violation is not None

    @property
    def active(self) -> bool:
        """Whether there is a fairness term at all."""
        return self.bounded or self.alpha > 0

    @property
    def as_notion(self) -> Notion:
        """The notion itself."""
        return as_notion(self.notion)

    @property
    def gap_name(self) -> str:
        """The measure of the gap of the top k, under the notion's short name if it has one."""
        return str(MeasureAt(self.as_notion.alias or self.as_notion.name, self.k))

    @property
    def gap(self) -> tuple[Notion, int]:
        """The gap of the top k, as measures are asked for."""
        return self.as_notion, self.k

    def check_groups(self, data: RankingData, *, group_aware: bool = False) -> None:
        """Refuse rows without groups where something is asked of groups.

        Parameters
        ----------
        data : RankingData
            The rows to train on.
        group_aware : bool
            Whether the ranker also scores by group.

        Raises
        ------
        ConfigError
            If fairness or ``group_aware`` is set and the rows have no groups.
        """
        if data.n_groups or not (self.active or group_aware):
            return
        option = f"max_violation={self.max_violation:g}" if self.max_violation is not None else f"alpha={self.alpha:g}"
        aware = " and group_aware" if group_aware else ""
        raise ConfigError(f"{option}{aware} needs groups: pass sensitive_features, one label per row, or set alpha=0.")
