"""The report's last sections: how sure the numbers are, and how they were made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenrank import bounds
from evenrank.experiment.trials import Sweep
from evenrank.methods.registry import METHODS
from evenrank.page.payload import start
from evenrank.wording import quoted, spoken

DELTA, EPSILON = 0.05, 0.1
SCALING = {
    "train": "features standardised by the training rows",
    "dataset": "features standardised by all rows",
    None: "features as they are",
}
DECISIONS = (
    "Items with equal scores are counted with their chance of reaching the top k, so no number depends on the order of "
    "the rows.",
    "NDCG leaves out queries with nothing relevant; P@k divides by k even if a list is shorter.",
    "Training lowers the gap between the groups' scores; what is reported is the gap between their rates of reaching "
    "the top k, on queries that the model has not seen.",
    "The gap is averaged over repeats first; its reduction is that of the averages.",
    "DELTR and FA*IR protect one group: the smaller one in training, unless the method's name says otherwise. FA*IR "
    "re-orders the ranking of strength 0.",
)


@dataclass(frozen=True)
class Promise:
    """What can be promised for one grouping and notion.

    Attributes
    ----------
    grouping, notion : int
        Their numbers in the page's selectors.
    shown : bool
        Whether the page opens with it.
    sentences : list of str
        What is promised.
    """

    grouping: int
    notion: int
    shown: bool
    sentences: list[str]


def how_sure(sweep: Sweep) -> str:
    """Say what the errors are and what they do not cover."""
    if sweep.spread == "standard error":
        errors = (
            f"± is the standard error over {sweep.about.folds or 'the'} folds: every query is tested once, by a "
            "model trained on the other folds."
        )
    else:
        split = (sweep.about.tested_each or 0) < (sweep.about.tested or 0)
        between = "random splits of the queries" if split else "repeated trainings with different seeds"
        errors = f"± is the standard deviation between {between}."
    return errors + (
        " A strength counts as significantly worse if its mean quality is below that of strength 0 by more than both "
        "errors together. Many strengths were compared, so chance flatters the best one at no significant loss: "
        "test the one you choose on fresh queries."
    )


def promises(sweep: Sweep) -> list[Promise]:
    """Say what can be promised for new queries, for each grouping and notion."""
    first, shares = start(sweep), sweep.about.shares
    return [
        Promise(
            g,
            n,
            (g, n) == (first["grouping"], first["notion"]),
            _promises(sweep, grouping, notion, shares.get(grouping, {}).get(notion)),
        )
        for g, grouping in enumerate(sweep.groupings)
        for n, notion in enumerate(sweep.notions)
    ]


def _promises(sweep: Sweep, grouping: str, notion: str, shares: Mapping[str, float | None] | None) -> list[str]:
    """What the theorem and a certificate say for this number of queries; a vacuous bound is called so."""
    about = sweep.about
    least, rarest = ((shares or {}).get(name) or 0.0 for name in ("theorem", "longest"))  # None: it was not defined
    if about.lists is None or not (least > 0 and rarest > 0):
        return ["No bound can be stated: a group has no such items, or the run did not note the sizes it needs."]
    queries, length = about.queries, about.lists.longest
    vc, groups = bounds.vc_dimension(about.features), max(2, len(about.shares_of(grouping)))
    claim = bounds.uniform(notion, n_queries=queries, list_length=length, vc=vc, min_share=least, delta=DELTA)
    needed = bounds.queries_needed(
        notion, EPSILON, bound="uniform", list_length=length, vc=vc, min_share=least, delta=DELTA
    )
    if claim.vacuous or not claim.holds:
        theorem = f"says nothing here: with {queries:,} queries its margin exceeds 1"
    else:
        theorem = f"adds {float(claim):.3f} to the gap seen in training"
    tested = about.tested or queries
    folds = (about.folds or 1) if sweep.spread == "standard error" else 1
    tested_each = about.tested_each or max(1, tested // folds)
    plan = bounds.planned(notion, n_queries=tested_each, min_share=rarest, delta=DELTA, groups=groups)
    enough = bounds.queries_needed(notion, EPSILON, min_share=rarest, delta=DELTA, groups=groups)
    if plan.vacuous:
        certificate = (
            f"a certificate would say nothing: the {tested_each:,} queries each model was tested on are too few"
        )
    else:
        certificate = (
            f"the {tested_each:,} queries each model was tested on certify the gap seen plus {float(plan):.3f}"
        )
    return [
        f"The published theorem behind the regulariser, which covers every linear ranker at once, {theorem}. A margin "
        f"of {EPSILON} would take {needed:,} queries. It is its authors' claim, for item-by-item decisions on lists of "
        "one length, not for top-k lists.",
        f"For one ranker chosen beforehand and independent queries, {certificate} (Hoeffding's inequality, "
        f"{1 - DELTA:.0%} confidence). A margin of {EPSILON} takes {enough:,} fresh queries. The rankings themselves "
        "give a sharper certificate: evenrank audit.",
    ]


def how_made(sweep: Sweep, source: str = "") -> list[tuple[str, str]]:
    """List how the numbers were made: data, methods, versions and command.

    Parameters
    ----------
    sweep : Sweep
        The sweep.
    source : str
        Where the data comes from.

    Returns
    -------
    list of (str, str)
        The name of each fact, and the fact.
    """
    about = sweep.about
    facts: list[tuple[str, str]] = []
    if source:
        facts.append(("Source", source))
    facts.append(("Data", f"{about.rows:,} rows, {about.queries:,} queries, {about.features} features"))
    for grouping in sweep.groupings:
        shares = ", ".join(f"{quoted(name)} {share:.1%}" for name, share in about.shares_of(grouping).items())
        facts.append((f"Groups by {spoken(grouping)}" if len(sweep.groupings) > 1 else "Groups", shares))
    facts.append(("Fingerprint", about.fingerprint or "not noted"))
    facts.append(("Repeats", f"{about.folds or '?'} {about.repeats}, seed {about.seed}; errors are {sweep.spread}s"))
    facts.append(("Training", f"solver {about.solver}, {SCALING.get(about.scale, '?')}"))
    facts += [(f"Method {spoken(name)}", _method(sweep, name)) for name in sweep.methods]
    facts.append(("Work", f"{about.models:,} models trained and measured in {about.seconds:.1f} s"))
    if about.made is not None:
        facts += [("Command", about.made.command), ("Begun", about.made.began)]
    facts.append(("Versions", ", ".join(f"{name} {number}" for name, number in about.versions.items())))
    return [(name, text) for name, text in facts if text]


def _method(sweep: Sweep, name: str) -> str:
    known = METHODS.get(name)
    strengths = np.unique(sweep.columns["strength"][sweep.columns["method"] == name])
    swept = f"{len(strengths)} strengths, {strengths[0]:.3g} to {strengths[-1]:.3g}"
    settings = sweep.about.settings.get(name, {})
    extra = "".join(f"; {option} {value}" for option, value in settings.items())
    return f"{known.title}; it {known.sees.given(settings)}; {swept}{extra}" if known else swept + extra
