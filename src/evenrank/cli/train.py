"""`evenrank train`: one ranker to a model file."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.checks import choose
from evenrank.cli import common, options, show, streaming
from evenrank.cli.guard import Output
from evenrank.data import RankingData
from evenrank.errors import ConfigError
from evenrank.extras import require
from evenrank.methods.families import FAIRNESS
from evenrank.methods.method import POST, Method, refusals
from evenrank.methods.registry import METHODS
from evenrank.methods.reranked import RerankedRanker
from evenrank.notions import SCOPES
from evenrank.targets import TARGETS

TRAINED = [method.name for method in METHODS.values() if method.saves]
MODELS = list(dict.fromkeys(METHODS[name].model for name in TRAINED if METHODS[name].model))
LINEAR = MODELS[0]
# Re-rankers that are fitted to scores.
FITTED = [name for name in TRAINED if METHODS[name].kind == POST]
# Parameters whose option has another name.
OPTION_OF = {"k": "--target-k"}


def train(
    file: options.File,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file."), Output()] = Path("model.json"),
    notion: Annotated[
        str | None, typer.Option(help="dp, eop or eod (or their full names).  [default: equal_opportunity]")
    ] = None,
    alpha: Annotated[
        float | None,
        options.numeric(
            "--alpha",
            "--gamma",
            "--strength",
            help="Strength of the fairness term; 0: ordinary ranker.  [default: 1]",
        ),
    ] = None,
    max_violation: Annotated[
        float | None,
        options.numeric(
            help="Instead of a strength: the gap of the top k to reach on the training rows, such as 0.05. Trees and "
            "networks: with --set validation_fraction=0.3, on queries kept out of training."
        ),
    ] = None,
    model: Annotated[str, typer.Option(help=f"{', '.join(MODELS)}.")] = LINEAR,
    method: Annotated[
        str | None, typer.Option(help=f"{', '.join(TRAINED)}; see evenrank methods.  [default: amortized]")
    ] = None,
    scope: Annotated[str | None, typer.Option(help="amortized or per_query; the method of that name.")] = None,
    target: Annotated[
        str | None,
        typer.Option(help=f"What is evened out: {', '.join(TARGETS)}; default: the model's."),
    ] = None,
    target_k: Annotated[
        int | None,
        options.numeric(parser=options.whole(1), help="Cut-off of target topk and of the gap; default: 5."),
    ] = None,
    protected: Annotated[str | None, typer.Option(help="Protected group of DELTR; default: the smaller.")] = None,
    solver: Annotated[str | None, typer.Option(help="exact, gd or sgd.  [default: exact]")] = None,
    loss: Annotated[str | None, typer.Option(help="squared, pairwise or logistic.  [default: squared]")] = None,
    ridge: Annotated[float | None, options.numeric(help="Weight of the squared weights.  [default: 0]")] = None,
    impute: options.Impute = None,
    group_aware: Annotated[bool, typer.Option("--group-aware", help="Let the model see the group.")] = False,
    score: Annotated[
        str | None,
        typer.Option(
            help=f"Fit a re-ranker to the scores in this column instead of training: {', '.join(FITTED)}.",
            rich_help_panel=options.COLUMNS,
        ),
    ] = None,
    before: Annotated[
        bool, typer.Option(help="Train strength 0 too, and print its numbers beside the model's.")
    ] = True,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="The model's own option, as n_estimators=50; repeatable.")
    ] = None,
    seed: Annotated[int, options.numeric(parser=options.whole(0), help="Seed of sgd, trees and networks.")] = 0,
    query: options.Query = "qid",
    item: options.Item = None,
    relevance: options.Relevance = "relevance",
    group: options.Group = "group",
    features: options.Features = None,
    ignore: options.Ignore = None,
    categorical: options.Categorical = None,
    sample_weight: options.SampleWeight = None,
    threshold: options.Threshold = 1.0,
    k: options.Ks = "1,3,5,10",
    engine: options.Engine = None,
    input_format: options.InputFormat = None,
    header: options.Header = True,
    as_json: options.Json = False,
) -> None:
    """Train one fair ranker on the rows and write it to a model file (JSON)."""
    ks = options.cut_offs(k)
    trained, base = _method(method, scope, model)
    strength = trained.strength.name
    knobs = {
        "notion": notion,
        strength: alpha,
        "max_violation": max_violation,
        "scope": None if (base or trained).model == LINEAR else scope,
        "target": target,
        "k": target_k,
        "protected": protected,
        "solver": solver,
        "loss": loss,
        "ridge": ridge,
        "impute": impute,
        "group_aware": group_aware or None,
    }
    chosen = {name: value for name, value in knobs.items() if value is not None}
    if score is not None:
        _check_given(trained, features, model)
    _refuse_strange(trained, None if score else base, chosen)
    extra_settings = options.settings(settings or [])
    if (base or trained).extra:
        require((base or trained).extra)
    file, stream = streaming.settled(file, engine, input_format=input_format)
    advice = {} if score is None else {"features": "Name the column of the scores with --score."}
    roles = {"query": query, "relevance": relevance, "group": group, "item": item, "sample weight": sample_weight}
    columns: dict[str, Any] = {
        "query": query,
        "item": item,
        "relevance": relevance,
        "group": group,
        "features": options.names(features) if score is None else [score],
        "ignore": options.ignored(ignore, categorical=categorical, features=features, roles=roles),
        "categorical": options.several(categorical),
        "sample_weight": sample_weight,
        "relevance_threshold": threshold,
    }
    if stream:
        if base is not None or extra_settings:
            raise ConfigError(
                f"--method {trained.name} needs the rows in memory; --engine stream trains linear rankers by --alpha."
            )
        rows = streaming.scanned(file, advice, **columns)
        given = chosen | {"relevance_threshold": threshold}
        streaming.train_files(rows, trained, given, out, before=before, as_json=as_json)
        return
    data = common.read_rows(file, advice, format=input_format, header=header, **columns)
    if alpha != 0 or group_aware or max_violation is not None:
        common.need_groups(data, file, "Name the group column with --group, or train without groups with --alpha 0.")
    if protected is not None:
        chosen["protected"] = options.label(protected, data.group_names)
    chosen |= {"relevance_threshold": threshold, "random_state": seed}
    if "verbose" in (base or trained).knobs:
        chosen["verbose"] = not as_json
    if extra_settings:
        chosen |= (base or trained).with_settings  # `refusals` makes lines of the library's warnings
    with refusals(trained.name, extra_settings):
        if base is None:
            ranker = trained.make(data, chosen | extra_settings)
        else:
            ranker = RerankedRanker.make(trained, base if score is None else score, data, chosen | extra_settings)
        began = time.perf_counter()
        ranker.fit(data)
        seconds = time.perf_counter() - began
        scores = ranker.predict(data)
        used = float(getattr(ranker, "alpha_", ranker.get_params()[strength]))
        plain = _plain_scores(ranker, strength, data) if before and used > 0 else None
    common.warn_if_tied(scores, data)
    parameters = ranker.get_params()
    report = {
        "model": str(out),
        "seconds": seconds,
        "method": trained.name,
        "notion": parameters.get("notion"),
        "alpha": used,
        **{name: parameters[name] for name in ("solver",) if name in trained.knobs},
        "features": data.n_features,
        **show.audit_values(scores, data, ks, labelled=True),
    }
    if plain is not None:
        report["before"] = show.audit_values(plain, data, ks, labelled=True)
    ranker.save(out)
    if as_json:
        common.print_json(report)
        return
    title = ", ".join(str(part) for part in (trained.label, parameters.get("notion")) if part)
    compared = "strength 0 → " if plain is not None else "strength "
    show.audit(report, title=f"On the training rows ({title}, {compared}{used:.4g})")
    what = f"Trained on {data.n_features} features" if score is None else f"Fitted to the column {score!r}"
    show.line(f"{what} in {seconds:.2f} s. Model file: {out}")


def _plain_scores(ranker: Any, strength: str, data: RankingData) -> Any:
    """The scores of the training rows without mitigation: of the base ranker, or of one trained at strength 0."""
    if isinstance(ranker, RerankedRanker):
        return ranker.base.predict(data)
    bounds = ("max_violation", "validation_fraction")
    options = {strength: 0.0} | {name: None for name in bounds if name in ranker.get_params()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model's own training told them
        plain = deepcopy(ranker).set_params(**options)
        return plain.fit(data).predict(data)


def _method(method: str | None, scope: str | None, model: str) -> tuple[Method, Method | None]:
    """The method by its name, by its scope or by its model, and what trains the scores of one that re-ranks.

    Two that differ contradict each other.
    """
    choose(model, MODELS, what="--model")
    if scope is not None:
        choose(scope, SCOPES, what="--scope")
    if method is not None and choose(method, METHODS, what="--method") not in TRAINED:
        if METHODS[method].direct:
            raise ConfigError(f"{method} re-ranks and has nothing to train. Use evenrank rank --method {method}.")
        raise ConfigError(f"{method} has no model file; it is for evenrank sweep and evenrank bench.")
    of_model = [name for name in TRAINED if METHODS[name].model == model]
    if method is None:
        return METHODS[scope if scope in of_model else of_model[0]], None
    chosen = METHODS[method]
    if chosen.kind == POST and scope is None:
        return chosen, METHODS[of_model[0]]
    if model not in (LINEAR, chosen.model):
        raise ConfigError(f"--model {model} contradicts --method {method}; give one of them.")
    if scope not in (None, chosen.fixed.get("scope")) and "scope" not in chosen.knobs:
        raise ConfigError(f"--scope {scope} contradicts --method {method}; give one of them.")
    return chosen, None


def _check_given(method: Method, features: str | None, model: str) -> None:
    """What contradicts scores that are given."""
    if method.name not in FITTED:
        raise ConfigError(
            f"--score is for methods that re-rank scores; {method.name} trains its own. Name one with --method: "
            f"{', '.join(FITTED)}."
        )
    if features is not None or model != LINEAR:
        raise ConfigError("--score takes the place of a model: leave out --features and --model.")


def _refuse_strange(method: Method, base: Method | None, chosen: Mapping[str, Any]) -> None:
    """Options given to a method that does not have them; a base ranker takes none about fairness."""
    known = {*method.knobs, *(() if base is None else {*base.knobs} - {*FAIRNESS, "group_aware", "scope"})}
    strange = [OPTION_OF.get(name, f"--{name.replace('_', '-')}") for name in chosen if name not in known]
    if strange:
        verb, them = ("is", "it") if len(strange) == 1 else ("are", "them")
        raise ConfigError(f"{' and '.join(strange)} {verb} not for --method {method.name}; leave {them} out.")
