"""Transforms of scores against reference outputs, plain twins, and rows that were not in the fit."""

import numpy as np
import pytest

import evenrank as er
from golden import golden


def one_list(score, group, label=None):
    label = [0] * len(score) if label is None else label
    return er.RankingData.from_arrays(np.zeros((len(score), 0)), label, group, [0] * len(score))


@golden("rerankers/quantile_match", "cases")
def test_quantile_match_as_published(case):
    score = case["protected"] + case["non_protected"]
    data = one_list(score, [1] * len(case["protected"]) + [0] * len(case["non_protected"]))
    out = er.QuantileMatch(protected=1).fit(score, data).rerank(score, data)
    np.testing.assert_allclose(out, case["expected_protected"] + case["non_protected"], atol=1e-9)


@golden("rerankers/quantile_barycentre", "cases")
def test_barycentre_as_published(case):
    data = one_list(case["score"], case["group"])
    theta = dict(zip(data.group_names, case["theta"], strict=True))
    out = er.QuantileBarycentre(theta).fit(case["score"], data).rerank(case["score"], data)
    np.testing.assert_allclose(out, case["expected"], atol=1e-9)


@golden("rerankers/eopp_transform", "cases")
def test_opportunity_as_published(case):
    data = one_list(case["score"], case["group"], case["label"])
    expected = case["expected"]
    plain = er.EqualOpportunityTransform(case["n_quantiles"], original_scale=False).fit(case["score"], data)
    for name, points in expected["maps"].items():
        np.testing.assert_allclose(np.transpose(plain.maps_[int(name)]), points, atol=1e-9)
    np.testing.assert_allclose(plain.rerank(case["score"], data), expected["transformed"], atol=1e-9)
    scaled = er.EqualOpportunityTransform(case["n_quantiles"]).fit(case["score"], data)
    np.testing.assert_allclose(scaled.rerank(case["score"], data), expected["original_scale"], atol=1e-9)


def drawn(seed=0, n=300):
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    label = (rng.random(n) < 0.4).astype(float)
    data = er.RankingData.from_arrays(np.zeros((n, 0)), label, group, np.arange(n) // 10)
    return label + rng.normal(size=n) - 0.7 * (group == "b"), data


EACH = [er.QuantileMatch(), er.QuantileBarycentre(), er.EqualOpportunityTransform(n_quantiles=20)]


@pytest.mark.parametrize("reranker", EACH, ids=lambda one: type(one).__name__)
def test_new_rows_keep_their_order_inside_a_group_and_files_give_the_same(reranker, tmp_path):
    scores, data = drawn()
    reranker.fit(scores, data)
    new_scores, new = drawn(seed=1)
    new_scores[:5] *= 10  # beyond all that fit has seen
    out = reranker.rerank(new_scores, new)
    group = new.to_caller(new.group)
    for code in range(3):
        mine = np.flatnonzero(group == code)
        in_order = out[mine][np.argsort(new_scores[mine])]
        assert (np.diff(in_order) >= -1e-12).all()
    reranker.save(tmp_path / "map.json")
    again = er.load(tmp_path / "map.json")
    np.testing.assert_array_equal(again.rerank(new_scores, new), out)
    np.testing.assert_allclose(reranker.at(0.0).rerank(new_scores, new), new_scores)
    np.testing.assert_allclose(reranker.at(0.5).rerank(new_scores, new), (new_scores + out) / 2)
    with pytest.raises(er.DataError, match="'x' was not in training"):
        reranker.rerank(new_scores, new.with_group(["x"] * 300))
    with pytest.raises(er.DataError, match="needs two groups"):
        type(reranker)().fit(scores, data.with_group(["a"] * 300))
    unknown = new.with_group([None, *(["a"] * 299)])
    assert reranker.rerank(new_scores, unknown)[0] == new_scores[0]


def test_a_whole_barycentre_gives_all_groups_one_mean_and_sentinels_stay():
    scores, data = drawn(n=3000)
    scores[0] = -1e30
    out = er.QuantileBarycentre().fit(scores, data).rerank(scores, data)
    assert out[0] == -1e30
    group = data.to_caller(data.group)
    means = [out[1:][group[1:] == code].mean() for code in range(3)]
    np.testing.assert_allclose(means, means[0], atol=1e-9)


def test_position_bias_is_found_where_it_is_known():
    rng = np.random.default_rng(2)
    lists, length = 4000, 4
    relevance = rng.random((lists, length))
    order = np.argsort(-(relevance + rng.normal(size=relevance.shape)), axis=1)
    score = np.take_along_axis(relevance, order, axis=1)
    truth = np.array([1.0, 0.6, 0.4, 0.3])
    clicked = rng.random((lists, length)) < 0.8 * score * truth
    group = rng.choice(["a", "b"], lists * length)
    data = er.RankingData.from_arrays(
        np.zeros((lists * length, 0)), clicked.ravel().astype(float), group, np.repeat(np.arange(lists), length)
    )
    position = np.tile(np.arange(1, length + 1), lists)
    transform = er.EqualOpportunityTransform(10).fit(score.ravel(), data, position=position)
    np.testing.assert_allclose(transform.position_bias_, truth, rtol=0.15)
    # Without bias the clicked items' distribution is that of score-weighted items; with it the low places count more.
    plain = er.EqualOpportunityTransform(10, original_scale=False).fit(score.ravel(), data)
    fair = er.EqualOpportunityTransform(10, original_scale=False).fit(score.ravel(), data, position=position)
    assert plain.position_bias_ is None
    assert all((fair.maps_[name][0][1:-1] <= plain.maps_[name][0][1:-1]).all() for name in ("a", "b"))
    with pytest.raises(er.DataError, match="whole number from 1 on"):
        er.EqualOpportunityTransform().fit(score.ravel(), data, position=position - 1)


def test_a_theta_per_group_is_kept_in_the_file(tmp_path):
    scores, data = drawn()
    theta = {"a": 0.25, "b": 1.0, "c": 0.0}
    reranker = er.QuantileBarycentre(theta).fit(scores, data)
    reranker.save(tmp_path / "map.json")
    again = er.load(tmp_path / "map.json")
    assert again.theta == theta
    np.testing.assert_array_equal(again.rerank(scores, data), reranker.rerank(scores, data))
    whole = er.QuantileBarycentre(1.0).fit(scores, data).rerank(scores, data)
    group = data.to_caller(data.group)
    part = np.array([theta[name] for name in data.group_names])[group]
    np.testing.assert_allclose(reranker.rerank(scores, data), scores + part * (whole - scores), atol=1e-12)


@pytest.mark.parametrize("kind", [er.QuantileMatch, er.QuantileBarycentre, er.EqualOpportunityTransform])
@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        ([1.0, 2.0], ["a", "b"]),  # one item per group
        ([3.0, 3.0, 3.0, 3.0], ["a", "b", "a", "b"]),  # all tied
        ([0.0, -0.0, 1e-300, 5e-324], ["a", "a", "b", "b"]),
        ([1e300, 1.0, 2.0, 3.0, -1e300, 2.5], ["a", "a", "b", "b", "b", "a"]),
    ],
)
def test_hostile_scores_give_finite_scores_in_order(kind, scores, labels):
    data = one_list(scores, labels, [1] * len(scores))
    out = kind().fit(scores, data).rerank(scores, data)
    assert np.isfinite(out).all()
    for label in ("a", "b"):
        mine = np.flatnonzero(np.array(labels) == label)
        assert (np.diff(out[mine][np.argsort(np.array(scores)[mine], kind="stable")]) >= 0).all()
    with pytest.raises(er.DataError, match="row 0 has nan"):
        kind().fit([np.nan, *scores[1:]], data)
