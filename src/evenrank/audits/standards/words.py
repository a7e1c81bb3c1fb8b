"""A bias audit in sentences: what the tables show, how they were made, and what they do not say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenrank.audits.pair_words import count
from evenrank.audits.standards.categories import MANY_DEVIATIONS, SMALL
from evenrank.wording import impact_ratio, p_value, quoted

if TYPE_CHECKING:
    from evenrank.audits.standards.categories import CategoryRate, CategoryTable
    from evenrank.audits.standards.ll144 import BiasAudit

TITLES = {
    "sex": "Sex categories",
    "race": "Race/ethnicity categories",
    "intersectional": "Intersectional categories",
}
MOST_NAMED = 6
NOT_ADVICE = (
    "This is not legal advice. The rule asks for these numbers and sets no threshold that they must reach; four fifths "
    "is a rule of thumb of US federal agencies. Who must audit, which data may be used and what must be published are "
    "questions that numbers do not answer."
)
CATEGORIES = (
    "The categories are those of the columns. The rule means those of the EEO-1 report, Component 1: two of sex and "
    "seven of race and ethnicity."
)
LEFT_OUT = "the rule then asks for the auditor's justification"


@dataclass(frozen=True)
class Told:
    """A bias audit in sentences: the answer in short, what each table shows, and how it was made."""

    answer: str
    shown: list[str]
    about: list[str]


def told(audit: BiasAudit) -> Told:
    """Write a bias audit in sentences."""
    about = [
        *_counted(audit),
        *_rate_words(audit),
        *_unknown(audit),
        *_small(audit),
        *_tests(audit),
        CATEGORIES,
        *_missing(audit),
        NOT_ADVICE,
    ]
    return Told(_in_short(audit), [_shown(audit, table) for table in audit.tables], about)


def summary(audit: BiasAudit) -> str:
    """Write what was counted in one line."""
    facts = audit.facts
    what = f"selected: in the top {audit.k} of a list" if audit.k is not None else "above the median score"
    lists = "1 list" if facts["lists"] == 1 else f"{facts['lists']:,} lists"
    return f"{facts['applicants']:,} applicants ({facts['rows']:,} rows, {lists}); {audit.rate} rate, {what}"


def got(audit: BiasAudit) -> str:
    """Say what those who count have reached."""
    return f"in the top {audit.k}" if audit.k is not None else "above the median"


def _numbers(row: CategoryRate) -> str:
    return f"{row.rate:.1%} ({count(row.selected)} of {row.number:,})"


def _people(number: int) -> str:
    return "1 applicant" if number == 1 else f"{number:,} applicants"


def _in_short(audit: BiasAudit) -> str:
    rows = [(table, row) for table in audit.tables for row in table.compared]
    if not rows:
        return f"In short: no applicant of a known category is {got(audit)}, so there are no impact ratios."
    table, lowest = min(rows, key=lambda entry: entry[1].ratio or 0.0)
    low = [row for _, row in rows if row.below_four_fifths]
    best = table.of(table.highest or "")
    few = f", which has {_people(best.number)}" if best.small else ""
    start = (
        f"In short: the lowest impact ratio is {impact_ratio(lowest.ratio)}, of {quoted(lowest.category)} to "
        f"{quoted(best.category)}{few} ({TITLES[table.name].lower()})."
    )
    if not low:
        return f"{start} No impact ratio is below four fifths."
    below = (
        f"{start} Below four fifths: {len(low)} of {len(rows)} categories that are compared with the highest rate of "
        "their table"
    )
    if not audit.tested:
        return f"{below}."
    sure = sum(_is_sure(audit, row) for row in low)
    return (
        f"{below}; for {sure or 'none'} of these Fisher's exact test is significant at {1 - audit.confidence:.2g}, "
        "corrected for the pairs of categories in the table."
    )


def _is_sure(audit: BiasAudit, row: CategoryRate) -> bool:
    return row.corrected_p is not None and row.corrected_p <= 1 - audit.confidence


def _shown(audit: BiasAudit, table: CategoryTable) -> str:
    start = f"{TITLES[table.name]}: "
    if table.highest is None:
        return f"{start}none of the {table.applicants:,} applicants is {got(audit)}."
    best = table.of(table.highest)
    low = [row for row in table.compared if row.below_four_fifths]
    first = f"{start}the highest rate is {_numbers(best)}, of {quoted(best.category)}."
    if not low:
        row = table.compared[0]
        return (
            f"{first} The lowest ratio to it is {impact_ratio(row.ratio)}, of {quoted(row.category)}, {_numbers(row)}."
        )
    named = "; ".join(
        f"{quoted(row.category)} {impact_ratio(row.ratio)}, {_numbers(row)}{_test(audit, row)}"
        for row in low[:MOST_NAMED]
    )
    left = f"; and {len(low) - MOST_NAMED} more" if len(low) > MOST_NAMED else ""
    return f"{first} Below four fifths of it: {named}{left}."


def _test(audit: BiasAudit, row: CategoryRate) -> str:
    if row.corrected_p is None or row.deviations is None:
        return ""
    p = p_value(row.corrected_p)
    equals = p.replace("<", "< 0") if p.startswith("<") else f"= {p}"
    verdict = "significant" if _is_sure(audit, row) else "not significant"
    return f", {verdict} (Fisher, corrected p {equals}; {abs(row.deviations):.1f} standard deviations)"


# ---------------------------------------------------------------------- how it was made


def _counted(audit: BiasAudit) -> list[str]:
    """Say what an applicant is."""
    facts = audit.facts
    several, people = facts["several_rows"], facts["people"]
    if audit.person is None:
        return [f"Each of the {facts['rows']:,} rows counts as one applicant: no column tells people apart."]
    if not several:
        return [f"Each of the {facts['rows']:,} rows is another person, by {quoted(audit.person)}."]
    number = f"All {people:,}" if several == people else f"{several:,} of {people:,}"
    start = f"{number} people, by {quoted(audit.person)}, are in several rows"
    if audit.reduce == "rows":
        return [f"{start}; each of the {facts['rows']:,} rows counts as one applicant, as asked."]
    more = " Those in more lists have more chances." if facts["chances_differ"] else ""
    if audit.rate == "selection":
        way = (
            f"selected if {got(audit)} of any list.{more}"
            if audit.reduce == "best"
            else f"with the share of their lists where they are {got(audit)}."
        )
    else:
        way = f"with their highest score.{more}" if audit.reduce == "best" else "with their mean score."
    return [f"{start}; each person counts once, {way}"]


def _rate_words(audit: BiasAudit) -> list[str]:
    facts = audit.facts
    if audit.rate == "scoring":
        return _median_words(audit)
    sentences = []
    if facts["tied_at_k"]:
        sentences.append(
            f"Ties at place {audit.k} leave open whether {facts['tied_at_k']:,} applicants are selected; each counts "
            "with the probability that it has if ties are broken at random."
        )
    if facts["whole_lists"] >= 0.5:
        sentences.append(
            f"{facts['whole_lists']:.0%} of the lists have no more than {_people(audit.k or 0)}, all of whom count as "
            "selected; the rates say little about the ranking."
        )
    if facts["share_selected_differs"]:
        sentences.append(
            "Lists differ in length: from a longer one a smaller share is selected, whatever the ranker does. The "
            "tables and tests take all lists as one pool; `evenrank audit` without --standard tells the ranker's part "
            "from that of the lists."
        )
    return sentences


def _median_words(audit: BiasAudit) -> list[str]:
    facts = audit.facts
    included = ", those of unknown category included" if facts["unknown"] else ""
    sentences = [f"The median score is {facts['median']:.6g}, over all {facts['applicants']:,} applicants{included}."]
    if facts["at_median"]:
        share = facts["at_median"] / facts["applicants"]
        sentences.append(
            f"{facts['at_median']:,} applicants ({share:.1%}) have exactly the median score and count as not above it."
        )
    if facts["lists"] > 1:
        sentences.append(
            f"There is one median for all {facts['lists']:,} lists, which means something only if their scores are on "
            "one scale."
        )
    return sentences


def _unknown(audit: BiasAudit) -> list[str]:
    facts = audit.facts
    parts = ", ".join(f"{TITLES[table.name].lower()} {table.unknown:,}" for table in audit.tables)
    sentences = [f"Not in the tables because their category is unknown, applicants: {parts}."]
    if not any(table.unknown for table in audit.tables):
        sentences = ["The categories of all applicants are known."]
    for name, words in facts["unknown_labels"].items():
        if words:
            sentences.append(f"Labels of {name} that count as unknown: {', '.join(map(quoted, words))}.")
    for name, number in facts["partly_unknown"].items():
        if number:
            sentences.append(f"Of {number:,} people the {name} is missing in some rows; the other rows have it.")
    return sentences


def _small(audit: BiasAudit) -> list[str]:
    sentences = []
    for table in audit.tables:
        small = [row for row in table.categories if row.small]
        aside = [row for row in small if row.set_aside]
        title = TITLES[table.name]
        if aside:
            sentences.append(
                f"{title}, left out of the impact ratios as asked, with less than {audit.min_share:.3g} of the "
                f"applicants: {_listed(aside)}; {LEFT_OUT}."
            )
        marked = [row for row in small if not row.set_aside]
        if marked:
            sentences.append(
                f"{title} with less than {SMALL:.0%} of the applicants, which the rule lets an auditor leave out of "
                f"the impact ratios: {_listed(marked)}. They are not left out here."
            )
        if table.highest is not None and table.of(table.highest).small:
            best = table.of(table.highest)
            sentences.append(
                f"{title}: the highest rate, to which all ratios of the table are, is that of {quoted(best.category)} "
                f"with {_people(best.number)}."
            )
    return sentences


def _listed(rows: list[CategoryRate]) -> str:
    named = ", ".join(f"{quoted(row.category)} {_numbers(row)}" for row in rows[:MOST_NAMED])
    return named + (f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else "")


def _tests(audit: BiasAudit) -> list[str]:
    if not audit.tested:
        return [
            "There are no tests: they take applicants for independent of each other, and rows of one person are not."
        ]
    rows = [row for table in audit.tables for row in table.categories]
    if all(row.fisher_p is None for row in rows):
        return []
    sentences = [
        "Tests compare a category with the one that has the highest rate, as if every applicant were decided on "
        "alone: Fisher's exact test, two-sided, and the difference in standard deviations (more than "
        f"{MANY_DEVIATIONS:g} are marked). The corrected p allows for all pairs of categories in the table, because "
        "which rate is the highest is known only afterwards."
    ]
    if audit.facts["lists"] > 1:
        sentences.append(
            "People who share a list are not quite independent of each other; `evenrank audit` without --standard "
            "allows for that."
        )
    if any(row.beyond_two and (row.fisher_p or 0.0) > 1 - audit.confidence for row in rows):
        sentences.append(
            f"Where a difference is more than {MANY_DEVIATIONS:g} standard deviations and Fisher's p is above "
            f"{1 - audit.confidence:.2g}, Fisher's test, which is exact, is the one to go by."
        )
    if any(row.selected != round(row.selected) for row in rows):
        sentences.append("Fisher's test takes the counts that are not whole to the nearest whole number.")
    return sentences


def _missing(audit: BiasAudit) -> list[str]:
    names = [table.name for table in audit.tables]
    if "intersectional" in names:
        empty = audit.find("intersectional").empty
        return [f"{empty:,} combinations of sex and race/ethnicity have no applicants."] if empty else []
    other = "race/ethnicity" if "sex" in names else "sex"
    return [
        f"No column of {other} was given: its table and the intersectional one, which the rule asks for, are missing."
    ]
