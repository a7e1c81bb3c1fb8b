"""Re-rankers: they reorder the lists of a trained ranker."""
