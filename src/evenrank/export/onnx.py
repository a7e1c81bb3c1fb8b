"""Models for onnxruntime, and for engines that run ONNX files."""

from __future__ import annotations

from typing import Any, Unpack

from evenrank.export import readme
from evenrank.export.exported import Exported
from evenrank.export.nested import compact, pretty
from evenrank.export.onnx_model import FEATURES, OFFSET, SCORE, graph_of
from evenrank.export.prepare import Options, prepare


def to_onnx(model: Any, **options: Unpack[Options]) -> Exported:
    """Write a ranker as an ONNX file, which onnxruntime and Vespa run; see `to_opensearch`.

    The graph has an input ``features``, (items, d), 32-bit with NaN for a missing value, and an output ``score``,
    (items,). A model with an offset per group has a second input ``group_offset``, (items,): the offset of each item's
    group, which features.json lists.

    Parameters
    ----------
    model, **options
        As in `to_opensearch`; the version is not looked at, networks are taken too.

    Returns
    -------
    Exported
        The file, and the names of its columns.
    """
    prepared = prepare(
        model,
        "ONNX",
        group_feature=None,
        **options,
    )
    offsets = prepared.offsets
    notes = {"features": compact(list(prepared.features)), "offsets": compact([[*pair] for pair in offsets.items()])}
    definition = graph_of(prepared.scorer, with_offset=bool(offsets), notes=notes)
    about: dict[str, Any] = {"input": FEATURES, "features": list(prepared.features), "output": SCORE}
    if offsets:
        listed = [{"group": label, "offset": number} for label, number in offsets.items()]
        about |= {"second_input": OFFSET, "offsets": listed, "unknown_group": 0.0}
    files: dict[str, str | bytes] = {"model.onnx": definition, "features.json": pretty(about)}
    files["README.md"] = readme.onnx(prepared, files)
    return Exported("onnx", options.get("version"), "onnx", definition, prepared.features, {}, files, prepared)
