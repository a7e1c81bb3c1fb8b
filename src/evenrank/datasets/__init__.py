"""Real data that comes with the package, ready to rank."""

from evenrank.datasets.german import german_credit, german_credit_folds

__all__ = ["german_credit", "german_credit_folds"]
