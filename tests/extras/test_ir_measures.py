"""Our measures in ir_measures: the same numbers as of `er.measure`, beside the library's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.errors import ConfigError

pytestmark = pytest.mark.extras
ir_measures = pytest.importorskip("ir_measures")

RNG = np.random.default_rng(0)
DOCS = [f"d{i}" for i in range(30)]
GROUPS: dict[str, Any] = {doc: RNG.choice(["x", "y", "z"]) for doc in DOCS[:-2]}
RUN = {f"q{q}": {doc: float(RNG.integers(0, 9)) for doc in RNG.permutation(DOCS)[:12]} for q in range(6)}
QRELS = {f"q{q}": {doc: int(RNG.integers(-1, 3)) for doc in RNG.permutation(DOCS)[:20]} for q in range(6)}


def rows(run: Any = RUN, qrels: Any = QRELS, groups: Any = GROUPS) -> tuple[Any, er.RankingData]:
    """The rows of a run, in a plain loop."""
    parts = [(q, doc, score) for q, docs in run.items() if q in qrels for doc, score in docs.items()]
    relevance = [max(0, qrels[q].get(doc, 0)) for q, doc, _ in parts]
    data = er.RankingData.from_arrays(
        np.zeros((len(parts), 0)),
        relevance,
        [groups.get(doc) for _, doc, _ in parts],
        [q for q, _, _ in parts],
        item_ids=[doc for _, doc, _ in parts],
    )
    return [score for _, _, score in parts], data


@pytest.fixture
def fair() -> Any:
    return er.ir_measures.register(groups=GROUPS)


@pytest.mark.filterwarnings("ignore::evenrank.errors.DataWarning")
def test_every_measure_of_fairness(fair: Any) -> None:
    scores, data = rows()
    for row in er.measures_table():
        name = row["name"]
        if row["needs"] == ["relevance"]:
            assert not hasattr(fair, name)
            continue
        measure, text = getattr(fair, name), name
        if row["k"] != "none":
            measure, text = measure @ 4, f"{name}@4"
        expected = er.measure(scores, data, text)[text]
        assert ir_measures.calc_aggregate([measure], QRELS, RUN)[measure] == pytest.approx(expected, nan_ok=True)
        values = er.measure(scores, data, text, per_query=True)[text]
        got = {metric.query_id: metric.value for metric in ir_measures.iter_calc([measure], QRELS, RUN)}
        assert [got[q] for q in data.query_ids.tolist()] == pytest.approx(values.tolist(), nan_ok=True)


def test_beside_the_library_s_own_and_by_name(fair: Any) -> None:
    named = ir_measures.parse_measure("awrf(discount='rbp',patience=0.8,target='equal')@5")
    shares = fair.ndkl(target="x:0.5/y:0.25/z:0.25") @ 5
    wanted = [named, shares, fair.demographic_parity @ 5, ir_measures.nDCG @ 5]
    got = ir_measures.calc_aggregate(wanted, QRELS, RUN)
    scores, data = rows()
    expected = er.measure(scores, data, ["awrf@5(discount=rbp,patience=0.8,target=equal)", "dp@5"])
    assert got[named] == pytest.approx(expected["awrf@5(discount=rbp,patience=0.8,target=equal)"])
    assert got[wanted[2]] == pytest.approx(expected["dp@5"])
    target = {"x": 0.5, "y": 0.25, "z": 0.25}
    assert got[shares] == pytest.approx(er.measure(scores, data, "ndkl@5", target=target)["ndkl@5"])
    assert 0 < got[wanted[3]] < 1


def test_queries_that_lack_something(fair: Any) -> None:
    """A query without results has no value; one without judgements takes no part."""
    run = {q: docs for q, docs in RUN.items() if q != "q0"} | {"other": {"d1": 1.0}}
    got = {metric.query_id: metric.value for metric in ir_measures.iter_calc([fair.awrf @ 3], QRELS, run)}
    assert set(got) == set(QRELS)
    assert np.isnan(got["q0"])
    scores, data = rows(run)
    expected = er.measure(scores, data, "awrf@3")["awrf@3"]
    assert ir_measures.calc_aggregate([fair.awrf @ 3], QRELS, run)[fair.awrf @ 3] == pytest.approx(expected)
    assert np.isnan(ir_measures.calc_aggregate([fair.awrf @ 3], QRELS, {})[fair.awrf @ 3])


def test_groups_as_a_function_soft_or_anew(fair: Any) -> None:
    scores, data = rows(groups={doc: doc[-1] in "02468" for doc in DOCS})
    again = er.ir_measures.register(groups=lambda doc: doc[-1] in "02468")
    assert ir_measures.calc_aggregate([again.awrf], QRELS, RUN)[fair.awrf] == (
        pytest.approx(er.measure(scores, data, "awrf")["awrf"])
    )
    soft = {doc: {"x": 0.25, "y": 0.5} for doc in DOCS} | {"d0": "x", "d1": None}
    er.ir_measures.register(groups=soft)
    table = [
        [soft[item].get(name, 0.0) if isinstance(soft[item], dict) else float(soft[item] == name) for name in "xy"]
        for item in np.asarray(data.item_ids)
    ]
    expected = er.measure(scores, data.with_membership(table, ["x", "y"]), "awrf")["awrf"]
    assert ir_measures.calc_aggregate([fair.awrf], QRELS, RUN)[fair.awrf] == pytest.approx(expected)
    with pytest.raises(ConfigError, match="groups must be a mapping from document ids to groups, or a function; got 3"):
        er.ir_measures.register(groups=3)  # type: ignore[arg-type]
