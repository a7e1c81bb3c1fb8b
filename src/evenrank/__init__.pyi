# The public names with their types, for editors and type checkers; __init__.py loads each when it is first used.
# tests/test_public_names.py holds the two together.

from typing import Final

from evenrank import audits as audits
from evenrank import bounds as bounds
from evenrank import datasets as datasets
from evenrank import io as io
from evenrank import lightgbm as lightgbm
from evenrank import targets as targets
from evenrank import torch as torch
from evenrank import xgboost as xgboost
from evenrank.audits.parts import Finding as Finding
from evenrank.audits.parts import Rate as Rate
from evenrank.comparisons import Comparison as Comparison
from evenrank.comparisons import PairComparison as PairComparison
from evenrank.comparisons import compare as compare
from evenrank.contrasts import Contrast as Contrast
from evenrank.data import RankingData as RankingData
from evenrank.errors import ConfigError as ConfigError
from evenrank.errors import DataError as DataError
from evenrank.errors import DataWarning as DataWarning
from evenrank.errors import EvenrankError as EvenrankError
from evenrank.errors import MissingExtraError as MissingExtraError
from evenrank.experiment.about import About as About
from evenrank.experiment.choice import Choice as Choice
from evenrank.experiment.choice import HeldOut as HeldOut
from evenrank.experiment.choice import Outcome as Outcome
from evenrank.experiment.curves import Curve as Curve
from evenrank.experiment.examples import Titles as Titles
from evenrank.experiment.select import select as select
from evenrank.experiment.trials import Trial as Trial
from evenrank.intervals import Interval as Interval
from evenrank.intervals import interval as interval
from evenrank.intervals import intervals as intervals
from evenrank.io import read as read
from evenrank.leaderboard.plan import BenchData as BenchData
from evenrank.leaderboard.result import Standing as Standing
from evenrank.linear.deltr import DELTR as DELTR
from evenrank.linear.deltr_path import deltr_path as deltr_path
from evenrank.linear.path import FairnessPath as FairnessPath
from evenrank.linear.path import fairness_path as fairness_path
from evenrank.linear.ranker import FairLinearRanker as FairLinearRanker
from evenrank.linear.strengths import strength_grid as strength_grid
from evenrank.measures import MeasureAt as MeasureAt
from evenrank.measures import measure as measure
from evenrank.measures import selection_rates as selection_rates
from evenrank.methods.load import load as load
from evenrank.methods.method import Method as Method
from evenrank.methods.registry import METHODS as METHODS
from evenrank.moments import Moments as Moments
from evenrank.notions import Notion as Notion
from evenrank.notions import violation as violation
from evenrank.page.audit import Audit as Audit
from evenrank.page.audit import audit as audit
from evenrank.page.audit import audit_page as audit_page
from evenrank.page.bench import Bench as Bench
from evenrank.page.bench import bench as bench
from evenrank.page.report import Sweep as Sweep
from evenrank.page.report import report_page as report_page
from evenrank.page.report import sweep as sweep
from evenrank.planning import Noticeable as Noticeable
from evenrank.planning import noticeable as noticeable
from evenrank.rankers.base import NotFittedError as NotFittedError
from evenrank.rankers.selection import QueryKFold as QueryKFold
from evenrank.rankers.selection import ranking_scorer as ranking_scorer
from evenrank.rankers.spec import FairnessSpec as FairnessSpec
from evenrank.ranking import Ranking as Ranking
from evenrank.rerankers.controller import FairController as FairController
from evenrank.rerankers.fastar import FAStar as FAStar
from evenrank.rerankers.offset import GroupOffset as GroupOffset
from evenrank.rerankers.opportunity import EqualOpportunityTransform as EqualOpportunityTransform
from evenrank.rerankers.quantiles import QuantileBarycentre as QuantileBarycentre
from evenrank.rerankers.quantiles import QuantileMatch as QuantileMatch

__version__: Final[str]
__all__: Final[list[str]]
