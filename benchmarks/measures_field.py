"""All measures of the registry on 100,000 lists × 50 items × 8 models with 4 groups: time and memory of each.

Beside ours stands the fastest reference that is installed, in the same run, or else a plain twin (field_twins.py).
References take one ranking at a time: they are timed on a few lists, and the time is scaled linearly to all lists and
models. Ranking the scores is a line of its own; references are given rankings. The difference of the two sides' numbers
on those few lists is printed. Times are processor seconds of the main thread, on both sides, so that other work on the
machine counts for little; run it with --threads 1.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import isclose
from typing import Any

import numpy as np

import common
import evenrank as er
import field_twins as twins
from evenrank.measures import MEASURES, Evaluation, Options
from evenrank.measures.compute import model_blocks

ITEMS, MODELS, CATALOGUE, K = 50, 8, 1000, 10
PACKAGES = ["FairRankTune", "reranking", "lenskit", "holisticai"]


@dataclass
class Bench:
    """The data, and a few lists of it as the references take them."""

    data: er.RankingData
    scores: np.ndarray

    def few(self, number: int) -> tuple[er.RankingData, np.ndarray, list[twins.Line]]:
        """The first lists, the first model's scores of them, and the lists as plain lines."""
        part, scores = self.data.take(np.arange(number)), self.scores[: number * ITEMS, 0]
        lines = []
        for rows in np.split(np.arange(number * ITEMS), number):
            order = rows[np.argsort(-scores[rows], kind="stable")]
            lines.append(
                twins.Line(*(part_of[order].tolist() for part_of in (part.group, part.relevance, part.item_ids)))
            )
        return part, scores, lines


def synthetic(lists: int, seed: int = 0) -> Bench:
    rng = np.random.default_rng(seed)
    shift = rng.integers(0, CATALOGUE, (lists, 1))
    items = (rng.permutation(CATALOGUE)[:ITEMS] * 7 + shift) % CATALOGUE
    group = rng.choice(4, CATALOGUE, p=[0.15, 0.25, 0.3, 0.3])[items].ravel()
    scores = rng.normal(size=(lists * ITEMS, MODELS)) + 0.2 * group[:, None]
    data = er.RankingData.from_arrays(
        np.zeros((lists * ITEMS, 0)),
        (scores[:, 0] + rng.normal(size=lists * ITEMS) > 1).astype(float),
        group,
        np.repeat(np.arange(lists), ITEMS),
        item_ids=items.ravel(),
    )
    return Bench(data, scores)


def processor_seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that a processor worked for this thread, and what the function gives."""
    begin = time.thread_time()
    result = function()
    return time.thread_time() - begin, result


# ---------------------------------------------------------------------- references

Reference = tuple[str, int, Callable[[list[twins.Line]], Callable[[], float]]]  # label, lists, lines → call


def mean_of(function: Callable[[twins.Line], Any], part: int | None = None) -> Callable[..., Callable[[], float]]:
    def prepare(lines: list[twins.Line]) -> Callable[[], float]:
        def call() -> float:
            values = [function(line) for line in lines]
            return float(np.mean([value if part is None else value[part] for value in values]))

        return call

    return prepare


def pooled(function: Callable[[list[twins.Line]], float]) -> Callable[..., Callable[[], float]]:
    return lambda lines: lambda: function(lines)


def plain_twins() -> dict[str, Reference]:
    found: dict[str, Reference] = {
        "awrf": ("plain twin", 400, mean_of(twins.awrf)),
        "min_skew": ("plain twin", 400, mean_of(twins.min_skew)),
        "ndkl": ("plain twin", 200, mean_of(twins.ndkl)),
        "infeasible_index": ("plain twin", 200, mean_of(twins.infeasible_index)),
        "fair_prefix": ("plain twin", 50, mean_of(twins.fair_prefix)),
        "pairwise_gap": ("plain twin", 200, pooled(twins.pairwise_gap)),
        "iaa": ("plain twin", 400, pooled(twins.iaa)),
        "gini": ("plain twin", 400, pooled(twins.gini)),
    }
    for number, name in enumerate(("ee_l", "ee_d", "ee_r")):
        found[name] = ("plain twin", 400, mean_of(twins.ee, number))
        found[f"item_{name}"] = ("plain twin", 400, mean_of(twins.item_ee, number))
    for name in ("rnd", "rkl", "rrd"):
        found[name] = ("plain twin", 400, mean_of(partial(twins.at_cut_points, name=name)))
    for name, kind in (("exposure_ratio", "items"), ("dtr", "merit"), ("dir", "impact")):
        found[name] = ("plain twin", 400, pooled(partial(twins.rate_ratio, kind=kind)))
    return found


def packages() -> list[tuple[str, Reference]]:
    """References of installed packages, by the measure they give."""
    found: list[tuple[str, Reference]] = []
    pandas = common.peer("pandas")
    if (tune := common.peer("FairRankTune")) is not None and pandas is not None:

        def own_items(lines: list[twins.Line]) -> tuple[Any, dict[str, int], Any]:
            names = {q: [f"{q}:{place}" for place in range(ITEMS)] for q in range(len(lines))}
            groups = {name: g for q, line in enumerate(lines) for name, g in zip(names[q], line.group, strict=True)}
            return (
                pandas.DataFrame(names),
                groups,
                pandas.DataFrame({q: line.relevance for q, line in enumerate(lines)}),
            )

        def exp(lines: list[twins.Line]) -> Callable[[], float]:
            frame, groups, _ = own_items(lines)
            return lambda: float(tune.Metrics.EXP(frame, groups, "MinMaxRatio")[0])

        def expu(lines: list[twins.Line]) -> Callable[[], float]:
            frame, groups, relevance = own_items(lines)
            return lambda: float(tune.Metrics.EXPU(frame, groups, relevance, "MinMaxRatio")[0])

        def ndkl(lines: list[twins.Line]) -> Callable[[], float]:
            parts = [own_items([line])[:2] for line in lines]
            return lambda: float(np.mean([tune.Metrics.NDKL(frame, groups) for frame, groups in parts]))

        found += [("exposure_ratio", ("FairRankTune EXP", 200, exp)), ("dtr", ("FairRankTune EXPU", 200, expu))]
        found += [("ndkl", ("FairRankTune NDKL", 50, ndkl))]
    if (reranking := common.peer("reranking.metrics")) is not None:

        def target(line: twins.Line) -> dict[int, float]:
            return dict(enumerate(twins.shares(twins.counted(line.group))))

        def skew(line: twins.Line) -> float:
            return reranking.skew_static(
                reranking.proportion(line.group[:K], twins.GROUPS), list(target(line).values())
            )[1]

        found += [
            ("ndkl", ("reranking", 100, mean_of(lambda line: reranking.ndkl(line.group, target(line))))),
            ("max_skew", ("reranking", 400, mean_of(skew))),
            (
                "infeasible_count",
                (
                    "reranking, last rank missing",
                    10,
                    mean_of(lambda line: reranking.infeasible(line.group, target(line))[1]),
                ),
            ),
        ]
    if (lenskit := common.peer("lenskit.metrics")) is not None:
        from lenskit.data import ItemList

        def exposure_gini(lines: list[twins.Line]) -> Callable[[], float]:
            lists = [ItemList(np.array(line.item), ordered=True) for line in lines]
            metric = lenskit.ExposureGini(
                items=len({item for line in lines for item in line.item}), weight=lenskit.LogRankWeight(offset=1)
            )

            def call() -> float:
                return float(metric.global_aggregate([metric.compute_list_data(each, None) for each in lists]))

            return call

        found += [("gini", ("LensKit ExposureGini", 2000, exposure_gini))]
    if (holistic := common.peer("holisticai.bias.metrics")) is not None:

        def matrix(function: Callable[..., float]) -> Callable[..., Callable[[], float]]:
            def prepare(lines: list[twins.Line]) -> Callable[[], float]:
                table = np.full((len(lines), CATALOGUE), np.nan)
                for row, line in zip(table, lines, strict=True):
                    row[line.item] = np.arange(ITEMS, 0, -1.0)
                table = table[:, ~np.isnan(table).all(axis=0)]
                return lambda: float(function(table, top=K))

            return prepare

        found += [
            ("aggregate_diversity", ("holisticai", 500, matrix(holistic.aggregate_diversity))),
            ("average_popularity", ("holisticai", 500, matrix(holistic.avg_recommendation_popularity))),
            ("gini_corrected(discount=none)", ("holisticai", 500, matrix(holistic.gini_index))),
            ("entropy(discount=none)", ("holisticai", 500, matrix(holistic.exposure_entropy))),
        ]
    return found


@dataclass
class Timed:
    """A reference's seconds per list, and how far its number is from ours on the same lists."""

    label: str
    per_list: float
    difference: float


def time_reference(bench: Bench, name: str, reference: Reference, repeats: int) -> Timed:
    label, number, prepare = reference
    data, scores, lines = bench.few(number)
    call = prepare(lines)
    value = call()
    measure, _, options = name.partition("(")
    cut = f"@{K}" if MEASURES[measure].k == "needed" or options else ""
    text = f"{measure}{cut}{'(' + options if options else ''}"
    ours = float(er.measure(scores, data, text)[text])
    took = min(processor_seconds(call)[0] for _ in range(repeats)) / number
    same = ours == value or isclose(ours, value, rel_tol=1e-12)
    return Timed(label, took, 0.0 if same else abs(ours - value))


def fastest(bench: Bench, repeats: int) -> dict[str, Timed]:
    """The fastest package of each measure, or its plain twin where there is none."""
    timed: dict[str, Timed] = {}
    for name, reference in packages():
        new = time_reference(bench, name, reference, repeats)
        name = name.partition("(")[0]
        if name not in timed or new.per_list < timed[name].per_list:
            timed[name] = new
    for name, reference in plain_twins().items():
        if name not in timed:
            timed[name] = time_reference(bench, name, reference, repeats)
    return timed


# ---------------------------------------------------------------------- ours


def time_all(bench: Bench) -> tuple[float, dict[str, tuple[float, float]]]:
    """Seconds of ranking, and seconds and MB of each measure over all models, a block of models at a time."""
    shared: dict[Any, Any] = {}
    seconds = dict.fromkeys(MEASURES, 0.0)
    memory = dict.fromkeys(MEASURES, 0.0)
    ranking = 0.0
    for block in model_blocks(bench.scores):
        took, ev = processor_seconds(lambda block=block: Evaluation.of(block, bench.data, shared=shared))
        ranking += took
        for name, measure in MEASURES.items():
            fresh = replace(ev, options=measure.chosen(Options()), _kept={})
            gc.collect()
            with common.watch_memory() as peak:
                took, _ = processor_seconds(
                    lambda measure=measure, fresh=fresh: measure.value(fresh, K if measure.k == "needed" else None)
                )
            seconds[name] += took
            memory[name] = max(memory[name], peak.growth)
    return ranking, {name: (seconds[name], memory[name]) for name in MEASURES}


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--lists", type=int, default=100_000)
    args = parser.parse_args()
    lists = 4_000 if args.quick else args.lists
    common.start(
        f"{len(MEASURES)} measures, {lists:,} lists × {ITEMS} items × {MODELS} models, 4 groups",
        PACKAGES,
        threads=args.threads,
    )
    os.environ.setdefault("POLARS_MAX_THREADS", str(args.threads))
    bench = synthetic(lists)
    references = fastest(bench, 1 if args.quick else 3)
    _, quarter = time_all(synthetic(lists // 4))
    ranking, ours = time_all(bench)
    rows = []
    for name, (took, memory) in ours.items():
        line = [name, common.seconds(took), f"{memory:.0f}", f"{took / quarter[name][0]:.1f}"]
        if (reference := references.get(name)) is None:
            rows.append([*line, "", "", "", ""])
            continue
        theirs = reference.per_list * lists * MODELS
        rows.append(
            [*line, reference.label, common.seconds(theirs), common.times(theirs / took), f"{reference.difference:.1e}"]
        )
    common.table(["", "time", "MB", "of a quarter", "reference", "its time", "ratio", "difference"], rows)
    common.note(f"ranking the scores, which all measures share: {common.seconds(ranking)}")
    common.note(
        "Times of references are of a few lists, scaled linearly. 'of a quarter' is the time over that of a quarter of "
        "the lists: 4 is linear. 'difference' is between the two sides' numbers on the lists of the reference."
    )
    ratios = [row[6].value for row in rows if row[6]]
    common.note(f"lowest ratio: {min(ratios):.0f}")


if __name__ == "__main__":
    main()
