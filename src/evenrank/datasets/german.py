"""German Credit as a ranking task: lists of applicants for a loan, the creditworthy to be ranked first."""

from __future__ import annotations

import operator
import re
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from evenrank.checks import choose
from evenrank.data import RankingData
from evenrank.datasets.german_codes import AGE, CATEGORICAL, CREDIT, GOOD, NUMERIC, SEX, WOMEN
from evenrank.errors import ConfigError, DataError

WEIGHT_GOOD, WEIGHT_BAD = 0.4, 0.6
GROUPS = {
    "sex": ("female", "male"),
    "age": ("25 or younger", "over 25"),
    "sex+age": ("female, 25 or younger", "female, over 25", "male, 25 or younger", "male, over 25"),
}


def german_credit(
    group: str = "sex", *, lists: int = 500, items: int = 25, pools: int = 5, seed: int = 0
) -> RankingData:
    """Draw lists of loan applicants from the UCI German Credit data, with relevance 1 for good credit.

    The data has 1000 applicants and no queries, so lists are drawn as Singh and Joachims did [1]_: a creditworthy
    applicant has weight 0.4 in the draw, another 0.6, so that lists are less one-sided than the data (70 % good).
    Their published code draws training lists from 80 % of the applicants and test lists from the rest. Here the
    applicants are dealt at random into ``pools`` disjoint pools and each list comes from one pool, in turn, so that
    folds made of whole pools (`german_credit_folds`) never show the same person in training and in test. Their code
    also draws with replacement; here the applicants of a list differ, as a list with the same person twice makes no
    sense.

    Parameters
    ----------
    group : {"sex", "age", "sex+age"}
        Women and men; 25 or younger and over 25; or the four groups both make. The lists do not depend on it.
    lists : int
        Lists in all, at least one per pool; pools differ by one list at most.
    items : int
        Applicants in each list, at most the size of the smallest pool, ``1000 // pools``.
    pools : int
        Disjoint pools of applicants, at least 2.
    seed : int
        Seeds the pools and the draws. With the same seed, more lists begin with the same lists.

    Returns
    -------
    RankingData
        ``item_ids`` are the applicants' numbers in the file, 1 to 1000, ascending within a list; ``query_ids`` are
        "pool/list", such as "0/017". Features are all attributes but the two that the groups come from (9: sex and
        marital status, 13: age): numbers as they are, categories as one 0/1 column per category, without the
        attribute's first documented category, which is the one where all its columns are 0.

    Notes
    -----
    The file is Hans Hofmann's, under CC BY 4.0 [2]_. Its documentation gives women the codes A92 and A95 (which never
    occurs), and this is the sex that is used almost everywhere. Grömping [3]_ traced the data to its origin and found
    several code tables wrong; by hers, A92 is a mixture of women and single men, and sex cannot be recovered. Use
    ``group="sex"`` to compare methods, not to learn about women and men; ages are not affected.

    References
    ----------
    .. [1] A. Singh, T. Joachims. Policy Learning for Fairness in Ranking. NeurIPS 2019.
    .. [2] H. Hofmann. Statlog (German Credit Data). UCI Machine Learning Repository, 1994. doi:10.24432/C5NC77
    .. [3] U. Grömping. South German Credit Data: Correcting a Widely Used Data Set. Report 4/2019, Beuth University
       of Applied Sciences Berlin.

    Examples
    --------
    >>> from evenrank.datasets import german_credit
    >>> data = german_credit("age")
    >>> data.n_queries, data.n_rows, data.n_features, data.group_names
    (500, 12500, 44, ('25 or younger', 'over 25'))
    >>> data.query_ids[:3].tolist()
    ['0/000', '1/000', '2/000']
    """
    kind = choose(group, GROUPS, what="group")
    table = _table()
    n_pools = _whole(pools, "pools", 2, len(table))
    n_lists = _whole(lists, "lists", n_pools, why=", one per pool")
    smallest = len(table) // n_pools
    n_items = _whole(items, "items", 1, smallest, why=f", the size of the smallest of {n_pools} pools")
    rng = np.random.default_rng(_whole(seed, "seed", 0))

    good = table[:, CREDIT] == GOOD
    weight = np.where(good, WEIGHT_GOOD, WEIGHT_BAD)
    drawn = _draw(weight, n_pools, n_lists, n_items, rng).ravel()
    features, names = _features(table)
    return RankingData.from_arrays(
        features[drawn],
        good[drawn],
        _codes(table, kind)[drawn],
        np.repeat(_list_ids(n_lists, n_pools), n_items),
        item_ids=drawn + 1,
        feature_names=names,
        group_names=GROUPS[kind],
    )


def german_credit_folds(data: RankingData) -> NDArray[np.int64]:
    """Tell which pool each list of `german_credit` was drawn from: folds that share no applicant.

    Parameters
    ----------
    data : RankingData
        Rows of `german_credit`.

    Returns
    -------
    ndarray
        The number of the pool of each query, (q,).

    Raises
    ------
    DataError
        For other rows.

    Examples
    --------
    >>> from evenrank.datasets import german_credit, german_credit_folds
    >>> data = german_credit(lists=7, pools=3)
    >>> folds = german_credit_folds(data)
    >>> folds.tolist()
    [0, 1, 2, 0, 1, 2, 0]
    >>> test, train = data.take(folds == 0), data.take(folds != 0)
    >>> set(test.item_ids.tolist()) & set(train.item_ids.tolist())
    set()
    """
    matches = [re.fullmatch(r"(\d+)/\d+", str(query)) for query in data.query_ids]
    if None in matches:
        strange = data.query_ids[matches.index(None)]
        raise DataError(f"query ids must be 'pool/list', as german_credit makes them; got {str(strange)!r}.")
    return np.array([match[1] for match in matches if match], dtype=np.int64)


def _draw(
    weight: NDArray[np.float64], pools: int, lists: int, items: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Weighted draws without replacement, (lists, items) row numbers: the largest keys log w + Gumbel noise.

    Taking the largest of such keys, then the next, has the same distribution as drawing one by one in proportion to
    the weights of those left (Efraimidis and Spirakis, 2006).
    """
    n = len(weight)
    size = -(-n // pools)
    dealt = np.full(size * pools, n)  # n stands for an empty place: some pools may be one short
    dealt[:n] = rng.permutation(n)
    members = dealt.reshape(size, pools).T
    log_weight = np.append(np.log(weight), -np.inf)[members]
    pool = np.arange(lists) % pools
    keys = rng.gumbel(size=(lists, size))
    keys += log_weight[pool]
    places = np.argpartition(keys, size - items, axis=1)[:, size - items :]
    # The order of drawing favours the heavier and so would reveal the label: it is not kept.
    return np.sort(members[pool[:, None], places], axis=1)


def _list_ids(lists: int, pools: int) -> NDArray[np.str_]:
    number = np.arange(lists)
    pool, of_pool = (number % pools).astype(str), (number // pools).astype(str)
    return np.char.add(np.char.add(pool, "/"), np.char.zfill(of_pool, 3))


@cache
def _table() -> NDArray[np.str_]:
    """The file as text, (1000, 21)."""
    file = files("evenrank.datasets") / "data" / "german_credit" / "german.data"
    table = np.array([line.split() for line in file.read_text(encoding="ascii").splitlines()])
    table.flags.writeable = False
    return table


def _features(table: NDArray[np.str_]) -> tuple[NDArray[np.float64], list[str]]:
    columns: list[NDArray[np.float64]] = []
    names: list[str] = []
    for j in sorted([*NUMERIC, *CATEGORICAL]):
        if j in NUMERIC:
            columns.append(table[:, j].astype(np.float64))
            names.append(NUMERIC[j])
            continue
        attribute, meanings = CATEGORICAL[j]
        for code in list(meanings)[1:]:
            columns.append((table[:, j] == code).astype(np.float64))
            names.append(f"{attribute}={meanings[code]}")
    return np.column_stack(columns), names


def _codes(table: NDArray[np.str_], kind: str) -> NDArray[np.int64]:
    """Each applicant's code into the names of `GROUPS`, (1000,)."""
    man = (~np.isin(table[:, SEX], WOMEN)).astype(np.int64)
    older = (table[:, AGE].astype(np.int64) > 25).astype(np.int64)
    return {"sex": man, "age": older, "sex+age": 2 * man + older}[kind]


def _whole(value: object, what: str, least: int, most: int | None = None, *, why: str = "") -> int:
    span = f"of at least {least}" if most is None else f"from {least} to {most}"
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least or (most is not None and number > most):
        raise ConfigError(f"{what} must be a whole number {span}{why}; got {value!r}.")
    return number
