"""Transforms of scores against reference outputs, plain twins, and rows that were not in the fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
