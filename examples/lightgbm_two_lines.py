"""A LightGBM ranking script made fair by changing two lines.

The lines that changed are marked; before, they were ``lightgbm.LGBMRanker(n_estimators=50, …)`` and ``fit(X, y,
group=sizes)``. Run: python examples/lightgbm_two_lines.py
"""

import numpy as np

import evenrank as er

data = er.datasets.german_credit("age")
X, y, sizes, age = data.features, data.relevance, np.diff(data.query_ptr), data.group


def train(alpha: float) -> er.lightgbm.FairLGBMRanker:
    ranker = er.lightgbm.FairLGBMRanker(  # changed
        notion="demographic_parity", alpha=alpha, n_estimators=50, num_leaves=8, n_jobs=1, verbose=-1
    )
    ranker.fit(X, y, group=sizes, sensitive_features=age)  # changed
    return ranker


if __name__ == "__main__":
    for alpha in (0.0, 1.0):
        values = er.measure(train(alpha).predict(X), data, ["ndcg@5", "dp@5"])
        print(f"alpha={alpha:g}: NDCG@5 {values['ndcg@5']:.3f}, dp@5 {values['dp@5']:.3f}")
