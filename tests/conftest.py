"""What every test shares: capped threads, the hypothesis profile, and the data that may not be bundled."""

# ruff: noqa: E402

from __future__ import annotations

import os
import signal

# Before numpy is imported: its BLAS reads these once.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What decides over a change tries the same examples every time; `make test-fresh` looks for new ones.
settings.register_profile(
    "evenrank", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("fresh", parent=settings.get_profile("evenrank"), max_examples=300, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "evenrank"))

SHARED = Path(os.environ.get("EVENRANK_DATA", Path(__file__).parents[2] / "shared" / "data"))


# A shell that starts the tests in the background has them ignore Ctrl-C, which some of them send.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Where a processor is asked for, stop unless numpy and every OpenBLAS (numpy and scipy bring one each) are its."""
    _refuse_features()
    kernel = os.environ.get("OPENBLAS_CORETYPE")
    if not kernel:
        return
    import numpy  # noqa: F401
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    # OpenBLAS gives the first of the names that its oldest kernel serves.
    kernel = {"Prescott": "Katmai"}.get(kernel, kernel)
    threads = min(int(os.environ["OPENBLAS_NUM_THREADS"]), os.cpu_count() or 1)
    taken = [
        (str(pool["architecture"]).lower(), pool["num_threads"])
        for pool in threadpool_info()
        if pool["internal_api"] == "openblas"
    ]
    if not taken or set(taken) != {(kernel.lower(), threads)}:
        pytest.exit(f"OPENBLAS_CORETYPE={kernel} with {threads} threads was asked for; OpenBLAS runs {taken}", 3)


def _refuse_features() -> None:
    """Stop where numpy's loops use what they were told to do without."""
    from numpy._core._multiarray_umath import __cpu_features__

    off = os.environ.get("NPY_DISABLE_CPU_FEATURES", "").split()
    if used := [name for name in off if __cpu_features__[name]]:
        pytest.exit(f"numpy was told to do without {' '.join(used)}, and uses it", 3)


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """A folder of the data whose licence keeps it out of the project, by name; skips where it is absent."""

    def folder(name: str) -> Path:
        if not (SHARED / name).is_dir():
            pytest.skip(f"{SHARED / name} is absent; set EVENRANK_DATA to the folder that has {name}")
        return SHARED / name

    return folder
