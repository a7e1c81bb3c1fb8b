"""The licences of code by others that pages carry."""

from __future__ import annotations

from evenrank.page.skeleton import text_of

NOTICES = "THIRD_PARTY_NOTICES.txt"


def with_notices(script: str) -> str:
    """The charts' library with the notices that its licences ask for, as a comment before it."""
    return f"/*!\n{text_of(NOTICES)}*/\n{script}"
