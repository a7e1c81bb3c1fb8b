"""`evenrank select`: one strength of a run by a rule, with what to expect of it."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import evenrank as er
from evenrank.checks import choose
from evenrank.cli import common, options, show, show_sweep
from evenrank.cli.guard import Input
from evenrank.errors import DataWarning
from evenrank.experiment.run_folder import FILES as RUN_FILES
from evenrank.experiment.select_rules import RULES, current_rule

ALL = "all"


def select(
    run: Annotated[Path, typer.Argument(help="A run folder of `evenrank sweep`."), Input(RUN_FILES)],
    rule: Annotated[str, typer.Option(help=f"{', '.join(RULES)}; or {ALL}.")] = "no_loss",
    tolerance: Annotated[
        float, options.numeric(help="For within: how far below the best quality, as a share of it.")
    ] = 0.01,
    notion: Annotated[str | None, typer.Option(help="dp, eop or eod.  [default: all of the run]")] = None,
    k: Annotated[
        int | None, options.numeric("--k", parser=options.whole(1), help="The cut-off.  [default: the largest]")
    ] = None,
    quality: Annotated[str, typer.Option(help="ndcg, precision, or one of the run's further measures.")] = "ndcg",
    gap: Annotated[
        str | None, typer.Option(help="One of the run's further measures, to be lowered instead of the notion's gap.")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Choose from these, comma-separated.  [default: all]")] = None,
    baseline: Annotated[
        str | None, typer.Option(help="The method whose strength 0 is the baseline.  [default: the run's first]")
    ] = None,
    grouping: Annotated[str | None, typer.Option(help="One grouping of the run.  [default: all]")] = None,
    as_json: options.Json = False,
) -> None:
    """Choose a strength of a run, and a method if it has several.

    no_loss: the smallest gap at no significant quality loss; four_fifths: the best quality that meets the
    four-fifths rule; within: the smallest gap with quality within --tolerance of the best; knee: the knee of the
    trade-off; alpha_star: the strength at which the training gap is 0. What the choice gives is measured on folds that
    took no part in it, against one baseline.
    """
    rules = list(RULES) if rule == ALL else [choose(current_rule(rule), [*RULES, ALL], what="--rule")]
    sweep = er.Sweep.load(run)
    wanted = [
        (where, name, rule_name)
        for where in ([grouping] if grouping is not None else sweep.groupings)
        for name in ([notion] if notion is not None else sweep.notions)
        for rule_name in rules
    ]
    in_words = not as_json and len(rules) == 1  # each choice in words, so that a warning would say it twice
    with warnings.catch_warnings():
        if in_words:
            warnings.simplefilter("ignore", DataWarning)
        choices = [
            er.select(
                sweep,
                name,
                k,
                rule=rule_name,
                tolerance=tolerance,
                quality=quality,
                gap=gap,
                methods=options.names(methods),
                baseline=baseline,
                grouping=where,
            )
            for where, name, rule_name in wanted
        ]
    if as_json:
        common.print_json([asdict(choice) | {"text": choice.text()} for choice in choices])
        return
    show_sweep.choices(choices)
    for choice in choices if in_words else ():
        show.line(choice.text())
