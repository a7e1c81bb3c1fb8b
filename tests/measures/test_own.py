"""Notions and functions of the user's own, wherever a measure is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.confidence import intervals
from evenrank.errors import ConfigError, DataError
from evenrank.measures import ask

KS = (1, 3)


def make_data(seed: int = 0, n: int = 600, length: int = 10, **more: Any) -> er.RankingData:
    rng = np.random.default_rng(seed)
    group = rng.choice(["x", "y"], n, p=[0.4, 0.6])
    X = np.column_stack([rng.normal(size=n) + (group == "y"), rng.integers(0, 2, n), rng.normal(size=n)])
    relevance = (X[:, 0] + rng.normal(size=n) > 0.7).astype(int)
    qid = rng.permutation(np.arange(n) // length)
    return er.RankingData.from_arrays(X, relevance, group, qid, feature_names=["a", "band", "b"], **more)


def by_band(data: er.RankingData) -> list[Any]:
    return [data.column("band") == 0, data.column("band") == 1]


BANDS = er.Notion("parity by band", by_band, ("low", "high"))
DATA = make_data()
SCORES = DATA.to_caller(DATA.column("a"))


def slow_bands(scores: Any, data: er.RankingData, k: int) -> float:
    """The mean over bands of the difference between the groups' shares in the top k; scores without ties."""
    stored = data.to_stored(scores)
    top = np.zeros(data.n_rows, bool)
    for start, end in zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True):
        top[start + np.argsort(-stored[start:end])[:k]] = True
    gaps = []
    for band in (0, 1):
        inside = data.column("band") == band
        gaps.append(abs(top[inside & (data.group == 0)].mean() - top[inside & (data.group == 1)].mean()))
    return float(np.mean(gaps))


def first_score(scores: Any, data: er.RankingData) -> float:
    """A function that shows the order and the rows that it gets."""
    assert scores.shape == (data.n_rows,)
    return float(scores[0])


def test_a_notion_is_measured_by_its_own_rows() -> None:
    values = er.measure(SCORES, DATA, [(BANDS, 3), BANDS, "dp@3"])
    assert list(values) == ["parity by band@3", "parity by band@5", "dp@3"]
    assert values["parity by band@3"] == pytest.approx(slow_bands(SCORES, DATA, 3))
    assert er.measure(SCORES, DATA, (BANDS, 3)) == {"parity by band@3": values["parity by band@3"]}
    assert er.measure(SCORES, DATA, BANDS) == {"parity by band@5": values["parity by band@5"]}
    both = er.measure(np.column_stack([SCORES, -SCORES]), DATA, [(BANDS, 3)])["parity by band@3"]
    assert both == pytest.approx([slow_bands(SCORES, DATA, 3), slow_bands(-SCORES, DATA, 3)])
    assert er.measure(SCORES, DATA, [(BANDS, 3)], per_query=True)["parity by band@3"].shape == (DATA.n_queries,)


def test_a_function_gets_scores_in_the_caller_s_order() -> None:
    assert er.measure(SCORES, DATA, first_score) == {"first_score": SCORES[0]}
    table = np.stack([SCORES, -SCORES, 2 * SCORES], axis=1)
    np.testing.assert_array_equal(er.measure(table, DATA, first_score)["first_score"], table[0])
    samples = np.stack([table, 3 * table], axis=2)
    np.testing.assert_allclose(er.measure(samples, DATA, first_score)["first_score"], 2 * table[0])


def test_a_function_of_queries_is_a_mean_with_an_interval() -> None:
    def lengths(scores: Any, data: er.RankingData) -> Any:
        values = np.add.reduceat(data.to_stored(scores), data.query_ptr[:-1])
        values[0] = np.nan
        return values

    own = er.Measure.of(lengths, per_query=True)
    values = lengths(SCORES, DATA)
    assert er.measure(SCORES, DATA, own)["lengths"] == pytest.approx(np.nanmean(values))
    np.testing.assert_array_equal(er.measure(SCORES, DATA, own, per_query=True)["lengths"], values)
    got = er.interval(SCORES, DATA, own, method="analytic")
    half = np.nanstd(values, ddof=1) / np.sqrt(len(values) - 1) * 2.0
    assert (got.measure, got.queries) == ("lengths", len(values) - 1)
    assert got.high - got.estimate == pytest.approx(half, rel=0.05)
    (line,) = er.compare(SCORES, SCORES + 1, DATA, [own])
    assert line.difference == pytest.approx(10.0)


def test_intervals_comparisons_and_plans_of_a_notion() -> None:
    names = [(er.Notion("all", lambda data: [np.ones(data.n_rows, bool)]), 3), "dp@3"]
    mine, built_in = intervals(SCORES, DATA, names)
    assert mine.measure == "all@3"
    assert tuple(mine) == tuple(built_in)
    one, two = er.compare(SCORES, -SCORES, DATA, names)
    assert (one.difference, one.low, one.p_value) == (two.difference, two.low, two.p_value)
    (low, high), *_ = [er.noticeable(SCORES, DATA, (BANDS, 3))]
    assert (low.stratum, high.stratum, low.measure) == ("low", "high", "parity by band@3")
    assert er.bounds.certified(SCORES, DATA, (BANDS, 3)).estimate == pytest.approx(slow_bands(SCORES, DATA, 3))


@pytest.mark.parametrize(
    ("measures", "words"),
    [
        ([lambda scores, data: 1.0], "needs a name: er.Measure.of(function, 'its name')"),
        ([lambda scores: 1.0], "needs a name"),
        ([er.Measure.of(first_score, "ndcg")], "'ndcg' is one of evenrank's"),
        ([er.Measure.of(first_score, "p")], "'p' is one of evenrank's"),
        ([er.Measure.of(first_score, "a@3")], "needs a name of letters"),
        ([er.Measure.of(first_score, "a\nb")], "needs a name of letters"),
        ([(er.Notion("dp", by_band), 3)], "'dp' is one of evenrank's"),
        ([(er.Notion("a,b", by_band), 3)], "needs a name of letters"),
        ([(BANDS, 0)], "k must be a whole number ≥ 1; got 0"),
        ([3], "a measure must be a name, a Notion"),
        ([("dp", 3)], "a measure must be a name, a Notion"),
        ([first_score, er.Measure.of(lambda s, d: 1.0, "first_score")], "two different measures are called"),
        ([(BANDS, 3), (er.Notion("parity by band", lambda data: [data.relevant]), 3)], "two different measures"),
        ([er.Measure.of(lambda s, d: "much", "much")], "measure 'much' must return one number; got 'much'"),
        ([er.Measure.of(lambda s, d: s, "rows")], "measure 'rows' must return one number; got shape (600,)"),
        ([er.Measure.of(lambda s, d: 1.0, "q", per_query=True)], "must return one value per query, (60,); got 1.0"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_line(measures: list[Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        er.measure(SCORES, DATA, measures)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_function_has_no_value_per_query_unless_it_gives_one() -> None:
    with pytest.raises(ConfigError, match="has no value per query; make it with"):
        er.measure(SCORES, DATA, first_score, per_query=True)
    with pytest.raises(ConfigError, match="best must be one of high, low"):
        er.Measure.of(first_score, best="middle")
    with pytest.raises(ConfigError, match="must be a function of scores and data; got 3"):
        er.Measure.of(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="certified bound is for violations and exposure gaps; got 'first_score'"):
        er.bounds.certified(SCORES, DATA, first_score)


def test_wrong_masks_are_said_in_one_line() -> None:
    with pytest.raises(DataError, match=r"notion 'short' must give masks of shape \(600,\); got \(3,\)"):
        er.measure(SCORES, DATA, er.Notion("short", lambda data: [[True, False, True]]))
    nowhere = er.Notion("nowhere", lambda data: [np.zeros(data.n_rows, bool)])
    with pytest.warns(er.DataWarning, match="nowhere: stratum 0 have no item of group"):
        assert np.isnan(er.measure(SCORES, DATA, nowhere)["nowhere@5"])


def test_soft_groups_and_weights_reach_a_notion_of_one_s_own() -> None:
    everything = er.Notion("everything", lambda data: [np.ones(data.n_rows, bool)])
    soft = DATA.with_membership(np.random.default_rng(3).dirichlet([1, 1, 1], 600)[:, :2], ["x", "y"])
    weighted = make_data(sample_weight=np.random.default_rng(4).uniform(0, 2, 600))
    for data in (soft, weighted):
        values = er.measure(SCORES, data, [(everything, 3), "dp@3"])
        assert values["everything@3"] == values["dp@3"]


# ---------------------------------------------------------------------- training within a limit


def test_max_violation_takes_a_notion() -> None:
    free = er.FairLinearRanker(alpha=0.0).fit(DATA).predict(DATA)
    limit = slow_bands(free, DATA, 3) / 2
    ranker = er.FairLinearRanker(BANDS, max_violation=limit, k=3).fit(DATA)
    assert 0 < er.measure(ranker.predict(DATA), DATA, (BANDS, 3))["parity by band@3"] <= limit
    assert ranker.alpha_ > 0


def test_a_scorer_takes_notions_and_functions() -> None:
    import sklearn

    class Column:
        def predict(self, X: Any) -> Any:
            return X[:, 0]

    def mean_top(scores: Any, data: er.RankingData) -> float:
        return float(er.measure(scores, data, "precision@3")["precision@3"])

    X, y = DATA.to_caller(DATA.features), DATA.to_caller(DATA.relevance)
    rows = {"qid": DATA.to_caller(DATA.query_of_row), "sensitive_features": DATA.to_caller(DATA.group)}
    everything = er.Notion("everything", lambda data: [np.ones(data.n_rows, bool)])
    gap = er.measure(SCORES, DATA, "dp@3")["dp@3"]
    with sklearn.config_context(enable_metadata_routing=True):
        score = er.ranking_scorer(mean_top)(Column(), X, y, **rows)
        assert score == pytest.approx(er.measure(SCORES, DATA, "precision@3")["precision@3"])
        assert er.ranking_scorer((everything, 3))(Column(), X, y, **rows) == pytest.approx(-gap)
        within = er.ranking_scorer(mean_top, max_violation=((everything, 3), gap + 0.01))
        assert within(Column(), X, y, **rows) == pytest.approx(score)
        beyond = er.ranking_scorer(mean_top, max_violation=((everything, 3), gap / 2))
        assert beyond(Column(), X, y, **rows) < -1e8
        with pytest.raises(ConfigError, match=r"of which lower is better .*; got 'mean_top'"):
            er.ranking_scorer("ndcg@3", max_violation=(mean_top, 0.1))


@pytest.mark.filterwarnings("ignore::evenrank.errors.DataWarning")
def test_every_measure_has_a_scorer() -> None:
    import sklearn

    class Column:
        def predict(self, X: Any) -> Any:
            return X[:, 0]

    X, y = DATA.to_caller(DATA.features), DATA.to_caller(DATA.relevance)
    rows = {"qid": DATA.to_caller(DATA.query_of_row), "sensitive_features": DATA.to_caller(DATA.group)}
    with sklearn.config_context(enable_metadata_routing=True):
        for row in er.measures_table():
            name = row["name"] if row["k"] == "none" else f"{row['name']}@3"
            if "items" in row["needs"]:
                with pytest.raises(ConfigError, match="a scorer is given no item ids"):
                    er.ranking_scorer(name)
                continue
            value = er.measure(SCORES, DATA, name)[name] * (1 if row["best"] == "high" else -1)
            assert er.ranking_scorer(name)(Column(), X, y, **rows) == pytest.approx(value, nan_ok=True), name


# ---------------------------------------------------------------------- sweeps, choices and audits


def spread_of_scores(scores: Any, data: er.RankingData) -> float:
    return float(np.std(data.to_stored(scores)))


def run_sweep(**options: Any) -> er.Sweep:
    settings: dict[str, Any] = {"strengths": [0, 0.05, 0.1], "ks": KS, "folds": 3, "examples": 3}
    return er.sweep(DATA, **{**settings, **options})


def test_a_sweep_trains_for_a_notion_and_measures_by_functions(tmp_path: Path) -> None:
    extra = ["mrr", "recall@3", "exposure_gap@3(discount=rbp)", er.Measure.of(spread_of_scores, best="low")]
    options: dict[str, Any] = {"notions": ["dp", BANDS], "measures": extra, "methods": ["amortized", "fastar"]}
    result = run_sweep(**options, out=tmp_path / "run")
    assert result.notions == ["demographic_parity", "parity by band"]
    curve = result.curve(BANDS, 3)
    assert curve.violation_name == "parity by band@3"
    assert curve.violation[-1] < curve.violation[0]
    names = ["mrr", "recall@3", "exposure_gap@3(discount=rbp)", "spread_of_scores"]
    for name in names:
        assert np.isfinite(result.columns[name]).all(), name
    fold = DATA.take(DATA.folds(3, 0) == 0)
    train = DATA.take(DATA.folds(3, 0) != 0)
    path = er.fairness_path(train, BANDS, [0, 0.05, 0.1])
    row = (result.columns["notion"] == "parity by band") & (result.columns["fold"] == 0)
    expected = er.measure(path.scores(fold), fold, [*extra, (BANDS, 3)])
    for name in (*names, "parity by band@3"):
        np.testing.assert_allclose(result.columns[name][row], expected[name], rtol=1e-9)

    again = er.Sweep.load(tmp_path / "run")
    np.testing.assert_array_equal(again.columns["spread_of_scores"], result.columns["spread_of_scores"])
    assert again.curve("parity by band", 3).violation.tolist() == curve.violation.tolist()
    assert "parity by band" in again.html()
    resumed = run_sweep(**options, out=tmp_path / "run")
    assert resumed.columns["mrr"].tolist() == result.columns["mrr"].tolist()
    for other in (
        {"notions": ["dp", er.Notion("parity by band", lambda data: [data.column("band") == 0])]},
        {"measures": [*extra[:3], er.Measure.of(lambda scores, data: 3.0, "spread_of_scores", best="low")]},
        {"measures": extra[:2]},
    ):
        with pytest.raises(ConfigError):
            run_sweep(**{**options, **other}, out=tmp_path / "run")


def test_processes_take_functions_too() -> None:
    options: dict[str, Any] = {"notions": [BANDS], "measures": [er.Measure.of(spread_of_scores)], "examples": 0}
    one, two = run_sweep(**options), run_sweep(**options, n_jobs=2)
    for name in ("parity by band@3", "spread_of_scores"):
        np.testing.assert_array_equal(one.columns[name], two.columns[name])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"notions": [BANDS, er.Notion("parity by band", lambda data: [data.relevant])]}, "two different notions"),
        ({"notions": [[np.ones(600, bool)]]}, "takes no row masks; give a Notion"),
        (
            {"notions": [BANDS], "measures": [(er.Notion("parity by band", by_band, ("l",)), 3)]},
            "two different notions",
        ),
        ({"measures": ["nothing@3"]}, "measure must be one of"),
        ({"notions": [BANDS], "methods": ["controller"]}, "notion of a controller must be one of"),
    ],
)
def test_sweeps_refuse_in_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run_sweep(**options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_select_counts_a_measure_of_one_s_own() -> None:
    own = er.Measure.of(spread_of_scores, best="low")
    result = run_sweep(notions=[BANDS], measures=[own, "recall@3", "four_fifths@3", "mrr"])
    choice = er.select(result, BANDS, 3, rule="within", tolerance=0.5)
    assert choice.notion == "parity by band"
    assert choice.text().startswith("Parity by band at 3: amortized")
    by_own = er.select(result, "parity by band", 3, rule="within", tolerance=0.5, gap=own, quality="recall@3")
    assert by_own.quality_name == "recall@3"
    assert (
        by_own.chosen.violation
        == result.along("spread_of_scores", BANDS, method="amortized", grouping="group")[1].min()
    )
    assert "spread_of_scores " in by_own.text()
    assert "gap_name" not in by_own.text()
    far = er.select(result, BANDS, 3, rule="within", tolerance=0.9, gap="four_fifths@3")
    ratios = result.along("four_fifths@3", BANDS, method="amortized", grouping="group")[1]
    assert far.chosen.violation == pytest.approx(1 - ratios.max())
    assert far.gap_name == "1 − four_fifths@3"
    tested = er.select(result, BANDS, 3, rule="within", tolerance=0.9, train=DATA, test=make_data(1))
    assert tested.test is not None
    assert [line.measure for line in tested.test] == ["parity by band@3", "ndcg@3", "four_fifths@3"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gap": "eop@1"}, "the sweep did not measure 'eop@1'; give it to sweep(measures=[…])"),
        ({"gap": "mrr"}, "gap must be a measure with lower as its better end or a fair value; got 'mrr'"),
        ({"quality": "dp@3"}, "the sweep has no curve"),
        ({"quality": "demographic_parity@3"}, "quality must be a measure of which higher is better"),
        ({"train": DATA, "test": DATA}, "need the notion 'parity by band' itself; give the Notion"),
    ],
)
def test_select_refuses_in_one_line(options: dict[str, Any], words: str) -> None:
    result = run_sweep(notions=[BANDS], measures=["mrr"], strengths=[0], examples=0)
    with pytest.raises(ConfigError) as caught:
        er.select(result, "parity by band", 3, rule="within", tolerance=0.5, **options)
    assert words in str(caught.value)


def test_an_audit_has_further_measures() -> None:
    own = er.Measure.of(lambda s, d: np.add.reduceat(d.to_stored(s), d.query_ptr[:-1]), "sum", per_query=True)
    result = er.audit(SCORES, DATA, ks=[3], measures=[(BANDS, 3), own, "mrr"])
    assert [part.measure for part in result.measures] == ["parity by band@3", "sum", "mrr"]
    assert result.measures[0].estimate == pytest.approx(slow_bands(SCORES, DATA, 3))
    for text in (result.text(), result.markdown(), result.html()):
        assert "Further measures" in text
        assert "parity by band@3" in text
    assert result.to_dict()["further_measures"][2]["measure"] == "mrr"
    from evenrank.audits import Summary

    with pytest.raises(ConfigError, match="need rows; a summary has none"):
        er.audit(Summary.of(SCORES, DATA, [3]), measures=["mrr"])


def test_ask_keeps_texts_as_they_are() -> None:
    assert ask("P@3")[0] == "P@3"
    with pytest.raises(ConfigError, match="ask for it by name"):
        ask(er.measures_table and ask("ndcg")[1].measure)
