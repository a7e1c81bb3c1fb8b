"""Sweeps that several pages' tests share."""

from __future__ import annotations

import pytest

from evenrank.experiment.trials import Sweep
from pages import small_sweep, wide_sweep


@pytest.fixture(scope="session")
def sweep() -> Sweep:
    return small_sweep()


@pytest.fixture(scope="session")
def wide() -> Sweep:
    return wide_sweep()
