"""How far the gap on new queries can be from the one measured.

Two kinds, never to be confused:

- **The paper's claims** (`uniform`, `fixed`): its theorem and lemmas, as the appendix derives them. They are for
  decisions taken item by item on lists of one length, not for top-k selections, and a step of the lemmas' proof fails
  for dependent lists (docs/bounds.md has the counterexample).
- **Certified** (`certified`; `planned` before there are data): needs only that queries are independent and that no list
  is longer than stated.

Both limit the gap of the population of queries; `certified` limits that of the next N queries too, which is another
statement. Each bound holds with probability 1 − δ by itself. A bound of 1 or more says nothing and is called vacuous.
"""

from evenrank.bounds.certificate import GRID, METHODS, Certificate, cell_limits, certified, certify, longest_list
from evenrank.bounds.claims import (
    KINDS,
    Bound,
    Share,
    certified_share,
    fixed,
    min_share,
    planned,
    queries_needed,
    uniform,
    vc_dimension,
)

__all__ = [
    "GRID",
    "KINDS",
    "METHODS",
    "Bound",
    "Certificate",
    "Share",
    "cell_limits",
    "certified",
    "certified_share",
    "certify",
    "fixed",
    "longest_list",
    "min_share",
    "planned",
    "queries_needed",
    "uniform",
    "vc_dimension",
]
