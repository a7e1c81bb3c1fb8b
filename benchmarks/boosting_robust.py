"""Not a race: does one strength mean the same on data that the rankers were not made on?

Twelve data sets × LightGBM, XGBoost, the network × dp, eop, eod × strengths 0 and 7 from 0.01 to 10; two folds by
query. The constants were chosen on six of the sets and are shown on the other six. Trees have the libraries' own
default shape (31 leaves; depth 6), 30 of them at rate 0.1; "mlp" is the network that evens out the top k
(target="topk"), "mlp_exposure" the one that evens out exposure.

    python benchmarks/boosting_robust.py --data FOLDER         # the folder that holds mslr_web_5k and trec_fair_2019
    python benchmarks/boosting_robust.py --keep FILE           # go on from a run that was stopped
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import evenrank as er
from common import note, parser, start, table
from evenrank.measures.evaluation import Evaluation
from evenrank.measures.formulas import ndcg
from evenrank.ranking import Ranking
from robust_data import cutoff, made, sets

FOLDS, TREES = 2, 30
NOTIONS = ("dp", "eop", "eod")
ALPHAS = er.strength_grid(7)
DEFAULT = 5  # where 1 is in the grid
NETWORKS = {"mlp": "topk", "mlp_exposure": "exposure"}  # with what they even out
LIBRARIES = ("lightgbm", "xgboost", *NETWORKS)
LIMITS = (0.05, 0.02, 0.01)
PARTS = ("curves", "constraint", "aware", "stopping")
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "lightgbm": (er.lightgbm.FairLGBMRanker, {"verbose": -1}),
    "xgboost": (er.xgboost.FairXGBRanker, {"learning_rate": 0.1}),
}


def ranker(library: str, **options: Any) -> Any:
    kind, own = KINDS[library]
    return kind(n_jobs=1, n_estimators=TREES, **own, **options)


def train_all(library: str, train: er.RankingData, notion: str, k: int, plain: Any) -> list[Callable[[Any], Any]]:
    """A scorer for each strength; strength 0 is the same for every notion."""
    if library in NETWORKS:
        settings = er.torch.FairNeuralRanker(notion, k=k, target=NETWORKS[library])
        networks, _ = settings._trained(train, ALPHAS)
        return [lambda data, m=m: data.to_caller(networks.one(m).score_data(data)[:, 0]) for m in range(len(ALPHAS))]
    fitted = [ranker(library, notion=notion, alpha=alpha, k=k).fit(train).predict for alpha in ALPHAS[1:]]
    return [plain, *fitted]


def quality(scores: Any, data: er.RankingData, k: int) -> Any:
    """NDCG@k of each query, NaN where nothing is relevant."""
    return ndcg(Evaluation(data, Ranking(data.to_stored(scores), data.query_ptr)), k)


def case(library: str, data: er.RankingData, notion: str, k: int, plain: dict[int, Any]) -> dict[str, Any]:
    """Training rows and held-out queries: NDCG, gap, and what they vary by."""
    name, fold = f"{notion}@{k}", data.folds(FOLDS, 0)
    held, inside, inside_gap = np.empty((data.n_rows, len(ALPHAS))), [], []
    for number in range(FOLDS):
        train, test = data.take(fold != number), data.take(fold == number)
        if library not in NETWORKS and number not in plain:
            plain[number] = ranker(library, notion="dp", alpha=0.0, k=k).fit(train).predict
        scorers = train_all(library, train, notion, k, plain.get(number))
        own = [scorer(train) for scorer in scorers]
        inside.append([np.nanmean(quality(scores, train, k)) for scores in own])
        inside_gap.append([er.measure(scores, train, name)[name] for scores in own])
        held[(fold == number)[data.query_of_row]] = np.stack([test.to_stored(s(test)) for s in scorers], axis=1)
    scores = data.to_caller(held).T
    by_query = np.stack([quality(each, data, k) for each in scores])
    intervals = [er.interval(each, data, name, 0.9, "analytic") for each in scores]
    return {
        "train_ndcg": np.mean(inside, axis=0).tolist(),
        "train_gap": np.mean(inside_gap, axis=0).tolist(),
        "train_gap_error": (np.std(inside_gap, axis=0, ddof=1) / np.sqrt(FOLDS)).tolist(),
        "ndcg": np.nanmean(by_query, axis=1).tolist(),
        "gap": [each.estimate for each in intervals],
        "gap_error": [(each.high - each.estimate) / 1.645 for each in intervals],
        "ndcg_error": _paired_errors(by_query).tolist(),
    }


def _paired_errors(by_query: Any) -> Any:
    """The standard error of the difference between each two strengths, (strengths, strengths)."""
    known = by_query[:, ~np.isnan(by_query).any(axis=0)]
    difference = known[:, None] - known[None]
    return difference.std(axis=2, ddof=1) / np.sqrt(known.shape[1])


def dominated(found: dict[str, Any]) -> list[str]:
    """Strengths with a higher gap and a lower NDCG than a smaller one, both beyond two errors, on held-out queries."""
    gap, value, error = (np.array(found[key]) for key in ("gap", "ndcg", "gap_error"))
    paired = np.array(found["ndcg_error"])
    return [
        f"{ALPHAS[j]:.2g}"
        for j in range(len(ALPHAS))
        if any(gap[j] > gap[i] + 2 * error[j] and value[j] < value[i] - 2 * paired[i, j] for i in range(j))
    ]


def line(name: str, found: dict[str, Any]) -> list[str]:
    d = DEFAULT
    rise = np.array(found["train_gap"]) - np.minimum.accumulate(found["train_gap"])
    return [
        name,
        f"{found['train_ndcg'][0]:.3f}/{found['train_gap'][0]:.3f}",
        f"{found['train_ndcg'][0] - found['train_ndcg'][d]:+.3f}",
        f"{found['train_gap'][d] / found['train_gap'][0]:.0%}",
        f"{found['ndcg'][0]:.3f}/{found['gap'][0]:.3f}",
        f"{found['ndcg'][0] - found['ndcg'][d]:+.3f}",
        f"{found['gap'][d] / found['gap'][0]:.0%}",
        f"{rise.max():.3f}",
        ", ".join(dominated(found)) or "none",
    ]


COLUMNS = [
    "",
    "training, α = 0",
    "NDCG lost at 1",
    "gap at 1",
    "held out, α = 0",
    "NDCG lost at 1",
    "gap at 1",
    "largest rise, training",
    "dominated",
]


def constraint(library: str, data: er.RankingData, notion: str, k: int) -> list[dict[str, Any]]:
    """What ``max_violation`` gives on the training rows of the first fold and on its held-out queries.

    Where it is not met, all strengths of the default grid are trained, to see whether it could be.
    """
    name, quality_name, fold = f"{notion}@{k}", f"ndcg@{k}", data.folds(FOLDS, 0)
    train, test = data.take(fold != 0), data.take(fold == 0)

    @cache
    def least_gap() -> float:
        grid = (ranker(library, notion=notion, alpha=alpha, k=k).fit(train) for alpha in er.strength_grid())
        return min(er.measure(each.predict(train), train, name)[name] for each in grid)

    rows = []
    for limit in LIMITS:
        model = ranker(library, notion=notion, max_violation=limit, k=k).fit(train)
        own = er.measure(model.predict(train), train, [name, quality_name])
        other = er.measure(model.predict(test), test, [name, quality_name])
        rows.append(
            {
                "limit": limit,
                "met": bool(own[name] <= limit),
                "possible": bool(own[name] <= limit or least_gap() <= limit),
                "alpha": model.alpha_,
                "fits": len(model.tried_),
                "train": [own[quality_name], own[name]],
                "test": [other[quality_name], other[name]],
            }
        )
    return rows


def against_offset(library: str, data: er.RankingData, notion: str, k: int) -> dict[str, Any]:
    """``group_aware``, and the best `GroupOffset` whose gap is no larger: on held-out queries and on training rows."""
    names, fold = [f"ndcg@{k}", f"{notion}@{k}"], data.folds(FOLDS, 0)
    parts, alphas = np.linspace(0, 1, 11), (0.3, 1.0, 3.0, 10.0)
    aware, offsets = np.empty((data.n_rows, len(alphas))), np.empty((data.n_rows, len(parts)))
    inside = []
    for number in range(FOLDS):
        train, test = data.take(fold != number), data.take(fold == number)
        here = (fold == number)[data.query_of_row]
        plain = ranker(library, notion=notion, alpha=0.0, k=k).fit(train)
        offset = er.GroupOffset(notion, k).fit(plain.predict(train), train)
        fair = [ranker(library, notion=notion, alpha=alpha, k=k, group_aware=True).fit(train) for alpha in alphas]

        def scored(rows: er.RankingData) -> tuple[Any, Any]:
            trees = plain.predict(rows)  # noqa: B023
            ours = np.stack([each.predict(rows) for each in fair], axis=1)  # noqa: B023
            return ours, np.stack([offset.at(part).rerank(trees, rows) for part in parts], axis=1)  # noqa: B023

        aware[here], offsets[here] = (test.to_stored(scores) for scores in scored(test))
        inside.append(_lost(*(er.measure(scores, train, names) for scores in scored(train)), names))
    ours, theirs = (er.measure(data.to_caller(scores), data, names) for scores in (aware, offsets))
    return {
        "native": f"{theirs[names[0]][0]:.3f}/{theirs[names[1]][0]:.3f}",
        "ours": [f"{v:.3f}/{g:.3f}" for v, g in zip(ours[names[0]], ours[names[1]], strict=True)],
        "offset": f"{theirs[names[0]][-1]:.3f}/{theirs[names[1]][-1]:.3f}",
        "lost": _lost(ours, theirs, names),
        "lost_training": float(np.mean(inside)),
    }


STOPPED = (  # strength, whether it is stopped early, and the limit on the gap that it is stopped by
    (0.0, False, None),
    (0.0, True, None),
    (0.1, True, None),
    (1.0, False, None),
    (1.0, True, None),
    (1.0, True, 0.08),
    (3.0, True, 0.08),
)


def stopping(data: er.RankingData, k: int) -> list[list[str]]:
    """LightGBM for dp, up to 100 trees: half of the queries to train on, a quarter to stop by, a quarter to test on."""
    from lightgbm import early_stopping

    fold, names = data.folds(4, 0), [f"ndcg@{k}", f"dp@{k}"]
    train, watched, test = (data.take(part) for part in (fold > 1, fold == 1, fold == 0))
    rows = []
    for alpha, stop, limit in STOPPED:
        model = er.lightgbm.FairLGBMRanker(notion="dp", alpha=alpha, k=k, n_jobs=1, n_estimators=100, verbose=-1)
        given: dict[str, Any] = {}
        if stop:
            given = {
                "eval_set": [(watched.features, watched.relevance)],
                "eval_qid": [watched.query_of_row],
                "callbacks": [early_stopping(20, verbose=False)],
                "eval_at": [k],
            }
        if limit is not None:
            given |= {"eval_sensitive_features": [watched.group], "eval_max_violation": limit}
        model.fit(train.features, train.relevance, qid=train.query_of_row, sensitive_features=train.group, **given)
        measured = [er.measure(model.predict(part.features), part, names) for part in (train, watched, test)]
        by = "all trees" if not stop else "by NDCG" if limit is None else f"by NDCG subject to dp@{k} ≤ {limit}"
        trees = model.best_iteration_ or model.n_estimators
        rows.append([f"α = {alpha:g}, {by}", str(trees), *("/".join(f"{m[n]:.3f}" for n in names) for m in measured)])
    return rows


def _lost(ours: dict[str, Any], theirs: dict[str, Any], names: list[str]) -> float:
    """The most NDCG that a strength of ours is below the best offset of no larger gap; 0 where none has such a gap."""
    lost = [0.0]
    for value, gap in zip(ours[names[0]], ours[names[1]], strict=True):
        within = theirs[names[0]][theirs[names[1]] <= gap]
        lost += [float(within.max() - value)] if len(within) else []
    return max(lost)


class Kept:
    """Cases that are done, one line of JSON each, so that a run can be gone on with."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.cases = path, {}
        if path is not None and path.exists():
            self.cases = {tuple(key): value for key, value in map(json.loads, path.read_text().splitlines())}

    def get(self, key: tuple[str, ...], work: Callable[[], Any]) -> Any:
        if key not in self.cases:
            self.cases[key] = work()
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps([key, self.cases[key]]) + "\n")
        return self.cases[key]


def main() -> None:
    global ALPHAS, DEFAULT
    options = parser(__doc__)
    options.add_argument("--data", type=Path, metavar="FOLDER", help="the folder of the MSLR and TREC samples")
    options.add_argument("--keep", type=Path, metavar="FILE", help="where finished cases are kept")
    options.add_argument("--large", action="store_true", help="20,000 short lists instead of 1,000")
    options.add_argument("--seed", type=int, default=0, help="of the sets shown on, drawn anew")
    options.add_argument("--alphas", nargs="+", type=float, help="these strengths, 0 and 1 among them")
    options.add_argument("--only", nargs="+", choices=PARTS, help="these parts")
    options.add_argument("--sets", nargs="+", metavar="NAME", help="these of the data sets")
    options.add_argument("--notions", nargs="+", choices=NOTIONS, help="these notions")
    options.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=LIBRARIES, help="these of them")
    given = options.parse_args()
    start("Boosted and neural rankers on twelve data sets", ["lightgbm", "xgboost-cpu", "torch", "numba"], threads=1)
    warnings.simplefilter("ignore", er.DataWarning)
    kept, parts = Kept(given.keep), given.only or PARTS
    if given.alphas:
        ALPHAS, DEFAULT = np.array(sorted(given.alphas)), sorted(given.alphas).index(1.0)
    variant = [f"seed {given.seed}"] * bool(given.seed) + ["large"] * given.large
    notions = given.notions or (("dp",) if given.quick else NOTIONS)
    found: dict[tuple[str, ...], Any] = {}
    available = sets(given.data, quick=given.quick, large=given.large, seed=given.seed)
    available = {name: each for name, each in available.items() if given.sets is None or name in given.sets}
    for name, (chosen_on, get) in available.items():
        data, k = get(), cutoff(name)
        kind = "chosen on" if chosen_on else "shown on"
        share = np.bincount(data.group[data.group >= 0]).min() / (data.group >= 0).sum()
        note(f"{name} ({kind}): {data.n_queries:,} queries, {data.n_rows:,} rows, smaller group {share:.0%}, k = {k}")
        for library in given.libraries if set(parts) - {"stopping"} else ():
            plain: dict[int, Any] = {}
            for notion in notions:
                key = ("curve", name, library, notion, *variant)
                if "curves" in parts:
                    found[key] = kept.get(key, lambda: case(library, data, notion, k, plain))  # noqa: B023
                if "constraint" in parts and library not in NETWORKS:
                    key = ("constraint", name, library, notion)
                    found[key] = kept.get(key, lambda: constraint(library, data, notion, k))  # noqa: B023
                if "aware" in parts and library not in NETWORKS:
                    key = ("aware", name, library, notion)
                    found[key] = kept.get(key, lambda: against_offset(library, data, notion, k))  # noqa: B023
    if "stopping" in parts:
        more = {"plain": lambda: made(600, (8, 24), 0.35, graded=True, hidden=False, seed=0)}
        for name in ("plain", "mslr"):
            if name in available:
                get = more.get(name, available[name][1])
                found["stopping", name] = kept.get(("stopping", name), lambda: stopping(get(), cutoff(name)))  # noqa: B023
    report(found, available)


def report(found: dict[tuple[str, ...], Any], available: dict[str, Any]) -> None:
    curves = {key[1:]: value for key, value in found.items() if key[0] == "curve"}
    if curves:
        table(COLUMNS, [line(" ".join(key), value) for key, value in curves.items()])
        rows = []
        for library in LIBRARIES:
            for chosen_on in (True, False):
                some = [v for (n, lib, *_), v in curves.items() if lib == library and available[n][0] is chosen_on]
                if some:
                    rows.append([f"{library}, {'chosen on' if chosen_on else 'shown on'}", *_mean(some)])
        rows.append(["all", *_mean(list(curves.values()))])
        columns = ["mean over sets and notions", "NDCG lost, training", "gap", "NDCG lost, held out", "gap"]
        table([*columns, "gap, ratio of sums", "cases", "of them above 2 errors at α = 0"], rows)
        for key, value in curves.items():
            points = zip(ALPHAS, *(value[part] for part in ("train_ndcg", "train_gap", "ndcg", "gap")), strict=True)
            note(
                " ".join(key)
                + ": "
                + "  ".join(f"{a:.2g}: {n:.3f}/{g:.3f} {m:.3f}/{h:.3f}" for a, n, g, m, h in points)
            )
    limits = {key[1:]: value for key, value in found.items() if key[0] == "constraint"}
    if limits:
        rows = []
        for key, value in limits.items():
            for row in value:
                met = "yes" if row["met"] else "NO" if row["possible"] else "no α does"
                reached = ["/".join(f"{number:.3f}" for number in row[part]) for part in ("train", "test")]
                rows.append([f"{' '.join(key)} ≤ {row['limit']:g}", met, f"{row['alpha']:.2g}", row["fits"], *reached])
        table(["max_violation", "met", "α", "models", "training NDCG/gap", "held out NDCG/gap"], rows)
    for name in (key[1] for key in found if key[0] == "stopping"):
        table([f"{name}, LightGBM, NDCG/dp", "trees", "training", "stopped by", "test"], found["stopping", name])
    aware = {key[1:]: value for key, value in found.items() if key[0] == "aware"}
    if aware:
        rows = [
            [
                " ".join(key),
                value["native"],
                *value["ours"],
                value["offset"],
                *(f"{value[part]:+.3f}" for part in ("lost", "lost_training")),
            ]
            for key, value in aware.items()
        ]
        columns = ["group_aware, held out", "α = 0", "0.3", "1", "3", "10", "GroupOffset"]
        table([*columns, "NDCG lost to an offset", "on training rows"], rows)


def _mean(some: list[dict[str, Any]]) -> list[str]:
    """Means over cases; ratios of held-out gaps over those whose gap at α = 0 is more than chance makes.

    A ratio whose lower part may be 0 by chance has no mean; the ratio of the sums has, and needs no choice of cases.
    """
    d = DEFAULT
    lost = [[each[key][0] - each[key][d] for each in some] for key in ("train_ndcg", "ndcg")]
    inside = [each["train_gap"][d] / each["train_gap"][0] for each in some]
    shown = [each for each in some if each["gap"][0] > 2 * each["gap_error"][0]]
    held = [each["gap"][d] / each["gap"][0] for each in shown]
    sums = [sum(each["gap"][at] for each in some) for at in (d, 0)]
    means = [f"{np.mean(lost[0]):+.3f}", f"{np.mean(inside):.0%}", f"{np.mean(lost[1]):+.3f}"]
    of_ratios = f"{np.mean(held):.0%}" if held else "–"
    return [*means, of_ratios, f"{sums[0] / sums[1]:.0%}", str(len(some)), str(len(shown))]


if __name__ == "__main__":
    main()
