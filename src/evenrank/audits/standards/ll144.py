"""`bias_audit`: the tables that New York City's Local Law 144 asks of tools that rank or score applicants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenrank.audits.standards.categories import SMALL, CategoryTable, category_table
from evenrank.audits.standards.people import Attribute, People, crossed
from evenrank.checks import check_k, check_number, choose
from evenrank.confidence import check_confidence
from evenrank.data import RankingData
from evenrank.errors import ConfigError, DataError
from evenrank.ranking import ULPS, Ranking

RULE = "6 RCNY §§ 5-300 to 5-304, under New York City's Local Law 144 of 2021"
RATES = ("selection", "scoring")
REDUCTIONS = ("best", "mean", "rows")


@dataclass(frozen=True, eq=False)
class BiasAudit:
    """The tables of a bias audit. ``text()``, ``markdown()`` and ``html()`` lay them out; ``table()`` has the numbers.

    Attributes
    ----------
    rate : str
        "selection" or "scoring".
    k : int or None
        Those in the top k of a list are selected; None for a scoring rate.
    tables : tuple of CategoryTable
        By sex, by race or ethnicity, and by both, as far as they were given.
    facts : dict
        The data in numbers: "rows", "lists", "applicants", "several_rows" (people in more than one row), "median" and
        "at_median" (of scores), "tied_at_k" (people whose selection a tie leaves to chance), "whole_lists" (the share
        of lists that k does not cut), "unknown" (people whose sex or race is unknown) and so on.
    person : str or None
        The column that tells people apart; None if each row is a person.
    reduce : str
        How the rows of a person were brought together.
    min_share : float
        Categories with a smaller share of the applicants have no impact ratio.
    confidence : float
        1 minus the level of the tests.
    """

    rate: str
    k: int | None
    tables: tuple[CategoryTable, ...]
    facts: dict[str, Any]
    person: str | None
    reduce: str
    min_share: float
    confidence: float

    page: ClassVar[Callable[..., str]]  # the page layer, which comes later, puts it here

    @property
    def tested(self) -> bool:
        """Whether there are tests: not if rows of one person count one by one."""
        return self.reduce != "rows" or not self.facts["several_rows"]

    def find(self, name: str) -> CategoryTable:
        """Look up the table "sex", "race" or "intersectional"."""
        choose(name, [table.name for table in self.tables], what="table")
        return next(table for table in self.tables if table.name == name)

    def conclusions(self) -> list[str]:
        """Write in plain words what the tables show, how they were made, and what they do not say."""
        from evenrank.audits.standards.words import told

        words = told(self)
        return [words.answer, *words.shown, *words.about]

    def table(self) -> Any:
        """Give the tables as one tidy polars table, a row per table and category."""
        import polars as pl

        from evenrank.audits.standards.layout import table_rows

        floats = ("impact_ratio", "fisher_p", "corrected_p", "standard_deviations")
        types = dict.fromkeys(floats, pl.Float64) | {"below_four_fifths": pl.Boolean, "k": pl.Int64}
        return pl.DataFrame(table_rows(self), schema_overrides=types, infer_schema_length=None)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain values."""
        return {
            "standard": "ll144",
            "rule": RULE,
            "rate": self.rate,
            "k": self.k,
            "person": self.person,
            "reduce": self.reduce,
            "min_share": self.min_share,
            "confidence": self.confidence,
            "data": self.facts,
            "conclusions": self.conclusions(),
            "tables": [asdict(table) for table in self.tables],
        }

    def text(self, title: str = "Bias audit") -> str:
        """Write plain text, 80 columns wide."""
        from evenrank.audits.layout import text_of
        from evenrank.audits.standards.layout import sections
        from evenrank.audits.standards.words import summary

        return text_of(title, [summary(self)], sections(self))

    def markdown(self, title: str = "Bias audit") -> str:
        """Write Markdown."""
        from evenrank.audits.layout import markdown_of
        from evenrank.audits.standards.layout import sections
        from evenrank.audits.standards.words import summary

        return markdown_of(title, [summary(self)], sections(self))

    def html(self, title: str = "Bias audit") -> str:
        """Write an HTML page that needs no network."""
        return self.page(title, self)

    def __str__(self) -> str:
        return self.text()


def bias_audit(
    scores: ArrayLike,
    data: RankingData,
    *,
    sex: ArrayLike | Mapping[str, ArrayLike] | None = None,
    race: ArrayLike | Mapping[str, ArrayLike] | None = None,
    k: int | None = None,
    rate: str = "selection",
    person: ArrayLike | Mapping[str, ArrayLike] | None = None,
    reduce: str = "best",
    unknown: Sequence[str] = (),
    min_share: float = 0.0,
    confidence: float = 0.95,
) -> BiasAudit:
    """Make the tables of a bias audit under New York City's Local Law 144, from ranked or scored applicants.

    Parameters
    ----------
    scores : array-like
        (n,), in the caller's row order; of ranked lists whose scores are not known, minus the ranks.
    data : RankingData
        The rows; their groups and relevance are not used.
    sex, race : array-like, or a mapping of one name to it
        One label per row, (n,), in the caller's row order; missing labels, "unknown" and those named by ``unknown``
        are unknown. One of the two may be left out: then its table and the intersectional one are missing. A mapping
        gives the column its name.
    k : int, optional
        A selection rate counts those in the top k of a list; with ties at place k each has its chance.
    rate : str
        "selection", or "scoring": the share of people whose score is above the median of all applicants. A score equal
        to the median is not above it.
    person : array-like, or a mapping of one name to it, optional
        What tells people apart, one id per row; by default the item ids, and without any each row is a person.
    reduce : str
        "best": a person in several lists counts once, as selected if in any of them, with the highest score. "mean":
        once, with the share of lists and the mean score. "rows": each row counts.
    unknown : sequence of str
        Labels that mean that the category is not known, such as "prefer not to say".
    min_share : float
        Categories with a smaller share of the applicants have no impact ratio; the rule allows at most 0.02.
    confidence : float
        1 minus the level of the tests.

    Returns
    -------
    BiasAudit
        The tables, with methods that lay them out.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("sex")
    >>> scores = er.FairLinearRanker(alpha=0.0).fit(data).predict(data)
    >>> sex = data.to_caller(np.array(data.group_names)[data.group])
    >>> women = bias_audit(scores, data, sex=sex, k=5).find("sex").of("female")
    >>> women.number, round(women.rate, 3), round(women.ratio, 3)
    (310, 0.365, 0.975)
    """
    choose(rate, RATES, what="rate")
    choose(reduce, REDUCTIONS, what="reduce")
    check_confidence(confidence)
    check_number(min_share, "min_share", least=0, below=1)
    if min_share > SMALL:
        raise ConfigError(
            f"min_share must be at most {SMALL:g}, which is what the rule lets an auditor leave out; got {min_share:g}."
        )
    if sex is None and race is None:
        raise ConfigError("a bias audit needs sex=, race= or both; got neither.")
    if (rate == "selection") != (k is not None):
        needs = "needs k, the places of a list that are selected" if k is None else "takes no k"
        raise ConfigError(f"a {rate} rate {needs}; got k = {k}.")
    values = data.to_stored(scores)
    if values.ndim != 1:
        raise DataError(f"a bias audit takes one score per row, ({data.n_rows},); got shape {values.shape}.")
    ids, named = _ids(person, data)
    grouped = People.of(None if reduce == "rows" else ids, data.n_rows)
    facts = _facts(data, ids)
    if k is not None:
        reached = _selected(values, data, check_k(k), grouped, reduce, facts)
    else:
        reached = _above_median(np.asarray(data.to_caller(values), float), grouped, reduce, facts)
    attributes: dict[str, Attribute] = {}
    columns: dict[str, str] = {}
    facts["partly_unknown"], facts["unknown_labels"] = {}, {}
    for name, labels in (("sex", sex), ("race", race)):
        if labels is not None:
            column, given = _named(labels, name)
            rows = Attribute.of(given, data.n_rows, tuple(unknown), what=f"{name} ({column})")
            attributes[name], partly = grouped.category(rows, f"{name} ({column})", ids)
            columns[name] = column
            facts["partly_unknown"][name], facts["unknown_labels"][name] = partly, list(rows.words)
    if len(attributes) > 1:
        attributes["intersectional"] = crossed(attributes)
        columns["intersectional"] = " & ".join(columns.values())
    tested = reduce != "rows" or not facts["several_rows"]
    tables = [
        category_table(name, columns[name], attribute, reached, min_share, tested=tested)
        for name, attribute in attributes.items()
    ]
    facts["unknown"] = int(np.any([attribute.codes < 0 for attribute in attributes.values()], axis=0).sum())
    return BiasAudit(rate, k, tuple(tables), facts, named, reduce, min_share, confidence)


def _named(values: Any, name: str) -> tuple[str, Any]:
    """A column and its name."""
    if isinstance(values, Mapping):
        if len(values) != 1:
            raise ConfigError(f"{name} must be one column; got {len(values)}.")
        return next((str(key), column) for key, column in values.items())
    return name, values


def _ids(person: Any, data: RankingData) -> tuple[NDArray[Any] | None, str | None]:
    """The ids of people in the caller's row order, and what they are called; none if rows are people."""
    if person is None:
        return (None, None) if data.item_ids is None else (data.to_caller(data.item_ids), "item")
    name, values = _named(person, "person")
    return np.asarray(values), name


def _facts(data: RankingData, ids: NDArray[Any] | None) -> dict[str, Any]:
    people = People.of(ids, data.n_rows)
    return {
        "rows": data.n_rows,
        "lists": data.n_queries,
        "people": people.number,
        "several_rows": int((people.rows > 1).sum()),
    }


def _selected(
    stored: NDArray[Any], data: RankingData, k: int, people: People, reduce: str, facts: dict[str, Any]
) -> NDArray[np.float64]:
    """Who is in the top k, (p,), and what there is to say of it."""
    chances = np.asarray(data.to_caller(Ranking(stored, data.query_ptr).top(k)), float)
    facts["applicants"] = people.number
    facts["whole_lists"] = float((data.lengths <= k).mean())
    uneven = len(np.unique(np.minimum(k, data.lengths) / data.lengths)) > 1
    facts["share_selected_differs"] = bool(uneven)
    facts["chances_differ"] = len(np.unique(people.rows)) > 1
    tied = people.highest(np.asarray((chances > 0) & (chances < 1), float))
    if reduce != "mean":
        chances = people.ever(chances)
        tied = np.asarray((chances > 0) & (chances < 1), float)  # who is selected for certain elsewhere is not in doubt
    facts["tied_at_k"] = int(tied.sum())
    return people.mean(chances) if reduce == "mean" else chances


def _above_median(
    scores: NDArray[np.float64], people: People, reduce: str, facts: dict[str, Any]
) -> NDArray[np.float64]:
    """Who is above the median, (p,), and what there is to say of it."""
    values = people.mean(scores) if reduce == "mean" else people.highest(scores)
    median = float(np.median(values))
    at_median = np.abs(values - median) <= ULPS * np.spacing(np.maximum(np.abs(values), abs(median)))
    changing = bool((people.highest(scores) > -people.highest(-scores)).any())
    facts |= {"applicants": people.number, "median": median, "at_median": int(at_median.sum())}
    facts["chances_differ"] = changing and len(np.unique(people.rows)) > 1
    return np.asarray((values > median) & ~at_median, float)
