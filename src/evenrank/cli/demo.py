"""`evenrank demo`: the main job on bundled real data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import evenrank as er
from evenrank.cli import common, options, show, show_sweep
from evenrank.cli.guard import Output
from evenrank.data import RankingData
from evenrank.experiment.examples import Titles
from evenrank.io.files import write_whole
from evenrank.methods.registry import METHODS
from evenrank.progress import bar

COMPARED = ("amortized", "fastar", "offset")  # the paper's method, a re-ranker, and one number per group


def demo(
    group: Annotated[str, typer.Option(help="Groups by age, sex or sex+age.")] = "age",
    k: options.Ks = "1,3,5",
    solver: Annotated[str, typer.Option(help="exact or gd.")] = "exact",
    seed: Annotated[int, options.numeric(parser=options.whole(0), help="Seed of the candidate lists.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the page goes."), Output()] = Path("report.html"),
    as_json: options.Json = False,
) -> None:
    """Compare three methods on bundled real data, print how far gaps fall at no significant loss, and write a page."""
    ks = options.cut_offs(k)
    data = er.datasets.german_credit(group, seed=seed)
    with bar("sweep", show=not as_json) as progress:
        result = er.sweep(
            data,
            COMPARED,
            # To ask for more than half of each prefix would leave the page's charts little room for the rest.
            strengths={"fastar": np.arange(25) / 50},
            ks=ks,
            folds=er.datasets.german_credit_folds(data),
            seed=seed,
            solver=solver,
            titles=_titles(data),
            progress=progress,
        )
    subtitle = (
        f"German Credit as a ranking task: {data.n_queries} candidate lists of {data.n_rows // data.n_queries} "
        f"applicants, groups by {group}; {result.about.models} models trained and measured in "
        f"{result.about.seconds:.1f} s."
    )
    provenance = (
        f"evenrank {er.__version__}, solver {solver}, 5 folds over disjoint applicants, seed {seed}. Data: Statlog "
        "(German Credit Data), Hans Hofmann, UCI Machine Learning Repository, doi 10.24432/C5NC77, CC BY 4.0."
    )
    title = "How evenly can credit applicants be ranked?"
    write_whole(out, er.report_page(result, title=title, subtitle=subtitle, made=provenance))
    if as_json:
        common.print_json({**result.to_dict(), "report": str(out)})
        return
    show_sweep.summary(result, subtitle)
    for name in COMPARED:
        show.line(f"{name}: {METHODS[name].title}; it {METHODS[name].sees}.")
    show.line(f"The page with the trade-off plots: {out}")


def _titles(data: RankingData) -> Titles:
    """Texts for the bundled data, which has numbers only."""
    assert data.item_ids is not None
    queries = {query: f"Candidate list {query}" for query in data.query_ids.tolist()}
    return Titles(queries, {item: f"Applicant {item}" for item in np.unique(data.item_ids).tolist()})
