"""The schemas of what --json prints: one page with every key, and the schemas themselves to download."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parents[1] / "reference" / "schemas"
HEAD = """# JSON of the commands

What `--json` prints, as [JSON Schema](https://json-schema.org) (draft 2020-12). `tools/json_schemas.py` makes these
files by running the commands on bundled data in many ways and noting which keys always come and what they hold; the
tests hold other runs against them.
New keys may join in later versions, so readers should let unknown keys pass ([what stays the same](/stability.md)).
Every number may be `null`: what is not defined, or infinite, is.
"""


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value, ensure_ascii=False)}`" for value in schema["enum"])
    kinds = schema.get("type", "any")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    kinds = [kind for kind in kinds if kind != "null" or "number" not in kinds]  # every number may be null
    items = schema.get("items", {}).get("type")
    inner = " or ".join(items) if isinstance(items, list) else items
    return " or ".join(f"array of {inner}" if kind == "array" and inner else str(kind) for kind in kinds)


def _rows(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, str, str]]:
    for name, inner in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        needed = "" if name in schema.get("required", []) else " (not always)"
        yield here, _type(inner) + needed, inner.get("description", "")
        yield from _rows(inner, here)
        if "items" in inner:
            yield from _rows(inner["items"], here + "[]")
        if isinstance(inner.get("additionalProperties"), dict):
            yield from _rows(inner["additionalProperties"], here + ".*")


def pages() -> dict[str, str]:
    text = HEAD
    for path in sorted(SCHEMAS.glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        whole = schema.get("items", schema)
        text += f"\n## {schema['title']}\n\n{schema['description']} [The schema](/reference/schemas/{path.name}).\n\n"
        if "items" in schema:
            text += "An array; each entry has:\n\n"
        text += "| key | type | what |\n|---|---|---|\n"
        text += "".join(f"| `{key}` | {kind} | {words} |\n" for key, kind, words in _rows(whole))
    return {"schemas.md": text}
