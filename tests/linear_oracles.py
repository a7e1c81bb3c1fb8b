"""Slow twins of the linear solvers, on plain row matrices: nothing here knows moments, sparse contrasts or strengths
as an axis, and each trains one model at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData

Array = NDArray[Any]
CONIC = 1e-11  # how close to the least value the conic solver comes on every processor
STRATA = {"dp": ("all",), "eop": ("relevant",), "eod": ("irrelevant", "relevant")}


def random_data(
    seed: int = 0,
    n: int = 120,
    d: int = 3,
    *,
    groups: int = 2,
    queries: int = 12,
    unknown: bool = False,
    weighted: bool = False,
    dtype: Any = np.float64,
    shuffled: bool = True,
) -> RankingData:
    """Rows whose features and relevance depend on the group, in mixed order unless told otherwise."""
    rng = np.random.default_rng(seed)
    labels = np.array(list("abcdef")[:groups], object)
    code = rng.integers(0, groups, n)
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 3, d) + rng.normal(size=d)
    X += 0.5 * code[:, None] * rng.normal(size=d)
    relevance = (X @ rng.normal(size=d) + 0.7 * code + rng.normal(size=n) > 0.5).astype(float)
    group = labels[code]
    if unknown:
        group[rng.random(n) < 0.15] = None
    query = rng.integers(0, queries, n)
    return RankingData.from_arrays(
        X.astype(dtype),
        relevance,
        group,
        query if shuffled else np.sort(query),
        sample_weight=rng.uniform(0.3, 2, n) if weighted else None,
    )


def row_weights(data: RankingData) -> Array:
    return np.ones(data.n_rows) if data.sample_weight is None else np.asarray(data.sample_weight)


def group_columns(data: RankingData) -> Array:
    """An indicator of each group but the first; a row of unknown group has the groups' shares of the known rows."""
    known = data.group >= 0
    columns = []
    for code in range(1, data.n_groups):
        column = (data.group == code).astype(float)
        column[~known] = column[known].mean()
        columns.append(column)
    return np.array(columns).reshape(-1, data.n_rows).T


@dataclass
class Rows:
    """The standardised row matrix of the problem (the intercept last), targets and weights summing to 1."""

    Z: Array
    target: Array
    weight: Array
    penalised: Array  # 1, and 0 for the intercept
    query: Array

    @classmethod
    def of(
        cls, data: RankingData, *, scaled: bool = True, intercept: bool = True, group_aware: bool = False, **_: Any
    ) -> Rows:
        X = np.array(data.features, float)
        if group_aware:
            X = np.hstack([X, group_columns(data)])
        weight = row_weights(data) / row_weights(data).sum()
        if scaled:
            mean = weight @ X
            spread = np.sqrt(weight @ (X - mean) ** 2)
            X = (X - mean) / np.where(spread > 1e-9, spread, 1)
        penalised = np.ones(X.shape[1])
        if intercept:
            X, penalised = np.hstack([X, np.ones((len(X), 1))]), np.append(penalised, 0)
        return cls(X, np.array(data.relevance), weight, penalised, np.array(data.query_of_row))

    def weights(self, scores: Array) -> Array:
        """θ of scores that are linear in the rows."""
        return np.linalg.lstsq(self.Z, scores, rcond=None)[0]


@dataclass
class Gaps:
    """One compared pair a line: rows of C, (J, n), its block (stratum and query) and that block's share of Γ."""

    C: Array
    block: Array
    share: Array

    @classmethod
    def of(
        cls,
        data: RankingData,
        notion: str,
        scope: str = "amortized",
        rows: Array | None = None,
        target: str = "score",
    ) -> Gaps:
        """Training's contrasts by their definition, over all rows or those given."""
        rows = np.arange(data.n_rows) if rows is None else rows
        weight, relevant = row_weights(data), data.relevance >= data.relevance_threshold
        inside = {"all": np.ones(data.n_rows, bool), "relevant": relevant, "irrelevant": ~relevant}
        units = [rows]
        if scope == "per_query":
            units = [rows[data.query_of_row[rows] == q] for q in dict.fromkeys(data.query_of_row[rows].tolist())]
        lines, block, number = [], [], 0
        for stratum in STRATA[notion]:
            for unit in units:
                means = []
                for code in range(data.n_groups):
                    cell = [row for row in unit if inside[stratum][row] and data.group[row] == code and weight[row] > 0]
                    line = np.zeros(data.n_rows)
                    line[cell] = weight[cell]
                    if cell:
                        means.append(line / line.sum())
                for one, two in combinations(means, 2):
                    lines.append((one - two)[rows])
                    block.append(number)
                number += 1
        C = np.array(lines).reshape(-1, len(rows))
        if target == "centered":
            # What a row's score does to its own value, and to those of its list through the mean.
            same = data.query_of_row[rows][:, None] == data.query_of_row[rows]
            C = C @ (np.eye(len(rows)) - same / same.sum(axis=1))
        return cls(C, np.array(block, int), np.full(len(lines), 1 / number))

    @property
    def weight(self) -> Array:
        """Each pair's weight in Γ when a block is the mean over its pairs."""
        return self.share / np.array([(self.block == b).sum() for b in self.block])

    def gamma(self, scores: Array, across: str = "mean") -> float:
        gaps = np.abs(self.C @ scores)
        if across == "mean":
            return float(self.weight @ gaps)
        return sum(gaps[self.block == b].max() * self.share[self.block == b][0] for b in set(self.block.tolist()))

    def slope(self, scores: Array, across: str = "mean") -> Array:
        """A subgradient of Γ in the scores, sign(0) = 0 and a tied maximum shared."""
        gaps = self.C @ scores
        if across == "mean":
            return self.C.T @ (self.weight * np.sign(gaps))
        out = np.zeros(self.C.shape[1])
        for b in set(self.block.tolist()):
            mine = np.flatnonzero(self.block == b)
            largest = mine[np.abs(gaps[mine]) == np.abs(gaps[mine]).max()]
            for j in largest:
                out += self.share[j] / len(largest) * np.sign(gaps[j]) * self.C[j]
        return out


def sigmoid(scores: Array) -> Array:
    return 1 / (1 + np.exp(-scores))


def loss_value(loss: str, scores: Array, target: Array, weight: Array, query: Array) -> float:
    """Mean loss, the weights summing to 1; pairs of a list by the pair, over the list's weight."""
    if loss == "pairwise":
        total = 0.0
        for i in range(len(scores)):
            for j in np.flatnonzero(query == query[i]):
                difference = (scores[i] - scores[j]) - (target[i] - target[j])
                total += weight[i] * weight[j] / weight[query == query[i]].sum() * difference**2 / 2
        return total
    value = (scores - target) ** 2 if loss == "squared" else np.logaddexp(0, scores) - target * scores
    return float(weight @ value)


def loss_slope(loss: str, scores: Array, target: Array, weight: Array, query: Array) -> Array:
    """The derivative of `loss_value` in the scores."""
    if loss == "pairwise":
        error = scores - target
        same = (query[:, None] == query) * weight
        return 2 * weight * ((same / same.sum(axis=1, keepdims=True)) * (error[:, None] - error)).sum(axis=1)
    return weight * (2 * (scores - target) if loss == "squared" else sigmoid(scores) - target)


def objective(
    rows: Rows, gaps: Gaps, theta: Array, alpha: float, *, ridge: float = 0.0, loss: str = "squared"
) -> float:
    """Mean loss + ridge ‖θ‖² + α·Γ."""
    scores = rows.Z @ theta
    value = loss_value(loss, scores, rows.target, rows.weight, rows.query)
    return float(value + ridge * (rows.penalised @ theta**2) + alpha * gaps.gamma(scores))


def gd(
    data: RankingData,
    notion: str,
    alpha: float,
    scope: str = "amortized",
    *,
    loss: str = "squared",
    ridge: float = 0.0,
    across: str = "mean",
    rate: float = 0.003,
    steps: int = 1500,
    target: str = "score",
    **options: Any,
) -> Array:
    """Scores in stored order of one model, by full-batch descent on the rows from θ = 0."""
    rows, gaps = Rows.of(data, **options), Gaps.of(data, notion, scope, target=target)
    theta = np.zeros(rows.Z.shape[1])
    for _ in range(steps):
        scores = rows.Z @ theta
        slope = loss_slope(loss, scores, rows.target, rows.weight, rows.query) + alpha * gaps.slope(scores, across)
        theta = theta - rate * (rows.Z.T @ slope + 2 * ridge * rows.penalised * theta)
    return rows.Z @ theta


def convex(
    data: RankingData,
    notion: str,
    alphas: Sequence[float],
    scope: str = "amortized",
    *,
    ridge: float = 0.0,
    target: str = "score",
    loss: str = "squared",
    **options: Any,
) -> Array:
    """Stored scores, (n, A), of the minimisers of the squared loss + α·Γ, by Clarabel, one at a time."""
    rows, gaps = Rows.of(data, **options), Gaps.of(data, notion, scope, target=target)
    c = gaps.C @ rows.Z
    # ‖W(Zθ − r)‖² needs Z only through its triangular factor; r outside its range adds a constant.
    root = np.sqrt(rows.weight)[:, None]
    A, b = root * rows.Z, root[:, 0] * rows.target
    if loss == "pairwise":
        # One line for each pair of a list.
        pairs = [(i, j) for i, j in combinations(range(data.n_rows), 2) if rows.query[i] == rows.query[j]]
        one, two = np.array(pairs).T
        total = np.array([rows.weight[rows.query == q].sum() for q in rows.query[one]])
        root = np.sqrt(rows.weight[one] * rows.weight[two] / total)[:, None]
        A, b = root * (rows.Z[one] - rows.Z[two]), root[:, 0] * (rows.target[one] - rows.target[two])
    Q, R = np.linalg.qr(A)
    goal = Q.T @ b
    theta = [penalised_least_squares(R, goal, ridge * rows.penalised, c, alpha * gaps.weight) for alpha in alphas]
    return rows.Z @ np.array(theta).T


def penalised_least_squares(A: Array, b: Array, ridge: Array, c: Array, weight: Array) -> Array:
    """θ minimising ‖Aθ − b‖² + Σ ridge θ² + Σ_j weight_j |c_j θ|, by an interior-point conic solver.

    Its variables are (θ, e, t) with e = Aθ − b and |c_j θ| ≤ t_j, so that no square is ever formed. It promises a value
    within `CONIC` of the least (absolute, or relative where that is more) and constraints kept as closely, no more:
    where the value is flat θ may be off by its square root.
    """
    import clarabel
    from scipy import sparse

    (m, d), J = A.shape, len(c)
    P = sparse.diags(np.concatenate([2 * ridge, np.full(m, 2.0), np.zeros(J)])).tocsc()
    q = np.concatenate([np.zeros(d + m), weight])
    equal = np.hstack([A, -np.eye(m), np.zeros((m, J))])
    up = np.hstack([c, np.zeros((J, m)), -np.eye(J)])
    down = np.hstack([-c, np.zeros((J, m)), -np.eye(J)])
    problem = (
        P,
        q,
        sparse.csc_matrix(np.vstack([equal, up, down])),
        np.concatenate([b, np.zeros(2 * J)]),
        [clarabel.ZeroConeT(m), clarabel.NonnegativeConeT(2 * J)],
    )
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.iterative_refinement_max_iter = 50
    # Where gaps vanish, the tightest tolerances may not be reached ("AlmostSolved", which promises next to nothing), or
    # by shorter steps only; which ones differs from processor to processor.
    # Parallel contrasts make its system singular; what it adds for that (and refines away again) may be too little.
    for power, added, settings.max_step_fraction in product(range(15, 10, -1), (1e-8, 1e-7), (0.95, 0.8)):
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 10.0**-power
        settings.static_regularization_constant = added
        solution = clarabel.DefaultSolver(*problem, settings).solve()
        if str(solution.status) == "Solved":
            break
    assert str(solution.status) == "Solved", f"clarabel ended with {solution.status}"
    return np.array(solution.x)[:d]


def sgd(
    data: RankingData,
    notion: str,
    alpha: float,
    scope: str = "amortized",
    *,
    seed: int = 0,
    epochs: int = 5,
    batch_queries: int = 100,
    batch_items: int | None = None,
    rate: float = 1e-4,
    ridge: float = 0.0,
    loss: str = "squared",
    across: str = "mean",
    target: str = "score",
    **options: Any,
) -> Array:
    """Scores in stored order of one model, by descent over batches of queries."""
    rows = Rows.of(data, **options)
    rng = np.random.default_rng(seed)
    theta = np.zeros(rows.Z.shape[1])
    by_id = np.array(sorted(range(data.n_queries), key=lambda q: data.query_ids[q]))
    for _ in range(epochs):
        order = by_id[rng.permutation(data.n_queries)]
        for start in range(0, data.n_queries, batch_queries):
            batch = batch_rows(data, order[start : start + batch_queries], batch_items, rng)
            gaps = Gaps.of(data, notion, scope, batch, target)
            weight = rows.weight[batch] / rows.weight[batch].sum()
            Z = rows.Z[batch]
            scores = Z @ theta
            slope = loss_slope(loss, scores, rows.target[batch], weight, rows.query[batch])
            slope = slope + alpha * gaps.slope(scores, across)
            theta = theta - rate * (Z.T @ slope + 2 * ridge * rows.penalised * theta)
    return rows.Z @ theta


def batch_rows(data: RankingData, queries: Sequence[int], batch_items: int | None, rng: np.random.Generator) -> Array:
    """The rows of the queries; of those with too many items, the ones that drew the largest numbers."""
    lists = [np.arange(data.query_ptr[q], data.query_ptr[q + 1]) for q in queries]
    if batch_items is None or max(map(len, lists)) <= batch_items:
        return np.concatenate(lists)
    drawn = iter(rng.random(sum(map(len, lists))))
    out = []
    for rows in lists:
        by_draw = sorted(((next(drawn), row) for row in rows), reverse=True)
        out += sorted(row for _, row in by_draw[:batch_items])
    return np.array(out)
