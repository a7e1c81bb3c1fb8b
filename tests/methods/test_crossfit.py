"""Cross-fitted scores: each row is scored by a model that did not train on its query."""

import numpy as np

import evenrank as er
from evenrank.methods.crossfit import crossfit_scores


def rows(queries):
    n = 3 * queries
    query = np.random.default_rng(0).permutation(np.repeat(np.arange(queries), 3))
    return er.RankingData.from_arrays(np.arange(n, dtype=float)[:, None], np.arange(n) % 2, np.arange(n) % 2, query)


def test_no_row_is_scored_by_a_model_of_its_query():
    data = rows(13)
    runs = []

    def train_scores(train, test):
        assert not set(train.query_ids) & set(test.query_ids)
        assert set(train.query_ids) | set(test.query_ids) == set(data.query_ids)
        runs.append(test.n_queries)
        return test.to_caller(np.asarray(test.features)[:, 0])

    assert (crossfit_scores(data, train_scores) == data.to_caller(np.asarray(data.features)[:, 0])).all()
    assert sorted(runs) == [2, 2, 3, 3, 3]


def test_few_queries_have_a_fold_each_and_one_has_its_own_model():
    for queries, models in ((3, 3), (1, 1)):
        runs = []
        crossfit_scores(rows(queries), lambda train, test, runs=runs: runs.append(1) or np.zeros(test.n_rows))
        assert len(runs) == models
