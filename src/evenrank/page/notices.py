"""The licences of code by others that pages carry."""

from __future__ import annotations

from evenrank.page.skeleton import text_of

NOTICES = "THIRD_PARTY_NOTICES.txt"


def with_notices(script: str) -> str:
    """Put the notices that licences ask for before the charts' library, as a comment.

    Parameters
    ----------
    script : str
        The library's code.

    Returns
    -------
    str
        The comment and the code.
    """
    return f"/*!\n{text_of(NOTICES)}*/\n{script}"
