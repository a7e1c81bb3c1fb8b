"""Fairness for torch: a loss to add to any other, ready base losses, batches of whole queries, and a neural ranker."""

from __future__ import annotations

from evenrank.torch.batches import QueryBatchSampler, RankingDataset, collate
from evenrank.torch.fairness import FairnessLoss
from evenrank.torch.losses import ListNetLoss, LogisticLoss, RankNetLoss, SquaredLoss
from evenrank.torch.ranker import FairNeuralRanker, train_scores

__all__ = [
    "FairNeuralRanker",
    "FairnessLoss",
    "ListNetLoss",
    "LogisticLoss",
    "QueryBatchSampler",
    "RankNetLoss",
    "RankingDataset",
    "SquaredLoss",
    "collate",
    "train_scores",
]
