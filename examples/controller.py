"""A controller that evens out lists as they are served: how fast the gap closes, and what a bad gain does.

Lists of 10 items are served one after the other. Items of group b score 0.7 standard deviations lower than those of
group a, although they are as relevant. The table has the gap of the top 3 over all lists served so far, and what the
controller costs: NDCG@3, and how often a list's top 3 differs from that of the plain order. Run:
python examples/controller.py
"""

import numpy as np

import evenrank as er

LISTS, ITEMS, K = 400, 10, 3
rng = np.random.default_rng(0)
group = np.where(rng.random((LISTS, ITEMS)) < 0.4, "b", "a")
merit = rng.normal(size=(LISTS, ITEMS))
relevant = (merit > 0.5).astype(float)
scores = merit + rng.normal(size=(LISTS, ITEMS)) * 0.5 - 0.7 * (group == "b")
data = er.RankingData.from_arrays(
    np.zeros((scores.size, 0)), relevant.ravel(), group.ravel(), np.repeat(np.arange(LISTS), ITEMS)
)


def serve(gain: float, warm: dict[str, float] | None = None) -> tuple[list[float], float, float]:
    """The gap after 10, 50, 100 and all lists, the NDCG, and the share of lists whose top 3 has changed."""
    controller = er.FairController("dp", k=K, gain=gain, warm=warm)
    orders = np.array([controller.rank(scores[i], group[i]) for i in range(LISTS)])
    places = np.argsort(orders, axis=1)
    gaps = []
    for served in (10, 50, 100, LISTS):
        chosen, who = places[:served] < K, group[:served]
        gaps.append(abs(chosen[who == "a"].mean() - chosen[who == "b"].mean()))
    plain = np.sort(np.argsort(-scores, axis=1)[:, :K], axis=1)
    changed = (np.sort(orders[:, :K], axis=1) != plain).any(axis=1).mean()
    return gaps, er.measure(-places.ravel().astype(float), data, f"ndcg@{K}")[f"ndcg@{K}"], changed


if __name__ == "__main__":
    print(f"{'':22}  gap after 10     50    100    {LISTS}   NDCG@3  lists changed")
    for name, gain, warm in (
        ("no control", 0.0, None),
        ("gain too small, 0.1", 0.1, None),
        ("the default gain, 3", 3.0, None),
        ("the same, warm start", 3.0, {"b": 0.7}),
        ("gain too large, 100", 100.0, None),
    ):
        gaps, quality, changed = serve(gain, warm)
        print(f"{name:22}", " " * 8, "  ".join(f"{gap:.3f}" for gap in gaps), f"  {quality:.3f}", f"{changed:10.0%}")
