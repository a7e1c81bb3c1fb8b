"""Real data that comes with the package, ready to rank, and loaders for data that may not come with it."""

from evenrank.datasets.german import german_credit, german_credit_folds
from evenrank.datasets.msmarco import msmarco, msmarco_groupings, msmarco_titles
from evenrank.datasets.trec_fair import trec_fair_2019, trec_fair_2019_groupings, trec_fair_2019_titles

__all__ = [
    "german_credit",
    "german_credit_folds",
    "msmarco",
    "msmarco_groupings",
    "msmarco_titles",
    "trec_fair_2019",
    "trec_fair_2019_groupings",
    "trec_fair_2019_titles",
]
