"""The exceptions users see: each message names the subject, the rule, the value found and the remedy."""

from __future__ import annotations

JOINERS = "\u200c\u200d"  # invisible, but Persian words and many emoji are spelled with them


def one_line(text: str) -> str:
    r"""Return the text on one line, with nothing in it that a terminal obeys: such characters are written out.

    Names of files, columns, queries and groups are other people's text, and messages quote them.

    >>> one_line("a\x1b[31m\nb")
    'a\\x1b[31m b'
    """
    if text.isprintable():
        return text
    return "".join(
        mark
        if mark.isprintable() or mark in JOINERS
        else " "
        if mark.isspace()
        else mark.encode("unicode_escape").decode()
        for mark in text
    )


def shortened(text: str, most: int = 300) -> str:
    """Cut what a message quotes of a file or a state, which may hold anything, to what a line can show.

    >>> shortened("got [[[[[[[[[[[[", 10)
    'got [[[[[…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


class EvenrankError(Exception):
    """Base of every error raised on purpose; the command line prints it in one line and exits 2."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(one_line(part) if isinstance(part, str) else part for part in args))


class DataError(EvenrankError, ValueError):
    """The data breaks a rule (a NaN feature, a negative relevance, a missing column …)."""


class ConfigError(EvenrankError, ValueError):
    """An option has a value that cannot be used (an unknown notion, k = 0 …)."""


class MissingExtraError(EvenrankError, ImportError):
    """An optional dependency is needed and absent; the message has the install command."""


class DataWarning(UserWarning):
    """Data was accepted, but treated in a way the user should know about."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(one_line(part) if isinstance(part, str) else part for part in args))
