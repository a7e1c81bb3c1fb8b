"""Whether a plan keeps its word: at the number of queries that `er.noticeable` names, is the gap noticed in 80 %?

A pilot of a fair ranker (or of one with a gap) gives the number of queries for a gap. Fresh data sets of that size and
with that gap are then tested as an audit tests one gap: by Student's t over queries or users, within queries or pooled.
Each pilot has its own number and its own data sets, so that the uncertainty of pilots counts.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np

import common
import evenrank as er

POWER = 0.8


@dataclass(frozen=True)
class Setting:
    """Lists in which items of the second group score higher by a lean."""

    name: str
    pilot: int = 300
    lengths: tuple[int, int] = (6, 12)
    share: float = 0.5
    gap: float = 0.05
    k: int = 3
    per_user: int = 1
    own_lean: float = 0.0
    scope: str = "within"
    lean: float = 0.0
    biased_pilot: bool = False  # the pilot has the gap, too

    def draw(self, queries: int, rng: np.random.Generator) -> tuple[np.ndarray, er.RankingData, np.ndarray]:
        length = rng.integers(self.lengths[0], self.lengths[1] + 1, queries)
        n, query = int(length.sum()), np.repeat(np.arange(queries), length)
        group = rng.random(n) < self.share
        user = query // self.per_user
        own = self.own_lean * rng.normal(size=user.max() + 1)[user]
        scores = rng.normal(size=n) + (self.lean + own) * group
        data = er.RankingData.from_arrays(np.zeros((n, 0)), np.ones(n), group.astype(int), query, group_names=[0, 1])
        return scores, data, user

    def sums(self, queries: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Rows and selections of both groups per list, and the user of each list."""
        scores, data, user = self.draw(queries, rng)
        top = er.Ranking(data.to_stored(scores), data.query_ptr).top(self.k)
        each = [np.add.reduceat((data.group == code) * 1.0, data.query_ptr[:-1]) for code in (0, 1)]
        chosen = [np.add.reduceat((data.group == code) * top, data.query_ptr[:-1]) for code in (0, 1)]
        return (*each, *chosen, user[data.query_ptr[:-1]])


SETTINGS = (
    Setting("two equal groups"),
    Setting("two equal groups, pooled", scope="pooled"),
    Setting("the pilot has the gap", biased_pilot=True),
    Setting("a pilot of 60 queries", pilot=60),
    Setting("a gap of 0.15", gap=0.15),
    Setting("leans vary by query", own_lean=1.0),
    Setting("lists of 3 to 40", lengths=(3, 40)),
    Setting("lists of 50, k = 3", lengths=(50, 50), gap=0.03),
    Setting("lists of 50, k = 3, pooled", lengths=(50, 50), gap=0.03, scope="pooled"),
    Setting("a group of 5 %", pilot=600, share=0.05),
    Setting("a group of 5 %, pooled", pilot=600, share=0.05, scope="pooled"),
    Setting("a group of 2 %, k = 1", pilot=1500, share=0.02, k=1),
    Setting("10 queries per user", pilot=600, per_user=10, own_lean=0.7),
    Setting("10 queries per user, pooled", pilot=600, per_user=10, own_lean=0.7, scope="pooled"),
)


def tested(sums: tuple[np.ndarray, ...], scope: str) -> tuple[float, float]:
    """The gap and its p-value, by Student's t over clusters."""
    from scipy.stats import t

    a, b, x_a, x_b, user = sums
    if scope == "within":
        both = (a > 0) & (b > 0)
        a, b, x_a, x_b, user = a[both], b[both], x_a[both], x_b[both], user[both]
        weight = a * b / (a + b)
        excess, size = (np.bincount(user, v) for v in ((x_a * b - x_b * a) / (a + b), weight))
        gap = excess.sum() / size.sum()
        left = (excess - gap * size) / (size.sum() - size)
        rate = (x_a + x_b) / (a + b)
        spread = np.bincount(user, weight * rate * (1 - rate) * (a + b) / np.maximum(a + b - 1, 1))
    else:
        n_a, n_b, s_a, s_b = (np.bincount(user, v) for v in (a, b, x_a, x_b))
        r_a, r_b = s_a.sum() / n_a.sum(), s_b.sum() / n_b.sum()
        gap = r_a - r_b
        left = (s_a - r_a * n_a) / (n_a.sum() - n_a) - (s_b - r_b * n_b) / (n_b.sum() - n_b)
        spread = n_a / n_a.sum() ** 2 + n_b / n_b.sum() ** 2
    bearing = (spread > 0).sum()
    error = np.sqrt((bearing - 1) / bearing * left @ left)
    freedom = spread.sum() ** 2 / (spread @ spread) - 1
    return float(gap), float(2 * t.sf(abs(gap) / error, freedom))


def leaning(setting: Setting) -> Setting:
    """The same with the lean that gives the gap, to a hundredth of it."""

    def gap(lean: float, seed: int) -> float:
        return abs(tested(replace(setting, lean=lean).sums(50_000, np.random.default_rng(seed)), setting.scope)[0])

    low, high = 0.0, 4.0
    for _ in range(8):
        lean = (low + high) / 2
        low, high = (lean, high) if gap(lean, 7) < setting.gap else (low, lean)
    # Near a gap, the lean is a straight line of it; many large samples give the line.
    leans = np.tile(np.linspace(low - 0.25 * lean, high + 0.25 * lean, 4), 6)
    gaps = [gap(lean, seed) for seed, lean in enumerate(leans)]
    slope, start = np.polyfit(leans, gaps, 1)
    return replace(setting, lean=float((setting.gap - start) / slope))


def run(setting: Setting, pilots: int, datasets: int) -> tuple[np.ndarray, np.ndarray]:
    """Queries planned by each pilot, and the share of its data sets in which the gap is noticed."""
    rng = np.random.default_rng(SETTINGS.index(setting))
    biased = leaning(setting)
    needed, shares = [], []
    for _ in range(pilots):
        scores, data, user = (biased if setting.biased_pilot else setting).draw(setting.pilot, rng)
        (plan,) = er.noticeable(
            scores, data, f"dp@{setting.k}", setting.gap, power=POWER, scope=setting.scope, cluster=user
        )
        assert plan.queries_needed is not None
        queries = -(-plan.queries_needed // setting.per_user) * setting.per_user
        needed.append(plan.queries_needed)
        shares.append(np.mean([tested(biased.sums(queries, rng), setting.scope)[1] <= 0.05 for _ in range(datasets)]))
    return np.array(needed), np.array(shares)


def main() -> None:
    options = common.parser(__doc__).parse_args()
    pilots, datasets = (5, 10) if options.quick else (50, 20)
    common.start(f"Plans, {pilots} pilots a setting and {datasets} data sets a pilot", [], threads=1)
    with ProcessPoolExecutor(options.threads, get_context("spawn"), common.cap_threads, (1,)) as pool:
        waiting = [(setting, pool.submit(run, setting, pilots, datasets)) for setting in SETTINGS]
        rows = []
        for setting, future in waiting:
            needed, shares = future.result()
            error = shares.std(ddof=1) / np.sqrt(len(shares))
            low, high = np.quantile(needed, [0.1, 0.9])
            rows.append(
                [
                    setting.name,
                    f"{setting.gap:g}",
                    f"{setting.pilot:,}",
                    f"{np.median(needed):,.0f}",
                    f"{low:,.0f} to {high:,.0f}",
                    f"{100 * shares.mean():.1f}",
                    f"{100 * error:.1f}",
                ]
            )
    common.table(
        ["setting", "gap", "pilot", "queries planned", "of nine in ten pilots", "noticed, %", "standard error"], rows
    )


if __name__ == "__main__":
    main()
