"""Rows from files: `read` picks the format by the file's suffix, `write_whole` never leaves half a file."""

from evenrank.io.files import write_whole
from evenrank.io.registry import read

__all__ = ["read", "write_whole"]
