"""What an engine would say no to."""

from __future__ import annotations

from evenrank.errors import DataError


class Refused(DataError):
    """An engine refuses the definition, when it is uploaded or when it scores; the message says why."""


def accept(holds: object, reason: str) -> None:
    """Raise `Refused` with the reason unless it holds."""
    if not holds:
        raise Refused(f"the engine refuses the definition: {reason}.")
