"""Which pairs of groups a reader should see: those that show something first, the group ahead first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenrank.audits.pair import Pair

if TYPE_CHECKING:
    from evenrank.audits.audit import Audit


def by_clearness(pairs: Iterable[Pair], question: str) -> list[Pair]:
    """Sort the pairs that can be decided by their p-values, each with its group ahead first.

    Parameters
    ----------
    pairs : iterable of Pair
        The pairs.
    question : str
        "pooled" or "within_query".
    """
    decidable = [pair for pair in pairs if getattr(pair, question).decidable]
    turned = [pair if pair.favoured(question)[0] == pair.a else pair.turned() for pair in decidable]
    return sorted(turned, key=lambda pair: (getattr(pair, question).p, -abs(getattr(pair, question).difference)))


def measures_of(audit: Audit) -> list[str]:
    """List the measures that were tested, demographic parity first."""
    return list(dict.fromkeys(pair.measure for pair in audit.pairs))


@dataclass(frozen=True)
class Tally:
    """How many pairs of groups reached each verdict, over some cut-offs."""

    uneven: int = 0
    hints: int = 0
    none_shown: int = 0
    cannot_tell: int = 0

    @classmethod
    def of(cls, audit: Audit, pairs: Iterable[Pair], question: str) -> Tally:
        """Count the verdicts on a question."""
        verdicts = [getattr(pair, question).verdict(1 - audit.confidence).replace(" ", "_") for pair in pairs]
        return cls(**{name: verdicts.count(name) for name in cls.__dataclass_fields__})

    @property
    def words(self) -> str:
        """Write the counts that are not 0."""
        counts = {
            "uneven": self.uneven,
            "hints": self.hints,
            "none shown": self.none_shown,
            "cannot tell": self.cannot_tell,
        }
        return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


@dataclass(frozen=True)
class Bracket:
    """Places next to each other, and what each group got of them.

    Attributes
    ----------
    places : str
        Such as "1", "2–3" or "11 and below".
    shares : dict
        Of the places that items of known groups stand in, each group's share.
    expected : dict
        The same if each list were in random order.
    items : float
        The items of known groups in these places.
    """

    places: str
    shares: dict[str, float]
    expected: dict[str, float]
    items: float


def brackets(audit: Audit) -> list[Bracket]:
    """Divide the places at the cut-offs and give what each group got of each part; empty parts are left out."""
    result = []
    before = {row.category: (0.0, 0.0) for row in audit.categories}
    last = 0
    for k in [*audit.ks, None]:
        if k is None:
            now = {row.category: (row.number, row.number) for row in audit.categories}
            places = f"{last + 1} and below"
        else:
            now = {row.category: (row.selected, row.expected) for row in audit.categories if row.k == k}
            places = str(k) if k == last + 1 else f"{last + 1}–{k}"
        got, random = ({name: now[name][j] - before[name][j] for name in now} for j in (0, 1))
        total, chance = sum(got.values()), sum(random.values())
        if total > 1e-9 and chance > 1e-9:
            result.append(
                Bracket(
                    places,
                    {name: max(0.0, value) / total for name, value in got.items()},
                    {name: max(0.0, value) / chance for name, value in random.items()},
                    total,
                )
            )
        before, last = now, k or last
    return result
