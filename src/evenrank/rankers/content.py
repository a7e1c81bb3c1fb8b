"""The content of a model file: strict JSON, a version, and a digest of everything in it."""

from __future__ import annotations

import json
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from evenrank.errors import ConfigError, DataError
from evenrank.io.files import write_whole

FORMAT, VERSION = "evenrank-model", 2
READ = (1, VERSION)  # version 1 had no digest
DIGEST = "digest"
LONGEST_WHOLE = 25  # digits; the longest that can be meant is a 64-bit label


class Unclear(ValueError):
    """JSON that readers may take in different ways."""


def parse_json(text: str) -> Any:
    """Parse JSON, and refuse what readers take in different ways: doubled keys, endless numbers, halves of characters.

    Parameters
    ----------
    text : str
        The JSON.

    Returns
    -------
    Any
        Its content.

    Raises
    ------
    ValueError
        If it is no JSON, or an `Unclear` for those.
    RecursionError
        If it is nested too deeply.
    """
    content = json.loads(text, object_pairs_hook=_once, parse_int=_whole)
    try:
        canonical(content)
    except UnicodeEncodeError:
        raise Unclear("a text has half a character") from None
    return content


def canonical(content: Any) -> bytes:
    """Spell a content in the one way that is equal for files that differ in spaces and escapes only."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def digest(content: dict[str, Any]) -> str:
    """Give the SHA-256 of everything in a model file but the digest itself, as hexadecimal digits."""
    return sha256(canonical({key: value for key, value in content.items() if key != DIGEST})).hexdigest()


def write_content(content: dict[str, Any], path: str | PathLike[str]) -> None:
    """Write a model file of plain JSON values, with their digest."""
    try:
        text = json.dumps(content | {DIGEST: digest(content)}, indent=1, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise ConfigError("the model has a number that is not finite, and no model file. Train it again.") from None
    write_whole(path, text + "\n")


def read_content(path: str | PathLike[str]) -> dict[str, Any]:
    """Read the content of a model file of any version, which must be as it was written.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    dict
        Its content.

    Raises
    ------
    DataError
        If the file is anything else.
    """
    name = Path(path).name
    try:
        content = parse_json(Path(path).read_text(encoding="utf-8"))
        fitting = digest(content) if isinstance(content, dict) else None
    except OSError as error:
        raise DataError(f"cannot read the model file {path}: {error.strerror or error}.") from None
    except (ValueError, RecursionError) as error:
        place = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        if isinstance(error, Unclear):
            raise DataError(f"{name} is not an evenrank model: {error}. Was it edited?") from None
        raise DataError(f"{name} is not an evenrank model: it is not JSON{place}. Was it cut short?") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(f'{name} is not an evenrank model: it has no "format": "{FORMAT}".')
    version = content.get("version")
    if isinstance(version, bool) or version not in READ:
        fact = f"{name} has model version {short(version)}; this evenrank reads versions 1 and {VERSION}."
        raise DataError(f"{fact} Upgrade evenrank.")
    if (version > 1 or DIGEST in content) and content.get(DIGEST) != fitting:
        raise DataError(f"{name} does not match its digest: it was damaged or edited. Save the model again.")
    return content


def short(value: Any) -> str:
    """Quote a value in a message of one line."""
    try:
        text = repr(value)
    except RecursionError:
        text = "…"
    return text if len(text) <= 40 else text[:39] + "…"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise Unclear("a key occurs twice")
    return content


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_WHOLE:
        raise Unclear(f"a whole number has {len(digits)} digits")
    return int(digits)
