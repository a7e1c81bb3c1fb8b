"""The exact path of many groups holds little: never a table of pairs of groups by pairs of groups.

As in tests/audits/test_memory.py the path runs in a process of its own, whose address space may grow by `ROOM` once the
rows are there. 150 groups are 11,175 pairs, whose square is 1 GB.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ROOM = 256  # MB
PATH = """
import resource, sys
import numpy as np
import evenrank as er

groups, room = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
n = 20 * groups
group = rng.permutation(np.arange(n) % groups)
few = er.RankingData.from_arrays(rng.normal(size=(40, 3)), np.arange(40) % 2, np.arange(40) % 3, np.arange(40) // 4)
er.fairness_path(few, "eod", [0.5], relative=True)  # loads what it needs
X = rng.normal(size=(n, 5)) + rng.normal(size=(groups, 5))[group]
data = er.RankingData.from_arrays(X, rng.permutation(np.arange(n) % 2), group, np.arange(n) // 10)
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + room * 2**20,) * 2)
path = er.fairness_path(data, "dp", [0.5, 1.0], relative=True)
assert path.alpha_star[0] > 0
assert er.violation(path.scores(data)[:, 1], data, "dp") < 1e-10
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space is limited and read as Linux does")
def test_the_path_of_many_groups_stays_small() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PATH, "150", str(ROOM)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a thread has buffers of its own
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
