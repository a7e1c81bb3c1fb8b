"""`evenrank train`: one ranker to a model file."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

import evenrank as er
from evenrank.cli import common, options, show
from evenrank.data import RankingData
from evenrank.errors import ConfigError, choose
from evenrank.extras import require
from evenrank.methods.registry import METHODS, other_group, refusals
from evenrank.notions import SCOPES

TRAINED = [method.name for method in METHODS.values() if method.kind == "in-processing"]
# Models that are not linear: where their rankers live.
ADAPTERS = {
    "lightgbm": ("evenrank.lightgbm", "FairLGBMRanker"),
    "xgboost": ("evenrank.xgboost", "FairXGBRanker"),
    "mlp": ("evenrank.torch", "FairNeuralRanker"),
}
LINEAR = "linear"
# Options that only some models have, and what they are unless given.
OF_LINEAR = {"solver": "exact", "loss": "squared", "ridge": 0.0, "group_aware": False}
OF_TARGETS = {"target": None, "target_k": None, "max_violation": None}


def train(
    file: options.File,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file.")] = Path("model.json"),
    notion: Annotated[str, typer.Option(help="dp, eop or eod (or their full names).")] = "equal_opportunity",
    alpha: Annotated[
        float,
        options.numeric("--alpha", "--gamma", "--strength", help="Strength of the fairness term; 0: ordinary ranker."),
    ] = 1.0,
    max_violation: Annotated[
        float | None,
        options.numeric(help="Instead of a strength: the violation to reach on the training rows, say 0.05."),
    ] = None,
    model: Annotated[str, typer.Option(help=f"{', '.join((LINEAR, *ADAPTERS))}.")] = LINEAR,
    method: Annotated[
        str | None, typer.Option(help=f"{', '.join(TRAINED)}; see evenrank methods.  [default: amortized]")
    ] = None,
    scope: Annotated[str | None, typer.Option(help="amortized or per_query; the method of that name.")] = None,
    target: Annotated[
        str | None, typer.Option(help="What is evened out: score, probability, topk or exposure; default: the model's.")
    ] = None,
    target_k: Annotated[
        int | None,
        options.numeric(
            parser=options.whole(1), help="Cut-off of target topk and of the violation asked for; default: 5."
        ),
    ] = None,
    protected: Annotated[str | None, typer.Option(help="Protected group of DELTR; default: the smaller.")] = None,
    solver: Annotated[str, typer.Option(help="exact, gd or sgd.")] = "exact",
    loss: Annotated[str, typer.Option(help="squared or logistic.")] = "squared",
    ridge: Annotated[float, options.numeric(help="Weight of the squared weights.")] = 0.0,
    group_aware: Annotated[bool, typer.Option("--group-aware", help="Let the model see the group.")] = False,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="The model's own option, as n_estimators=50; repeatable.")
    ] = None,
    seed: Annotated[int, options.numeric(parser=options.whole(0), help="Seed of sgd, trees and networks.")] = 0,
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
    method = _method(method, scope, model)
    linear = {"solver": solver, "loss": loss, "ridge": ridge, "group_aware": group_aware}
    targets = {"target": target, "target_k": target_k, "max_violation": max_violation}
    _refuse_strange(method, linear, targets, protected)
    own = options.settings(settings or [])
    if METHODS[method].extra:
        require(METHODS[method].extra)
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
    if alpha > 0 or group_aware or max_violation is not None:
        common.need_groups(data, file, "Name the group column with --group, or train without groups with --alpha 0.")
    shared = {"relevance_threshold": threshold, "seed": seed, "verbose": not as_json and sys.stderr.isatty()}
    given = {"k" if name == "target_k" else name: value for name, value in targets.items() if value is not None}
    # LightGBM prints on stdout of options it does not know.
    with refusals(method, own if method in ADAPTERS else {}), redirect_stdout(sys.stderr):
        ranker = _ranker(method, notion, alpha, scope, protected, linear, given, shared, own, data)
        began = time.perf_counter()
        ranker.fit(data)
        seconds = time.perf_counter() - began
        scores = ranker.predict(data)
    common.warn_if_tied(scores, data)
    used = float(getattr(ranker, "alpha_", alpha))
    asked = {"method": method, "notion": notion, "alpha": used, "solver": solver, "features": data.n_features}
    report = {"model": str(out), "seconds": seconds, **asked, **show.audit_values(scores, data, ks, labelled=True)}
    ranker.save(out)
    if as_json:
        common.print_json(report)
        return
    what = method if method.startswith("deltr") else f"{method}, {notion}" if method in ADAPTERS else notion
    show.audit(report, title=f"On the training rows ({what}, strength {used:.4g})")
    show.line(f"Trained on {data.n_features} features in {seconds:.2f} s. Model file: {out}")


def _method(method: str | None, scope: str | None, model: str) -> str:
    """The method by its name, by its scope or by its model; two that differ contradict each other."""
    choose(model, (LINEAR, *ADAPTERS), what="--model")
    if scope is not None:
        choose(scope, SCOPES, what="--scope")
    if model != LINEAR and method not in (None, model):
        raise ConfigError(f"--model {model} contradicts --method {method}; give one of them.")
    if model != LINEAR:
        return model
    if method in ADAPTERS:
        return method
    if scope is not None and method not in (None, scope):
        raise ConfigError(f"--scope {scope} contradicts --method {method}; give one of them.")
    method = method or scope or "amortized"
    if choose(method, METHODS, what="--method") not in TRAINED:
        raise ConfigError(f"{method} re-ranks and has nothing to train. Use evenrank rank --method {method}.")
    return method


def _refuse_strange(method: str, linear: Mapping[str, Any], targets: Mapping[str, Any], protected: str | None) -> None:
    """Options given to a method that does not have them."""

    def given(values: Mapping[str, Any], usual: Mapping[str, Any], but: Sequence[str] = ()) -> list[str]:
        return [f"--{name.replace('_', '-')}" for name in values if values[name] != usual[name] and name not in but]

    strange: list[str] = []
    if method.startswith("deltr"):
        strange = given(linear, OF_LINEAR, but=["group_aware"]) + given(targets, OF_TARGETS)
    elif method in ADAPTERS:
        strange = given(linear, OF_LINEAR)
    if strange:
        verb = "is" if len(strange) == 1 else "are"
        raise ConfigError(
            f"{' and '.join(strange)} {verb} not for --method {method}; leave {'it' if verb == 'is' else 'them'} out."
        )
    if protected is not None and method not in ("deltr", "deltr_aware"):
        raise ConfigError(f"--protected is for --method deltr; {method} treats all groups alike.")


def _ranker(
    method: str,
    notion: str,
    alpha: float,
    scope: str | None,
    protected: str | None,
    linear: Mapping[str, Any],
    targets: Mapping[str, Any],
    shared: dict[str, Any],
    own: Mapping[str, Any],
    data: RankingData,
) -> Any:
    """The ranker of a method, not yet fitted."""
    settings: dict[str, Any] = dict(shared)
    if method in ADAPTERS:
        module, name = ADAPTERS[method]
        if method != "mlp":
            settings = {"relevance_threshold": shared["relevance_threshold"], "random_state": shared["seed"]}
        if method == "lightgbm":
            settings["verbose"] = 0 if own else -1  # it warns of options it does not know
        settings |= {"notion": notion, "alpha": alpha, "scope": scope or "amortized", **targets, **own}
        return _made(getattr(import_module(module), name), method, settings)
    if method.startswith("deltr"):
        label = other_group(data) if method == "deltr_larger" else options.label(protected, data.group_names)
        aware = linear["group_aware"] or method == "deltr_aware"
        return _made(er.DELTR, method, {"gamma": alpha, "protected": label, "group_aware": aware, **settings, **own})
    aware = linear["group_aware"] or method == "amortized_aware"
    scoped = {"scope": "per_query" if method == "per_query" else "amortized"}
    settings |= {"notion": notion, "alpha": alpha, **linear, "group_aware": aware, **scoped, **targets, **own}
    return _made(er.FairLinearRanker, method, settings)


def _made(kind: Any, method: str, settings: Mapping[str, Any]) -> Any:
    try:
        return kind(**settings)
    except TypeError as error:
        name = str(error).rpartition("argument ")[2]
        raise ConfigError(f"--set {name} is not an option of {method}.") from None
