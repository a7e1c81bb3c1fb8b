"""The statistics of an audit: within lists and pooled, per pair of groups, and over a family of them.

Everything is computed from counts and sums per list (`Lists`) and, where items recur, per item (`ItemSums`).
"""

from evenrank.inference.clusters import Clustering
from evenrank.inference.family import adjusted
from evenrank.inference.fisher import fisher, standard_deviations
from evenrank.inference.lists import ItemSums, Lists, Residuals
from evenrank.inference.pooled import Pooled, pooled
from evenrank.inference.rates import PairScore, Rate
from evenrank.inference.ratio_rule import RatioRule, four_fifths, ratio_rule
from evenrank.inference.within import Within, within

__all__ = [
    "Clustering",
    "ItemSums",
    "Lists",
    "PairScore",
    "Pooled",
    "Rate",
    "RatioRule",
    "Residuals",
    "Within",
    "adjusted",
    "fisher",
    "four_fifths",
    "pooled",
    "ratio_rule",
    "standard_deviations",
    "within",
]
