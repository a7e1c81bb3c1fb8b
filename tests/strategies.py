"""Hypothesis strategies: ragged lists with many ties, missing groups and graded relevance."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from oracles import Query

LEVELS = [-1.5, 0.0, 0.25, 0.5, 3.0]  # few and exact in binary, so that ties are many and shifts exact
LABELS = ["a", "b", "c", "d"]


def queries(
    *,
    groups: int = 2,
    unknown: bool = True,
    most: int = 4,
    longest: int = 5,
    weights: tuple[float, ...] = (1.0,),
    scores: Any = None,
) -> st.SearchStrategy[list[Query]]:
    """Up to ``most`` lists of at most ``longest`` items, short enough to try every order."""
    label = st.sampled_from(LABELS[:groups] + ([None] if unknown else []))
    score = st.sampled_from(LEVELS) if scores is None else scores
    item = st.tuples(score, st.sampled_from([0.0, 0.5, 1.0, 3.0]), label, st.sampled_from(weights))
    one = st.lists(item, min_size=1, max_size=longest)
    made = one.map(lambda items: Query(*map(list, zip(*items, strict=True))))
    return st.lists(made, min_size=1, max_size=most).filter(
        lambda some: len({label for query in some for label in query.group} - {None}) >= 2
    )
