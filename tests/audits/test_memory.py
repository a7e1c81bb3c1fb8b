"""What an audit holds grows with its rows, not with queries × groups, pairs of groups or cut-offs.

Each audit runs in a process of its own whose address space may grow by `ROOM` once the rows are there; tables of
queries × cells × cut-offs, or of queries × pairs, do not fit in it.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ROOM = 320  # MB
AUDIT = """
import resource, sys
import numpy as np
import scipy.sparse, scipy.special
import evenrank as er

rows, groups, length, cuts, room = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
group = rng.integers(0, groups, rows)
scores = np.round(rng.standard_normal(rows) + group / groups, 1)
data = er.RankingData.from_arrays(
    np.zeros((rows, 0)), rng.integers(0, 2, rows), group, np.arange(rows) // length, item_ids=np.arange(rows)
)
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + room * 2**20,) * 2)
found = er.audit(scores, data, range(1, cuts + 1), replicates=100)
assert len(found.findings) >= 8 * cuts
"""

# What works block by block: each table would be of 1 GB or more if it were whole.
PARTS = {
    "residuals of many hypotheses": """
from evenrank.inference.family import Residuals, correlation
clusters = np.arange(0, 10**6, 10)
work = lambda: correlation([Residuals(clusters, np.full(len(clusters), 0.01))] * 200)
""",
    "rankings of many groups compared": """
rng = np.random.default_rng(0)
queries, group = np.repeat(np.arange(3 * 10**4), 2), rng.integers(0, 60, 6 * 10**4)
data = er.RankingData.from_arrays(np.zeros((6 * 10**4, 0)), group % 2, group, queries)
scores = rng.normal(size=(2, 6 * 10**4))
work = lambda: er.compare(*scores, data, ["dp@1"])
""",
    "many measures of many queries": """
queries = np.repeat(np.arange(10**5), 2)
data = er.RankingData.from_arrays(np.zeros((2 * 10**5, 0)), np.arange(2 * 10**5) % 3 % 2, queries % 2, queries)
scores = np.arange(2.0 * 10**5) % 7
work = lambda: er.intervals(scores, data, [f"precision@{k}" for k in range(1, 451)], method="analytic")
""",
    "resamples of many queries": """
group, queries = np.tile([0, 1], 10**5), np.repeat(np.arange(10**5), 2)
data = er.RankingData.from_arrays(np.zeros((2 * 10**5, 0)), group, group, queries)
scores = np.arange(2.0 * 10**5) % 7
work = lambda: er.intervals(scores, data, ["dp@1"], method="bootstrap", replicates=2000)
""",
}
LIMITED = """
import resource, sys
import numpy as np
import scipy.sparse, scipy.special
import evenrank as er
{}
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + int(sys.argv[1]) * 2**20,) * 2)
work()
"""

linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="address space is limited and read as Linux does"
)


def small(program: str, *arguments: int) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments), str(ROOM)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a thread has buffers of its own
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]


@linux
@pytest.mark.parametrize(
    ("rows", "groups", "length", "cuts"),
    [(100_000, 40, 10, 1), (100_000, 6, 1, 4), (40_000, 2, 4, 300)],
    ids=["40 groups", "lists of one item", "300 cut-offs"],
)
def test_an_audit_stays_small(rows: int, groups: int, length: int, cuts: int) -> None:
    small(AUDIT, rows, groups, length, cuts)


@linux
@pytest.mark.parametrize("part", PARTS)
def test_what_works_in_blocks_stays_small(part: str) -> None:
    small(LIMITED.format(PARTS[part]))
