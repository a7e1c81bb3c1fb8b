"""`report.html`: one self-contained file from a sweep; templates escape all text from data.

The public names `sweep` and `Sweep` are taken from here, so that a sweep in a notebook knows its page.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenrank.errors import one_line
from evenrank.experiment.sweep import sweep
from evenrank.experiment.trials import Sweep
from evenrank.methods.registry import METHODS
from evenrank.page.further import further_rows, how_read
from evenrank.page.notices import with_notices
from evenrank.page.payload import payload, repeats, start
from evenrank.page.provenance import DECISIONS, how_made, how_sure, promises
from evenrank.page.skeleton import Row, Table, page, piece, text_of, trusted
from evenrank.page.words import answer
from evenrank.wording import SHORT_TITLES, percent, spoken, with_error

FEW = 12  # rows of a summary that a notebook shows unasked
TITLE = "How evenly can these items be ranked?"
__all__ = ["Sweep", "answer", "report_page", "sweep"]


@dataclass(frozen=True)
class Summary:
    """The gaps at no significant quality loss, for one grouping and one quality measure.

    Attributes
    ----------
    grouping, quality : int
        Their numbers in the page's selectors.
    table : Table
        One row per notion, method and k.
    note : str
        What the heads of the table mean.
    """

    grouping: int
    quality: int
    table: Table
    note: str


def report_page(sweep: Sweep, *, title: str = TITLE, subtitle: str = "", made: str = "", whole: bool = True) -> str:
    """Write a sweep as a page that needs no network.

    Parameters
    ----------
    sweep : Sweep
        What `evenrank.sweep` returned or `Sweep.load` read.
    title : str
        The page's title.
    subtitle : str
        One line about the data; by default its size and groups.
    made : str
        One line about where the data comes from, for the section on how the numbers were made.
    whole : bool
        False for the piece that a notebook shows instead of the page.

    Returns
    -------
    str
        HTML.
    """
    import vl_convert

    from evenrank.page.live_charts import live_charts

    if not whole:
        return _piece(sweep)
    data = payload(sweep)
    first = data["start"]
    chosen = data["settings"][first["grouping"]][first["method"]][first["notion"]][first["k"]]
    parts = ("answer", "uneven_figure", "uneven", "no_loss_figure", "no_loss", "further_figure", "further")
    return page(
        "report.html",
        title,
        scripts=[with_notices(vl_convert.javascript_bundle()), text_of("report.js")],  # type: ignore[call-arg]
        data={"data": data, "charts": live_charts()},
        subtitle=subtitle or _subtitle(sweep),
        notices=_notices(sweep),
        story=dict(zip(parts, chosen["story"][first["quality"]], strict=True)),
        spread=_spread(sweep),
        sample=_sample(sweep),
        summaries=_summaries(sweep),
        further_measures=_further(sweep),
        errors=how_sure(sweep),
        promises=promises(sweep),
        facts=how_made(sweep, made),
        decisions=DECISIONS,
    )


def _piece(sweep: Sweep) -> str:
    """The answers, the trade-off as a picture, and the summary of the first grouping."""
    import vl_convert

    from evenrank.page import charts

    k = sweep.ks[start(sweep)["k"]]
    return piece(
        "report_piece.html",
        notices=_notices(sweep),
        subtitle=_subtitle(sweep),
        answers=[answer(sweep.curve(notion, k)) for notion in sweep.notions],
        picture=trusted(vl_convert.vegalite_to_svg(charts.tradeoff(sweep))),
        open=len(sweep.methods) * len(sweep.notions) * len(sweep.ks) <= FEW,
        summary=_summary(sweep, 0, 0),
    )


def _subtitle(sweep: Sweep) -> str:
    about = sweep.about
    if len(sweep.groupings) > 1:
        groups = "groups by " + ", ".join(map(spoken, sweep.groupings))
    else:
        groups = one_line("groups: " + ", ".join(about.shares_of(sweep.groupings[0])))
    size = f"{about.queries:,} queries, {about.rows:,} items"
    return f"{size}; {groups}; {about.models:,} models trained and tested."


def _notices(sweep: Sweep) -> list[str]:
    blocks = sweep.about.blocks
    notices = []
    if blocks.done < blocks.asked:
        notices.append(
            f"This run is not finished: {blocks.done} of {blocks.asked} parts are done, and the numbers may change."
        )
    if repeats(sweep) < 2:
        notices.append(
            "Every strength was tested once only, so errors are not known: any fall of quality counts as a loss."
        )
    return notices


def _spread(sweep: Sweep) -> str:
    number, kind = sweep.about.folds, sweep.about.repeats
    return f"{sweep.spread}s over {number} {kind}" if number else f"{sweep.spread}s"


def _sample(sweep: Sweep) -> str:
    if sweep.examples is None:
        return ""
    kept, tested = len(sweep.examples.queries), sweep.about.tested or sweep.about.queries
    part = f"a random sample of {kept} of the {tested:,}" if kept < tested else f"all {kept}"
    return (
        f"These are {part} queries, so “worst” and “best” are of those. Each is ranked by models that had not seen it: "
        "before is strength 0, after the chosen strength. The coloured edge is the item's group."
    )


# ---------------------------------------------------------------------- the summary


def _summaries(sweep: Sweep) -> list[Summary]:
    return [
        _summary(sweep, grouping, quality)
        for grouping in range(len(sweep.groupings))
        for quality in range(len(_qualities(sweep)))
    ]


def _qualities(sweep: Sweep) -> list[str]:
    return [name for name in SHORT_TITLES if f"{name}@{sweep.ks[0]}" in sweep.columns]


def _summary(sweep: Sweep, grouping_number: int, quality_number: int) -> Summary:
    several = len(sweep.methods) > 1
    grouping, quality = sweep.groupings[grouping_number], _qualities(sweep)[quality_number]
    name = f"{SHORT_TITLES[quality]}@k"
    head = ["notion", *(["method"] if several else []), "k", "gap now", "gap at no loss"]
    head += ["reduction", "mean reduction", f"{name} now", f"{name} at no loss", "strength"]
    rows = []
    for n, notion in enumerate(sweep.notions):
        for m, method in enumerate(sweep.methods):
            for j, k in enumerate(sweep.ks):
                if not len(sweep.along(f"{notion}@{k}", notion, method=method, grouping=grouping)[0]):
                    continue
                curve = sweep.curve(notion, k, method=method, quality=quality, grouping=grouping)
                i = curve.best
                cells = [spoken(notion), *([spoken(method)] if several else []), str(k)]
                cells += [with_error(curve.violation[at], curve.violation_error[at]) for at in (0, i)]
                cells += [percent(curve.max_reduction), percent(curve.mean_reduction)]
                cells += [with_error(curve.quality[at], curve.quality_error[at]) for at in (0, i)]
                cells.append(f"{curve.strengths[i]:.3g}")
                rows.append(Row(cells, {"data-grouping": "", "data-notion": n, "data-method": m, "data-k": j}))
    by = f" Groups by {spoken(grouping)}." if len(sweep.groupings) > 1 else ""
    note = (
        "At no loss: at the strength with the smallest gap whose quality is not significantly worse than without "
        f"mitigation. Mean reduction: over all strengths at no significant quality loss.{by}"
    )
    if several:
        given = [(name, sweep.about.settings.get(name, {})) for name in sweep.methods if name in METHODS]
        seen = [f"{spoken(name)} {METHODS[name].sees.given(settings)}" for name, settings in given]
        note += f" What the methods may see: {', '.join(seen)}."
    return Summary(grouping_number, quality_number, Table("Summary", head, rows, words=2 if several else 1), note)


def _further(sweep: Sweep) -> list[Summary]:
    """The measures that were asked for besides, one table per grouping and quality measure; none without them."""
    several = len(sweep.methods) > 1
    head = ["measure", "notion", *(["method"] if several else []), "now", "at no loss"]
    made = []
    for g, grouping in enumerate(sweep.groupings):
        for q, quality in enumerate(_qualities(sweep)):
            found = further_rows(sweep, grouping, quality)
            rows = []
            for part in found:
                cells = [part.measure, spoken(part.notion), *([spoken(part.method)] if several else [])]
                place = {
                    "data-notion": sweep.notions.index(part.notion),
                    "data-method": sweep.methods.index(part.method),
                }
                rows.append(Row([*cells, part.now, part.at_no_loss], {"data-grouping": "", **place}))
            note = " ".join(filter(None, map(how_read, dict.fromkeys(part.measure for part in found))))
            if rows:
                made.append(Summary(g, q, Table("Further measures", head, rows, words=3 if several else 2), note))
    return made


Sweep.page = staticmethod(report_page)
