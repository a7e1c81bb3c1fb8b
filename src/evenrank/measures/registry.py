"""The measures, as data: name, cut-off, better end, formula, options, and how each is read."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from numpy.typing import NDArray

from evenrank.errors import ConfigError
from evenrank.measures.entry import AT_EXPECTED, Measure
from evenrank.measures.evaluation import Evaluation
from evenrank.measures.exposure_measures import EXPOSURE_MEASURES
from evenrank.measures.formulas import gap_per_query, mrr, ndcg, precision, rates_of, ratio, recall
from evenrank.measures.item_measures import ITEM_MEASURES
from evenrank.measures.options import Options
from evenrank.measures.rank_measures import PAIR_MEASURES, PREFIX_MEASURES
from evenrank.notions import ALIASES, NOTIONS, Notion, gamma_of

CUT_OFF = {"needed": "@k", "optional": "[@k]", "none": ""}
PAPER = "the paper, definition {}"


def violation_measure(notion: Notion) -> Measure:
    """Make the measure of a notion: its violation by the top-k selection.

    Parameters
    ----------
    notion : Notion
        The notion.

    Returns
    -------
    Measure
        The measure, with the notion's name and alias.
    """

    def pooled(ev: Evaluation, k: int | None) -> NDArray[Any]:
        assert k is not None
        return gamma_of(ev.contrast(notion), ev.top(k))

    def per_query(ev: Evaluation, k: int | None) -> NDArray[Any]:
        assert k is not None
        return gap_per_query(ev, notion, ev.top(k))

    return Measure(
        notion.name,
        "needed",
        "low",
        per_query,
        pooled,
        notion.alias,
        formula=f"{GAMMA} of the chance to be in the top k, {_FROM.get(notion.name, 'in each stratum of the notion')}",
        range="0 to 1",
        fair="0: the groups are equally often in the top k" + _AMONG.get(notion.name, ", in each stratum"),
        ties="at the expected selection",
        needs=("groups",) if notion.name == "demographic_parity" else ("groups", "relevance"),
        reference=PAPER.format(5),
        notion=notion,
    )


GAMMA = "mean over pairs of groups of |difference of the groups' means|"
_FROM = {
    "demographic_parity": "over all rows",
    "equal_opportunity": "over relevant rows",
    "equalized_odds": "over relevant and over other rows, averaged",
}
_AMONG = {
    "demographic_parity": "",
    "equal_opportunity": " among relevant items",
    "equalized_odds": " among relevant and among other items",
}

QUALITY = (
    Measure(
        "ndcg",
        "optional",
        "high",
        ndcg,
        formula="Σ gain / log2(1 + rank), over its value in the best order",
        range="0 to 1",
        needs=("relevance",),
        reference=PAPER.format(2),
    ),
    Measure(
        "precision",
        "needed",
        "high",
        precision,
        alias="p",
        formula="relevant items in the top k / k, also where the list is shorter",
        range="0 to 1",
        needs=("relevance",),
        reference=PAPER.format(1),
    ),
    Measure(
        "recall",
        "needed",
        "high",
        recall,
        formula="relevant items in the top k / relevant items of the list",
        range="0 to 1",
        needs=("relevance",),
    ),
    Measure(
        "mrr",
        "optional",
        "high",
        mrr,
        formula="1 / rank of the first relevant item, 0 if there is none",
        range="0 to 1",
        needs=("relevance",),
    ),
)
GAPS = (
    *map(violation_measure, NOTIONS.values()),
    Measure(
        "exposure_gap",
        "optional",
        "low",
        lambda ev, k: gap_per_query(ev, "demographic_parity", ev.exposure(k)),
        lambda ev, k: gamma_of(ev.contrast("demographic_parity"), ev.exposure(k)),
        options={"discount": "log2", "patience": 0.5, "stop": 0.5},
        formula=f"{GAMMA} of exposure, the discount w of the row's rank",
        range="0 to 1",
        fair="0: an item of each group gets the same exposure on average",
        ties=AT_EXPECTED,
        needs=("groups",),
        notion=NOTIONS["demographic_parity"],
        value_of="exposure",
    ),
    Measure(
        "four_fifths",
        "needed",
        "high",
        lambda ev, k: ratio(*rates_of(ev, k, "per_query")),
        lambda ev, k: ratio(*rates_of(ev, k, "amortized"))[0],
        "ratio",
        formula="lowest / highest share of the groups' items that are in the top k",
        range="0 to 1",
        fair="1: the groups are equally often in the top k; below 0.8 fails the four-fifths rule",
        ties="at the expected selection",
        needs=("groups",),
        notion=NOTIONS["demographic_parity"],
        kind="ratio",
    ),
)

# Families of measures keep their entries beside their formulas and are listed here.
MEASURES = {
    measure.name: measure
    for measure in (*QUALITY, *GAPS, *EXPOSURE_MEASURES, *PREFIX_MEASURES, *PAIR_MEASURES, *ITEM_MEASURES)
}
MEASURE_ALIASES = {m.alias: m.name for m in MEASURES.values() if m.alias} | ALIASES


class Asked(NamedTuple):
    """A measure as a user asked for it.

    Attributes
    ----------
    measure : Measure
        The measure.
    k : int or None
        The cut-off.
    options : Options
        The options in brackets after its name.
    """

    measure: Measure
    k: int | None
    options: Options


def parse_measure(text: str) -> Asked:
    """Read a name like ``"eop@3"`` as users write it.

    Parameters
    ----------
    text : str
        The name or alias of a measure, with its cut-off after "@" and its options in brackets after that.

    Returns
    -------
    Asked
        The `Measure`, k or None, and the options.

    Raises
    ------
    ConfigError
        For an unknown measure, a cut-off that is missing or not a whole number ≥ 1, or an option it does not take.

    Examples
    --------
    >>> measure, k, options = parse_measure("exposure_gap@3(discount=rbp,patience=0.8)")
    >>> measure.name, k, options.discount
    ('exposure_gap', 3, 'rbp')
    """
    written = re.fullmatch(r"([^(@]*)(@[^(]*)?(?:\((.*)\))?", str(text).strip(), re.DOTALL)
    name, at, inside = (None, None, None) if written is None else written.groups()
    name = (name or "").strip().lower()
    name = MEASURE_ALIASES.get(name, name)
    if name not in MEASURES:
        known = ", ".join(f"{m.name}{CUT_OFF[m.k]}" for m in MEASURES.values())
        raise ConfigError(f"measure must be one of {known}; got {text!r}.")
    measure = MEASURES[name]
    options = Options.of(inside or "")
    measure.chosen(options)
    if at is None:
        if measure.k == "needed":
            head, bracket, rest = str(text).strip().partition("(")
            raise ConfigError(f"measure {text!r} needs a cut-off, as in '{head}@5{bracket}{rest}'.")
        return Asked(measure, None, options)
    if measure.k == "none":
        raise ConfigError(f"measure {measure.name!r} is one of whole lists and has no cut-off; got {text!r}.")
    cut = at[1:].strip()
    if not cut.isdecimal() or int(cut) < 1:
        raise ConfigError(f"k in {text!r} must be a whole number ≥ 1; got {cut!r}.")
    return Asked(measure, int(cut), options)
