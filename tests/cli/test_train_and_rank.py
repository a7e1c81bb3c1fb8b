"""`evenrank train` and `evenrank rank`: rows to a model file, and a model file to a ranking."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank as er


@pytest.fixture
def rows(logged):
    """Rows to train on: no scores."""
    return logged.drop("score")


def without_time(out: str) -> str:
    return re.sub(r"in \d+\.\d\d s", "in … s", out)


def numbers(out: str) -> list[list[str]]:
    """The lines' numbers, sorted: renamed groups may come in another order."""
    return sorted(found for line in out.splitlines() if (found := re.findall(r"\d\.\d{3}", line)))


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "letor"])
def test_train_rank_audit_round_trip(run, save, rows, data, suffix):
    path = save(rows, f"rows.{suffix}")
    letor = suffix == "letor"
    trained = run(
        "train", path, "-o", "m.json", "--notion", "dp", "--alpha", "0.05", *(["--group", 1] if letor else [])
    )
    assert trained.code == 0
    assert trained.err == ""
    ranker = er.FairLinearRanker("dp", alpha=0.05).fit(data)
    scores = ranker.predict(data)
    model = er.load("m.json")
    assert model.coef_ == pytest.approx(ranker.coef_, rel=1e-9, abs=1e-12)
    assert model.notion == "demographic_parity"

    item = ["--item", "docid"] if letor else []
    assert run("rank", path, "-m", "m.json", "-o", "ranked.parquet", *item).code == 0
    ranked = pl.read_parquet("ranked.parquet")
    carried = ["relevance"] if letor else ["relevance", "group"]
    assert ranked.columns == ["qid", "docid" if letor else "item", "rank", "score", *carried, "row"]
    ranked = ranked.rename({"docid": "item"}, strict=False)
    order = ranked["row"].to_numpy()
    assert ranked["score"].to_numpy() == pytest.approx(scores[order], rel=1e-9, abs=1e-9)
    assert ranked["item"].to_list() == rows["item"].gather(order).to_list()
    assert ranked.group_by("qid").agg(pl.col("rank").sort() == pl.int_range(1, 13))["rank"].list.all().all()
    assert ranked.select((pl.col("score").diff().fill_null(-1) <= 1e-12).over("qid").all()).item()

    again = rows.select("qid", "item", "relevance", "group").join(
        ranked.select("qid", pl.col("item").cast(rows.schema["item"]), "score"), on=["qid", "item"]
    )
    audited = run("audit", save(again.sample(fraction=1.0, shuffle=True, seed=1), "again.csv"), "--json").json()
    wanted = ["ndcg@5", "demographic_parity@5", "equalized_odds@3"]
    expected = er.measure(scores, data, wanted)
    assert {name: audited["measures"][name] for name in wanted} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("solver", ["exact", "gd", "sgd"])
def test_json_of_train_is_the_audit_of_its_scores(run, save, rows, data, solver):
    options = ["--solver", solver, "--notion", "eop", "--alpha", "0.1", "--k", "1,5", "--seed", "3"]
    report = run("train", save(rows, "rows.csv"), *options, "--json").json()
    ranker = er.FairLinearRanker("eop", alpha=0.1, solver=solver, random_state=3).fit(data)
    wanted = [f"{name}@{k}" for name in ("ndcg", "equal_opportunity", "four_fifths") for k in (1, 5)]
    expected = er.measure(ranker.predict(data), data, wanted)
    assert {name: report["measures"][name] for name in wanted} == pytest.approx(expected, abs=1e-12)
    asked = {"model": "model.json", "notion": "eop", "alpha": 0.1, "solver": solver, "features": data.n_features}
    assert {name: report[name] for name in asked} == asked
    assert Path("model.json").exists()


@pytest.mark.parametrize("solver", ["exact", "gd"])
@pytest.mark.parametrize("scope", ["amortized", "per_query"])
def test_order_names_and_parts_change_no_printed_digit(run, save, rows, solver, scope):
    options = ["-o", "m.json", "--solver", solver, "--scope", scope, "--alpha", "0.05"]
    whole = without_time(run("train", save(rows, "rows.csv"), *options).out)
    assert "selection rate: over 25" in whole
    coef = er.load("m.json").coef_
    mixed = rows.sample(fraction=1.0, shuffle=True, seed=5)
    assert without_time(run("train", save(mixed, "mixed.csv"), *options).out) == whole
    assert er.load("m.json").coef_ == pytest.approx(coef, rel=1e-8, abs=1e-12)
    parts = [save(mixed[start : start + 170], f"part{start}.parquet") for start in range(0, len(mixed), 170)]
    assert without_time(run("train", *parts, *options).out) == whole
    renamed = rows.with_columns(pl.col("group").replace({"25 or younger": "y", "over 25": "o"}))
    other = without_time(run("train", save(renamed, "renamed.csv"), *options).out)
    assert numbers(other) == numbers(whole)


def test_features_may_be_chosen(run, save, rows, data):
    chosen = data.feature_names[:2]
    trained = run("train", save(rows, "rows.csv"), "--features", " , ".join(chosen))
    assert trained.code == 0
    assert "Trained on 2 features" in trained.out
    assert er.load("model.json").feature_names_ == chosen


def test_text_columns_are_left_out_with_a_warning(run, save, rows, data):
    trained = run("train", save(rows.with_columns(city=pl.lit("Berlin")), "rows.csv"))
    assert trained.warnings == [
        "evenrank: warning: column 'city' is not numeric and is left out of the features; to use it as "
        "categories, name it with categorical= (--categorical)",
    ]
    assert er.load("model.json").feature_names_ == data.feature_names


def test_an_ordinary_ranker_needs_no_groups(run, save, rows):
    path = save(rows.with_columns(group=pl.lit(None, pl.String)), "rows.csv")
    trained = run("train", path, "--alpha", "0")
    assert trained.code == 0
    assert "groups: none" in trained.out
    assert "NDCG" in trained.out
    assert "gap" not in trained.out
    report = run("train", path, "--alpha", "0", "--json").json()
    assert report["selection_rates"] == {"1": {}, "3": {}, "5": {}, "10": {}}


def test_group_aware_models_are_ranked_with_the_group(run, save, rows, data):
    path = save(rows, "rows.csv")
    assert run("train", path, "--group-aware", "--notion", "dp", "--alpha", "0.5").code == 0
    expected = er.FairLinearRanker("dp", alpha=0.5, group_aware=True).fit(data).predict(data)
    ranked = run("rank", path, "--json").json()["rows"]
    found = np.empty(len(expected))
    found[[row["row"] for row in ranked]] = [row["score"] for row in ranked]
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)

    elsewhere = save(rows.rename({"group": "age"}), "elsewhere.csv")
    again = run("rank", elsewhere, "--group", "age", "--json").json()["rows"]
    assert [row["score"] for row in again] == [row["score"] for row in ranked]
    refused = run("rank", elsewhere)
    assert (refused.code, len(refused.lines)) == (2, 1)
    assert "group column 'group' is not in the data" in refused.err
    strange = save(rows.with_columns(pl.col("group").replace({"over 25": "over 30"})), "strange.csv")
    assert "group 'over 30' was not in training" in run("rank", strange).err


def test_rank_ignores_columns_it_does_not_know_and_needs_no_labels(run, save, rows):
    run("train", save(rows, "rows.csv"))
    run("rank", "rows.csv", "-o", "plain.csv")
    other = rows.drop("relevance", "group").select(pl.lit("text").alias("note"), pl.all().reverse())
    assert run("rank", save(other.reverse(), "other.csv")).code == 0
    features = [name for name in rows.columns if name not in ("qid", "item", "relevance", "group")]
    other = rows.select(pl.lit("text").alias("note"), *reversed(features), "item", "qid", pl.lit(7).alias("extra"))
    run("rank", save(other, "other.csv"), "-o", "ranked.csv")
    expected = pl.read_csv("plain.csv").drop("relevance", "group")
    assert pl.read_csv("ranked.csv").equals(expected)


def test_rank_prints_csv_that_reads_back(run, save, rows):
    run("train", save(rows, "rows.csv"))
    out = run("rank", "rows.csv").out
    Path("out.csv").write_text(out)
    frame = pl.read_csv("out.csv")
    assert frame.columns == ["qid", "item", "rank", "score", "relevance", "group", "row"]
    assert len(frame) == len(rows)
    for suffix, read in {"csv": pl.read_csv, "jsonl": pl.read_ndjson, "parquet": pl.read_parquet}.items():
        said = run("rank", "rows.csv", "-o", f"ranked.{suffix}").out
        assert said == f"480 rows of 40 queries, ranked: ranked.{suffix}\n"
        again = read(f"ranked.{suffix}")
        assert again["score"].to_list() == frame["score"].to_list()
        assert again["item"].to_list() == frame["item"].to_list()


def test_rank_writes_the_file_with_json_too(run, save, rows):
    run("train", save(rows, "rows.csv"))
    report = run("rank", "rows.csv", "--top", 2, "-o", "top.csv", "--json").json()
    assert (report["model"], report["out"]) == ("model.json", "top.csv")
    assert len(report["rows"]) == 80
    assert {row["rank"] for row in report["rows"]} == {1, 2}
    for written, printed in zip(pl.read_csv("top.csv").to_dicts(), report["rows"], strict=True):
        assert written == printed | {"score": pytest.approx(printed["score"], rel=1e-11)}


def test_ties_go_by_item_and_then_by_row(run):
    Path("model.json").write_text(
        json.dumps(
            {
                "format": "evenrank-model",
                "version": 1,
                "kind": "FairLinearRanker",
                "parameters": {},
                "intercept": 0,
                "weights": {"x": 1.0},
                "groups": [],
            }
        )
    )
    Path("rows.csv").write_text("qid,item,x\nb,30,1\na,9,1\nb,4,1\na,10,2\nb,5,2\n")
    ranked = [(row["qid"], row["item"], row["rank"]) for row in run("rank", "rows.csv", "--json").json()["rows"]]
    assert ranked == [("b", 5, 1), ("b", 4, 2), ("b", 30, 3), ("a", 10, 1), ("a", 9, 2)]
    Path("rows.csv").write_text("qid,x\nb,1\na,1\nb,1\na,2\nb,2\n")
    ranked = [(row["qid"], row["row"]) for row in run("rank", "rows.csv", "--json").json()["rows"]]
    assert ranked == [("b", 4), ("b", 0), ("b", 2), ("a", 3), ("a", 1)]


def test_ranked_rows_can_be_audited_at_once(run, save, rows, data):
    run("train", save(rows, "rows.csv"), "--method", "per_query", "--alpha", "0.5")
    run("rank", "rows.csv", "-o", "ranked.csv")
    expected = er.measure(er.load("model.json").predict(data), data, "dp@5")["dp@5"]
    assert run("audit", "ranked.csv", "--json").json()["measures"]["demographic_parity@5"] == pytest.approx(expected)
    assert er.load("model.json").scope == "per_query"


def test_deltr_and_fastar_by_name(run, save, rows, data):
    path = save(rows, "rows.csv")
    trained = run("train", path, "--method", "deltr", "--gamma", 20, "--protected", "25 or younger")
    assert (trained.code, trained.err) == (0, "")
    ranker = er.DELTR(20.0, "25 or younger").fit(data)
    model = er.load("model.json")
    assert isinstance(model, er.DELTR)
    assert model.coef_ == pytest.approx(ranker.coef_, abs=1e-6)
    assert run("rank", path, "--method", "fastar", "--p", 0.6, "--k", 5, "-o", "fair.csv").code == 0
    fair = er.FAStar(0.6, protected="25 or younger")
    new = fair.rerank(model.predict(data), data, k=5)
    ranked = pl.read_csv("fair.csv").sort("row")
    assert ranked["rank"].to_list() == (-new).astype(int).tolist()
    by_column = run("rank", "fair.csv", "--score", "score", "-o", "same.csv")
    assert (by_column.code, by_column.err) == (0, "")
    assert (
        pl.read_csv("same.csv").sort("qid", "rank")["item"].equals(pl.read_csv("fair.csv").sort("qid", "rank")["item"])
    )


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("train rows.csv --method fastar", "fastar re-ranks and has nothing to train. Use evenrank rank"),
        ("rank rows.csv --method deltr", "deltr is trained, not applied to a ranking. Use evenrank train"),
        ("train rows.csv --method magic", "--method must be one of amortized, per_query, "),
        ("train rows.csv --method deltr --protected old", "protected must be one of the groups"),
        ("rank rows.csv --score score --method fastar --p 1.5", "p must be between 0 and 1"),
        ("rank rows.csv --score nothing", "score column 'nothing' is not in the data"),
        ("train rows.csv --method per_query --scope amortized", "--scope amortized contradicts --method per_query"),
        ("train rows.csv --method deltr --loss logistic", "--loss is not for --method deltr; leave it out."),
        (
            "train rows.csv --method deltr --ridge 1 --max-violation 0.1",
            "--max-violation and --ridge are not for --method deltr; leave them out.",
        ),
        ("train rows.csv --model mlp --solver gd", "--solver is not for --method mlp; leave it out."),
        ("train rows.csv --model mlp --method deltr", "--model mlp contradicts --method deltr"),
        ("train rows.csv --model forest", "--model must be one of linear, lightgbm, xgboost, mlp; got 'forest'"),
        ("train rows.csv --set depth=3", "'depth' is not an option of amortized"),
        ("train rows.csv --target topk", "target='topk' trains with solver='gd'"),
        ("train rows.csv --protected x", "--protected is not for --method amortized; leave it out."),
        ("rank rows.csv --score score --p 0.3", "--p is for --method; leave out, or name"),
        (
            "rank rows.csv --score score --method fastar_larger --protected x",
            "--protected is not for --method fastar_larger",
        ),
        ("train rows.csv --features relevance", "features must not hold the relevance column"),
    ],
)
def test_methods_used_the_wrong_way(run, save, logged, command, says):
    save(logged, "rows.csv")
    refused = run(*command.split())
    assert (refused.code, len(refused.lines)) == (2, 1)
    assert says in refused.err


def test_methods_are_listed(run):
    from evenrank.methods.registry import METHODS

    listed = run("methods").out
    assert all(name in listed for name in METHODS)
    for text, sees in (("learns from labels", True), ("needs no labels", False)):
        assert listed.count(text) == sum(method.sees.labels is sees for method in METHODS.values()) > 0
    described = run("methods", "--json").json()
    assert [entry["name"] for entry in described] == list(METHODS)
    assert described[0]["grid"] == pytest.approx(er.strength_grid().tolist())


@pytest.mark.parametrize(("model", "library"), [("lightgbm", "lightgbm"), ("xgboost", "xgboost"), ("mlp", "torch")])
def test_a_model_whose_library_is_absent_says_how_to_get_it(run, save, logged, model, library):
    if find_spec(library) is not None:
        pytest.skip(f"{library} is installed")
    save(logged, "rows.csv")
    for command in (["train", "rows.csv", "--model", model], ["sweep", "rows.csv", "--methods", model]):
        refused = run(*command)
        assert (refused.code, len(refused.lines)) == (2, 1)
        assert f"{library} is not installed. Run: pip install 'evenrank[{library}]'" in refused.err


def test_a_violation_can_be_asked_for_instead_of_a_strength(run):
    rows = er.datasets.german_credit("age", lists=40)
    frame = pl.DataFrame(np.asarray(rows.features), schema=[f"f{j}" for j in range(rows.n_features)]).with_columns(
        qid=rows.query_ids[rows.query_of_row], relevance=rows.relevance, group=pl.Series(rows.group).cast(pl.String)
    )
    frame.write_csv("credit.csv")
    plain = json.loads(run("train", "credit.csv", "--notion", "dp", "--alpha", 0, "--json").out)
    fair = json.loads(run("train", "credit.csv", "--notion", "dp", "--max-violation", 0.05, "--json").out)
    assert plain["measures"]["demographic_parity@5"] > 0.05
    assert fair["measures"]["demographic_parity@5"] <= 0.05
    assert fair["alpha"] > 0


def test_each_variant_of_a_reranker_is_the_one_that_was_named(run, save, logged, data):
    """The protected group and the adjustment follow from the method's name."""
    path = save(logged, "rows.csv")
    scores = logged["score"].to_numpy()
    larger = "over 25"
    expected = {
        "fastar": er.FAStar(0.6),
        "fastar_unadjusted": er.FAStar(0.6, adjust=False),
        "fastar_larger": er.FAStar(0.6, protected=larger),
    }
    orders = {}
    for name, ranker in expected.items():
        done = run("rank", path, "--score", "score", "--method", name, "--p", "0.6", "-o", f"{name}.csv")
        assert (done.code, done.err) == (0, "")
        order = pl.read_csv(f"{name}.csv").sort("row")["rank"].to_numpy()
        data_order = er.Ranking(data.to_stored(ranker.rerank(scores, data)), data.query_ptr).first
        assert order.tolist() == (data.to_caller(data_order) + 1).tolist()
        orders[name] = order.tolist()
    assert orders["fastar"] != orders["fastar_larger"]


def test_rows_without_the_protected_group_keep_their_order(run, save, logged):
    others = save(logged.filter(pl.col("group") == "over 25"), "others.csv")
    given = ["rank", others, "--score", "score"]
    plain = run(*given)
    done = run(*given, "--method", "fastar", "--protected", "25 or younger", "-o", "ranked.csv")
    assert done.code == 0
    assert "no row is of the protected group '25 or younger', all are of 'over 25'" in done.err
    assert pl.read_csv("ranked.csv")["row"].to_list() == pl.read_csv(plain.out.encode())["row"].to_list()
    refused = run(*given, "--method", "fastar")
    assert (refused.code, len(refused.lines)) == (2, 1)
    assert "at least two groups are needed" in refused.err


def test_only_linear_methods_report_a_solver(run, save, rows):
    report = run("train", save(rows, "rows.csv"), "--method", "deltr", "--json").json()
    assert "solver" not in report
    assert (report["method"], report["notion"], report["alpha"]) == ("deltr", None, 1.0)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("command", [["train"], ["sweep", "--folds", "2", "--strengths", "0.1", "--examples", "0"]])
def test_a_score_column_is_no_feature_unless_named(run, save, logged, data, command, suffix):
    path = save(logged.with_columns(rank=pl.int_range(pl.len())), f"rows.{suffix}")
    out = ["-o", "out.json" if command == ["train"] else "out"]
    first = run(*command, path, *out, "--json")
    assert first.code == 0
    assert first.warnings == [
        "evenrank: warning: columns 'score', 'rank' are left out of the features by their names; to use them, name "
        "them with features= (on the command line --features)"
    ]
    if command == ["train"]:
        assert er.load("out.json").feature_names_ == data.feature_names
        named = run("train", path, "-o", "named.json", "--features", f"score,{data.feature_names[0]}")
        assert (named.code, named.err) == (0, "")
        assert er.load("named.json").feature_names_ == ("score", data.feature_names[0])
        assert run("rank", path, "-m", "named.json").err == ""


def test_ranking_takes_the_model_s_own_features(run, save, rows, data):
    """A model of named columns ranks a file that has others beside them, in any order, and needs no notes."""
    wanted = list(data.feature_names[:3])
    assert run("train", save(rows, "rows.csv"), "-o", "m.json", "--features", ",".join(wanted)).code == 0
    more = rows.select(*reversed(rows.columns)).with_columns(score=pl.lit(1.0), rank=pl.lit(1))
    plain = run("rank", "rows.csv", "-m", "m.json")
    beside = run("rank", save(more, "more.csv"), "-m", "m.json")
    assert (plain.code, beside.err, beside.out) == (0, "", plain.out)


def test_another_score_column_is_the_score(run, save, logged):
    path = save(logged.rename({"score": "s"}).with_columns(score=pl.lit(0.5)), "rows.csv")
    audited = run("audit", path, "--score", "s", "--json")
    plain = run("audit", save(logged, "plain.csv"), "--json")
    assert audited.err == plain.err == ""
    assert audited.json()["measures"] == plain.json()["measures"]


def test_ranked_rows_break_near_ties_by_item(run, save):
    """By the same blocks as every measure: scores 1 and 1 + 2e-16 are tied, and 1e-12 apart are not."""
    frame = pl.DataFrame(
        {"qid": [1, 1, 1, 1], "item": ["d", "c", "b", "a"], "score": [1.0, 1.0 + 2.0**-52, 1.0 + 1e-12, -1e30]}
    )
    ranked = run("rank", save(frame, "rows.parquet"), "--score", "score", "-o", "ranked.csv")
    assert ranked.code == 0
    assert pl.read_csv("ranked.csv")["item"].to_list() == ["b", "c", "d", "a"]


@pytest.mark.parametrize(
    "method", ["offset", "offset_adaptive", "quantile_match", "quantile_barycentre", "eopp_transform"]
)
def test_a_reranked_model_is_one_file_that_ranks_rows_without_labels(run, save, rows, data, method):
    path = save(rows, "rows.csv")
    fair = ["--notion", "dp", "--target-k", 3, "--set", "shrink=false"] if method.startswith("offset") else []
    trained = run("train", path, "-o", "m.json", "--method", method, *fair, "--json")
    assert (trained.code, trained.err) == (0, "")
    assert run("rank", save(rows.drop("relevance"), "new.csv"), "-m", "m.json", "-o", "ranked.parquet").code == 0
    ranked = pl.read_parquet("ranked.parquet").sort("row")
    base = er.FairLinearRanker("dp", alpha=0.0).fit(data).predict(data)
    fold, learned = data.folds(5, 0), np.empty(data.n_rows)
    for number in range(5):  # each row is scored by a ranker of other queries
        other, own = data.take(fold != number), data.take(fold == number)
        scores = er.FairLinearRanker("dp", alpha=0.0).fit(other).predict(own)
        learned[fold[data.query_of_row] == number] = own.to_stored(scores)
    classes = {"quantile_match": er.QuantileMatch, "quantile_barycentre": er.QuantileBarycentre}
    classes |= {"eopp_transform": er.EqualOpportunityTransform}
    reranker = er.GroupOffset("dp", 3, shrink=False) if fair else classes[method]()
    reranker.fit(data.to_caller(learned), data)
    expected = (reranker.adapt(base, data) if method == "offset_adaptive" else reranker).rerank(base, data)
    np.testing.assert_allclose(ranked["score"].to_numpy(), expected, atol=1e-9)
    assert er.measure(ranked["score"].to_numpy(), data, ["dp@3"]) != er.measure(base, data, ["dp@3"])

    without = run("rank", save(rows.drop("group"), "blind.csv"), "-m", "m.json")
    assert without.code == 2
    assert "group column 'group' is not in the data" in without.err
    wrong = run("train", path, "--method", method, "--max-violation", 0.1)
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert f"--max-violation is not for --method {method}" in wrong.err
    assert run("rank", path, "-m", "m.json", "--method", method).code == 2


@pytest.mark.parametrize("method", ["offset", "offset_adaptive", "eopp_transform"])
def test_a_reranker_is_fitted_to_a_column_of_scores_and_ranks_other_rows(run, save, rows, data, method):
    mine = rows.select("qid", "item", "relevance", "group").with_columns(
        mine=pl.Series(np.round(np.asarray(data.to_caller(np.asarray(data.features, float))).sum(axis=1), 3))
    )
    fair = ["--notion", "dp", "--target-k", 3, "--set", "shrink=false"] if method.startswith("offset") else []
    trained = run("train", save(mine, "rows.csv"), "--score", "mine", "-o", "m.json", "--method", method, *fair)
    assert (trained.code, trained.err) == (0, "")
    assert "Fitted to the column 'mine'" in trained.out
    new = mine.with_columns(mine=pl.col("mine") * 0.5 + 0.1).drop("relevance")
    assert run("rank", save(new, "new.csv"), "-m", "m.json", "-o", "ranked.parquet").code == 0
    ranked = pl.read_parquet("ranked.parquet").sort("row")
    reranker = er.GroupOffset("dp", 3, shrink=False) if fair else er.EqualOpportunityTransform()
    reranker.fit(mine["mine"].to_numpy(), data)
    scores = new["mine"].to_numpy()
    expected = (reranker.adapt(scores, data) if method == "offset_adaptive" else reranker).rerank(scores, data)
    np.testing.assert_allclose(ranked["score"].to_numpy(), expected, atol=1e-9)


def test_a_column_of_scores_is_for_rerankers_alone(run, save, rows):
    path = save(rows.with_columns(mine=pl.lit(1.0)), "rows.csv")
    for options, words in (
        ([], "--score is for methods that re-rank scores; amortized trains its own"),
        (["--method", "offset", "--features", "mine"], "leave out --features and --model"),
        (["--method", "offset", "--ridge", 1], "--ridge is not for --method offset"),
        (["--method", "offset", "--set", "depth=3"], "'depth' is not an option of offset"),
    ):
        result = run("train", path, "--score", "mine", "-o", "m.json", *options)
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert words in result.err
    result = run("train", path, "--score", "yours", "--method", "offset", "-o", "m.json")
    assert result.code == 2
    assert "Name the column of the scores with --score" in result.err
    assert not Path("m.json").exists()


def test_offsets_of_a_reranker_alone_give_no_scores(run, save, rows, data):
    er.GroupOffset("dp", 3, shrink=False).fit(data.relevance, data).save("alone.json")
    result = run("rank", save(rows, "rows.csv"), "-m", "alone.json")
    assert result.code == 2
    assert "holds a GroupOffset alone" in result.err


def test_the_controller_takes_its_notion_cut_off_and_gain(run, save, rows):
    data = er.RankingData.from_frame(rows, item="item")
    scored = rows.with_columns(score=pl.Series(data.to_caller(np.asarray(data.features, float).sum(axis=1))))
    path = save(scored, "rows.csv")
    given = ["--score", "score", "--method", "controller", "--k", 3, "--gain", 10, "--notion"]
    for notion in ("dp", "merit"):
        assert run("rank", path, "-o", f"{notion}.csv", *given, notion).code == 0
        ranked = pl.read_csv(f"{notion}.csv")
        expected = er.FairController(notion, 3, 10.0).rerank(scored["score"].to_numpy(), data)
        assert ranked["score"].to_numpy() == pytest.approx(expected[ranked["row"].to_numpy()])
    result = run("rank", path, *given, "eop")
    assert result.code == 2
    assert "--notion eop asks how likely items are to be relevant" in result.err
    result = run("rank", path, "--score", "score", "--method", "fastar", "--gain", 3)
    assert result.code == 2
    assert "--gain is not for --method fastar" in result.err


@pytest.mark.skipif(find_spec("lightgbm") is None, reason="needs LightGBM")
def test_an_offset_of_trees_is_learned_on_trees_of_other_queries(run, save, rows):
    path = save(rows, "rows.csv")
    options = ["--model", "lightgbm", "--set", "n_estimators=5", "--set", "min_child_samples=5", "--set", "n_jobs=1"]
    assert (
        run("train", path, "--method", "offset", "--notion", "dp", "--target-k", 3, "-o", "m.json", *options).code == 0
    )
    model = er.load("m.json")
    data = er.RankingData.from_frame(rows, item="item", features=list(model.feature_names_))
    own = er.GroupOffset("dp", 3).fit(model.base.predict(data), data)
    assert model.reranker.gap_before_ != own.gap_before_
    assert run("rank", save(rows.drop("relevance"), "new.csv"), "-m", "m.json", "-o", "ranked.csv").code == 0
    ranked = pl.read_csv("ranked.csv")
    assert ranked["score"].to_numpy() == pytest.approx(model.predict(data)[ranked["row"].to_numpy()])


@pytest.mark.parametrize(
    "given",
    [
        ["det_const_sort", "--target", "equal"],
        ["det_cons", "--target", "{0}=0.5,{1}=0.25", "--strength", "0.8"],
        ["fastar_multinomial", "--p", "{1}=0.3"],
        ["exposure_parity", "--seed", "3"],
    ],
)
def test_the_re_rankers_take_their_options(run, save, rows, given):
    data = er.RankingData.from_frame(rows, item="item")
    scored = rows.with_columns(score=pl.Series(data.to_caller(np.asarray(data.features, float).sum(axis=1))))
    path = save(scored, "rows.csv")
    names = [str(name) for name in data.group_names]
    given = [part.format(*names) for part in given]
    assert run("rank", path, "-o", "out.csv", "--score", "score", "--k", 4, "--method", *given).code == 0
    ranked = pl.read_csv("out.csv")
    score = scored["score"].to_numpy()
    rankers = {
        "det_const_sort": lambda: er.DetRanker("const_sort", "equal").rerank(score, data, 4),
        "det_cons": lambda: er.DetRanker("cons", [0.5, 0.25], 0.8).rerank(score, data, 4),
        "fastar_multinomial": lambda: er.MultinomialFAStar({data.group_names[1]: 0.3}).rerank(score, data, 4),
        "exposure_parity": lambda: er.ExposureRanker("parity").rerank(score, data, 4, seed=3),
    }
    assert ranked["score"].to_numpy() == pytest.approx(rankers[given[0]]()[ranked["row"].to_numpy()])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["det_cons", "--target", "most"],
            "--target must be data, equal, or shares of groups as a=0.5,b=0.3; got 'most'",
        ),
        (["fastar", "--p", "half"], "--p must be a number, or shares of groups as a=0.5,b=0.3; got 'half'"),
        (["fastar", "--p", "b=0.3"], "p must be one share, that of the protected group"),
        (["det_cons", "--p", "0.3"], "--p is not for --method det_cons"),
        (["exposure_impact"], "merits must be at least 0 for disparate_impact"),
    ],
)
def test_the_re_rankers_options_are_checked(run, save, rows, given, message):
    path = save(rows.with_columns(score=pl.Series(np.linspace(-1, 1, len(rows)))), "rows.csv")
    result = run("rank", path, "--score", "score", "--method", *given)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert message in result.err


def test_what_knows_items_only_needs_no_group(run, save, rows):
    scored = rows.drop("group", "relevance").with_columns(score=pl.Series(np.linspace(0, 1, len(rows))))
    path = save(scored, "rows.csv")
    for method in (["equity_of_attention", "--theta", "0.9"], ["exposure_individual"]):
        assert run("rank", path, "-o", "out.csv", "--score", "score", "--k", 3, "--method", *method).code == 0
        ranked = pl.read_csv("out.csv").sort("qid", "rank")
        assert (ranked.group_by("qid").agg(pl.col("rank").n_unique() == pl.len())["rank"]).all()
    result = run("rank", path, "--score", "score", "--method", "det_cons")
    assert result.code == 2
    assert "group column 'group' is not in the data" in result.err


def test_before_is_strength_0_on_the_same_rows(run, save, rows, data):
    path = save(rows, "rows.csv")
    report = run("train", path, "--notion", "dp", "--alpha", "0.05", "--json").json()
    plain = er.FairLinearRanker("dp", alpha=0.0).fit(data).predict(data)
    expected = er.measure(plain, data, ["ndcg@5", "dp@5"])
    assert report["before"]["measures"]["ndcg@5"] == pytest.approx(expected["ndcg@5"])
    assert report["before"]["measures"]["demographic_parity@5"] == pytest.approx(expected["dp@5"])
    text = run("train", path, "--notion", "dp", "--alpha", "0.05").out
    change = f"{expected['ndcg@5']:.3f}→{report['measures']['ndcg@5']:.3f}"
    assert change in text
    assert "strength 0 → 0.05" in text
    for options in (("--alpha", "0"), ("--alpha", "0.05", "--no-before")):
        assert "before" not in run("train", path, *options, "--json").json()
    offset = run("train", path, "--method", "offset", "--notion", "dp", "--json").json()
    assert offset["before"]["measures"]["ndcg@5"] == pytest.approx(expected["ndcg@5"])


def test_columns_may_be_ignored_and_rows_weighed(run, save, rows, data):
    weight = np.arange(len(rows)) % 3 + 1.0
    path = save(rows.with_columns(weight=pl.Series(weight), noise=pl.Series(weight[::-1])), "rows.csv")
    options = ("--notion", "dp", "--alpha", "0.05", "--ignore", "noise", "--sample-weight", "weight")
    assert run("train", path, *options).code == 0
    weighed = er.RankingData.from_frame(
        rows.with_columns(weight=pl.Series(weight)), sample_weight="weight", item="item"
    )
    expected = er.FairLinearRanker("dp", alpha=0.05).fit(weighed)
    model = er.load("model.json")
    assert model.feature_names_ == data.feature_names
    assert model.coef_ == pytest.approx(expected.coef_, rel=1e-9, abs=1e-12)
    sweep = ("--notions", "dp", "--strengths", "0.05", "--k", "3", "--folds", "2", "--json")
    assert run("sweep", path, *options[4:], *sweep).json()["about"]["features"] == data.n_features


def test_labels_are_the_same_as_numbers_and_as_text(run, save, rows):
    """A file with the groups 1 and other has texts; a file with 1 alone has numbers."""
    first, *_ = sorted(set(rows["group"]))
    rows = rows.with_columns(group=pl.when(pl.col("group") == first).then(pl.lit("1")).otherwise(pl.lit("other")))
    both, one = save(rows, "rows.csv"), save(rows.filter(pl.col("group") == "1"), "one.csv")
    for options in (("--group-aware",), ("--method", "offset")):
        assert run("train", both, "--notion", "dp", *options).code == 0
        whole, part = run("rank", both), run("rank", one)
        assert part.code == 0, part.err
        of_whole = {tuple(line.split(",")[:2]): line.split(",")[3] for line in whole.out.splitlines()}
        assert all(of_whole[*line.split(",")[:2]] == line.split(",")[3] for line in part.out.splitlines()[1:])


def test_rows_without_a_header(run, save, rows):
    path = save(rows, "rows.csv")
    assert run("train", path, "--notion", "dp", "--alpha", "0.05", "-o", "named.json").code == 0
    bare = Path("bare.csv")
    bare.write_text(path.read_text().partition("\n")[2])
    number = {name: str(place + 1) for place, name in enumerate(rows.columns)}
    columns = [part for name in ("qid", "item", "relevance", "group") for part in (f"--{name}", number[name])]
    columns[0] = "--query"
    options = ("--no-header", *columns)
    assert run("train", bare, "--notion", "dp", "--alpha", "0.05", *options).code == 0
    assert er.load("model.json").coef_.tolist() == er.load("named.json").coef_.tolist()
    ranked, named = run("rank", bare, *options), run("rank", path, "-m", "named.json")
    assert ranked.out.splitlines()[1:] == named.out.splitlines()[1:]
    told = run("train", bare)
    assert told.code == 2
    assert "--no-header" in told.err
    told = run("train", save(rows, "rows.parquet"), "--no-header")
    assert told.code == 2
    assert "header=False (--no-header) is for CSV and TSV; got the format 'parquet'" in told.err
