"""NDCG@5 of 100,000 queries × 9 items, ties averaged by ours, against ranx, pytrec_eval, ir_measures and scikit-learn.

Every side starts from its own native input (arrays, Qrels and Run, dicts), made beforehand; what it takes to make that
from arrays is the column "input". The scores have no ties, so that all sides must give the same value; on scores with
ties ours must give scikit-learn's tie-averaging value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import common
import evenrank as er

ITEMS, K = 9, 5


def synthetic(queries: int) -> tuple[np.ndarray, np.ndarray]:
    """Relevance 0 … 3 with at least one relevant item a query, and scores without ties, each (queries, items)."""
    rng = np.random.default_rng(0)
    relevance = rng.choice(4, (queries, ITEMS), p=[0.6, 0.2, 0.15, 0.05])
    relevance[np.arange(queries), rng.integers(0, ITEMS, queries)] = 3
    # Distinct also in float32, which trec_eval keeps scores in.
    scores = rng.permuted(np.tile(np.arange(1024), (queries, 1)), axis=1)[:, :ITEMS] / 64 + 0.3 * relevance
    return relevance, scores


def our_data(relevance: np.ndarray) -> er.RankingData:
    queries = len(relevance)
    qid = np.repeat(np.arange(queries), ITEMS)
    group = np.tile(np.arange(ITEMS) % 2, queries)
    return er.RankingData.from_arrays(np.zeros((queries * ITEMS, 0)), relevance.ravel().astype(float), group, qid)


def nested(values: np.ndarray) -> dict[str, dict[str, Any]]:
    """{query: {item: value}}, the native form of pytrec_eval and ir_measures."""
    items = [f"d{i}" for i in range(ITEMS)]
    return {f"q{i}": dict(zip(items, line, strict=True)) for i, line in enumerate(values.tolist())}


Evaluate = Callable[[], float]


def for_ours(relevance: np.ndarray, scores: np.ndarray) -> Evaluate:
    data, flat = our_data(relevance), scores.ravel()
    return lambda: er.measure(flat, data, f"ndcg@{K}")[f"ndcg@{K}"]


def for_ranx(ranx: Any, relevance: np.ndarray, scores: np.ndarray) -> Evaluate:
    qrels, run = ranx.Qrels(nested(relevance)), ranx.Run(nested(scores))
    return lambda: float(ranx.evaluate(qrels, run, f"ndcg@{K}"))


def for_pytrec_eval(pytrec_eval: Any, relevance: np.ndarray, scores: np.ndarray) -> Evaluate:
    evaluator, run = pytrec_eval.RelevanceEvaluator(nested(relevance), {f"ndcg_cut.{K}"}), nested(scores)
    return lambda: float(np.mean([found[f"ndcg_cut_{K}"] for found in evaluator.evaluate(run).values()]))


def for_ir_measures(ir_measures: Any, relevance: np.ndarray, scores: np.ndarray) -> Evaluate:
    wanted = ir_measures.nDCG @ K
    evaluator, run = ir_measures.evaluator([wanted], nested(relevance)), nested(scores)
    return lambda: float(evaluator.calc_aggregate(run)[wanted])


def for_sklearn(metrics: Any, relevance: np.ndarray, scores: np.ndarray, *, ignore_ties: bool) -> Evaluate:
    return lambda: float(metrics.ndcg_score(relevance, scores, k=K, ignore_ties=ignore_ties))


def main() -> None:
    args = common.parser(__doc__).parse_args()
    queries = 20_000 if args.quick else 100_000
    repeats = 3 if args.quick else 7
    modules = {name: common.peer(name) for name in ("ranx", "pytrec_eval", "ir_measures", "sklearn.metrics")}
    packages = ["ranx", "pytrec-eval-terrier", "ir-measures", "scikit-learn"]
    common.start(f"NDCG@{K}, {queries:,} queries × {ITEMS} items", packages, threads=args.threads)
    warnings.filterwarnings("ignore", module="ranx")
    relevance, scores = synthetic(queries)

    sklearn = modules["sklearn.metrics"]
    sides: dict[str, tuple[Any, Callable[..., Evaluate]]] = {
        "ranx": (modules["ranx"], for_ranx),
        "pytrec_eval": (modules["pytrec_eval"], for_pytrec_eval),
        "ir_measures": (modules["ir_measures"], for_ir_measures),
        "scikit-learn, ties ignored": (sklearn, partial(for_sklearn, ignore_ties=True)),
        "scikit-learn, ties averaged": (sklearn, partial(for_sklearn, ignore_ties=False)),
    }
    made, evaluate = common.timed(partial(for_ours, relevance, scores))
    own, value = common.best(evaluate, 3 * repeats), evaluate()
    rows = [["evenrank, ties averaged", common.seconds(own), "", common.seconds(made), f"{value:.9f}"]]
    differences = []
    for name, (module, prepare) in sides.items():
        if module is None:
            rows.append([name, common.MISSING, "", "", ""])
            continue
        prepare(module, relevance[:5], scores[:5])()  # ranx compiles here
        made, evaluate = common.timed(partial(prepare, module, relevance, scores))
        first, theirs = common.timed(evaluate)
        took = common.best(evaluate, repeats if first < 2 else 2, warm_up=False)
        differences.append(abs(theirs - value))
        rows.append([name, common.seconds(took), common.times(took / own), common.seconds(made), f"{theirs:.9f}"])
    common.table(["", "time", "ratio", "input", f"NDCG@{K}"], rows)
    if differences:
        common.note(f"largest difference in the value: {max(differences):.1e}")
    if sklearn is not None:
        few, coarse = relevance[:2000], np.round(scores[:2000] / 4)
        gap = abs(for_ours(few, coarse)() - for_sklearn(sklearn, few, coarse, ignore_ties=False)())
        common.note(f"difference from scikit-learn's tie-averaging value on 2,000 queries with ties: {gap:.1e}")

    common.note("\nCost as the queries grow, evenrank:")
    rows = []
    for count in (queries // 4, queries // 2, queries, 2 * queries):
        took = common.best(for_ours(*synthetic(count)), 2 * repeats)
        rows.append([f"{count:,}", common.seconds(took), f"{took / count / ITEMS * 1e9:.0f}"])
    common.table(["queries", "time", "ns a row"], rows)


if __name__ == "__main__":
    main()
