"""What the fairness term evens out: one value per row, computed from the scores, with its exact derivative.

The paper evens out the scores themselves. What is measured is who gets into the top k, so other values are closer to
that: the score less its query's mean, the probability, a soft indicator of the top k, the soft discount of the rank.
`FairnessTerm` joins one of them with the contrasts of a notion: Γ of the value as a function of the scores, for torch,
boosting and the linear solvers. `lists` and `bound` have the formulas; `compiled` has those of whole lists again, for
numba, and `compiled_batch` a batch of `FairnessLoss`.
"""

from evenrank.targets.bound import BoundTarget
from evenrank.targets.registry import TARGETS, Target, bind_target
from evenrank.targets.scale import STRONGEST, LossScale, made_up
from evenrank.targets.term import FairnessTerm

__all__ = ["STRONGEST", "TARGETS", "BoundTarget", "FairnessTerm", "LossScale", "Target", "bind_target", "made_up"]
