"""`FairController.rank`: microseconds per list as lists, groups and notions grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import common
import evenrank as er

BATCH = 20  # lists between two looks at the clock: short, so that some batch is not interrupted


def serve(length: int, groups: int, lists: int = 200, **options: Any) -> list[Callable[[], None]]:
    """Functions that serve the next batch of lists each."""
    rng = np.random.default_rng(0)
    controller = er.FairController(**options)
    scores = rng.normal(size=(lists, length))
    labels = [[f"group {code}" for code in line] for line in rng.integers(0, groups, (lists, length)).tolist()]
    relevance = rng.random((lists, length)) if options["notion"] in ("eop", "eod") else [None] * lists

    def batch(start: int) -> None:
        for number in range(start, start + BATCH):
            controller.rank(scores[number], labels[number], relevance[number])

    return [lambda start=start: batch(start) for start in range(0, lists, BATCH)]


def main() -> None:
    options = common.parser(__doc__).parse_args()
    common.start("The controller", [], threads=options.threads)
    repeats = 5 if options.quick else 50
    rows = []
    for length, groups, notion, value in (
        (10, 2, "dp", "topk"),
        (50, 2, "dp", "topk"),
        (50, 5, "dp", "topk"),
        (50, 2, "dp", "exposure"),
        (50, 2, "eop", "topk"),
        (50, 2, "eod", "topk"),
        (50, 2, "merit", "exposure"),
        (1000, 2, "dp", "topk"),
    ):
        batches = serve(length, groups, notion=notion, value=value)
        took = min(common.best(batch, repeats) for batch in batches[:3]) / BATCH
        rows.append([f"{length} items, {groups} groups, {notion}, {value}", f"{1e6 * took:.1f}"])
    common.table(["list", "µs"], rows)


if __name__ == "__main__":
    main()
