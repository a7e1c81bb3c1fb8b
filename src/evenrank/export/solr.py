"""Models for Solr's learning-to-rank module."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from evenrank.export import readme
from evenrank.export.emulators.solr import LINEAR, MIN_MAX, MISSING_SINCE, NETWORK, SLACK, STANDARD, TREES
from evenrank.export.exported import Exported
from evenrank.export.float32 import LARGEST, Floats, cast, exact_text
from evenrank.export.linear_float32 import folded
from evenrank.export.model import Forest, Linear, Network
from evenrank.export.nested import compact, nest, pretty
from evenrank.export.prepare import ZERO, Options, Prepared, check_missing, prepare
from evenrank.export.versions import parse

STEPS = 4  # neighbours of threshold − slack that are tried
MOST_DOUBLINGS = 126  # 2^-126 is the smallest normal number


def to_solr(model: Any, **options: Unpack[Options]) -> Exported:
    """Write a ranker for Solr's learning-to-rank module; see `to_opensearch`.

    Solr adds 1e-6 to every threshold. Thresholds are written so that the sum is the one that is meant; where no 32-bit
    number gives it, the feature is scaled by a power of 2, which changes no digit.

    Parameters
    ----------
    model, **options
        As in `to_opensearch`; networks are taken too. Solr before 9.2 reads missing values as 0.

    Returns
    -------
    Exported
        The model, its features, the upload requests.
    """
    version = options.get("version")
    title = f"Solr {version}" if version else "Solr"
    prepared = prepare(
        model,
        title,
        group_feature=lambda field, label, number: f"{field}={label}",
        **options,
    )
    scorer = prepared.scorer
    fills = True
    if isinstance(scorer, Linear):
        kind, norms, params = LINEAR, *_linear(scorer)
    elif isinstance(scorer, Network):
        kind, norms, params = NETWORK, *_network(scorer)
    else:
        kind = TREES
        fills = parse(version) < MISSING_SINCE or prepared.missing == ZERO
        if fills:
            notes = check_missing(prepared, title, "reads a missing value as 0", scorer.zero_left)
            prepared = replace(prepared, notes=(*prepared.notes, *notes))
        norms, params, note = _trees(scorer, fills=fills)
        prepared = replace(prepared, notes=(*prepared.notes, *note))
    content = {
        "class": kind,
        "name": prepared.name,
        "store": prepared.name,
        "features": [
            {"name": feature, **({"norm": norms[feature]} if feature in norms else {})} for feature in prepared.features
        ],
        "params": params,
    }
    definition = compact(content)
    files = {
        "features.json": pretty(_features(prepared, fills=fills)),
        "model.json": definition + "\n",
        "upload.sh": readme.script(_requests()),
    }
    files["README.md"] = readme.solr(version, prepared, kind, files)
    return Exported("solr", version, kind, definition, prepared.features, norms, files, prepared, fills)


def _requests() -> list[str]:
    header = "-H 'Content-Type: application/json'"
    return [
        f'curl -X PUT "$HOST/solr/$COLLECTION/schema/feature-store" {header} --data-binary @features.json',
        f'curl -X PUT "$HOST/solr/$COLLECTION/schema/model-store" {header} --data-binary @model.json',
        'curl "$HOST/solr/admin/collections?action=RELOAD&name=$COLLECTION"',
    ]


def _features(prepared: Prepared, *, fills: bool) -> list[dict[str, Any]]:
    """The number in the field of that name, and 1 for an item of the group."""
    default = {} if fills else {"defaultValue": "NaN"}
    numbers: list[dict[str, Any]] = [
        {"name": name, "class": "org.apache.solr.ltr.feature.FieldValueFeature", "params": {"field": name} | default}
        for name in prepared.own
    ]
    groups: list[dict[str, Any]] = [
        {
            "name": name,
            "class": "org.apache.solr.ltr.feature.SolrFeature",
            "params": {"q": f"{{!func}}if(termfreq({prepared.group_field},{_quoted(label)}),1,0)"},
        }
        for name, label in zip(prepared.features[len(prepared.own) :], prepared.groups, strict=True)
    ]
    return [feature | {"store": prepared.name} for feature in numbers + groups]


def _quoted(label: Any) -> str:
    escaped = str(label).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


# ---------------------------------------------------------------------- linear models and networks


def _standard(mean: Any, deviation: Any) -> dict[str, Any]:
    return {"class": STANDARD, "params": {"avg": exact_text(mean), "std": exact_text(deviation)}}


def _linear(linear: Linear) -> tuple[dict[str, Any], dict[str, Any]]:
    weights, moved = folded(linear)
    norms = {feature: _standard(*numbers) for feature, numbers in moved.items()}
    return norms, {"weights": dict(zip(linear.features, map(float, weights), strict=True))}


def _network(network: Network) -> tuple[dict[str, Any], dict[str, Any]]:
    scale = zip(network.features, cast(network.center), cast(network.spread), strict=True)
    norms = {feature: _standard(mean, deviation) for feature, mean, deviation in scale}
    layers = []
    for number, (weight, bias) in enumerate(network.layers):
        last = number == len(network.layers) - 1
        layers.append(
            {
                "matrix": weight.T.astype(np.float64).tolist(),
                "bias": bias.astype(np.float64).tolist(),
                "activation": "identity" if last else "relu",
            }
        )
    return norms, {"layers": layers}


# ---------------------------------------------------------------------- trees


def _reaching(wanted: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The largest s with s + slack ≤ wanted, (n,), and whether the sum is what is wanted.

    A sum rounds, so neighbours of wanted − slack are tried.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        start = np.where(np.isfinite(wanted), wanted - SLACK, wanted).astype(np.float32)
        for _ in range(STEPS):
            start = np.nextafter(start, np.float32(np.inf))
        best = np.full(len(wanted), -np.inf, np.float32)
        for _ in range(2 * STEPS + 1):
            best = np.where((start + SLACK <= wanted) & (start > best), start, best)
            start = np.nextafter(start, np.float32(-np.inf))
        return best, best + SLACK == wanted


def _doublings(thresholds: Floats) -> int | None:
    """How often to double a feature until Solr can reach all its thresholds; None if it never can."""
    finite = thresholds[np.abs(thresholds) < LARGEST]
    for count in range(MOST_DOUBLINGS + 1):
        with np.errstate(over="ignore"):
            scaled = finite * np.float32(2.0**count)
        if not np.isfinite(scaled).all():
            return None
        if _reaching(scaled)[1].all():
            return count
    return None


def _trees(forest: Forest, *, fills: bool) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """The normalizers that scale, the parameters, and what cannot be exact."""
    texts: list[str] = [""] * len(forest.left)
    norms: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    inner = forest.inner
    for column in np.unique(forest.feature[inner]).tolist():
        nodes = inner[forest.feature[inner] == column]
        wanted, places = np.unique(forest.at_most[nodes], return_inverse=True)
        count = _doublings(wanted)
        if count is None:
            notes = (
                *notes,
                f"thresholds of {forest.features[column]!r} are moved down to the next ones that Solr can reach",
            )
        elif count:
            norms[forest.features[column]] = {
                "class": MIN_MAX,
                "params": {"min": "0.0", "max": exact_text(2.0**-count)},
            }
        with np.errstate(over="ignore"):
            written = [exact_text(number) for number in _reaching(wanted * np.float32(2.0 ** (count or 0)))[0]]
        for node, place in zip(nodes.tolist(), places.tolist(), strict=True):
            texts[node] = written[place]
    values = cast(forest.value)

    def leaf(node: int) -> Any:
        return {"value": exact_text(values[node])}

    def split(node: int, left: Any, right: Any) -> Any:
        way = {} if fills else {"missing": "left" if forest.missing_left[node] else "right"}
        own = {"feature": forest.features[forest.feature[node]], "threshold": texts[node]}
        return own | way | {"left": left, "right": right}

    first = [{"value": exact_text(forest.base)}] if forest.base else []
    trees = [{"weight": "1", "root": root} for root in [*first, *nest(forest, leaf, split)]]
    return norms, ({} if fills else {"isNullSameAsZero": False}) | {"trees": trees}, notes
