"""Audits over time: sums per window that can be merged and saved, and tests of change that allow for many looks."""
