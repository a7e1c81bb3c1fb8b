"""`MeasureAt`: a measure's name and its cut-off, written ``name@k``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evenrank.checks import check_k


class MeasureAt(NamedTuple):
    """A measure and its cut-off.

    Attributes
    ----------
    name : str
        The measure, with its options in brackets if it has any.
    k : int or None
        The cut-off; None for the whole list.

    Examples
    --------
    >>> MeasureAt.of("ndcg@5"), str(MeasureAt("mrr", None))
    (MeasureAt(name='ndcg', k=5), 'mrr')
    >>> MeasureAt.of("exposure_gap@5(discount=rbp)")
    MeasureAt(name='exposure_gap(discount=rbp)', k=5)
    """

    name: str
    k: int | None = None

    @classmethod
    def of(cls, text: str) -> MeasureAt:
        """Take apart a text that is known to be well-formed; `parse_measure` is for what users write."""
        head, bracket, options = text.partition("(")
        name, _, k = head.partition("@")
        return cls(name + bracket + options, int(k) if k else None)

    def __str__(self) -> str:
        name, bracket, options = self.name.partition("(")
        return self.name if self.k is None else f"{name}@{self.k}{bracket}{options}"


def measure_names(ks: Sequence[int], names: Sequence[str] = ("ndcg", "precision", "dp", "eop", "eod")) -> list[str]:
    """Write every name at every cut-off.

    Parameters
    ----------
    ks : sequence of int
        The cut-offs.
    names : sequence of str
        The measures, without a cut-off.

    Returns
    -------
    list of str
        Names such as "ndcg@5", cut-offs in turn within each name.

    Examples
    --------
    >>> measure_names([1, 3], ["ndcg", "dp"])
    ['ndcg@1', 'ndcg@3', 'dp@1', 'dp@3']
    """
    return [str(MeasureAt(name, check_k(k))) for name in names for k in ks]
