"""What a result was made from and with: hashes of the inputs, version, command, seed and date."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import evenrank as er
from evenrank.experiment.about import made_now

CHUNK = 1 << 20


def provenance(files: Sequence[Path], seed: int = 0) -> dict[str, Any]:
    """Note how a result was made.

    Parameters
    ----------
    files : sequence of Path
        The files that were read.
    seed : int
        The seed of random draws.

    Returns
    -------
    dict
        "files" (name and SHA-256 each), "evenrank", "command", "seed" and "date".
    """
    made = made_now(())["made"]
    return {
        "files": [{"name": path.name, "sha256": _sha256(path)} for path in files],
        "evenrank": er.__version__,
        "command": made["command"],
        "seed": seed,
        "date": made["began"],
    }


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
