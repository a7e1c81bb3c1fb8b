"""`report.html`: one self-contained file from a sweep. All text from data is escaped, or set as text by the script.

The public names `sweep` and `Sweep` are taken from here, so that a sweep in a notebook knows its page.
"""

from __future__ import annotations

from html import escape

from evenrank.experiment.sweep import sweep
from evenrank.experiment.trials import Sweep
from evenrank.page.payload import embedded, group_shares, payload, repeats, start
from evenrank.page.provenance import how_made, how_sure
from evenrank.page.skeleton import fill, page, piece, scrolled, signature, table, text_of
from evenrank.page.words import answer
from evenrank.wording import SHORT_TITLES, percent, spoken, with_error

FEW = 12  # rows of a summary that a notebook shows unasked
TITLE = "How evenly can these items be ranked?"
__all__ = ["Sweep", "answer", "report_page", "sweep"]


def report_page(sweep: Sweep, *, title: str = TITLE, subtitle: str = "", made: str = "", whole: bool = True) -> str:
    """A sweep as a page that needs no network (or, with ``whole=False``, as the piece that a notebook shows).

    Parameters
    ----------
    subtitle : a line on the data; by default its size and groups
    made : a line on where the data come from, for the section on how the numbers were made
    """
    import vl_convert

    from evenrank.page.live_charts import live_charts

    if not whole:
        return _piece(sweep)
    data = payload(sweep)
    first = data["start"]
    chosen = data["settings"][first["grouping"]][first["method"]][first["notion"]][first["k"]]
    parts = ("answer", "uneven_figure", "uneven", "free_figure", "free", "further_figure", "further")
    told = dict(zip(parts, map(escape, chosen["story"][first["quality"]]), strict=True))
    body = fill(
        "report.html",
        **told,
        title=escape(title),
        subtitle=escape(subtitle or _subtitle(sweep)),
        notices=_notices(sweep),
        spread=escape(_spread(sweep)),
        sample=escape(_sample(sweep)),
        summary=_summaries(sweep),
        sure=how_sure(sweep),
        made=how_made(sweep, made),
        glossary=text_of("glossary.html") + text_of("glossary_sweep.html"),
        signature=escape(signature()),
    )
    runtime = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    scripts = [runtime, text_of("report.js")]
    return page(title, body, scripts=scripts, data={"data": embedded(data), "charts": embedded(live_charts())})


def _piece(sweep: Sweep) -> str:
    """The answers, the trade-off as a picture, and the summary of the first grouping."""
    import vl_convert

    from evenrank.page import charts

    k = sweep.ks[start(sweep)["k"]]
    told = "".join(f"<li>{escape(answer(sweep.curve(notion, k)))}</li>" for notion in sweep.notions)
    picture = vl_convert.vegalite_to_svg(charts.tradeoff(sweep))
    shown = f"<div class='scroll' style='background:#fff;border-radius:8px;padding:.5rem'>{picture}</div>"
    few = len(sweep.methods) * len(sweep.notions) * len(sweep.ks) <= FEW
    table_ = _summary(sweep, sweep.groupings[0], "ndcg")
    summary = f"<details{' open' if few else ''}><summary>Summary</summary>{table_}</details>"
    return piece(f"{_notices(sweep)}<p class='soft'>{escape(_subtitle(sweep))}</p><ul>{told}</ul>{shown}{summary}")


def _subtitle(sweep: Sweep) -> str:
    about = sweep.about
    if len(sweep.groupings) > 1:
        groups = "groups by " + ", ".join(map(spoken, sweep.groupings))
    else:
        groups = "groups: " + ", ".join(group_shares(sweep, sweep.groupings[0]))
    size = f"{about['queries']:,} queries, {about['rows']:,} items"
    return f"{size}; {groups}; {about['models']:,} models trained and tested."


def _notices(sweep: Sweep) -> str:
    blocks = sweep.about.get("blocks", {"done": 1, "asked": 1})
    told = []
    if blocks["done"] < blocks["asked"]:
        told.append(
            f"This run is not finished: {blocks['done']} of {blocks['asked']} parts are done, and the numbers may "
            "change."
        )
    if repeats(sweep) < 2:
        told.append(
            "Every strength was tested once only, so errors are not known: any fall of quality counts as a loss."
        )
    return "".join(f"<p class='notice' role='note'>{escape(one)}</p>" for one in told)


def _spread(sweep: Sweep) -> str:
    number, kind = sweep.about.get("folds"), sweep.about.get("repeats", "folds")
    return f"{sweep.spread}s over {number} {kind}" if number else f"{sweep.spread}s"


def _sample(sweep: Sweep) -> str:
    if sweep.examples is None:
        return ""
    kept, tested = len(sweep.examples.queries), sweep.about.get("tested", sweep.about["queries"])
    part = f"a random sample of {kept} of the {tested:,}" if kept < tested else f"all {kept}"
    return (
        f"These are {part} queries, so “worst” and “best” are of those. Each is ranked by models that had not seen it: "
        "before is strength 0, after the chosen strength. The coloured edge is the item's group."
    )


# ---------------------------------------------------------------------- the summary


def _summaries(sweep: Sweep) -> str:
    qualities = [name for name in SHORT_TITLES if f"{name}@{sweep.ks[0]}" in sweep.columns]
    return "\n".join(
        f"<div data-grouping='{g}' data-quality='{q}'{'' if g == q == 0 else ' hidden'}>"
        + _summary(sweep, grouping, quality)
        + "</div>"
        for g, grouping in enumerate(sweep.groupings)
        for q, quality in enumerate(qualities)
    )


def _summary(sweep: Sweep, grouping: str, quality: str) -> str:
    several = len(sweep.methods) > 1
    name = f"{SHORT_TITLES[quality]}@k"
    head = ["notion", *(["method"] if several else []), "k", "gap now", "gap at best free", "falls by", "mean fall"]
    head += [f"{name} now", f"{name} at best free", "strength"]
    lines = []
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
                lines.append((cells, f" data-grouping='' data-notion='{n}' data-method='{m}' data-k='{j}'"))
    by = f" Groups by {spoken(grouping)}." if len(sweep.groupings) > 1 else ""
    note = (
        "Best free: the most even strength whose quality is not significantly worse than without mitigation. "
        f"Mean fall: over all such strengths.{by}"
    )
    made = scrolled(table(head, lines, text=2 if several else 1), "Summary")
    return f"{made}<p class='small soft'>{escape(note)}</p>"


Sweep.page = staticmethod(report_page)
