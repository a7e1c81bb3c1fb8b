"""`evenrank audit`: the numbers of `er.measure`, whatever the format, the order or the split of the rows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank as er

KS = [1, 3, 5, 10]
QUALITY = ["ndcg", "precision", "recall"]
FAIRNESS = ["demographic_parity", "equal_opportunity", "equalized_odds", "exposure_gap", "four_fifths"]


def names(measures, ks=KS):
    return [f"{name}@{k}" for name in measures for k in ks]


def cells(out: str, label: str) -> list[str]:
    """The values of the table's row of that name."""
    found = [line for line in out.splitlines() if line.strip().startswith(label)]
    assert len(found) == 1, (label, out)
    return found[0].strip().removeprefix(label).split()


def untitled(found):
    """All but the title, which names the file."""
    assert found.out.startswith("Audit of ")
    return (found.code, found.err, found.out.splitlines()[1:])


def body(found):
    """The JSON but for how it was made, which names the file and the time."""
    return {name: value for name, value in found.json().items() if name != "provenance"}


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "letor"])
def test_json_has_the_measures_of_the_library_in_every_format(run, save, logged, data, scores, suffix):
    path = save(logged, f"rows.{suffix}")
    columns = logged.columns[3:]
    numbered = ["--score", columns.index("score") + 1, "--group", columns.index("group") + 1, "--item", "docid"]
    report = run("audit", path, "--json", *(numbered if suffix == "letor" else [])).json()
    assert report["k"] == KS
    assert report["measures"] == pytest.approx(er.measure(scores, data, names([*QUALITY, *FAIRNESS])), abs=1e-12)
    assert report["largest_pair"] == {}
    for k in KS:
        rates = er.selection_rates(scores, data, k)
        assert list(report["selection_rates"][str(k)].values()) == pytest.approx(list(rates.values()), abs=1e-12)
    facts = report["data"]
    assert (facts["rows"], facts["queries"], facts["longest_list"]) == (data.n_rows, data.n_queries, 12)
    assert facts["relevant_share"] == pytest.approx(data.relevance.mean())
    assert list(facts["groups"].values()) == pytest.approx([(data.group == code).mean() for code in (0, 1)])
    assert facts["unknown_group_share"] == 0


def test_the_table_prints_the_same_numbers_to_three_digits(run, save, logged, data, scores):
    out = run("audit", save(logged, "rows.csv")).out
    values = er.measure(scores, data, names([*QUALITY, *FAIRNESS]))
    titles = {"NDCG": "ndcg", "precision": "precision", "recall": "recall", "exposure gap": "exposure_gap"}
    titles |= {f"{name.replace('_', ' ')} gap": name for name in FAIRNESS[:3]} | {"lowest/highest rate": "four_fifths"}
    for title, name in titles.items():
        assert cells(out, title) == [f"{values[f'{name}@{k}']:.3f}" for k in KS]
    for group in data.group_names:
        rates = [er.selection_rates(scores, data, k)[group] for k in KS]
        assert cells(out, f"all: {group}") == [f"{rate:.3f}" for rate in rates]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_shuffling_and_splitting_change_no_printed_digit(run, save, logged, suffix):
    whole = run("audit", save(logged, f"rows.{suffix}"))
    assert whole.code == 0
    for seed in range(3):
        mixed = logged.sample(fraction=1.0, shuffle=True, seed=seed)
        assert untitled(run("audit", save(mixed, f"mixed.{suffix}"))) == untitled(whole)
        parts = [save(mixed[start : start + 200], f"part{start}.{suffix}") for start in range(0, len(mixed), 200)]
        assert len(parts) == 3
        assert untitled(run("audit", *parts)) == untitled(whole)


def test_renaming_groups_and_queries_changes_names_only(run, save, logged):
    whole = run("audit", save(logged, "rows.csv"), "--json").json()
    # The new names sort the other way round, so the groups' codes are swapped.
    swapped = {"25 or younger": "z: 25 or younger", "over 25": "a: over 25"}
    renamed = logged.with_columns(pl.col("group").replace(swapped), qid=pl.col("qid").rank("dense") * 7)
    again = run("audit", save(renamed, "renamed.csv"), "--json").json()
    assert list(again["data"]["groups"]) == ["a: over 25", "z: 25 or younger"]
    for before, after in zip(whole["findings"], again["findings"], strict=True):
        assert (before["measure"], before["k"]) == (after["measure"], after["k"])
        assert [after[name] for name in ("estimate", "low", "high")] == pytest.approx(
            [before[name] for name in ("estimate", "low", "high")],
            abs=1e-9,  # ends are roots found by steps
        )
        assert after["favoured"] == swapped.get(before["favoured"])
    for before, after in zip(whole["certified"], again["certified"], strict=True):
        assert after["bound"] == pytest.approx(before["bound"], abs=1e-12)
    assert again["four_fifths"] == whole["four_fifths"]


def test_columns_may_have_any_names(run, save, logged):
    expected = run("audit", save(logged, "rows.csv"), "--json")
    other = {"qid": "session", "item": "doc", "relevance": "clicks", "group": "seller", "score": "model"}
    path = save(logged.rename(other), "other.csv")
    options = [part for role, name in other.items() for part in (f"--{role if role != 'qid' else 'query'}", name)]
    assert body(run("audit", path, *options, "--json")) == body(expected)


def test_format_names_what_the_suffix_does_not(run, save, logged):
    expected = run("audit", save(logged, "rows.csv"))
    path = Path("rows.csv").rename("rows.data")
    assert untitled(run("audit", path, "--input-format", "csv")) == untitled(expected)
    assert run("audit", path).code == 2


def test_more_than_two_groups_show_the_largest_pair_first(run, save):
    data = er.datasets.german_credit("sex+age", lists=20)
    scores = data.column("duration_months") if "duration_months" in data.feature_names else data.features[:, 0]
    group = [data.group_names[code] for code in data.group]
    frame = pl.DataFrame(
        {"qid": data.query_ids[data.query_of_row], "relevance": data.relevance, "group": group, "score": scores}
    )
    path = save(frame, "rows.parquet")
    report = run("audit", path, "--k", "5", "--json").json()
    assert report["measures"] == pytest.approx(er.measure(scores, data, names([*QUALITY, *FAIRNESS], [5])))
    assert report["largest_pair"] == pytest.approx(er.measure(scores, data, names(FAIRNESS[:4], [5]), across="max"))
    out = run("audit", path, "--k", "5").out
    for title in ("demographic parity gap", "equal opportunity gap", "equalized odds gap", "exposure gap"):
        largest, mean = out.index(f"{title} (largest pair)"), out.index(f"{title} (mean over pairs)")
        assert largest < mean
    assert out.count("lowest/highest rate") == 1
    rates = er.selection_rates(scores, data, 5)
    widest = max(rates.values()) - min(rates.values())
    assert report["largest_pair"]["demographic_parity@5"] == pytest.approx(widest)


def test_unknown_groups_count_in_quality_and_in_no_gap(run, save, logged, data, scores):
    unknown = np.arange(len(logged)) % 5 == 0
    frame = logged.with_columns(group=pl.when(pl.Series(~unknown)).then(pl.col("group")))
    labels = np.array([data.group_names[code] for code in data.group], dtype=object)
    labels[unknown] = None
    same = data.with_group(labels)
    path = save(frame, "rows.csv")
    report = run("audit", path, "--json").json()
    assert report["measures"] == pytest.approx(er.measure(scores, same, names([*QUALITY, *FAIRNESS])), abs=1e-12)
    quality = er.measure(scores, data, names(QUALITY))
    assert {name: report["measures"][name] for name in quality} == pytest.approx(quality, abs=1e-12)
    assert report["data"]["unknown_group_share"] == pytest.approx(0.2)
    assert ", unknown 20%" in " ".join(run("audit", path).out.split())


def test_logs_without_labels(run, save, logged, data, scores):
    path = save(logged.drop("relevance"), "log.csv")
    report = run("audit", path, "--no-relevance", "--json").json()
    wanted = names(["demographic_parity", "exposure_gap", "four_fifths"])
    assert report["measures"] == pytest.approx(er.measure(scores, data, wanted), abs=1e-12)
    assert report["data"]["relevant_share"] is None
    out = run("audit", path, "--no-relevance").out
    assert "no labels" in out
    assert "NDCG" not in out
    assert "equal opportunity" not in out


def test_graded_relevance_and_its_threshold(run, save, logged):
    graded = logged.with_columns(relevance=pl.col("relevance") * (1 + pl.col("item") % 3))
    path = save(graded, "rows.csv")
    report = run("audit", path, "--threshold", "2", "--json").json()
    data = er.read(path, score="score", relevance_threshold=2)
    scores = data.to_caller(data.column("score"))
    assert report["measures"] == pytest.approx(er.measure(scores, data, names([*QUALITY, *FAIRNESS])), abs=1e-12)


@pytest.fixture
def trec(logged, tmp_path):
    """A run that missed every fifth item, with all judgements and groups."""
    rows = logged.with_columns(item=pl.col("qid") + "-" + pl.col("item").cast(pl.String)).with_row_index("n")
    shown = rows.filter(pl.col("n") % 5 != 0).iter_rows(named=True)
    (tmp_path / "bm25.run").write_text("".join(f"{r['qid']} Q0 {r['item']} 1 {r['score']!r} t\n" for r in shown))
    judged = rows.iter_rows(named=True)
    (tmp_path / "qrels.txt").write_text("".join(f"{r['qid']} 0 {r['item']} {r['relevance']:g}\n" for r in judged))
    rows.select("item", "group").write_csv(tmp_path / "groups.csv")
    return tmp_path / "bm25.run", tmp_path / "qrels.txt", tmp_path / "groups.csv"


def test_trec_run_with_judgements_and_groups(run, trec):
    path, qrels, groups = trec
    report = run("audit", path, "--qrels", qrels, "--groups", groups, "--json").json()
    data = er.read(path, qrels=qrels, groups=groups)
    scores = data.to_caller(data.column("score"))
    assert report["measures"] == pytest.approx(er.measure(scores, data, names([*QUALITY, *FAIRNESS])), abs=1e-12)
    assert report["data"]["rows"] == data.n_rows == 480


def test_trec_run_without_judgements_has_no_labels(run, trec):
    path, _, groups = trec
    bare = run("audit", path, "--groups", groups)
    assert bare.code == 0
    assert bare.err == ""
    assert "no labels" in bare.out
    assert bare == run("audit", path, "--groups", groups, "--no-relevance")


def test_labels_that_look_like_markup_are_printed_as_they_are(run, save, logged):
    names = {"25 or younger": "[bold]young[/nothing]", "over 25": "old \\"}
    shown = run("audit", save(logged.with_columns(pl.col("group").replace(names)), "rows.csv"))
    assert shown.code == 0
    assert "all: [bold]young[/nothing]" in shown.out
    assert "all: old \\" in shown.out


def test_scores_that_do_not_rank_are_warned_of(run, save, logged):
    path = save(logged.with_columns(score=pl.lit(0.5)), "rows.csv")
    audit = run("audit", path)
    assert audit.code == 0
    assert audit.warnings == ["evenrank: warning: all items of a query have the same score: the ranking is arbitrary"]
    assert re.search(r"demographic parity gap +0\.000 +0\.000", audit.out)


def test_trec_runs_have_no_group_columns(run, trec):
    path, _, groups = trec
    found = run("audit", path, "--groups", groups, "--group", "sex")
    assert (found.code, len(found.lines)) == (2, 1)
    assert "--group must not be given for a TREC run; got 'sex'. Its groups come from --groups." in found.err
