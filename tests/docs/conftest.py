"""The files that the documentation's commands read."""

from __future__ import annotations

from doc_files import example_files, folder

__all__ = ["example_files", "folder"]
