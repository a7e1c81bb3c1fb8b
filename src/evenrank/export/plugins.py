"""Models for the learning-to-rank plugins of OpenSearch and Elasticsearch, RankLib's form among them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from evenrank.errors import ConfigError
from evenrank.export import readme
from evenrank.export.emulators.plugins import LINEAR, RANKLIB, TREES
from evenrank.export.exported import Exported
from evenrank.export.float32 import cast, exact_text
from evenrank.export.linear_float32 import folded
from evenrank.export.model import Forest, Linear, Network
from evenrank.export.nested import compact, nest, pretty, xgboost_trees
from evenrank.export.prepare import Options, Prepared, check_missing, prepare
from evenrank.export.versions import FOLLOWED, NO, missing_rule, parse

TITLES = {"opensearch": "OpenSearch", "elasticsearch": "Elasticsearch"}
RULES = {NO: "sends a missing value to 'no', always", "zero": "reads a missing value as 0"}
CHECKED_SINCE = (8, 14, 1)  # Elasticsearch before it was not looked at


def to_opensearch(model: Any, **options: Unpack[Options]) -> Exported:
    """Write a ranker for OpenSearch's learning-to-rank plugin.

    Parameters
    ----------
    model : ranker, booster or path
        A fitted ranker of evenrank (linear, LightGBM, XGBoost), an LGBMRanker or XGBRanker or their Booster, or a file:
        evenrank's model file, LightGBM's model text or XGBoost's JSON.
    **options : Any
        The following.
    name : str
        The name of the model and of its feature set.
    version : str, optional
        The engine's version, such as "2.19": versions differ in what they do with missing values.
    missing : str, optional
        Where trees send a missing value: "nan" as in training, "zero" where 0 goes; refused where the engine cannot.
        None is "nan" with a warning where the engine cannot.
    shift : float or "auto", optional
        A number to add to every score; "auto" is what makes the smallest score that trees can give 0.
    rename : mapping of str to str or "plain", optional
        The model's name of a feature → the engine's; "plain" makes all names letters, digits and underscores.
    group_field : str
        The field that holds an item's group, where the model adds an offset per group.

    Returns
    -------
    Exported
        The definition, the feature set, the upload request.

    Raises
    ------
    ConfigError
        If the engine cannot express the model; the message names the feature and the way out.

    Examples
    --------
    >>> import evenrank as er
    >>> data = er.datasets.german_credit("age")
    >>> ranker = er.FairLinearRanker("dp", alpha=0.1).fit(data)
    >>> exported = to_opensearch(ranker)
    >>> bool(abs(exported.score(data) - ranker.predict(data)).max() < 1e-5)
    True
    """
    return _plugin("opensearch", model, options)


def to_elasticsearch(model: Any, **options: Unpack[Options]) -> Exported:
    """Write a ranker for Elasticsearch's learning-to-rank plugin; see `to_opensearch`.

    Parameters
    ----------
    model, **options
        As in `to_opensearch`.

    Returns
    -------
    Exported
        The definition, the feature set, the upload request.
    """
    return _plugin("elasticsearch", model, options)


def to_ranklib(model: Any, **options: Unpack[Options]) -> Exported:
    """Write trees as RankLib's XML, which both plugins take as ``model/ranklib``; see `to_opensearch`.

    RankLib knows no missing values: the plugins give it 0 for them.

    Parameters
    ----------
    model, **options
        As in `to_opensearch`; the version is not looked at.

    Returns
    -------
    Exported
        The definition, the feature set, the upload request.
    """
    prepared = _prepared("RankLib", model, options)
    forest = prepared.scorer
    if not isinstance(forest, Forest):
        kind = "linear model" if isinstance(forest, Linear) else "network"
        way = "opensearch or elasticsearch" if isinstance(forest, Linear) else "solr or onnx"
        raise ConfigError(f"a {kind} has no RankLib form here. Export it to {way}.")
    notes = check_missing(prepared, "RankLib", RULES["zero"], forest.zero_left)
    prepared = replace(prepared, notes=(*prepared.notes, *notes))
    return _exported("ranklib", options.get("version"), prepared, RANKLIB, _ranklib(forest), {})


def _prepared(title: str, model: Any, options: Options) -> Prepared:
    return prepare(model, title, group_feature=lambda field, label, number: f"{field}={label}", **options)


def _plugin(engine: str, model: Any, options: Options) -> Exported:
    version = options.get("version")
    title = f"{TITLES[engine]} {version}" if version else TITLES[engine]
    prepared = _prepared(title, model, options)
    scorer = prepared.scorer
    if isinstance(scorer, Network):
        raise ConfigError(f"{title} has no networks. Export it to solr or onnx, or train trees or a linear model.")
    if isinstance(scorer, Linear):
        weights, moved = folded(scorer)
        definition = compact(dict(zip(scorer.features, map(float, weights), strict=True)))
        normalizers = {
            feature: {"standard": {"mean": mean, "standard_deviation": deviation}}
            for feature, (mean, deviation) in moved.items()
        }
        note = "a missing value counts as 0"
        return _exported(
            engine, version, replace(prepared, notes=(*prepared.notes, note)), LINEAR, definition, normalizers
        )
    rule = missing_rule(engine, version)
    notes: tuple[str, ...] = ()
    if rule != FOLLOWED:
        goes_left = np.zeros(len(scorer.left), bool) if rule == NO else scorer.zero_left
        notes = check_missing(prepared, title, RULES[rule], goes_left)
    elif engine == "elasticsearch" and parse(version) < CHECKED_SINCE:
        notes = (f"where versions before 8.14.1 send a missing value was not checked; {version} was asked for",)
    definition = compact({"objective": "rank:pairwise", "splits": xgboost_trees(scorer)})
    return _exported(engine, version, replace(prepared, notes=(*prepared.notes, *notes)), TREES, definition, {})


def _exported(
    engine: str, version: str | None, prepared: Prepared, model_type: str, definition: str, normalizers: dict[str, Any]
) -> Exported:
    inner: dict[str, Any] = {"type": model_type, "definition": definition}
    if normalizers:
        inner["feature_normalizers"] = normalizers
    files = {
        f"definition.{'txt' if model_type == RANKLIB else 'json'}": definition + "\n",
        "features.json": pretty({"featureset": {"name": prepared.name, "features": _feature_set(prepared)}}),
        "model.json": pretty({"model": {"name": prepared.name, "model": inner}}),
        "upload.sh": readme.script(_requests(prepared.name)),
    }
    files["README.md"] = readme.plugin(engine, version, prepared, model_type, files)
    return Exported(engine, version, model_type, definition, prepared.features, normalizers, files, prepared)


def _requests(name: str) -> list[str]:
    header = "-H 'Content-Type: application/json'"
    return [
        f'curl -X POST "$HOST/_ltr/_featureset/{name}" {header} -d @features.json',
        f'curl -X POST "$HOST/_ltr/_featureset/{name}/_createmodel" {header} -d @model.json',
    ]


def _feature_set(prepared: Prepared) -> list[dict[str, Any]]:
    """Queries whose score is the feature: the number in the field of that name, and 1 for an item of the group."""
    numbers = [
        {
            "function_score": {
                "query": {"exists": {"field": name}},
                "field_value_factor": {"field": name},
                "boost_mode": "replace",
            }
        }
        for name in prepared.own
    ]
    # Every item matches, as some versions know no way for one that does not.
    groups = [
        {
            "bool": {
                "should": [
                    {"constant_score": {"filter": {"match_all": {}}, "boost": 0}},
                    {"constant_score": {"filter": {"term": {prepared.group_field: label}}, "boost": 1}},
                ]
            }
        }
        for label in prepared.groups
    ]
    return [
        {"name": name, "params": [], "template_language": "mustache", "template": template}
        for name, template in zip(prepared.features, [*numbers, *groups], strict=True)
    ]


def _ranklib(forest: Forest) -> str:
    values = cast(forest.value)

    def leaf(node: int) -> list[str]:
        return [f"<output>{exact_text(values[node])}</output>"]

    def split(node: int, left: list[str], right: list[str]) -> list[str]:
        return [
            f"<feature>{forest.feature[node] + 1}</feature>",
            f"<threshold>{exact_text(forest.at_most[node])}</threshold>",
            '<split pos="left">',
            *left,
            "</split>",
            '<split pos="right">',
            *right,
            "</split>",
        ]

    first = [[f"<output>{exact_text(forest.base)}</output>"]] if forest.base else []
    lines = ["## LambdaMART", "", "<ensemble>"]
    for number, tree in enumerate([*first, *nest(forest, leaf, split)], 1):
        lines += [f'<tree id="{number}" weight="1.0">', "<split>", *tree, "</split>", "</tree>"]
    return "\n".join([*lines, "</ensemble>"])
