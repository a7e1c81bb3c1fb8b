"""`evenrank train`: one ranker to a model file."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

import evenrank as er
from evenrank.cli import common, options, show
from evenrank.errors import ConfigError, choose
from evenrank.experiment.methods import METHODS
from evenrank.notions import SCOPES

TRAINED = [method.name for method in METHODS.values() if method.kind == "in-processing"]


def _check_method(method: str) -> None:
    if choose(method, METHODS, what="--method") not in TRAINED:
        raise ConfigError(f"{method} re-ranks and has nothing to train. Use evenrank rank --method {method}.")


def train(
    file: options.File,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file.")] = Path("model.json"),
    notion: Annotated[str, typer.Option(help="dp, eop or eod (or their full names).")] = "equal_opportunity",
    alpha: Annotated[
        float,
        options.numeric("--alpha", "--gamma", "--strength", help="Strength of the fairness term; 0: ordinary ranker."),
    ] = 1.0,
    method: Annotated[
        str | None, typer.Option(help=f"{', '.join(TRAINED)}; see evenrank methods.  [default: amortized]")
    ] = None,
    scope: Annotated[str | None, typer.Option(help="amortized or per_query; the method of that name.")] = None,
    protected: Annotated[str | None, typer.Option(help="Protected group of DELTR; default: the smaller.")] = None,
    solver: Annotated[str, typer.Option(help="exact, gd or sgd.")] = "exact",
    loss: Annotated[str, typer.Option(help="squared or logistic.")] = "squared",
    ridge: Annotated[float, options.numeric(help="Weight of the squared weights.")] = 0.0,
    group_aware: Annotated[bool, typer.Option("--group-aware", help="Let the model see the group.")] = False,
    seed: Annotated[int, options.numeric(parser=options.whole(0), help="Seed of sgd.")] = 0,
    query: options.Query = "qid",
    item: options.Item = None,
    relevance: options.Relevance = "relevance",
    group: options.Group = "group",
    features: options.Features = None,
    threshold: options.Threshold = 1.0,
    k: options.Ks = "1,3,5,10",
    input_format: options.InputFormat = None,
    as_json: options.Json = False,
) -> None:
    """Train one fair ranker on the rows and write it to a model file (JSON)."""
    ks = options.cut_offs(k)
    if scope is not None and method not in (None, scope):
        raise ConfigError(f"--scope {scope} contradicts --method {method}; give one of them.")
    method = method or (choose(scope, SCOPES, what="--scope") if scope else "amortized")
    _check_method(method)
    if method.startswith("deltr"):
        if (loss, solver, ridge) != ("squared", "exact", 0.0):
            raise ConfigError(f"--loss, --solver and --ridge are not for --method {method}; leave them out.")
    elif protected is not None:
        raise ConfigError(f"--protected is for --method deltr; {method} treats all groups alike.")
    options.output(out, file)
    data = common.read_rows(
        file,
        query=query,
        item=item,
        relevance=relevance,
        group=group,
        features=options.names(features),
        relevance_threshold=threshold,
        format=input_format,
    )
    if alpha > 0 or group_aware:
        common.need_groups(data, file, "Name the group column with --group, or train without groups with --alpha 0.")
    settings = {"relevance_threshold": threshold, "seed": seed, "verbose": not as_json and sys.stderr.isatty()}
    ranker: Any
    if method.startswith("deltr"):
        label = options.label(protected, data.group_names)
        ranker = er.DELTR(alpha, label, group_aware=group_aware or method == "deltr_aware", **settings)
    else:
        ranker = er.FairLinearRanker(notion, alpha, method, solver, group_aware, loss=loss, ridge=ridge, **settings)
    began = time.perf_counter()
    ranker.fit(data)
    seconds = time.perf_counter() - began
    scores = ranker.predict(data)
    common.warn_if_tied(scores, data)
    asked = {"method": method, "notion": notion, "alpha": alpha, "solver": solver, "features": data.n_features}
    report = {"model": str(out), "seconds": seconds, **asked, **show.audit_values(scores, data, ks, labelled=True)}
    ranker.save(out)
    if as_json:
        common.print_json(report)
        return
    what = method if method.startswith("deltr") else notion
    show.audit(report, title=f"On the training rows ({what}, strength {alpha:g})")
    show.line(f"Trained on {data.n_features} features in {seconds:.2f} s. Model file: {out}")
