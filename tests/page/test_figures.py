"""Figures drawn to files from the page's chart descriptions."""

from __future__ import annotations

import re

import pytest

import evenrank as er
from evenrank.errors import ConfigError
from evenrank.page.charts import against_strength, tradeoff
from evenrank.page.figures import draw, figure_names, write_figures


@pytest.fixture(scope="module")
def result():
    data = er.datasets.german_credit("age", lists=20, items=10)
    methods = ["amortized", "fastar"]
    return er.sweep(data, methods, ["dp", "eop"], [0, 0.1, 0.5], [1, 3], folds=2, examples=0)


def test_one_description_gives_both_formats(result):
    description = against_strength(result, notion="dp", methods=["amortized"])
    svg, png = draw(description), draw(description, "png")
    assert svg.startswith(b"<svg")
    assert png.startswith(b"\x89PNG")
    text = svg.decode()
    assert all(label in text for label in ("k = 1", "k = 3", "violation", "NDCG", "strength"))
    with pytest.raises(ConfigError, match="figure format must be one of svg, png; got 'gif'"):
        draw(description, "gif")


def test_a_point_stands_where_its_numbers_say(result):
    """The violation at strength 0 is the highest mark of its panel if it is the largest violation."""
    curve = result.curve("dp", 1, method="amortized")
    points = against_strength(result, notion="dp", methods=["amortized"])["datasets"]["panel0"]
    assert [point["violation"] for point in points] == pytest.approx(curve.violation.tolist())
    assert [point["quality high"] for point in points] == pytest.approx((curve.quality + curve.quality_error).tolist())
    assert [point["front"] for point in tradeoff(result, notion="dp", methods=["amortized"])["datasets"]["points"]][
        : len(curve.front)
    ] == curve.front.tolist()


def test_every_setting_has_a_figure(result, tmp_path):
    seen: list[float] = []
    files = write_figures(result, tmp_path / "figures", progress=seen.append)
    names = {file.stem for file in files}
    assert names == {
        f"group-{notion}-{what}-{quality}"
        for notion in ("demographic_parity", "equal_opportunity")
        for what in ("tradeoff", "amortized", "fastar")
        for quality in ("ndcg", "precision")
    } | {f"{what}-group-{quality}" for what in ("figure1", "grid") for quality in ("ndcg", "precision")}
    assert all(file.read_bytes().startswith(b"<svg") for file in files)
    assert seen[-1] == 1


def test_methods_may_be_left_out(result):
    names = [name for name, *_ in figure_names(result, ["amortized"], ["ndcg"])]
    assert names == [
        f"group-{notion}-{what}-ndcg"
        for notion in ("demographic_parity", "equal_opportunity")
        for what in ("tradeoff", "amortized")
    ]
    assert all(re.fullmatch(r"[\w.=-]+", name) for name in names)


def test_an_unknown_format_is_refused_before_anything_is_drawn(result, tmp_path):
    with pytest.raises(ConfigError, match="figure format"):
        write_figures(result, tmp_path / "none", ["pdf"])
    assert not (tmp_path / "none").exists()
