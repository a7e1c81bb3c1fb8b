"""A bench: strengths are chosen without the reported rows, numbers agree with a slow twin, and nothing is lost."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.leaderboard.bench import chosen_methods, planned
from evenrank.leaderboard.by_fold import FoldMeter, pooled_gap
from evenrank.leaderboard.plan import FLOOR, BenchBlock
from evenrank.leaderboard.runner import BenchRunner
from evenrank.leaderboard.words import answers
from evenrank.methods.method import ANY, Method, Part, Sees, Strength, Task
from evenrank.methods.registry import METHODS

CORE = [name for name, method in METHODS.items() if not method.extra and not method.by_name]
GRID = {"amortized": [0, 0.05, 0.2], "fastar": [0, 0.3, 0.5]}
QUICK: dict[str, Any] = {"notions": ["dp", "eop"], "strengths": GRID, "ks": [2, 4], "folds": 4}


def rows(seed: int = 0, queries: int = 24, groups: int = 2) -> er.RankingData:
    """Short lists in which one group has the better features."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 9, queries)
    n = int(lengths.sum())
    group = rng.integers(0, groups, n)
    features = rng.normal(size=(n, 3)) + 0.6 * (group == 0)[:, None] * np.array([1, 0, 0.5])
    relevance = (features @ np.array([1.0, 0.5, 0.2]) + rng.normal(size=n) > 0.4).astype(float)
    return er.RankingData.from_arrays(features, relevance, group, np.repeat(np.arange(queries), lengths))


@pytest.fixture(scope="module")
def data() -> er.RankingData:
    return rows()


@pytest.fixture(scope="module")
def result(data: er.RankingData) -> er.Bench:
    return er.bench({"rows": data}, ["amortized", "fastar"], seeds=2, **QUICK)


def record_of(data: er.RankingData, method: str, grid: list[float] | None) -> list[dict[str, Any]]:
    """The results of one method's block with seed 0."""
    given = {} if grid is None else {method: grid}
    plan = planned({"rows": data}, [method], ["dp", "eop"], given, [2, 4], 4, 1, settings={})
    results: list[dict[str, Any]] = BenchRunner(plan).run(BenchBlock("rows", method, 0))["results"]
    return results


# ---------------------------------------------------------------------- nested choice


def with_other_labels(data: er.RankingData, fold: int) -> er.RankingData:
    """The labels of one fold turned round."""
    inside = (data.folds(4, 0) == fold)[data.query_of_row]
    return replace(data, relevance=np.where(inside, 1 - data.relevance, data.relevance))


@pytest.mark.parametrize("method", CORE)
def test_labels_of_the_reported_rows_change_neither_a_choice_nor_a_score(data, method):
    strength = METHODS[method].strength
    grid = strength.grid()[:: max(1, len(strength.grid()) // 5)].tolist()
    before = record_of(data, method, grid)
    others_moved = 0
    for fold in (2,):
        after = record_of(with_other_labels(data, fold), method, grid)
        for old, new in zip(before, after, strict=True):
            assert (
                old["strength"][fold] == new["strength"][fold]
                or np.isnan([old["strength"][fold], new["strength"][fold]]).all()
            )
            if old["notion"] == "demographic_parity":  # a gap that no label enters: the selection is the same
                assert old["gap"][fold] == new["gap"][fold]
            others_moved += old["gap"] != new["gap"]
    assert others_moved  # the labels do matter elsewhere


def test_a_choice_is_made_on_inner_folds_and_so_differs_between_folds(data):
    results = record_of(data, "amortized", np.geomspace(0.01, 1, 12).tolist())
    chosen = [row["strength"] for row in results if row["rule"] == "no_loss"]
    assert any(len(set(strengths)) > 1 for strengths in chosen)


# ---------------------------------------------------------------------- the slow twin


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def error(values: list[float]) -> float:
    middle = mean(values)
    return (sum((value - middle) ** 2 for value in values) / (len(values) - 1)) ** 0.5 / len(values) ** 0.5


def twin(data: er.RankingData, seed: int, grid: list[float]) -> dict[str, list[float]]:
    """Reductions, pooled reductions and changes of quality of the path, by loops over everything."""
    fold_of, folds = data.folds(4, seed), range(4)
    scored: dict[Any, np.ndarray] = {}

    def at(out: frozenset[int], tested: int, notion: str, alpha: float, names: list[str]) -> list[float]:
        key = (out, tested, notion, alpha)
        test = data.take(fold_of == tested)
        if key not in scored:
            train = data.take(~np.isin(fold_of, list(out)))
            scored[key] = er.fairness_path(train, notion, [alpha], "exact").scores(test)[:, 0]
        return [er.measure(scored[key], test, [name])[name] for name in names]

    out: dict[str, list[float]] = {"no_loss": [], "full": [], "quality": [], "pooled": []}
    for notion in ("demographic_parity", "equal_opportunity"):
        for k in (2, 4):
            names = [f"ndcg@{k}", f"{notion}@{k}"]
            chosen = []
            for fold in folds:
                others = [other for other in folds if other != fold]
                table = {
                    alpha: [at(frozenset((fold, other)), other, notion, alpha, names) for other in others]
                    for alpha in grid
                }
                base = table[0.0]
                best, least = None, mean([gap for _, gap in base])
                for alpha in grid:
                    quality, gaps = [pair[0] for pair in table[alpha]], [pair[1] for pair in table[alpha]]
                    base_quality = [pair[0] for pair in base]
                    no_loss = mean(base_quality) - mean(quality) <= error(quality) + error(base_quality)
                    if no_loss and mean(gaps) < least:
                        best, least = alpha, mean(gaps)
                chosen.append(0.0 if best is None else best)
            alone = [frozenset((fold,)) for fold in folds]
            before = [at(alone[fold], fold, notion, 0.0, names) for fold in folds]
            after = [at(alone[fold], fold, notion, chosen[fold], names) for fold in folds]
            end = [at(alone[fold], fold, notion, 1000.0, names) for fold in folds]
            out["no_loss"].append(1 - mean([gap for _, gap in after]) / mean([gap for _, gap in before]))
            out["full"].append(1 - mean([gap for _, gap in end]) / mean([gap for _, gap in before]))
            out["quality"].append(mean([q for q, _ in after]) - mean([q for q, _ in before]))
            pooled = []
            for alphas in ([0.0] * 4, chosen):
                every = np.empty(data.n_rows)
                for fold in folds:
                    tops = scored[alone[fold], fold, notion, alphas[fold]]
                    every[(fold_of == fold)[data.query_of_row]] = tops
                pooled.append(er.measure(data.to_caller(every), data, [names[1]])[names[1]])
            out["pooled"].append(1 - pooled[1] / pooled[0])
    return out


def test_standings_agree_with_loops_over_everything(data, result):
    by_rule = {s.rule: s for s in result.standings() if s.method == "amortized"}
    twins = [twin(data, seed, [0.0, 0.05, 0.2]) for seed in (0, 1)]
    for rule in ("no_loss", "full"):
        by_seed = [mean(one[rule]) for one in twins]
        assert by_rule[rule].reduction == pytest.approx(mean(by_seed), abs=1e-9)
        assert by_rule[rule].sd == pytest.approx(error(by_seed) * 2**0.5, abs=1e-9)
        assert (by_rule[rule].low, by_rule[rule].high) == pytest.approx((min(by_seed), max(by_seed)), abs=1e-9)
    assert by_rule["no_loss"].quality_change == pytest.approx(mean([mean(one["quality"]) for one in twins]), abs=1e-9)
    assert by_rule["no_loss"].pooled == pytest.approx(mean([mean(one["pooled"]) for one in twins]), abs=1e-9)


@pytest.mark.parametrize("groups", [2, 3])
def test_folds_measured_in_one_pass_are_those_measured_alone(groups):
    data = rows(3, 20, groups)
    fold_of, rng = data.folds(4, 0), np.random.default_rng(0)
    notions = ("demographic_parity", "equalized_odds")
    scores = [np.round(rng.normal(size=(data.n_rows, 3)), 1) for _ in range(3)]  # rounded: with ties
    meter = FoldMeter([data], fold_of, 4, notions, (1, 3))
    parts = [Part(0, notions[0], None, scores[0]), Part(0, notions[1], 1, scores[1]), Part(0, notions[1], 3, scores[2])]
    for fold, values in enumerate(meter.measure(parts, 3)):
        inside = (fold_of == fold)[data.query_of_row]
        test = data.take(fold_of == fold)
        for n, number, k, of in ((0, 0, 1, 0), (0, 1, 3, 0), (1, 0, 1, 1), (1, 1, 3, 2)):
            wanted = er.measure(data.to_stored(scores[of])[inside], test, [f"ndcg@{k}", f"{notions[n]}@{k}"])
            np.testing.assert_allclose(values.quality[0, n, number], wanted[f"ndcg@{k}"], atol=1e-12)
            np.testing.assert_allclose(values.gap[0, n, number], wanted[f"{notions[n]}@{k}"], atol=1e-12)
    everything = meter.measure([Part(0, ANY, None, scores[0])], 3)
    for n, notion in enumerate(notions):
        selected = np.stack([values.selected[0, n][1, :, :, 2] for values in everything])
        size = np.stack([values.size[0, n] for values in everything])
        wanted = er.measure(scores[0][:, 2], data, [f"{notion}@3"])[f"{notion}@3"]
        assert pooled_gap(selected, size) == pytest.approx(wanted, abs=1e-12)


def test_a_fold_without_a_group_has_no_gap_and_the_others_count():
    data = rows(1, 9)
    fold_of = data.folds(3, 0)
    lacking = (fold_of == 1)[data.query_of_row]
    data = data.with_group(np.where(lacking, "a", np.where(data.group == 0, "a", "b")).tolist())
    result = er.bench(data, ["fastar"], ["dp"], {"fastar": [0, 0.5]}, [2], 3, [0])
    assert not np.isnan(result.columns["gap"]).any()
    assert not np.isnan(result.standings()[0].reduction)


# ---------------------------------------------------------------------- other lists


def test_a_method_that_sees_other_lists_gets_one_fold_at_a_time(data, monkeypatch):
    seen = []

    def run(method: Method, task: Task):
        seen.append((task.train[0].n_queries, task.test[0].n_queries, task.test[0].relevance.sum()))
        yield Part(0, ANY, None, np.zeros((task.test[0].n_rows, len(task.strengths))))

    like = METHODS["fastar"]
    strength = Strength("c", "of nothing", lambda: np.array([0.0, 1.0]))
    method = replace(like, name="nosy", run=run, by_k=False, sees=Sees(other_lists=True), strength=strength)
    monkeypatch.setitem(METHODS, "nosy", method)
    record_of(data, "nosy", None)
    assert sorted(set(seen)) == [(12, 6, 0.0), (18, 6, 0.0)]
    assert len(seen) == 4 + 2 * 6


# ---------------------------------------------------------------------- clusters, floor, methods


def test_queries_of_a_cluster_stay_together(data):
    clusters = np.arange(data.n_queries) // 3
    source = er.BenchData({"group": data}, clusters)
    for seed in range(5):
        fold_of = source.fold_of(4, seed)
        assert all(len(set(fold_of[clusters == cluster])) == 1 for cluster in range(8))
        assert set(fold_of) == set(range(4))


def test_the_noise_floor_is_near_even_when_pooled(result):
    floor = next(standing for standing in result.standings() if standing.method == FLOOR)
    assert floor.pooled > 0.6
    assert floor.pooled > floor.reduction


def test_core_leaves_out_what_needs_an_extra_and_says_so():
    chosen, left_out = chosen_methods("core")
    assert chosen == CORE
    assert set(left_out) == {name for name, method in METHODS.items() if method.extra or method.by_name}
    assert all(METHODS[name].extra in reason for name, reason in left_out.items())
    assert "name it" in left_out["deltr_published"]


# ---------------------------------------------------------------------- files


def test_a_bench_that_was_stopped_goes_on_and_gives_the_same_files(data, result, tmp_path, monkeypatch):
    original, ran = BenchRunner.run, []

    def run(self, block):
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append(block)
        return original(self, block)

    options = {"seeds": 2, **QUICK, "out": tmp_path / "bench"}
    monkeypatch.setattr(BenchRunner, "run", run)
    with pytest.raises(KeyboardInterrupt):
        er.bench({"rows": data}, ["amortized", "fastar"], **options)
    with pytest.warns(DataWarning, match="3 of 6 blocks"):
        assert er.Bench.load(tmp_path / "bench").done == (3, 6)
    again = []
    monkeypatch.setattr(BenchRunner, "run", lambda self, block: again.append(block) or original(self, block))
    resumed = er.bench({"rows": data}, ["amortized", "fastar"], **options)
    assert len(again) == 3
    assert not set(again) & set(ran)
    assert resumed.csv() == result.csv() == er.Bench.load(tmp_path / "bench").csv()
    assert (tmp_path / "bench" / "bench.csv").read_text() == result.csv()
    names = sorted(file.name for file in (tmp_path / "bench").iterdir())
    assert names == ["bench.csv", "bench.html", "bench.json", "bench.md", "config.json", "journal.jsonl"]
    with pytest.raises(ConfigError, match="ks"):
        er.bench({"rows": data}, ["amortized", "fastar"], **{**options, "ks": [3]})
    with pytest.raises(ConfigError, match="data"):
        er.bench({"rows": rows(9)}, ["amortized", "fastar"], **options)


def test_a_damaged_line_is_left_out_and_its_block_done_again(data, tmp_path):
    options = {"seeds": 1, **QUICK, "strengths": {"amortized": [0, 0.1]}, "out": tmp_path / "b"}
    first = er.bench({"rows": data}, ["amortized"], **options)
    journal = tmp_path / "b" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(lines[0].replace(b'"gap"', b'"gab"', 1) + lines[1])
    with pytest.warns(DataWarning, match="damaged"):
        assert er.bench({"rows": data}, ["amortized"], **options).csv() == first.csv()


def test_a_record_of_other_settings_is_refused(data, tmp_path):
    from evenrank.leaderboard.folder import check_record

    er.bench({"rows": data}, ["amortized"], ["dp"], {"amortized": [0, 0.1]}, [2], 3, 1, out=tmp_path / "b")
    config = json.loads((tmp_path / "b" / "config.json").read_text())
    line = json.loads((tmp_path / "b" / "journal.jsonl").read_text().splitlines()[0])
    check_record(line["record"], config, "line")
    results = line["record"]["results"]
    for change in (
        {"block": {"data": "rows", "method": "amortized", "seed": 7}},
        {"results": [{**results[0], "k": 3}, *results[1:]]},
        {"results": [{**row, "gap": [2.0] * 3} for row in results]},
        {"base": []},
    ):
        with pytest.raises(DataError, match="line"):
            check_record({**line["record"], **change}, config, "line")


def test_several_processes_give_the_same_numbers(data, result):
    assert er.bench({"rows": data}, ["amortized", "fastar"], seeds=2, n_jobs=2, **QUICK).csv() == result.csv()


def test_the_table_the_standings_and_the_page_hold_the_same_numbers(result):
    table = list(csv.DictReader(io.StringIO(result.csv())))
    assert len(table) == len(result) == len(result.frame())
    of = [row for row in table if (row["method"], row["rule"]) == ("fastar", "no_loss")]
    reductions = [1 - float(row["gap"]) / float(row["base_gap"]) for row in of]
    told = {(s["method"], s["rule"]): s for s in result.to_dict()["standings"]}
    assert told["fastar", "no_loss"]["reduction"] == pytest.approx(mean(reductions), abs=1e-9)
    assert told["fastar", "no_loss"]["sees"] == {
        "group_at_training": False,
        "group_at_serving": True,
        "labels": False,
        "other_lists": False,
    }
    page = result.html()
    for standing in result.standings():
        assert f"{round(100 * standing.reduction)}%" in page
    assert "group at serving; no labels" in page


def test_names_from_data_cannot_become_markup(data):
    hostile = "<script>alert(1)</script>"
    page = er.bench({hostile: {"a|b<i>": data}}, ["amortized"], ["dp"], {"amortized": [0, 0.1]}, [2], 3, 1).html()
    assert hostile not in page
    assert "<i>" not in page


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 2}, "folds must be"),
        ({"folds": 60}, "60 folds need at least as many queries; found 24"),
        ({"methods": ["core", "fastar"]}, "methods must be 'core', 'all' or names"),
        ({"methods": ["fa*ir"]}, "method"),
        ({"methods": []}, "at least one method"),
        ({"strengths": {"deltr": [0, 1]}}, "a method of strengths"),
        ({"settings": {"amortized": {"nonsense": 1}}}, "nonsense"),
        ({"seeds": 0}, "seeds"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"scale": "all"}, "scale"),
        ({"ks": [0]}, "k"),
    ],
)
def test_what_cannot_be_asked(data, options, message):
    with pytest.raises((ConfigError, DataError), match=message):
        er.bench({"rows": data}, **{"methods": ["amortized"], **options})


def test_data_that_cannot_be_compared(data):
    with pytest.raises(DataError, match="at least two"):
        er.bench({"rows": data.with_group(["a"] * data.n_rows)}, ["amortized"])
    with pytest.raises(DataError, match="clusters must be one value per query"):
        er.bench({"rows": er.BenchData({"group": data}, np.zeros(3))}, ["amortized"])
    with pytest.raises(DataError, match="found 2"):
        er.bench({"rows": er.BenchData({"group": data}, np.arange(24) % 2)}, ["amortized"])
    with pytest.raises(DataError, match="data sets by name"):
        er.bench([data], ["amortized"])


def test_a_folder_of_a_sweep_is_no_bench(data, tmp_path):
    er.sweep(data, notions=["dp"], strengths=[0, 0.1], ks=[2], folds=3, out=tmp_path / "run")
    with pytest.raises(DataError, match=r"config\.json"):
        er.Bench.load(tmp_path / "run")
    assert not list(Path(tmp_path / "run").glob("bench*"))


def test_nothing_is_said_of_kinds_of_methods_that_were_not_run(data):
    quick = {**QUICK, "strengths": {}, "seeds": 1}
    blind = er.bench({"rows": data}, ["amortized"], **quick)
    seeing = er.bench({"rows": data}, ["fastar"], **quick)
    assert [sentence[:40] for sentence in answers(blind, "rows")] == ["Of the methods that are group-blind at s"]
    assert [sentence[:40] for sentence in answers(seeing, "rows")] == ["Of the methods that may see the group at"]


def test_no_name_in_the_table_is_a_formula(data):
    table = er.bench({"=cmd|rows": data}, ["fastar"], ["dp"], {"fastar": [0, 0.3]}, ks=[2], folds=3, seeds=1).csv()
    assert {row["data"] for row in csv.DictReader(io.StringIO(table))} == {"'=cmd|rows"}
