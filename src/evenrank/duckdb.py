"""Audits and measures of Parquet files larger than memory, with DuckDB."""

from __future__ import annotations
