"""The exceptions users see: each message names the subject, the rule, the value found and the remedy."""

from __future__ import annotations


class EvenrankError(Exception):
    """Base of every error raised on purpose; the command line prints it in one line and exits 2."""


class DataError(EvenrankError, ValueError):
    """The data breaks a rule (a NaN feature, a negative relevance, a missing column …)."""


class ConfigError(EvenrankError, ValueError):
    """An option has a value that cannot be used (an unknown notion, k = 0 …)."""


class MissingExtraError(EvenrankError, ImportError):
    """An optional dependency is needed and absent; the message has the install command."""


class DataWarning(UserWarning):
    """Data was accepted, but treated in a way the user should know about."""
