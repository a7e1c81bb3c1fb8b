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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space is limited and read as Linux does")
@pytest.mark.parametrize(
    ("rows", "groups", "length", "cuts"),
    [(100_000, 40, 10, 1), (100_000, 6, 1, 4), (40_000, 2, 4, 300)],
    ids=["40 groups", "lists of one item", "300 cut-offs"],
)
def test_an_audit_stays_small(rows: int, groups: int, length: int, cuts: int) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", AUDIT, *map(str, (rows, groups, length, cuts, ROOM))],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a thread has buffers of its own
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
