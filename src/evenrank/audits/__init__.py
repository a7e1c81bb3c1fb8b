"""An audit of given rankings: the sums it needs, the numbers, the sentences and how they are laid out."""

from evenrank.audits.pair import Gap, Pair
from evenrank.audits.summary import Summary
from evenrank.audits.verdicts import Category, Verdict

__all__ = ["Category", "Gap", "Pair", "Summary", "Verdict"]
