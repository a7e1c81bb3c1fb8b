"""XGBoost on a real Dask cluster of processes: the model of one process, and one line for what would be wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import evenrank as er
from evenrank.boosting.collective import CollectiveObjective, local_rows
from evenrank.boosting.objective import FairObjective, base_gradients, fairness
from evenrank.errors import ConfigError, DataError

pytestmark = [pytest.mark.extras, pytest.mark.filterwarnings("ignore")]  # Dask and pandas warn of each other


def table(seed: int = 0, n: int = 2000) -> Any:
    """Rows in mixed order; features have few values, so that the bins of one machine and of several are the same."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    X = rng.integers(0, 20, (n, 4)).astype(float)
    group = np.where(X[:, 0] + rng.normal(size=n) * 3 > 12, "new", "old").astype(object)
    group[rng.random(n) < 0.1] = None
    relevance = (X[:, 0] + X[:, 1] + rng.normal(size=n) * 6 > 24).astype(int)
    frame = pd.DataFrame(X, columns=["w", "x", "y", "z"])
    return frame.assign(qid=rng.zipf(1.5, n) % 80, relevance=relevance, group=group)


def one_process(frame: Any, ranker: Any, **options: Any) -> Any:
    """The booster of xgboost.train with the objective in one process, rows in the order that workers have them in."""
    import xgboost

    names = ["w", "x", "y", "z"]
    rows = frame.sort_values(["qid", *names, "relevance"], kind="stable")
    label, qid = rows["relevance"].to_numpy(), rows["qid"].to_numpy()
    objective = er.xgboost.fair_objective(
        (label, rows["group"].to_numpy(object), qid), objective=ranker.objective, params=ranker.get_params(), **options
    )
    matrix = xgboost.DMatrix(rows[names].to_numpy(), label, qid=qid)
    params = ranker.get_xgb_params() | {"base_score": 0.0}
    return xgboost.train(params, matrix, ranker.n_estimators, obj=objective)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    import dask
    from dask.distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),  # rows stay where a test puts them
        LocalCluster(n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as connected,
    ):
        yield connected


@pytest.mark.parametrize(
    "options",
    [{"alpha": 0.0}, {"alpha": 1.0}, {"alpha": 1.0, "notion": "eod", "target": "score"}, {"max_violation": 0.02}],
    ids=str,
)
@pytest.mark.parametrize("objective", ["rank:ndcg", "squared"])
def test_two_processes_train_the_model_of_one(client: Any, objective: str, options: dict[str, Any]) -> None:
    import dask.dataframe as dd
    import xgboost

    frame = table()
    options = {"notion": "dp", **options}
    settings = {"n_estimators": 12, "max_depth": 3, "n_jobs": 1, "learning_rate": 0.2, "objective": objective}
    ranker = er.xgboost.FairXGBRanker(**options, **settings)
    expected = one_process(frame, ranker, **options)
    trained = er.xgboost.dask_fit(client, dd.from_pandas(frame, npartitions=5), ranker)
    X = frame[["w", "x", "y", "z"]].to_numpy()
    scores = trained.predict(X)
    assert np.ptp(scores) > 0.1
    np.testing.assert_allclose(scores, expected.predict(xgboost.DMatrix(X)), atol=1e-5)
    assert trained.group_names_ == ("new", "old")


def test_a_ranker_of_a_cluster_is_a_ranker(client: Any, tmp_path: Any) -> None:
    import dask.dataframe as dd

    frame = table(1)
    ranker = er.xgboost.FairXGBRanker(notion="dp", n_estimators=5, n_jobs=1)
    er.xgboost.dask_fit(client, dd.from_pandas(frame, npartitions=3), ranker)
    ranker.save(tmp_path / "model.json")
    X = frame[["w", "x", "y", "z"]].to_numpy()
    np.testing.assert_array_equal(er.load(tmp_path / "model.json").predict(X), ranker.predict(X))
    assert np.isnan(ranker.violation_)


def test_what_a_cluster_cannot_do_is_one_line(client: Any) -> None:
    import dask.dataframe as dd

    frame = dd.from_pandas(table(2), npartitions=2)
    ranker = er.xgboost.FairXGBRanker
    cases = [
        (ConfigError, "group_aware is for fit in memory", frame, ranker(group_aware=True), {}),
        (ConfigError, "scope='per_query' is not for training on several", frame, ranker(scope="per_query"), {}),
        (ConfigError, "early_stopping_rounds is for fit in memory", frame, ranker(early_stopping_rounds=3), {}),
        (ConfigError, "frame must be a Dask DataFrame; got DataFrame", frame.compute(), ranker(), {}),
        (ConfigError, "ranker must be a FairXGBRanker; got FairLGBMRanker", frame, er.lightgbm.FairLGBMRanker(), {}),
        (DataError, "column 'nope' is not in the frame", frame, ranker(), {"group": "nope"}),
        (DataError, "features must be columns of numbers; got 'group'", frame, ranker(), {"features": ["group"]}),
    ]
    for kind, told, rows, asked, options in cases:
        with pytest.raises(kind, match=told) as caught:
            er.xgboost.dask_fit(client, rows, asked, **options)
        assert "\n" not in str(caught.value)


def test_a_matrix_without_groups_or_with_merged_queries_is_refused(client: Any) -> None:
    import dask.dataframe as dd
    import xgboost.dask as dask_xgboost

    frame = dd.from_pandas(table(3).sort_values("qid"), npartitions=2)
    matrix = dask_xgboost.DaskDMatrix(client, frame[["w", "x"]], frame["relevance"], qid=frame["qid"])
    with pytest.raises(Exception, match="must carry each row's group number"):
        dask_xgboost.train(client, {}, matrix, 2, obj=er.xgboost.dask_objective(notion="dp"))
    code = frame["group"].map({"new": 0.0, "old": 1.0}, meta=("g", "f8")).fillna(-1.0)
    matrix = dask_xgboost.DaskDMatrix(
        client, frame[["w", "x"]], frame["relevance"], qid=frame["qid"], label_lower_bound=code
    )
    with pytest.raises(Exception, match="queries, the rows 7"):
        dask_xgboost.train(client, {}, matrix, 2, obj=er.xgboost.dask_objective(notion="dp", n_queries=7))


def test_lightgbm_on_dask_with_our_objective_is_refused(client: Any) -> None:
    import dask.array as da
    import lightgbm.dask

    frame = table(4).sort_values("qid")
    label, qid = frame["relevance"].to_numpy(), frame["qid"].to_numpy()
    objective = er.lightgbm.fair_objective((label, frame["group"].to_numpy(object), qid), notion="dp")
    sizes = np.unique(qid, return_counts=True)[1]
    queries = len(sizes) // 2
    rows = int(sizes[:queries].sum())
    first, second = client.scheduler_info()["workers"]

    def halves(values: Any, at: int) -> Any:
        # Each worker is given one half: left to Dask, one worker now and then gets both, and then has every row.
        pieces = [client.scatter(part, workers=[on]) for part, on in ((values[:at], first), (values[at:], second))]
        shapes = [(at, *values.shape[1:]), (len(values) - at, *values.shape[1:])]
        parts = [da.from_delayed(p, shape, values.dtype) for p, shape in zip(pieces, shapes, strict=True)]
        return da.concatenate(parts)

    X = halves(frame[["w", "x"]].to_numpy(), rows)
    model = lightgbm.dask.DaskLGBMRanker(client=client, objective=objective, n_estimators=2, verbose=-1)
    with pytest.raises(
        Exception, match=r"sees its own rows only. Train on several machines with er\.xgboost\.dask_fit"
    ):
        model.fit(X, halves(label, rows), group=halves(sizes, queries))


def test_rankers_that_take_names_of_objectives_refuse_ours() -> None:
    import xgboost.dask as dask_xgboost

    frame = table(5).sort_values("qid")
    objective = er.xgboost.fair_objective(
        (frame["relevance"].to_numpy(), frame["group"].to_numpy(object), frame["qid"].to_numpy()), notion="dp"
    )
    with pytest.raises(ValueError, match="Custom objective function not supported"):
        dask_xgboost.DaskXGBRanker(objective=objective)


@pytest.mark.parametrize(
    "spec", [{"alpha": 1.0}, {"max_violation": 0.05}, {"alpha": 2.0, "target": "exposure"}], ids=str
)
def test_parts_that_add_up_their_sums_have_the_gradients_of_the_whole(spec: dict[str, Any]) -> None:
    """Without a cluster: two threads stand for two workers, and a barrier for their collective."""
    rng = np.random.default_rng(0)
    n = 1500
    query = np.sort(rng.integers(0, 60, n))
    group, relevance = rng.integers(-1, 3, n), rng.integers(0, 2, n).astype(float)
    bounds = np.append(np.flatnonzero(np.diff(query, prepend=-1)), n)
    asked = fairness(notion="eod", **spec)
    rounds = [np.zeros(n), *(rng.normal(size=n).astype(np.float32) for _ in range(4))]
    whole = local_rows(relevance, group, bounds, 3, 1.0)
    expected = [FairObjective(whole, base_gradients("squared", whole), asked)]
    wanted = [expected[0](scores)[0] for scores in rounds]
    cut, at = 25, int(bounds[25])
    barrier, box, found = threading.Barrier(2), [np.zeros(0)] * 2, [[], []]  # type: ignore[var-annotated]

    def work(number: int) -> None:
        def total(values: Any) -> Any:
            box[number] = np.array(values, float)
            barrier.wait(30)
            summed = box[0] + box[1]
            barrier.wait(30)
            return summed

        rows = slice(0, at) if number == 0 else slice(at, n)
        own = bounds[: cut + 1] if number == 0 else bounds[cut:] - at
        data = local_rows(relevance[rows], group[rows], own, 3, 1.0)
        objective = CollectiveObjective(data, base_gradients("squared", data), asked, total)
        found[number] = [objective(scores[rows])[0] for scores in rounds]

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for scores, one, two in zip(wanted, *found, strict=True):
        np.testing.assert_allclose(np.concatenate([one, two]), scores, rtol=1e-5, atol=1e-6)
