"""GroupOffset against a search over every offset there is, its invariances, bad input, and its file."""

import json
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenrank as er
from evenrank.errors import DataWarning

LEVELS = [0.0, 0.25, 0.5, 1.0, 1.75, 3.0]  # exact in binary, as are their differences


def plain_gap(scores, data, notion, ks):
    """Γ of the top k, row by row, ties averaged: nothing of the code under test."""
    query, group = data.query_of_row.tolist(), data.group.tolist()
    strata = {"dp": [data.relevance >= 0], "eop": [data.relevant], "eod": [~data.relevant, data.relevant]}[notion]
    gaps = []
    for k in ks:
        chance = []
        for i, score in enumerate(scores):
            others = [scores[j] for j in range(len(scores)) if query[j] == query[i]]
            above, tied = sum(other > score for other in others), sum(other == score for other in others)
            chance.append(min(max(k - above, 0), tied) / tied)
        for stratum in strata:
            rates = [
                np.mean([chance[i] for i in range(len(scores)) if group[i] == code and stratum[i]])
                for code in range(data.n_groups)
                if any(group[i] == code and stratum[i] for i in range(len(scores)))
            ]
            pairs = [abs(a - b) for n, a in enumerate(rates) for b in rates[:n]]
            gaps.append(np.mean(pairs) / len(strata) if pairs else 0.0)
    return sum(gaps) / len(ks)


def every_offset(scores, data, moving):
    """0, every crossing, a number between any two, and one beyond each end."""
    moves, query = data.group == moving, data.query_of_row
    meets = (query[:, None] == query) & ~moves[:, None] & moves
    at = np.unique(np.append((scores[:, None] - scores)[meets], 0.0))
    return [*at, *(at[1:] + at[:-1]) / 2, at[0] - 1, at[-1] + 1]


@st.composite
def rows(draw, groups=2, unknown=True, levels=LEVELS):
    n = draw(st.integers(2, 9))
    labels = ["a", "b", "c"][:groups] + ([None] if unknown else [])
    group = draw(
        st.lists(st.sampled_from(labels), min_size=n, max_size=n).filter(lambda some: len(set(some) - {None}) >= 2)
    )
    query = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    relevance = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    score = draw(st.lists(st.sampled_from(levels), min_size=n, max_size=n))
    data = er.RankingData.from_arrays(np.zeros((n, 0)), relevance, group, query)
    return np.array(score), data


def fitted(scores, data, notion="dp", k=2, **options):
    """None where the notion has nothing to compare."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            return er.GroupOffset(notion, k, **{"shrink": False, **options}).fit(scores, data)
        except er.DataError:
            assert plain_gap(data.to_stored(scores), data, notion, (2,)) == 0
            return None


@settings(max_examples=25, deadline=None)
@given(rows(), st.sampled_from(["dp", "eop", "eod"]), st.sampled_from([1, 2, (1, 3)]))
def test_two_groups_get_the_smallest_gap_of_all_offsets(drawn, notion, k):
    scores, data = drawn
    offset = fitted(scores, data, notion, k)
    if offset is None:
        return
    ks = k if isinstance(k, tuple) else (k,)
    stored = data.to_stored(scores)
    moving = next(code for code, name in enumerate(data.group_names) if code != offset._reference)
    gaps = [
        plain_gap(stored + c * (data.group == moving), data, notion, ks) for c in every_offset(stored, data, moving)
    ]
    after = plain_gap(data.to_stored(offset.rerank(scores, data)), data, notion, ks)
    assert after == pytest.approx(min(gaps), abs=1e-9)
    assert offset.gap_after_ == pytest.approx(after, abs=1e-9)
    assert offset.gap_before_ == pytest.approx(plain_gap(stored, data, notion, ks), abs=1e-9)
    chosen = abs(offset.offsets_[data.group_names[moving]])
    nearest = min(
        abs(c) for c, gap in zip(every_offset(stored, data, moving), gaps, strict=True) if gap <= min(gaps) + 1e-9
    )
    # It lies in the nearest range, and there at most one step between neighbours, here 3, from the inner end.
    assert chosen <= nearest + 3 + 1e-9
    assert (chosen == 0) == (nearest == 0)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from(["dp", "eop", "eod"]), st.sampled_from([1, 2, (1, 3)]))
def test_any_scores_get_the_smallest_gap_of_all_offsets(source, notion, k):
    """Scores whose differences are rounded: what ties is what `er.measure` calls tied."""
    number = st.floats(-100, 100).map(lambda x: round(x, 3)) | st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.1, -0.0])
    scores, data = source.draw(rows(levels=source.draw(st.lists(number, min_size=3, max_size=6, unique=True))))
    offset = fitted(scores, data, notion, k)
    if offset is None:
        return
    names = [f"{notion}@{each}" for each in (k if isinstance(k, tuple) else (k,))]
    stored = data.to_stored(scores)
    moving = next(code for code in range(data.n_groups) if code != offset._reference)
    tried = stored[:, None] + np.outer(data.group == moving, every_offset(stored, data, moving))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        values, after = (er.measure(some, data, names) for some in (data.to_caller(tried), offset.rerank(scores, data)))
    least = np.mean([values[name] for name in names], axis=0).min()
    if not np.isnan(least):
        assert np.mean([after[name] for name in names]) <= least + 1e-9


def test_three_groups_come_near_the_best_of_a_grid():
    rng = np.random.default_rng(0)
    lost = []
    for _ in range(6):
        n = 60
        group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
        data = er.RankingData.from_arrays(np.zeros((n, 0)), rng.integers(0, 2, n), group, np.arange(n) % 10)
        scores = rng.normal(size=n) + 0.7 * (group == "b") - 0.5 * (group == "c")
        offset = er.GroupOffset("dp", 2, shrink=False).fit(scores, data)
        grid = np.linspace(-3, 3, 41)
        tried = [scores + b * (group == "b") + c * (group == "c") for b, c in product(grid, grid)]
        best = er.measure(np.stack(tried, axis=1), data, ["dp@2"])["dp@2"].min()
        assert offset.gap_after_ <= offset.gap_before_
        lost.append(offset.gap_after_ - best)
    assert max(lost) <= 0.05
    assert np.mean(lost) <= 0.01


@settings(max_examples=12, deadline=None)
@given(
    rows(groups=3),
    st.randoms(use_true_random=False),
    st.sampled_from([0.5, 4.0]),
    st.sampled_from([-2.0, 8.0]),
    st.booleans(),
)
def test_shuffling_relabelling_and_affine_maps_change_no_ranking(drawn, random, scale, shift, shrink):
    scores, data = drawn
    offset = fitted(scores, data, shrink=shrink)
    plain = offset.rerank(scores, data)
    order = list(range(data.n_rows))
    random.shuffle(order)
    labels = np.array([*data.group_names, None], dtype=object)[data.to_caller(data.group)]
    query = data.to_caller(data.query_of_row)
    relevance = data.to_caller(data.relevance)
    shuffled = er.RankingData.from_arrays(np.zeros((len(order), 0)), relevance[order], labels[order], query[order])
    again = fitted(scores[order], shuffled, shrink=shrink)
    assert again.offsets_ == pytest.approx(offset.offsets_)
    np.testing.assert_allclose(again.rerank(scores[order], shuffled), plain[order])
    moved = fitted(scale * scores + shift, data, shrink=shrink)
    assert moved.offsets_ == pytest.approx({name: scale * value for name, value in offset.offsets_.items()})
    if len(set(np.bincount(data.group[data.group >= 0]).tolist())) == data.n_groups == 2:
        renamed = data.with_group(
            [None if label is None else {"a": "z", "b": "y", "c": "x"}[label] for label in labels]
        )
        np.testing.assert_allclose(fitted(scores, renamed, shrink=shrink).rerank(scores, renamed), plain)


def lists(n=400, length=10, shift=0.8, seed=0, groups=("a", "b")):
    rng = np.random.default_rng(seed)
    group = rng.choice(groups, n)
    relevance = (rng.random(n) < 0.3).astype(float)
    data = er.RankingData.from_arrays(np.zeros((n, 0)), relevance, group, np.arange(n) // length)
    return relevance + rng.normal(size=n) + shift * (group == groups[0]), data


@pytest.mark.parametrize("notion", ["dp", "eop", "eod"])
def test_adapt_never_reads_labels(notion):
    scores, data = lists(n=3000)
    offset = er.GroupOffset(notion, (1, 3)).fit(scores, data)
    new_scores, new = lists(n=3000, seed=1)
    adapted = offset.adapt(new_scores, new)
    scrambled = replace(new, relevance=np.random.default_rng(5).permutation(new.relevance) * 3)
    assert offset.adapt(new_scores, scrambled).offsets_ == adapted.offsets_
    # Other lists have another best offset.
    assert offset.offsets_ != adapted.offsets_
    before, after = (
        er.measure(s, new, [f"{notion}@3"])[f"{notion}@3"] for s in (new_scores, adapted.rerank(new_scores, new))
    )
    assert after < before / 2


def test_adapt_to_parity_is_exact_and_keeps_absent_groups():
    scores, data = lists(groups=("a", "b", "c"))
    offset = er.GroupOffset("dp", 3).fit(scores, data)
    some = data.take(np.flatnonzero(np.arange(data.n_queries) < 20))
    labels = np.array(some.group_names, dtype=object)[some.group]
    labels[labels == "c"] = None
    two = some.with_group(labels)
    part = data.to_stored(scores)[: some.n_rows]
    adapted = offset.adapt(part, two)
    assert adapted.offsets_["c"] == offset.offsets_["c"]
    assert er.measure(adapted.rerank(part, two), two, ["dp@3"])["dp@3"] == pytest.approx(adapted.gap_after_)
    with pytest.warns(DataWarning, match="no two groups"):
        same = offset.adapt(part, two.with_group(np.where(labels == "a", "a", None)))
    assert same.offsets_ == offset.offsets_


def test_sentinels_stay_and_do_not_decide():
    scores, data = lists()
    plain = er.GroupOffset("dp", 3).fit(scores, data)
    hidden = scores.copy()
    hidden[::7] = -1e30
    offset = er.GroupOffset("dp", 3).fit(hidden, data)
    out = offset.rerank(hidden, data)
    assert (out[::7] == -1e30).all()
    assert er.measure(out, data, ["dp@3"])["dp@3"] == pytest.approx(offset.gap_after_)
    assert offset.gap_after_ < 0.1 * offset.gap_before_
    assert abs(offset.offsets_["b"] - plain.offsets_["b"]) < 0.3
    assert offset.adapt(hidden, data).gap_after_ < 0.1 * offset.gap_before_


def test_strength_scales_the_offsets_and_the_guard_caps_them():
    scores, data = lists(shift=2.0)
    full = er.GroupOffset("dp", 3).fit(scores, data)
    half = er.GroupOffset("dp", 3, 0.5).fit(scores, data)
    assert half.offsets_["b"] == pytest.approx(full.offsets_["b"] / 2)
    assert full.at(0.5).offsets_ == half.offsets_
    np.testing.assert_array_equal(full.at(0.0).rerank(scores, data), scores)
    quality = [er.measure(one.rerank(scores, data), data, ["ndcg@3"])["ndcg@3"] for one in (full.at(0.0), full)]
    lost = quality[0] - quality[1]
    guarded = er.GroupOffset("dp", 3, max_ndcg_loss=max(lost, 0) / 2).fit(scores, data)
    kept = er.measure(guarded.rerank(scores, data), data, ["ndcg@3"])["ndcg@3"]
    assert kept >= quality[0] - max(lost, 0) / 2 - 1e-12


def plain_part(scores, data, notion, k):
    """max(0, 1 − v/g²) of two groups, query by query."""
    query, group = data.query_of_row, data.group
    squares = variance = 0.0
    for stratum in {"dp": [data.relevance >= 0], "eop": [data.relevant], "eod": [~data.relevant, data.relevant]}[
        notion
    ]:
        chosen = er.Ranking(scores, data.query_ptr).top(k)
        rate = [chosen[(group == code) & stratum].mean() for code in (0, 1)]
        size = [((group == code) & stratum).sum() for code in (0, 1)]
        squares += (rate[0] - rate[1]) ** 2
        for number in range(data.n_queries):
            moves = 0.0
            for i in np.flatnonzero((query == number) & stratum):
                moves += (1 - 2 * group[i]) * (chosen[i] - rate[group[i]]) / size[group[i]]
            variance += moves**2 * data.n_queries / (data.n_queries - 1)
    return max(0.0, 1 - variance / squares)


@pytest.mark.parametrize("notion", ["dp", "eop", "eod"])
def test_offsets_shrink_by_what_may_be_chance(notion):
    scores, data = lists(n=600, shift=0.8)
    full = er.GroupOffset(notion, 3, shrink=False).fit(scores, data)
    shrunk = er.GroupOffset(notion, 3).fit(scores, data)
    part = plain_part(data.to_stored(scores), data, notion, 3)
    assert 0.2 < part < 0.99
    assert shrunk.offsets_["b"] == pytest.approx(part * full.offsets_["b"], rel=1e-9)
    many = er.GroupOffset((notion), (1, 3)).fit(*lists(n=20_000, shift=0.5))
    assert many.gap_after_ < 0.05 * many.gap_before_


def test_a_gap_of_chance_is_left_alone_and_said():
    scores, data = lists(n=60, shift=0.0)
    with pytest.warns(DataWarning, match="in 6 lists is no more than chance; all offsets are 0"):
        offset = er.GroupOffset("dp", 3).fit(scores, data)
    assert set(offset.offsets_.values()) == {0.0}
    assert offset.gap_after_ == offset.gap_before_ > 0
    first = data.take([0])
    with pytest.warns(DataWarning, match="in 1 list is no more than chance"):
        er.GroupOffset("dp", 3).fit(data.to_stored(scores)[: first.n_rows], first)


@pytest.mark.parametrize("shrink", [True, False])
def test_odd_scores_follow_the_stated_rules(shrink):
    scores, data = lists()
    plain = er.GroupOffset("dp", 3, shrink=shrink).fit(scores.astype(np.float32), data)
    wide = er.GroupOffset("dp", 3, shrink=shrink).fit(scores.astype(np.float32).astype(float), data)
    assert plain.offsets_ == wide.offsets_
    far = np.where(np.arange(len(scores)) % 9 == 0, 1e300, np.where(np.arange(len(scores)) % 9 == 1, -1e300, scores))
    offset = er.GroupOffset("dp", 5, shrink=shrink).fit(far, data)
    out = offset.rerank(far, data)
    assert (out[np.abs(far) > 1e299] == far[np.abs(far) > 1e299]).all()
    assert er.measure(out, data, ["dp@5"])["dp@5"] == pytest.approx(offset.gap_after_)
    tied = er.GroupOffset("dp", 3, shrink=shrink).fit(np.where(np.arange(len(scores)) % 2, 0.0, -0.0), data)
    assert set(tied.offsets_.values()) <= {0.0} or tied.gap_after_ < tied.gap_before_
    lone = er.RankingData.from_arrays(np.zeros((4, 0)), [1, 0, 1, 0], ["a", "b", "a", "b"], [0, 1, 2, 3])
    assert er.GroupOffset("dp", 1, shrink=shrink).fit([1.0, 2.0, 3.0, 4.0], lone).offsets_ == {"a": 0.0, "b": 0.0}
    longer = [abs(offset.at(part).offsets_["b"]) for part in (0.0, 0.3, 0.6, 1.0)]
    assert longer == sorted(longer)


def test_a_notion_of_ones_own_and_row_weights():
    scores, data = lists()
    mine = er.Notion("even_queries", lambda rows: [rows.query_of_row % 2 == 0])
    offset = er.GroupOffset(mine, 3).fit(scores, data)
    assert er.violation(er.Ranking(data.to_stored(offset.rerank(scores, data)), data.query_ptr).top(3), data, mine) == (
        pytest.approx(offset.gap_after_)
    )
    weighted = replace(data, sample_weight=np.random.default_rng(0).random(data.n_rows))
    again = er.GroupOffset("eop", 3).fit(scores, weighted)
    assert er.measure(again.rerank(scores, weighted), weighted, ["eop@3"])["eop@3"] == pytest.approx(again.gap_after_)


def test_bad_input_is_one_clear_line():
    scores, data = lists(n=40)
    offset = er.GroupOffset("dp", 3, shrink=False).fit(scores, data)
    with pytest.raises(er.DataError, match="group 'x' was not in training"):
        offset.rerank(scores, data.with_group(["x"] + ["a"] * 39))
    with pytest.raises(er.DataError, match="needs two groups; the data has 'a'"):
        er.GroupOffset().fit(scores, data.with_group(["a"] * 40))
    with pytest.raises(er.DataError, match="needs group labels; the data has none"):
        offset.rerank(scores, data.with_group(None))
    with pytest.raises(er.DataError, match="row 3 has nan"):
        er.GroupOffset().fit(np.where(np.arange(40) == 3, np.nan, scores), data)
    with pytest.raises(er.DataError, match="one column"):
        offset.rerank(np.stack([scores, scores], axis=1), data)
    with pytest.raises(er.NotFittedError, match="Call fit before rerank"):
        er.GroupOffset().rerank(scores, data)
    for options in ({"strength": 1.5}, {"k": 0}, {"k": []}, {"notion": "fair"}, {"max_ndcg_loss": -1}, {"shrink": 2}):
        with pytest.raises(er.ConfigError):
            er.GroupOffset(**options).fit(scores, data)
    labels = np.array(data.group_names, dtype=object)[data.group]
    labels[0] = None
    assert offset.rerank(scores, data.with_group(labels))[0] == scores[0]


def test_file_round_trip_and_damage(tmp_path):
    scores, data = lists(groups=("a", "b", "c"))
    path = tmp_path / "offset.json"
    offset = er.GroupOffset("eop", (1, 3), 0.5).fit(scores, data)
    offset.save(path)
    again = er.load(path)
    assert again.offsets_ == offset.offsets_
    assert (again.k, again.strength, again.gap_after_) == ([1, 3], 0.5, offset.gap_after_)
    assert again.adapt(scores, data).offsets_ == offset.adapt(scores, data).offsets_
    np.testing.assert_array_equal(again.rerank(scores, data), offset.rerank(scores, data))
    from evenrank.rankers.content import DIGEST, digest

    for key, value in {
        "ks": [0],
        "change": [1.0],
        "reference": 9,
        "chances": [[[1, 0], [0, 1]]] * 3,
    }.items():
        content = json.loads(path.read_text()) | {key: value}
        content[DIGEST] = digest(content)
        path.with_name("bad.json").write_text(json.dumps(content))
        with pytest.raises(er.DataError, match=r"bad\.json"):
            er.load(path.with_name("bad.json"))


def test_a_sweep_runs_them_on_the_base_rankers_scores():
    data = er.datasets.german_credit("age", lists=30, items=10)
    folds = np.arange(data.n_queries) % 2
    names = ["offset", "offset_adaptive", "quantile_match", "quantile_barycentre", "eopp_transform"]
    result = er.sweep(data, names, ["dp"], ks=[3], folds=folds, strengths=[0.0, 1.0])
    train, test = data.take(folds != 0), data.take(folds == 0)
    plain = er.fairness_path(train, "dp", [0.0]).scores(test)[:, 0]
    inner, trained = train.folds(5, 0), np.empty(train.n_rows)
    for number in range(5):
        own = train.take(inner == number)
        trained[inner[train.query_of_row] == number] = own.to_stored(
            er.fairness_path(train.take(inner != number), "dp", [0.0]).scores(own)[:, 0]
        )
    offset = er.GroupOffset("dp", 3).fit(train.to_caller(trained), train)
    expected = {"offset": offset, "offset_adaptive": offset.adapt(plain, test)}
    for name, one in expected.items():
        for strength, scores in ((0.0, plain), (1.0, one.rerank(plain, test))):
            (trial,) = (t for t in result.trials() if (t.method, t.fold, t.strength) == (name, 0, strength))
            assert trial.values["demographic_parity@3"] == pytest.approx(er.measure(scores, test, ["dp@3"])["dp@3"])
    for name in names:
        sees = er.METHODS[name].sees
        assert sees.group_at_serving
        assert sees.other_lists == (name == "offset_adaptive")
    with pytest.raises(er.ConfigError, match="strengths of offset are values of strength at most 1"):
        er.sweep(data, ["offset"], ["dp"], ks=[3], folds=folds, strengths=[2.0])
