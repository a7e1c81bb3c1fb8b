"""How often a nominal 95 % interval of each measure contains the truth, where rows depend on each other.

Three populations. "list effects": lists of 8 to 16 items; each list has its own shares of the groups, its own rate of
relevant items and its own lean towards each group. "recurring items": lists of 12 of a catalogue of 300 items, popular
ones more often; an item has its own group, relevance and quality, which it carries from list to list, and lists lean as
well; the truth is that of the catalogue. "even": as the first, with exchangeable groups, so that gaps are 0, ratios 1.
The truth of a population is its value on 60,000 lists (for gaps and ratios of even populations 0 and 1).

Runs data set by data set in one process, and keeps every data set as a line of ``--file``: the same command goes on
where it was stopped. ``--table`` prints the table of what there is.
"""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

import common
import evenrank as er
from evenrank.confidence import intervals
from evenrank.measures import MEASURES, ask
from evenrank.notions import NOTIONS

SIZES = (30, 100, 300)
TRUTH, BLOCK = 60_000, 3_000
CATALOGUE, LENGTH = 300, 12
METHODS = ("analytic", "bootstrap")
REPLICATES = 500
K = 5
BEFORE = ("ndcg", "precision", "recall", "mrr", *NOTIONS, "exposure_gap", "four_fifths")  # of interval_coverage.py


def names() -> list[str]:
    """Every measure of the field that has an interval, at a cut-off of 5 if it takes one."""
    out = []
    for name, measure in MEASURES.items():
        if measure.no_interval or name in BEFORE:
            continue
        cut = "" if measure.k == "none" else f"@{K}"
        chosen = {"smoothing": "1", "step": "2", "protected": "2"}  # the smallest group of a data set may be any
        options = ",".join(f"{option}={value}" for option, value in chosen.items() if option in measure.options)
        out.append(f"{name}{cut}({options})" if options else f"{name}{cut}")
    return out


def list_effects(queries: int, rng: np.random.Generator, lean: float = 0.4) -> tuple[np.ndarray, er.RankingData]:
    lists = (queries, 16)
    inside = np.arange(16) < rng.integers(8, 17, (queries, 1))
    share = rng.dirichlet([4, 4, 4], queries)
    group = (rng.random(lists)[..., None] > share.cumsum(axis=1)[:, None, :-1]).sum(axis=-1)
    relevant = rng.random(lists) < rng.beta(2, 3, (queries, 1))
    leans = np.array([0.0, lean / 2, lean]) + 0.5 * rng.standard_normal((queries, 3))
    scores = rng.standard_normal(lists) + relevant + np.take_along_axis(leans, group, axis=1)
    query = np.broadcast_to(np.arange(queries)[:, None], lists)[inside]
    return scores[inside], _data(relevant[inside], group[inside], query, np.arange(len(query)))


def even(queries: int, rng: np.random.Generator) -> tuple[np.ndarray, er.RankingData]:
    return list_effects(queries, rng, lean=0.0)


def recurring_items(queries: int, rng: np.random.Generator) -> tuple[np.ndarray, er.RankingData]:
    fixed = np.random.default_rng(7)  # the catalogue is the same in every data set
    group = fixed.choice(3, CATALOGUE, p=[0.5, 0.3, 0.2])
    quality = fixed.normal(size=CATALOGUE) + 0.3 * group
    chance = 1 / (1 + np.exp(-(fixed.normal(size=CATALOGUE) - 0.8)))
    popular = np.log(fixed.dirichlet(np.full(CATALOGUE, 2.0)))
    keys = popular + rng.gumbel(size=(queries, CATALOGUE))
    item = np.argpartition(-keys, LENGTH, axis=1)[:, :LENGTH]
    relevant = rng.random(item.shape) < chance[item]
    leans = 0.5 * rng.standard_normal((queries, 3))
    scores = quality[item] + relevant + np.take_along_axis(leans, group[item], axis=1) + rng.normal(size=item.shape)
    query = np.repeat(np.arange(queries), LENGTH)
    return scores.ravel(), _data(relevant.ravel(), group[item].ravel(), query, item.ravel())


def _data(relevant: np.ndarray, group: np.ndarray, query: np.ndarray, item: np.ndarray) -> er.RankingData:
    return er.RankingData.from_arrays(
        np.zeros((len(query), 0)), relevant.astype(float), group, query, item_ids=item, group_names=range(3)
    )


DESIGNS = {"list effects": list_effects, "recurring items": recurring_items, "even": even}


def truth(design: str) -> dict[str, float]:
    """The value of each measure in the population: of means over lists their mean, of others the value on all lists."""
    total: dict[str, list[float]] = defaultdict(list)
    rng = np.random.default_rng(0)
    for _ in range(TRUTH // BLOCK):
        scores, data = DESIGNS[design](BLOCK, rng)
        for name, value in er.measure(scores, data, names()).items():
            total[name].append(value)
    # A pooled value on 3,000 lists is off by its bias, which is small; on all lists it is smaller still.
    out = {name: float(np.mean(values)) for name, values in total.items()}
    pooled = [name for name in names() if ask(name)[1].measure.pooled is not None]
    scores, data = DESIGNS[design](TRUTH, np.random.default_rng(1))
    out |= {name: float(value) for name, value in er.measure(scores, data, pooled).items()}
    if design == "even":
        fair = {name: ask(name)[1].measure.fair_value for name in pooled if ask(name)[1].measure.kind != "mean"}
        # Shares of attention follow relevance only where scores do, whoever the groups are.
        out |= {name: value for name, value in fair.items() if value is not None}
    return out


def run(file: Path, sets: int, seed: int) -> None:
    """Do the data sets that the file does not have yet."""
    done = {(line["design"], line["queries"], line["number"]) for line in lines(file) if "number" in line}
    truths = {line["design"]: line["truth"] for line in lines(file) if "truth" in line}
    with file.open("a", encoding="utf-8") as out:

        def keep(line: dict[str, object]) -> None:
            out.write(json.dumps(line) + "\n")
            out.flush()

        for design in DESIGNS:
            if design not in truths:
                truths[design] = truth(design)
                keep({"design": design, "truth": truths[design]})
        for number in range(sets):
            for design, draw in DESIGNS.items():
                for place, queries in enumerate(SIZES):
                    if (design, queries, number) in done:
                        continue
                    rng = np.random.default_rng([seed, number, place, list(DESIGNS).index(design)])
                    scores, data = draw(queries, rng)
                    ends = {}
                    for method in METHODS:
                        made = intervals(scores, data, names(), method=method, replicates=REPLICATES, seed=number)
                        for one in made:
                            ends.setdefault(one.measure, []).append([one.low, one.high])
                    keep({"design": design, "queries": queries, "number": number, "ends": ends})
            if number % 20 == 19:
                print(f"{number + 1} data sets of each kind", flush=True)


def lines(file: Path) -> list[dict]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.endswith("}")]


def show(file: Path) -> None:
    """Print the share of intervals that cover the truth, in per cent, analytic / bootstrap."""
    truths = {line["design"]: line["truth"] for line in lines(file) if "truth" in line}
    covered: dict[tuple[str, str, int], list[list[float]]] = defaultdict(list)
    for line in lines(file):
        for name, ends in line.get("ends", {}).items():
            value = truths[line["design"]][name]
            rounding = 1e-9 * max(1.0, abs(value))
            hits = [np.nan if np.isnan(low) else low - rounding <= value <= high + rounding for low, high in ends]
            covered[name, line["design"], line["queries"]].append([float(hit) for hit in hits])
    settings = [(design, queries) for design in DESIGNS for queries in SIZES]
    rows = []
    for name in names():
        cells = []
        for setting in settings:
            hits = np.array(covered.get((name, *setting), [[np.nan, np.nan]]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                shares = 100 * np.nanmean(hits, axis=0)
            cells.append(" / ".join("none" if np.isnan(share) else f"{share:.1f}" for share in shares))
        rows.append([name, *cells])
    common.table(["measure", *(f"{design}, {queries}" for design, queries in settings)], rows)
    common.note(f"{min(map(len, covered.values()), default=0)} data sets per cell")


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--file", type=Path, default=Path("measure_coverage.jsonl"))
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", er.DataWarning)
    common.start("Coverage of nominal 95 % intervals, in per cent, analytic / bootstrap", ["scipy"], threads=1)
    if not chosen.table:
        run(chosen.file, 20 if chosen.quick else chosen.sets, chosen.seed)
    show(chosen.file)


if __name__ == "__main__":
    main()
