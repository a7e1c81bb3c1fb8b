"""Answers of every part of the library to the same questions, as JSON: ``python tests/processors/answers.py OUT``.

The questions are made of whole numbers and quarters, which every processor holds exactly, and are full of ties, of
thresholds that are met exactly and of groups that are exactly alike: where an answer hangs on a last digit, it shows.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import evenrank as er
from evenrank.cli import main
from evenrank.measures.registry import MEASURES
from evenrank.methods.registry import METHODS

NO_RESULT = ("provenance", "made", "out", "run", "report", "seconds", "versions", "timings")
SHAPES = ((12, 6), (30, 10), (5, 40), (60, 3))  # queries and the most items of each
RULES = ("greedy", "cons", "relaxed", "const_sort")
NOTIONS = ("dp", "eop", "eod")
DIRECT = [name for name, method in METHODS.items() if method.direct]


def lists(seed: int, queries: int, most: int, *, groups: int = 2, levels: int = 8) -> tuple[Any, er.RankingData]:
    """Scores with ties, and rows: few levels of scores, graded labels, uneven groups, lists of 1 item and up."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, most + 1, queries)
    n = int(lengths.sum())
    relevance = rng.integers(0, 3, n)
    group = np.where(rng.integers(0, 2, n) == 0, rng.integers(0, groups, n), 0)
    group[:groups] = np.arange(groups)
    features = rng.integers(-16, 17, (n, 4)) / 8
    features[:, 1] += relevance + group / 2
    scores = rng.integers(0, levels, n) / 4 + (rng.integers(0, 2, n) * relevance) / 4
    data = er.RankingData.from_arrays(
        features, relevance, group, np.repeat(np.arange(queries), lengths), item_ids=np.arange(n)
    )
    return scores, data


def questions() -> Iterator[tuple[str, Callable[[Path], Any]]]:
    """Names, and what answers them in a folder that has rows.csv."""
    for shape in range(len(SHAPES)):
        for groups in (2, 4):
            yield f"measures {shape} {groups}", partial(_measures, shape, groups)
            yield f"audit {shape} {groups}", partial(_audit, shape, groups)
            yield f"re-rankers {shape} {groups}", partial(_rerankers, shape, groups)
        yield f"paths {shape}", partial(_paths, shape)
        yield f"offsets of real-valued scores {shape}", partial(_offsets, shape)
        yield f"monitor {shape}", partial(_monitor, shape)
    yield "fastar tables", _tables
    yield "bounds", _bounds
    yield "audit of german_credit", _german_credit
    for command in COMMANDS:
        yield f"evenrank {command}", partial(_command, command)


SWEPT = [name for name, method in METHODS.items() if not method.extra and name != "deltr_published"]
# A word that begins with a stroke is a path in the folder.
COMMANDS = [
    "demo -o /demo.html --json",
    "audit /rows.csv --json",
    "audit /rows.csv --k 1,2,5 --no-items --json",
    "audit /rows.csv --standard ll144 --sex group --k 3 --json",
    "audit /rows.csv --standard ll144 --sex group --race kind --rate scoring --json",
    "monitor /rows.csv --time day --window 4 --k 3 --json",
    "monitor /rows.csv --time day --window 4 --k 3 --question both --reference 2 --json",
    f"sweep /rows.csv --methods {','.join(SWEPT)} --strengths 0,0.1,0.5 --k 1,3 --folds 3 "
    "--ignore day,kind -o /run --json",
    "select /run --rule all --json",
    "sweep /rows.csv --methods offset,offset_adaptive --group kind --k 1,3 --folds 3 --ignore day,group -o /kinds "
    "--json",
    "bench german_credit --methods amortized,offset,fastar,det_greedy --seeds 1 --folds 3 --k 3 -j 1 -o /bench --json",
    "bound --json --queries 500 --list-length 20 --min-share 0.2",
    "measures --json",
    *(f"rank /rows.csv --score score --method {name} --k 5 -o /{name}.csv" for name in DIRECT),
]


def _measures(shape: int, groups: int, folder: Path) -> Any:
    queries, most = SHAPES[shape]
    scores, data = lists(shape, queries, most, groups=groups)
    out = {}
    for name in MEASURES:
        for cut in ("", "@1", "@3"):
            out[name + cut] = _answer(partial(er.measure, scores, data, [name + cut]))
        out[f"interval {name}"] = _answer(partial(er.interval, scores, data, f"{name}@3"))
    return out


def _audit(shape: int, groups: int, folder: Path) -> Any:
    queries, most = SHAPES[shape]
    out = []
    for seed in range(6):
        scores, data = lists(100 * shape + seed, queries, most, groups=groups, levels=2 + 3 * seed)
        out.append(_answer(partial(_audited, scores, data, [1, 2, 5])))
    return out


def _audited(scores: Any, data: er.RankingData, ks: list[int]) -> Any:
    return er.audit(scores, data, ks=ks).to_dict()


def _rerankers(shape: int, groups: int, folder: Path) -> Any:
    queries, most = SHAPES[shape]
    scores, data = lists(shape, queries, most, groups=groups)
    labels = data.group_names
    even = dict.fromkeys(labels, 1 / len(labels))
    smaller = {labels[-1]: 0.3} if groups == 2 else dict(zip(labels[1:], (0.2, 0.1, 0.1), strict=True))
    made: dict[str, Any] = {
        **{f"det {rule}": er.DetRanker(rule=rule, target=even) for rule in RULES},
        **{f"fastar {p}": er.FAStar(p=p) for p in (0.1, 0.3, 0.5)},
        "multinomial": er.MultinomialFAStar(p=smaller),
        **{f"offset {notion}": er.GroupOffset(notion=notion, k=3) for notion in NOTIONS},
        "quantile match": er.QuantileMatch(),
        "quantile barycentre": er.QuantileBarycentre(theta=0.5),
        "opportunity": er.EqualOpportunityTransform(n_quantiles=7),
    }
    out = {}
    for name, reranker in made.items():
        out[name] = _answer(partial(_reranked, reranker, scores, data))
    for notion in (*NOTIONS, "merit"):
        out[f"controller {notion}"] = _answer(partial(_served, er.FairController(notion=notion, k=3), scores, data))
    # Exposures are unique where no two merits are equal, and the rankings that give them hang on the exposures.
    merits = scores + np.random.default_rng(shape).permutation(len(scores)) / 4096
    for constraint in ("parity", "disparate_treatment", "disparate_impact", "individual"):
        ranker = er.ExposureRanker(constraint=constraint)
        out[f"exposure {constraint}"] = _answer(partial(ranker.exposure, merits, data))
        out[f"drawn {constraint}"] = _answer(partial(ranker.rerank, merits, data))
    return out


def _reranked(reranker: Any, scores: Any, data: er.RankingData) -> list[int]:
    fitted = reranker.fit(scores, data) if hasattr(reranker, "fit") else reranker
    return _order(fitted.rerank(scores, data), data)


def _order(scores: Any, data: er.RankingData) -> list[int]:
    """The places, which are a decision; the numbers behind them may be anyhow."""
    return np.asarray(er.Ranking(data.to_stored(scores), data.query_ptr).first).tolist()


def _served(controller: Any, scores: Any, data: er.RankingData) -> list[Any]:
    query, group = data.to_caller(data.query_of_row), data.to_caller(data.group)
    values, chance = (scores - scores.min()) / 4, data.to_caller(data.relevance) / 2
    return [
        np.asarray(controller.rank(values[query == one], group[query == one], relevance=chance[query == one])).tolist()
        for one in range(data.n_queries)
    ]


def _paths(shape: int, folder: Path) -> Any:
    queries, most = SHAPES[shape]
    _, data = lists(shape, queries, most)
    return {
        f"{notion} {scope}": _answer(partial(_path, data, notion, scope))
        for notion in NOTIONS
        for scope in ("amortized", "per_query")
    }


def _path(data: er.RankingData, notion: str, scope: str) -> Any:
    scores = er.fairness_path(data, notion=notion, alphas=[0, 0.01, 0.1, 1, 10], scope=scope).scores(data)
    return {"scores": scores, "measured": er.measure(scores, data, ["ndcg@3", "dp@3", "eop@3", "eod@3"])}


def _offsets(shape: int, folder: Path) -> Any:
    """Four groups, and scores of a trained ranker: each processor has other last digits."""
    queries, most = SHAPES[shape]
    out = {}
    for seed in range(4):
        _, data = lists(50 * shape + seed, queries, most, groups=4)
        scores = er.fairness_path(data, "dp", [0.0, 0.05]).scores(data)[:, 1]
        for notion in NOTIONS:
            for k in (1, 3):
                ranker = er.GroupOffset(notion, k, shrink=False)
                out[f"{seed} {notion} {k}"] = _answer(partial(_offset, ranker, scores, data))
    return out


def _offset(ranker: er.GroupOffset, scores: Any, data: er.RankingData) -> Any:
    fitted = ranker.fit(scores, data)
    adapted = fitted.adapt(scores, data)
    return [[each.offsets_, each.gap_after_, _order(each.rerank(scores, data), data)] for each in (fitted, adapted)]


def _monitor(shape: int, folder: Path) -> Any:
    queries, most = SHAPES[shape]
    scores, data = lists(shape, queries, most)
    times = data.to_caller(data.query_of_row)
    return er.monitor(scores, data, times, window=str(max(1, queries // 6)), k=3).to_dict()


def _tables(folder: Path) -> Any:
    """Minima of FA*IR: cumulative probabilities that equal the significance are common with round numbers."""
    out = {}
    for p in (0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9):
        for significance in (0.01, 0.05, 0.1, 0.125, 0.19, 0.25, 0.5):
            for k in (1, 2, 3, 5, 10, 40):
                for adjust in (False, True):
                    name = f"{p} {significance} {k} {adjust}"
                    out[name] = _answer(partial(er.FAStar(p=p, significance=significance, adjust=adjust).table, k))
    return out


def _bounds(folder: Path) -> Any:
    scores, data = lists(1, 40, 10)
    return {
        measure: _answer(partial(er.bounds.certified, scores, data, measure, delta=0.05))
        for measure in ("dp@3", "eop@3", "eod@3")
    }


def _german_credit(folder: Path) -> Any:
    out = {}
    for by in ("age", "sex", "sex+age"):
        data = er.datasets.german_credit(by)
        for feature in (0, 1, 2):
            scores = data.to_caller(data.features[:, feature])
            out[f"{by} {feature}"] = _answer(partial(_audited, scores, data, [1, 3, 5]))
    return out


def _command(line: str, folder: Path) -> Any:
    words = [str(folder / word[1:]) if word.startswith("/") else word for word in line.split()]
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as end:
            code = end.code
    errors = [text for text in err.getvalue().splitlines() if text.strip()]
    answer: dict[str, Any] = {"code": code}
    if code not in (0, 1, None):
        answer["error"] = errors[-1].replace(str(folder), "")
    elif words[0] == "rank":
        answer["rows"] = Path(words[words.index("-o") + 1]).read_text().splitlines()
    else:
        answer["json"] = json.loads(out.getvalue())
    return answer


def _answer(ask: Callable[[], Any]) -> Any:
    """What comes back, or the line of the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ask()
    except er.EvenrankError as error:
        return {"refused": str(error)}


def plain(value: Any) -> Any:
    """The value as JSON has it, without what is no result."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items() if key not in NO_RESULT}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return plain(vars(value)) if hasattr(value, "__dict__") else str(value)


def write_rows(path: Path) -> None:
    """Rows with the columns that commands ask for."""
    scores, data = lists(7, 40, 8)
    rng = np.random.default_rng(7)
    query = data.to_caller(data.query_of_row)
    kinds = rng.integers(0, 3, data.n_rows)
    columns = [
        query,
        np.arange(data.n_rows),
        data.to_caller(data.relevance),
        data.to_caller(data.group),
        scores,
        query,
        kinds,
        *data.to_caller(data.features).T,
    ]
    with path.open("w") as file:
        file.write("qid,item,relevance,group,score,day,kind,f0,f1,f2,f3\n")
        for row in zip(*(column.tolist() for column in columns), strict=True):
            row = (*row[:3], f"g{int(row[3])}", *row[4:6], f"k{int(row[6])}", *row[7:])
            file.write(",".join(str(cell) for cell in row) + "\n")


def answers() -> Iterator[tuple[str, Any]]:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_rows(Path(folder) / "rows.csv")
        for name, ask in questions():
            try:
                yield name, plain(ask(Path(folder)))
            except Exception:
                yield name, {"traceback": traceback.format_exc().splitlines()[-1]}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(dict(answers())))
