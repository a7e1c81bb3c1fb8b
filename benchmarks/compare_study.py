"""How often `er.compare` rejects, and how often its intervals hold, over simulated pairs of rankings.

Under a null hypothesis a test at 5 % should reject in 5 % of data sets: the signed difference where the true gaps are
equal, the change of size where their sizes are. The paired t-test beside it is that of per-query contributions to the
gap, with group sizes taken as known. Settings are in `SETTINGS`, by name; `--only` runs some of them. Where several
groups or strata are combined, or a ratio is compared, there is no signed difference: the test is that of the measure.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np

import common
import evenrank as er

ALPHA = 0.05


@dataclass(frozen=True)
class Setting:
    """Lists whose items score quality + noise + a lean towards the second group, under two rankers."""

    name: str
    queries: int = 200
    lengths: tuple[int, int] = (6, 12)
    share: float = 0.5  # of the second group
    thirds: bool = False  # a third group takes half of the first one's rows
    across: str = "mean"
    carriers: int | None = None  # lists with one item of the second group; the others have none
    leans: tuple[float, float] = (0.0, 0.0)
    noise: float = 1.0  # of each ranker's own, beside the shared quality of 1
    users: int | None = None
    own_lean: float = 0.0  # spread of a user's (or query's) lean under either ranker
    rounded: bool = False  # scores in steps, so that many are tied
    measure: str = "dp@3"
    null: str = "both"  # which hypotheses are true: "both", "size" or "none"

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, er.RankingData, np.ndarray]:
        length = rng.integers(self.lengths[0], self.lengths[1] + 1, self.queries)
        n, query = int(length.sum()), np.repeat(np.arange(self.queries), length)
        if self.carriers is None:
            group = rng.random(n) < self.share
        else:
            group = np.zeros(n, bool)
            starts = np.cumsum(length) - length
            group[starts[: self.carriers]] = True
        user = query if self.users is None else rng.permutation(self.queries)[query] % self.users
        relevance = rng.random(n) < 0.3
        shared = rng.normal(size=n) + relevance
        scores = []
        for lean in self.leans:
            own = self.own_lean * rng.normal(size=user.max() + 1)[user]
            score = shared + self.noise * rng.normal(size=n) + (lean + own) * group
            scores.append(np.round(score) if self.rounded else score)
        code = group.astype(int)
        if self.thirds:
            code = np.where(~group & (rng.random(n) < 0.5), 2, code)
        names = ["x", "y", "z"][: 3 if self.thirds else 2]
        data = er.RankingData.from_arrays(np.zeros((n, 0)), relevance, code, query, group_names=names)
        return scores[0], scores[1], data, user

    @property
    def combined(self) -> bool:
        """Whether the measure is more than one gap of two groups."""
        return self.thirds or self.measure.startswith(("eod", "four_fifths"))


SETTINGS = (
    Setting("both gaps 0"),
    Setting("both gaps 0, alike rankings", noise=0.2),
    Setting("both gaps 0, hardly different rankings", noise=0.02),
    Setting("both gaps 0, independent rankings", noise=20.0),
    Setting("both gaps 0, relevant items", measure="eop@3"),
    Setting("both gaps 0, exposure", measure="exposure_gap"),
    Setting("equal gaps", leans=(1.0, 1.0)),
    Setting("equal gaps, alike rankings", leans=(1.0, 1.0), noise=0.2),
    Setting("equal gaps, leans vary by query", leans=(1.0, 1.0), own_lean=1.0),
    Setting("equal gaps, lists of 3 to 40", leans=(1.0, 1.0), lengths=(3, 40)),
    Setting("equal gaps, tied scores", leans=(1.0, 1.0), rounded=True),
    Setting("equal gaps, 20 queries", leans=(1.0, 1.0), queries=20),
    Setting("equal gaps, 40 queries", leans=(1.0, 1.0), queries=40),
    Setting("both gaps 0, 20 queries", queries=20),
    Setting("rare: one item in 25 of 300 lists", queries=300, carriers=25),
    Setting("rare: one item in 25 of 300 lists, k = 1", queries=300, carriers=25, measure="dp@1"),
    Setting("rare: one item in 60 of 300 lists", queries=300, carriers=60),
    Setting("rare: 2 % of the items", queries=300, share=0.02),
    Setting("rare: 2 %, equal gaps", queries=600, share=0.02, leans=(1.0, 1.0)),
    Setting("40 users with 10 queries each", queries=400, users=40, own_lean=0.7),
    Setting("40 users, equal gaps", queries=400, users=40, own_lean=0.7, leans=(1.0, 1.0)),
    Setting("equal and opposite", leans=(1.0, -1.0), null="size"),
    Setting("equal and opposite, 40 queries", leans=(1.0, -1.0), queries=40, null="size"),
    Setting("equal and opposite, 40 users", queries=400, users=40, own_lean=0.7, leans=(1.0, -1.0), null="size"),
    Setting("three groups, gaps 0", share=1 / 3, thirds=True),
    Setting("three groups, equal gaps", share=1 / 3, thirds=True, leans=(1.0, 1.0)),
    Setting("three groups, equal gaps, the largest", share=1 / 3, thirds=True, leans=(1.0, 1.0), across="max"),
    Setting(
        "three groups, equal and opposite", share=1 / 3, thirds=True, leans=(0.6, -0.6), lengths=(6, 6), null="size"
    ),
    Setting("equalized odds, equal gaps", leans=(1.0, 1.0), measure="eod@3"),
    Setting("four-fifths, rates alike", measure="four_fifths@3"),
    Setting("four-fifths, equal ratios", leans=(1.0, 1.0), measure="four_fifths@3"),
    Setting("four-fifths, three groups", share=1 / 3, thirds=True, leans=(0.6, 0.6), measure="four_fifths@3"),
    Setting("three groups, gaps fall", share=1 / 3, thirds=True, leans=(0.8, 0.45), null="none"),
    Setting("a gap falls", leans=(0.8, 0.45), null="none"),
    Setting("a gap falls, 40 queries", queries=40, leans=(1.2, 0.5), null="none"),
    Setting("a gap falls, alike rankings", leans=(0.8, 0.7), noise=0.2, null="none"),
    Setting("a rare group's gap falls", queries=300, carriers=60, leans=(-1.0, 0.0), null="none"),
    Setting("a large lead flips", leans=(0.8, -0.6), null="none"),
)


def truth(setting: Setting) -> tuple[float, float]:
    """The true signed gaps, from large samples."""
    times = 200_000 // setting.queries
    large = replace(
        setting,
        queries=setting.queries * times,
        carriers=None if setting.carriers is None else setting.carriers * times,
        users=None if setting.users is None else setting.users * times,
    )
    first, second, data, _ = large.draw(np.random.default_rng(12345))
    (line,) = er.compare(first, second, data, [setting.measure], across=setting.across)
    gaps = line if setting.combined else line.pairs[0]
    a, b = gaps.a, gaps.b
    if setting.null == "both" or (setting.null == "size" and setting.combined):
        a = b = (a + b) / 2
    elif setting.null == "size":
        a = (a - b) / 2
        b = -a
    return float(a), float(b)


def paired_t(a: np.ndarray, b: np.ndarray, data: er.RankingData, measure: str) -> float:
    """The p-value of the t-test of per-query contributions to the difference of gaps."""
    from scipy.stats import ttest_1samp

    name, k = er.MeasureAt.of(measure)
    first, second = (er.Ranking(data.to_stored(scores), data.query_ptr) for scores in (a, b))
    if name == "exposure_gap":
        change = second.exposure(k or int(data.lengths.max())) - first.exposure(k or int(data.lengths.max()))
    else:
        change = second.top(k) - first.top(k)
    at_stake = data.relevant if name == "equal_opportunity" else np.ones(data.n_rows, bool)
    signs = np.where(
        data.group == 0, 1 / (at_stake & (data.group == 0)).sum(), -1 / (at_stake & (data.group == 1)).sum()
    )
    each = np.bincount(data.query_of_row, change * signs * at_stake, minlength=data.n_queries)
    return float(ttest_1samp(each, 0).pvalue) if each.any() else 1.0


def run(setting: Setting, datasets: int, seed: int) -> np.ndarray:
    """(data sets, 5): both p-values, whether both intervals hold, the paired t-test's p-value."""
    rng = np.random.default_rng([SETTINGS.index(setting), seed])
    gaps = truth(setting)
    found = np.empty((datasets, 5))
    for line in found:
        a, b, data, user = setting.draw(rng)
        cluster = None if setting.users is None else user
        (compared,) = er.compare(a, b, data, [setting.measure], cluster=cluster, across=setting.across)
        if setting.combined:
            held = compared.low <= gaps[1] - gaps[0] <= compared.high
            line[:] = np.nan, compared.p_value, np.nan, held, np.nan
            assert (compared.p_value <= ALPHA) == (not compared.low <= 0 <= compared.high), (setting.name, compared)
            continue
        (pair,) = compared.pairs
        consistent = (pair.p_value <= ALPHA) == (not pair.low <= 0 <= pair.high)
        consistent &= (pair.change_p_value <= ALPHA) == (not pair.change_low <= 0 <= pair.change_high)
        assert consistent, (setting.name, pair)
        difference, change = gaps[1] - gaps[0], abs(gaps[1]) - abs(gaps[0])
        line[:2] = pair.p_value, pair.change_p_value
        line[2:4] = pair.low <= difference <= pair.high, pair.change_low <= change <= pair.change_high
        line[4] = paired_t(a, b, data, setting.measure)
    return found


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--datasets", type=int, default=1000, help="per setting (default: 1,000)")
    parser.add_argument("--only", nargs="*", help="names of settings, or parts of names")
    options = parser.parse_args()
    datasets = 100 if options.quick else options.datasets
    chosen = [s for s in SETTINGS if not options.only or any(part in s.name for part in options.only)]
    common.start(f"Two rankings compared, tests at 5 %, {datasets:,} data sets a setting", [], threads=1)
    with ProcessPoolExecutor(options.threads, get_context("spawn"), common.cap_threads, (1,)) as pool:
        waiting = [(setting, pool.submit(run, setting, datasets, 0)) for setting in chosen]
        rows = []
        for setting, future in waiting:
            found = future.result()
            rejected = 100 * np.where(np.isnan(found), np.nan, found <= ALPHA)[:, [0, 1, 4]].mean(axis=0)
            held = 100 * found[:, 2:4].mean(axis=0)
            true = {"both": "both", "size": "size", "none": "–"}[setting.null]
            rows.append(
                [setting.name, true, *("–" if np.isnan(value) else f"{value:.1f}" for value in (*rejected, *held))]
            )
            print(*rows[-1], sep="  ", flush=True)
    heads = ["true null", "signed, %", "size, %", "paired t, %", "signed held, %", "size held, %"]
    common.table(["setting", *heads], rows)


if __name__ == "__main__":
    main()
