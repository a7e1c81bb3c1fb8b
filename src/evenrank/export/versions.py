"""Versions of engines, and what they do with a missing value."""

from __future__ import annotations

import re

from evenrank.errors import ConfigError

NEWEST = (9999,)
# Commits after the last release that were looked at.
COMMITS = {"af2d983f": NEWEST, "1dfed572": NEWEST, "62863bc3": NEWEST, "632c4270": NEWEST, "1f79d33d": NEWEST}
FOLLOWED, NO, ZERO = "followed", "no", "zero"
MISSING_AS_ZERO = (3, 8, 0, 1)  # the first OpenSearch that knows missing_as_zero: after 3.8.0.0


def parse(version: str | None) -> tuple[int, ...]:
    """Read a version such as "3.7" or "v1.5.9-es8.14.1", of which the engine's own part counts; None is the newest.

    >>> parse("3.7.0.0"), parse("v1.5.9-es8.14.1") == parse("8.14.1"), parse(None) > parse("3.8")
    ((3, 7, 0, 0), True, True)
    """
    if version is None:
        return NEWEST
    text = str(version).strip().lower()
    if text in COMMITS:
        return COMMITS[text]
    text = text.partition("-es")[2] or text.removeprefix("v")
    if re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,5}){0,4}", text) is None:
        raise ConfigError(f"the engine's version must be numbers such as 3.7 or 2.19.0; got {version!r}.")
    return tuple(map(int, text.split(".")))


def missing_rule(engine: str, version: str | None) -> str:
    """Say where the trees of a plugin send a missing value.

    Parameters
    ----------
    engine : str
        "opensearch" or "elasticsearch".
    version : str, optional
        Its version.

    Returns
    -------
    str
        `FOLLOWED` (where ``missing`` points), `NO` (to the no child, always) or `ZERO` (where 0 goes).
    """
    number = parse(version)
    if engine == "elasticsearch" or number >= (3, 8):
        return FOLLOWED
    return NO if number >= (3, 2) else ZERO
