"""The README beside an export: what was written, how to upload it, how to ask for it, and what to mind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenrank.export.emulators.plugins import LINEAR
from evenrank.export.nested import compact
from evenrank.export.prepare import Prepared

HOST = "https://search.example.org:9200"
SOLR_HOST = "http://solr.example.org:8983"
ABOUT = {
    "definition.json": "the model's definition by itself",
    "definition.txt": "the model's definition by itself",
    "features.json": "the feature set: one entry per feature, in the order of the model",
    "model.onnx": "the model",
    "model.json": "the model, as the body of the upload request",
    "rank-profile.txt": "a rank profile for the schema",
    "upload.sh": "the requests as curl lines; set HOST first",
}


def script(requests: Sequence[str]) -> str:
    """Write the requests as a shell script whose host is to be filled in."""
    solr = any("$COLLECTION" in request for request in requests)
    head = ["#!/bin/sh", "set -e", 'cd "$(dirname "$0")"']
    head += [f'HOST="${{HOST:-{SOLR_HOST if solr else HOST}}}"  # a placeholder: put your own here']
    head += ['COLLECTION="${COLLECTION:-items}"'] if solr else []
    return "\n".join([*head, *requests]) + "\n"


def _files(files: Iterable[str], own: Mapping[str, str]) -> list[str]:
    return [f"- `{name}`: {own.get(name, ABOUT.get(name, ''))}" for name in files]


def _head(prepared: Prepared, title: str, kind: str) -> list[str]:
    count = len(prepared.features)
    features = f"{count} feature{'s' if count != 1 else ''}"
    return [f"# {prepared.name} for {title}", "", f"A ranker exported by evenrank: `{kind}` over {features}.", ""]


def _notes(notes: Iterable[str]) -> list[str]:
    return ["", "## To mind", "", *(f"- {note[0].upper()}{note[1:]}." for note in notes)]


def _upload(files: Mapping[str, Any]) -> list[str]:
    lines = [line for line in str(files["upload.sh"]).splitlines() if line.startswith("curl")]
    return [
        "",
        "## Upload",
        "",
        "```sh",
        "HOST=https://YOUR-HOST sh upload.sh",
        "```",
        "",
        "or",
        "",
        "```sh",
        *lines,
        "```",
    ]


def plugin(engine: str, version: str | None, prepared: Prepared, kind: str, files: Mapping[str, Any]) -> str:
    """Write the README for Elasticsearch, OpenSearch and RankLib.

    Parameters
    ----------
    engine, version
        The engine, and its version if one was asked for.
    prepared : Prepared
        The model.
    kind : str
        The plugin's model type.
    files : mapping
        The other files.

    Returns
    -------
    str
        Markdown.
    """
    titles = {"opensearch": "OpenSearch", "elasticsearch": "Elasticsearch", "ranklib": "RankLib"}
    title = titles[engine] + (f" {version}" if version else "")
    query = {
        "query": {"match": {"title": "…"}},
        "rescore": {
            "window_size": 100,
            "query": {
                "rescore_query": {"sltr": {"params": {}, "model": prepared.name}},
                "query_weight": 0,
                "rescore_query_weight": 1,
            },
        },
        "size": 10,
    }
    notes = [
        "each feature in features.json is the number in the document's field of that name; replace the templates by "
        "your own queries where a feature is computed otherwise. Names and order must stay",
        "feature values are scores of queries, which must not be negative: shift a feature that can be before training",
        "scores of the model may be negative, and come out as they are. In `rescore`, hits outside the window keep "
        "their first score and are sorted among the rescored ones: make window_size at least size, or export with "
        "--shift",
        "a model's name cannot be overwritten: delete the model, or export it under another --name",
        *prepared.notes,
    ]
    if kind == LINEAR:
        notes.insert(0, "the plugin knows no intercept: it is in the mean of one feature's normalizer, in model.json")
    return "\n".join(
        [
            *_head(prepared, title, kind),
            *_files(files, {}),
            *_upload(files),
            "",
            "The plugin must be installed, and its store made once with `PUT _ltr`.",
            "",
            "## Search",
            "",
            "```json",
            compact(query),
            "```",
            *_notes(notes),
            "",
        ]
    )


def solr(version: str | None, prepared: Prepared, kind: str, files: Mapping[str, Any]) -> str:
    """Write the README for Solr; see `plugin`."""
    title = "Solr" + (f" {version}" if version else "")
    notes = [
        "each feature in features.json is the number in the document's field of that name; replace class and params "
        "where a feature is computed otherwise. Names must stay",
        "a normalizer in model.json that scales by a power of 2 makes a threshold exact that Solr cannot reach "
        "otherwise. Leave it where it is",
        "a model's name that is in use is refused: delete the model first, or export it under another --name. Models "
        "take effect after a reload",
        "scores may be negative, and come out as they are",
        *prepared.notes,
    ]
    return "\n".join(
        [
            *_head(prepared, title, kind.rpartition(".")[2]),
            *_files(files, {}),
            *_upload(files),
            "",
            "## Search",
            "",
            "```",
            f"q=…&rq={{!ltr model={prepared.name} reRankDocs=100}}&fl=id,score",
            "```",
            *_notes(notes),
            "",
        ]
    )


def vespa(prepared: Prepared, kind: str, files: Mapping[str, Any]) -> str:
    """Write the README for Vespa; see `plugin`."""
    own = {"model.json": f"the model; copy it to `models/{prepared.name}.json` of the application"}
    copy = [f"cp model.json APPLICATION/models/{prepared.name}.json"] if "model.json" in files else []
    notes = [
        "attributes that are features must be of type float, as the model was written for 32-bit values; a missing "
        "value of such an attribute is NaN",
        "scores may be negative, and come out as they are",
        *prepared.notes,
    ]
    return "\n".join(
        [
            *_head(prepared, "Vespa", kind),
            *_files(files, own),
            "",
            "## Deploy",
            "",
            "Copy the rank profile into the schema, then",
            "",
            "```sh",
            *copy,
            "vespa deploy --wait 300 APPLICATION",
            "# or, with the application zipped:",
            "curl --data-binary @application.zip -H 'Content-Type: application/zip' "
            "http://vespa.example.org:19071/application/v2/tenant/default/prepareandactivate",
            "```",
            *_notes(notes),
            "",
        ]
    )


def onnx(prepared: Prepared, files: Mapping[str, Any]) -> str:
    """Write the README for ONNX; see `plugin`."""
    second = ', "group_offset": offsets' if prepared.offsets else ""
    own = {"features.json": "the columns of the input `features`, in order, and the offsets if there are any"}
    notes = [
        "the input is 32-bit; NaN is a missing value",
        "group_offset is the offset of each item's group, from features.json" if prepared.offsets else "",
        "in Vespa, declare an onnx-model in the schema and rank with `onnx(name).score`",
        *prepared.notes,
    ]
    return "\n".join(
        [
            *_head(prepared, "onnxruntime", "model.onnx"),
            *_files(files, own),
            "",
            "## Use",
            "",
            "```python",
            "import numpy as np, onnxruntime",
            "",
            'session = onnxruntime.InferenceSession("model.onnx")',
            f'scores = session.run(["score"], {{"features": np.asarray(rows, np.float32){second}}})[0]',
            "```",
            *_notes(filter(None, notes)),
            "",
        ]
    )
