"""A bench in words and as Markdown: captions, cells, what each method may see, how to read the numbers."""

from __future__ import annotations

import numpy as np

from evenrank.errors import one_line
from evenrank.leaderboard.plan import FLOOR
from evenrank.leaderboard.result import LEAST_CHANGE, Bench, Standing
from evenrank.leaderboard.rules import RULES
from evenrank.methods.registry import METHODS
from evenrank.wording import no_markup, percent

HEAD = ("method", "strength", "may see", "gap falls by", "pooled", "NDCG", "seconds")


def cells(standing: Standing) -> list[str]:
    """Write a standing as the cells of a table, in the order of `HEAD`."""
    spread = "" if np.isnan(standing.sd) else f" ± {100 * standing.sd:.0f}"
    error = "" if np.isnan(standing.quality_sd) else f" ± {standing.quality_sd:.3f}"
    return [
        standing.label,
        standing.rule,
        seen(standing),
        f"{percent(standing.reduction)}{spread}",
        percent(standing.pooled),
        f"{standing.quality_change:+.3f}{error}",
        f"{standing.seconds:.1f}",
    ]


def seen(standing: Standing) -> str:
    """Say in a few words what the method may see."""
    if standing.method == FLOOR:
        return "the reported rows' labels"
    sees = standing.sees
    used = {"training": sees.group_at_training, "serving": sees.group_at_serving}
    moments = [name for name, sees_it in used.items() if sees_it]
    group = f"group at {' and '.join(moments)}" if moments else "no group"
    return group + ("; other lists" if sees.other_lists else "") + ("" if sees.labels else "; no labels")


def caption(bench: Bench, data: str) -> str:
    """Say what a data set's standings are of."""
    asked, facts = bench.config["asked"], bench.config["data"][data]
    settings = len(asked["data"][data]) * len(asked["notions"])
    seeds = len({block["seed"] for block in asked["blocks"]})
    return (
        f"{one_line(data)}: {facts['queries']:,} queries, {facts['rows']:,} rows; {_counted(settings, 'setting')}, "
        f"k = {', '.join(map(str, asked['ks']))}, {asked['folds']} folds, {_counted(seeds, 'seed')}"
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def answers(bench: Bench, data: str) -> list[str]:
    """Say which method is best on a data set, of those that may see the group when they serve and of the others."""
    sentences = []
    for blind, kind in ((False, "may see the group at serving"), (True, "are group-blind at serving")):
        if not any(standing.is_blind is blind for standing in bench.standings(data)):
            continue  # none of that kind was run
        best = bench.best(data, group_blind=blind)
        if best is None:
            sentences.append(f"Of the methods that {kind}, none lowers the gaps and keeps NDCG.")
            continue
        marked = ", which also sees the other lists" if best.sees.other_lists else ""
        spread = "" if np.isnan(best.sd) else f" ± {100 * best.sd:.0f}"
        sentences.append(
            f"Of the methods that {kind}, {best.label} ({best.rule}{marked}) lowers the gaps most: by "
            f"{percent(best.reduction)}{spread}, with NDCG changed by {best.quality_change:+.3f}."
        )
    return sentences


def notes(bench: Bench) -> list[str]:
    """Say how the numbers of the standings are to be read."""
    used = dict.fromkeys(bench.columns["rule"].tolist())
    used_methods = set(bench.columns["method"].tolist())
    full = {
        METHODS[name].strength.full_meaning: METHODS[name].strength.name for name in bench.config["asked"]["methods"]
    }
    meanings = ", ".join(f"{name} = {meaning}" for meaning, name in full.items() if meaning)
    lines = [
        "gap falls by: 1 less the mean of the folds' gaps over that of the baseline, averaged over the settings and k; "
        "± standard deviation over the seeds, which divide the same queries into other folds. It says how much the "
        "division matters, not how other queries would do.",
        "baseline: the linear ranker without mitigation; for trees and networks, the same model at strength 0.",
        "pooled: the same of the gaps over the rows of all folds together, which small folds do not blow up.",
        "NDCG: change of NDCG@k, averaged likewise; a method that loses more than "
        f"{-LEAST_CHANGE:.3f} is never called the best. seconds: all trainings and tests of one seed.",
        *(
            f"{rule}: {RULES[rule]}" + (f" ({meanings})." if rule == "full" and meanings else ".")
            for rule in RULES
            if rule in used
        ),
    ]
    if FLOOR in used_methods:
        lines.append(
            "noise floor: one offset per group, tuned on the labels of the reported rows themselves. What it leaves of "
            "the mean of the folds' gaps is chance of the folds. Only a method that sees a fold's other lists can do "
            "better."
        )
    return lines + [f"left out: {name} ({reason})." for name, reason in bench.config["left_out"].items()]


def markdown(bench: Bench) -> str:
    """Write the standings as Markdown, one table per data set, and how to read them."""
    lines = []
    for data in bench.data:
        lines += [f"**{no_markup(caption(bench, data))}**", ""]
        lines += [_row(HEAD), "|---|---|---|---:|---:|---:|---:|"]
        lines += [_row(cells(standing)) for standing in bench.standings(data)]
        lines.append("")
    return "\n".join([*lines, *(f"- {note}" for note in notes(bench))]) + "\n"


def _row(texts: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |"
