"""`GroupOffset`: gaps on 40,000 new rows if the training gap is taken as it is, and if only what is beyond chance."""

from __future__ import annotations

import warnings

import numpy as np

import common
import evenrank as er

NOTIONS = ("dp", "eop", "eod")
# Items per list, shares of the groups, lists to train on, shift of a feature by group, features.
DESIGNS = {
    "lists of 5": (5, [0.5, 0.5], 160, 0.6, 4),
    "no gap": (5, [0.5, 0.5], 160, 0.0, 4),
    "group of 2 %": (50, [0.98, 0.02], 64, 0.6, 4),
    "six groups": (30, [0.3, 0.25, 0.2, 0.15, 0.06, 0.04], 104, 0.6, 4),
    "30 lists, 40 features": (100, [0.55, 0.45], 30, 0.2, 40),
    "clear gap": (10, [0.6, 0.4], 400, 1.0, 6),
}


def draw(rng: np.random.Generator, length: int, shares: list[float], lists: int, shift: float, width: int):
    n = lists * length
    group = rng.choice(len(shares), n, p=shares)
    features = rng.normal(size=(n, width))
    features[:, 0] += shift * group / (len(shares) - 1)
    relevance = np.clip(np.floor(features[:, :3] @ [0.5, 0.6, 0.3] + rng.normal(size=n) + 0.2), 0, 4)
    return er.RankingData.from_arrays(features, relevance, group, np.repeat(np.arange(lists), length))


def main() -> None:
    options = common.parser(__doc__).parse_args()
    common.start("Offsets beyond chance", [], threads=options.threads)
    warnings.simplefilter("ignore", er.DataWarning)
    draws, rows = 2 if options.quick else 10, []
    for name, (length, shares, lists, shift, width) in DESIGNS.items():
        rng = np.random.default_rng(0)
        new = draw(rng, length, shares, 40_000 // length, shift, width)
        gaps = []
        for _ in range(draws):
            train = draw(rng, length, shares, lists, shift, width)
            path = er.fairness_path(train, "dp", [0.0], ridge=1e-3)
            learned, plain = path.scores(train)[:, 0], path.scores(new)[:, 0]
            for notion in NOTIONS:
                offsets = [er.GroupOffset(notion, 3, shrink=shrink).fit(learned, train) for shrink in (False, True)]
                scores = [plain, *(offset.rerank(plain, new) for offset in offsets)]
                gaps.append([er.measure(each, new, [f"{notion}@3"])[f"{notion}@3"] for each in scores])
        rows.append([name, *(f"{gap:.4f}" for gap in np.mean(gaps, axis=0))])
    common.table(["gap on new rows", "base", "as it is", "beyond chance"], rows)


if __name__ == "__main__":
    main()
