"""`JsonScanner`: reads a JSON file of any size value by value, in the memory of a few chunks."""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from evenrank.errors import DataError
from evenrank.io.files import BINARY, OwnsFile, unreadable

CHUNK = 1 << 20
LARGEST = 1 << 28  # characters of one value; far more than any record, so that damage is not read into memory
_SPACE = " \t\n\r"
_NEAR_END = 16  # an escape, a number or a literal cut by the end of a chunk looks wrong this near to it
_CUT_NUMBER = 2  # characters of a number that its decoder leaves unread where the number is cut: "e+"
_decode: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().raw_decode


def open_bytes(path: Path) -> IO[bytes]:
    """Open the file; if it is gzip, whatever its name, it is decompressed while it is read."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
        if what := BINARY.get(start):
            raise DataError(f"{path}: is {what}; JSON or Parquet is needed. Unpack or export it.")
        return gzip.open(path, "rb") if start[:2] == b"\x1f\x8b" else path.open("rb")  # type: ignore[return-value]
    except OSError as error:
        raise unreadable(path, error) from None


class JsonScanner(OwnsFile):
    """Goes through a JSON text: look with `peek`, step over punctuation with `take`, read whole values with `value`.

    Only the value that is read is in memory, so a file of one huge object can be read entry by entry.

    Parameters
    ----------
    path : Path
        The file.
    chunk : int
        Bytes read at a time.
    """

    def __init__(self, path: Path, *, chunk: int = CHUNK) -> None:
        self.path = path
        self._chunk = chunk
        self._file = open_bytes(path)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("strict")
        self._text, self._at, self._ended = "", 0, False
        self._bytes_read = self._characters_before = 0
        self._lines, self._lines_to = 0, 0  # line ends before that place of the buffer

    # ------------------------------------------------------------------ reading

    def peek(self) -> str:
        """Look at the next character that is not white space; "" at the end."""
        while True:
            text, at = self._text, self._at
            while at < len(text) and text[at] in _SPACE:
                at += 1
            self._at = at
            if at < len(text):
                return text[at]
            if not self._fill():
                return ""

    def ahead(self, number: int) -> str:
        """Look at the next ``number`` characters, or those that are left."""
        while len(self._text) - self._at < number and self._fill():
            pass
        return self._text[self._at : self._at + number]

    def take(self, expected: str) -> None:
        """Step over this character; a DataError says what is there instead."""
        following = self.peek()
        if following != expected:
            raise self.cut_short() if not following else self.wrong(f"{expected!r} is needed; got {following!r}")
        self._at += 1

    def taken(self, expected: str) -> bool:
        """Step over this character if it is next; tells whether it was."""
        if self.peek() != expected:
            return False
        self._at += 1
        return True

    def value(self) -> Any:
        """Read the next value, decoded."""
        return self._next()[0]

    def source(self) -> str:
        """Read the next value as it is written, checked to be JSON."""
        start_length, end = self._next()[1:]
        return self._text[end - start_length : end]

    def key(self) -> str:
        """Read the next key of an object and step over its colon."""
        if self.peek() not in ('"', ""):
            raise self.wrong(f"a key in double quotes is needed; got {self.peek()!r}")
        name = self.value()
        self.take(":")
        return str(name)

    def keys(self) -> Iterator[str]:
        """Go through the keys of the next object; the loop's body must read the value of each."""
        self.take("{")
        if self.taken("}"):
            return
        while True:
            yield self.key()
            if not self.taken(","):
                self.take("}")
                return

    # ------------------------------------------------------------------ places and errors

    @property
    def line(self) -> int:
        """The number, from 1, of the line that comes next. It is asked for often, so no part is counted twice."""
        self._lines += self._text.count("\n", self._lines_to, self._at)
        self._lines_to = self._at
        return self._lines + 1

    def wrong(self, reason: str, at: int | None = None) -> DataError:
        """Make the error for text that is not JSON, here or at a place of the buffer."""
        at = self._at if at is None else at
        line = self.line + self._text.count("\n", self._at, at)
        return DataError(
            f"{self.path}:{line}: is not valid JSON at character {self._characters_before + at + 1} ({reason}). "
            "Write or download the file again."
        )

    def cut_short(self) -> DataError:
        """Make the error for a file that ends within a value."""
        end = self._characters_before + len(self._text)
        return DataError(f"{self.path}: the JSON is cut short after {end} characters. Copy or download it again.")

    # ------------------------------------------------------------------ the buffer

    def _next(self) -> tuple[Any, int, int]:
        """The next value, the characters it is written in, and where it ends in the buffer."""
        if not self.peek():
            raise self.cut_short()
        while True:
            text = self._text
            try:
                value, end = _decode(text, self._at)
            except RecursionError:
                raise self.wrong("values are nested too deeply") from None
            except ValueError as error:
                at = getattr(error, "pos", self._at)
                reason = getattr(error, "msg", str(error))
                unfinished = at >= len(text) - _NEAR_END or reason.startswith("Unterminated string")
                if unfinished and len(text) - self._at > LARGEST:
                    raise self.wrong(f"a value is longer than {LARGEST} characters") from None
                if not unfinished or not self._fill():
                    truncated = unfinished and (at >= len(text) or reason.startswith("Unterminated"))
                    raise self.cut_short() if truncated else self.wrong(reason[0].lower() + reason[1:], at) from None
                continue
            # A number at the end of the buffer may go on in the next chunk: "1", "1." and "1e+" all read as 1.
            if not self._ended and len(text) - end <= _CUT_NUMBER and text[end - 1] not in '"}]':
                self._fill()
                continue
            length = end - self._at
            self._at = end
            return value, length, end

    def _fill(self) -> bool:
        """Read on; False at the end. The buffer at least doubles while one value fills it, so that retries are few."""
        if self._ended:
            return False
        wanted = max(self._chunk, len(self._text) - self._at, 2)  # 2: a byte order mark
        try:
            data = self._file.read(wanted)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise DataError(f"{self.path}: the gzip file is damaged or cut short. Copy or download it again.") from None
        except OSError as error:
            raise unreadable(self.path, error) from None
        self._ended = not data
        pending = len(self._decoder.getstate()[0])
        if not self._bytes_read and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise DataError(f"{self.path}: the file is UTF-16; UTF-8 is needed. Save it again as UTF-8.")
        try:
            more = self._decoder.decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            place = self._bytes_read - pending + error.start + 1
            if self._ended:
                raise DataError(
                    f"{self.path}: the text is cut short after {place - 1} bytes. Copy or download it again."
                ) from None
            raise DataError(
                f"{self.path}: text must be UTF-8; byte {place} is 0x{error.object[error.start]:02x}. "
                "Save the file again as UTF-8 (it may be Latin-1 or Windows-1252)."
            ) from None
        self._bytes_read += len(data)
        self._lines, self._lines_to = self.line - 1, 0
        self._characters_before += self._at
        self._text = self._text[self._at :] + more
        self._at = 0
        return not self._ended
