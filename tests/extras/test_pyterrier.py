"""Our measures in PyTerrier's experiments; skipped where PyTerrier is not installed (`pip install python-terrier`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenrank as er

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore:.*inplace keyword")]
pt = pytest.importorskip("pyterrier")
ir_measures = pytest.importorskip("ir_measures")
pd = pytest.importorskip("pandas")

DOCS = [f"d{i}" for i in range(40)]
GROUPS = {doc: "a" if i % 3 else "b" for i, doc in enumerate(DOCS)}
TOPICS = pd.DataFrame({"qid": [f"q{i}" for i in range(8)], "query": ["words"] * 8})


def judged(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    rows = [(q, doc, int(rng.random() < 0.3)) for q in TOPICS.qid for doc in rng.permutation(DOCS)[:25]]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def results(seed: int, lean: float) -> Any:
    rng = np.random.default_rng(seed)
    rows = [
        (q, doc, rng.normal() + lean * (GROUPS[doc] == "b")) for q in TOPICS.qid for doc in rng.permutation(DOCS)[:20]
    ]
    return pt.model.add_ranks(pd.DataFrame(rows, columns=["qid", "docno", "score"]))


def ours(frame: Any, names: list[str]) -> dict[str, float]:
    relevance = frame.merge(judged(), how="left", on=["qid", "docno"])["label"].fillna(0)
    data = er.RankingData.from_arrays(
        np.zeros((len(frame), 0)),
        relevance.to_numpy(),
        frame.docno.map(GROUPS).to_numpy(),
        frame.qid.to_numpy(),
        item_ids=frame.docno.to_numpy(),
    )
    return er.measure(frame.score.to_numpy(), data, names)


@pytest.fixture
def fair() -> Any:
    return er.ir_measures.register(groups=GROUPS)


def test_means_over_lists_in_an_experiment_of_pyterrier_itself(fair: Any) -> None:
    frames = [results(1, 0.0), results(2, 2.0)]
    systems = [pt.Transformer.from_df(frame) for frame in frames]
    measures = [fair.awrf @ 10, fair.ndkl, ir_measures.nDCG @ 10]
    table = pt.Experiment(systems, TOPICS, judged(), measures, names=["even", "leaning"])
    for row, frame in enumerate(frames):
        expected = ours(frame, ["awrf@10", "ndkl"])
        assert table["awrf@10"][row] == pytest.approx(expected["awrf@10"])
        assert table["ndkl"][row] == pytest.approx(expected["ndkl"])
    assert table["awrf@10"][0] > table["awrf@10"][1]
    assert "nDCG@10" in table


def test_a_pipeline_that_cuts_lists_and_a_baseline(fair: Any) -> None:
    frame = results(3, 1.0)
    blind = pt.Transformer.from_df(frame)
    evened = blind >> pt.apply.doc_score(lambda row: row["score"] - (GROUPS[row["docno"]] == "b"))
    table = er.ir_measures.experiment(
        [blind % 12, evened % 12],
        TOPICS,
        judged(),
        [fair.demographic_parity @ 5],
        names=["blind", "evened"],
        baseline=0,
    )
    cut = frame[frame["rank"] < 12]
    assert table["demographic_parity@5"][0] == pytest.approx(ours(cut, ["dp@5"])["dp@5"])
    assert "demographic_parity@5 p-value" in table


def test_gaps_of_all_lists_are_those_of_evenrank(fair: Any) -> None:
    """PyTerrier's own table has the mean of each query's gap, which is another number."""
    frames = [results(1, 0.0), results(2, 2.0)]
    measures = [fair.demographic_parity @ 5, fair.dtr @ 5, ir_measures.P @ 5]
    table = er.ir_measures.experiment(frames, TOPICS, judged(), measures, names=["even", "leaning"], round=6)
    plain = pt.Experiment(frames, TOPICS, judged(), measures, names=["even", "leaning"])
    for row, frame in enumerate(frames):
        expected = ours(frame, ["dp@5", "dtr@5"])
        assert table["demographic_parity@5"][row] == pytest.approx(expected["dp@5"], abs=1e-6)
        assert table["dtr@5"][row] == pytest.approx(expected["dtr@5"], abs=1e-6)
        assert table["P@5"][row] == pytest.approx(plain["P@5"][row], abs=1e-6)
    assert abs(plain["demographic_parity@5"][0] - table["demographic_parity@5"][0]) > 0.05
    each = er.ir_measures.experiment(frames, TOPICS, judged(), measures, names=["even", "leaning"], perquery=True)
    assert len(each) == 2 * 3 * len(TOPICS)
