"""`Plan`: what a sweep will do, block by block; `Runner` does one block, which counts as a whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenrank.data import RankingData
from evenrank.experiment.examples import pack, top_places
from evenrank.experiment.recording import recorded
from evenrank.measures import MeasureAt, MeasureLike, ask, measure_names, measure_with_rates
from evenrank.measures import measure as evaluate
from evenrank.methods.filling import run
from evenrank.methods.method import Task
from evenrank.methods.registry import METHODS
from evenrank.notions import NOTIONS, Cells, Notion

QUALITIES = ("ndcg", "precision")
FAIRNESS = (*NOTIONS, "four_fifths", "exposure_gap")
RATE, RELEVANT_RATE = "selection_rate", "selection_rate_relevant"  # among all items, among relevant ones

Groupings = Mapping[str, RankingData]


@dataclass(frozen=True)
class Block:
    """One method on one split, with all groupings, notions and strengths.

    Attributes
    ----------
    method : str
        Its name in the registry.
    fold : int
        The fold that is tested.
    seed : int
        The seed of training, and of the split where seeds draw the splits.
    """

    method: str
    fold: int
    seed: int


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that decides a sweep's numbers.

    Attributes
    ----------
    groupings : mapping of str to RankingData
        The same rows under each grouping.
    tests : mapping of str to RankingData, optional
        Held-out data under each grouping, for a fixed split; None to split ``groupings`` by ``fold_of``.
    fold_of : array of int, optional
        Each query's fold in each repeat, (repeats, queries); several repeats where seeds draw the splits.
    blocks : tuple of Block
        In the order of the table.
    notions : tuple of str
        The notions to train for.
    grids : mapping of str to array of float
        Each method's strengths.
    ks : tuple of int
        The cut-offs.
    solver : str
        How linear rankers are trained.
    scale : str or None
        How features are standardised.
    settings : mapping of str to mapping
        Each method's options.
    examples : array of int
        Numbers of the queries whose rankings are kept, in the tested data.
    places : int
        How many places of their rankings are kept.
    own : mapping of str to Notion
        The notions that are the user's own, by name.
    extra : mapping of str to measure
        Measures beside the usual ones, by name.
    """

    groupings: Groupings
    tests: Groupings | None
    fold_of: NDArray[np.int64] | None
    blocks: tuple[Block, ...]
    notions: tuple[str, ...]
    grids: Mapping[str, NDArray[np.float64]]
    ks: tuple[int, ...]
    solver: str
    scale: str | None
    settings: Mapping[str, Mapping[str, Any]]
    examples: NDArray[np.int64]
    places: int
    own: Mapping[str, Notion] = field(default_factory=dict)
    extra: Mapping[str, MeasureLike] = field(default_factory=dict)

    @property
    def tested(self) -> Groupings:
        """The data that examples are taken from."""
        return self.groupings if self.tests is None else self.tests

    @property
    def measures(self) -> list[str]:
        """Names of all measures, with their cut-offs."""
        return [*measure_names(self.ks, [*QUALITIES, *FAIRNESS, *self.own]), *self.extra]

    def measured_at(self, k: int | None) -> dict[str, MeasureLike]:
        """Give the measures of a run for cut-off k, or for all (None), by name.

        Extra measures without a cut-off are of the run for the largest k, where a method has one run for each.
        """
        ks = self.ks if k is None else (k,)
        out: dict[str, MeasureLike] = {name: name for name in measure_names(ks, [*QUALITIES, *FAIRNESS])}
        out |= {f"{name}@{cut}": (notion, cut) for name, notion in self.own.items() for cut in ks}
        for name, measure in self.extra.items():
            cut = ask(measure)[1].k
            if k is None or (max(self.ks) if cut is None else cut) == k:
                out[name] = measure
        return out

    @property
    def rates(self) -> list[str]:
        """Names of the columns of the groups' selection rates; groups are numbered in the order of their names."""
        most = max(data.n_groups for data in self.groupings.values())
        return [f"{name}_{code}@{k}" for name in (RATE, RELEVANT_RATE) for k in self.ks for code in range(most)]

    def runner(self) -> Runner:
        """Make what runs the blocks."""
        return Runner(self)

    def asked(self) -> dict[str, Any]:
        """Give the configuration in plain values; with the same data it gives the same numbers."""
        return {
            "methods": list(self.grids),
            "groupings": list(self.groupings),
            "blocks": [asdict(block) for block in self.blocks],
            "notions": list(self.notions),
            "strengths": {name: grid.tolist() for name, grid in self.grids.items()},
            "ks": list(self.ks),
            "solver": self.solver,
            "scale": self.scale,
            "settings": {name: dict(chosen) for name, chosen in self.settings.items()},
            "split": "given test data" if self.fold_of is None else digest_of([self.fold_of]),
            "examples": len(self.examples),
            "places": self.places,
            **self._of_ones_own(),
        }

    def _of_ones_own(self) -> dict[str, Any]:
        """Extra measures by name, and what tells the user's own notions and functions from others of the same name."""
        own = {name: self._notion_digest(notion) for name, notion in self.own.items()}
        own |= {name: self._probe(measure) for name, measure in self.extra.items() if not isinstance(measure, str)}
        return ({"measures": list(self.extra)} if self.extra else {}) | ({"own": own} if own else {})

    def _notion_digest(self, notion: Notion) -> str:
        data = next(iter(self.groupings.values()))
        return digest_of([Cells.of(notion, data).strata], "rows")

    def _probe(self, measure: MeasureLike) -> str:
        """The value of a measure on scores that say nothing but differ, to nine digits."""
        data = next(iter(self.groupings.values()))
        (value,) = evaluate(np.arange(data.n_rows) % 7.0, data, [measure]).values()
        return f"{value:.9g}"

    def fingerprint(self) -> dict[str, Any]:
        """Give the data's sizes and a digest of every value in it."""
        first = next(iter(self.groupings.values()))
        out = {**_facts(first), "fingerprint": fingerprint(self.groupings)}
        if self.tests is not None:
            test = next(iter(self.tests.values()))
            out["test"] = {**_facts(test), "fingerprint": fingerprint(self.tests)}
        return out


def _facts(data: RankingData) -> dict[str, Any]:
    return {"rows": data.n_rows, "queries": data.n_queries, "features": data.n_features}


def fingerprint(groupings: Groupings) -> str:
    """Make a digest of features, relevance, groups, queries and items.

    Parameters
    ----------
    groupings : mapping of str to RankingData
        The same rows under each grouping.

    Returns
    -------
    str
        The digest of the rows in stored order; equal data has an equal one.
    """
    first = next(iter(groupings.values()))
    arrays: list[Any] = [block for _, block in first.blocks()]
    arrays += [first.relevance, first.query_ptr, np.array([first.relevance_threshold])]
    arrays += [] if first.sample_weight is None else [first.sample_weight]
    for data in groupings.values():
        arrays.append(data.group)
    # Items count because re-rankers break ties by them.
    arrays += [ids for ids in (first.query_ids, first.item_ids) if ids is not None and ids.dtype != object]
    texts = [str(ids.tolist()) for ids in (first.query_ids, first.item_ids) if ids is not None and ids.dtype == object]
    texts += first.feature_names
    texts += [f"{name}: {labels}" for name, labels in first.categories.items()]
    texts += [f"{name}: {data.group_names}" for name, data in groupings.items()]
    return digest_of(arrays, "\n".join(texts))


def digest_of(arrays: Sequence[NDArray[Any]], text: str = "") -> str:
    """Make a digest of arrays and a text."""
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=16)
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


class Runner:
    """Run the blocks of a plan; the last split is kept, because neighbouring blocks share it.

    Parameters
    ----------
    plan : Plan
        The plan.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._split: tuple[Any, Any] | None = None

    def split(self, block: Block) -> tuple[tuple[RankingData, ...], tuple[RankingData, ...], NDArray[np.int64]]:
        """Split the data as a block asks.

        Parameters
        ----------
        block : Block
            A block of the plan.

        Returns
        -------
        train, test : tuple of RankingData
            The rows under each grouping.
        numbers : array of int
            The test queries' numbers in the tested data.
        """
        plan = self.plan
        if plan.fold_of is None:
            assert plan.tests is not None
            tests = tuple(plan.tests.values())
            return tuple(plan.groupings.values()), tests, np.arange(tests[0].n_queries)
        key = (block.fold, block.seed)
        if self._split is None or self._split[0] != key:
            seeds = list(dict.fromkeys(other.seed for other in plan.blocks))
            fold_of = plan.fold_of[seeds.index(block.seed) if len(plan.fold_of) > 1 else 0]
            inside = fold_of == block.fold
            self._split = (
                key,
                (
                    take_groupings(plan.groupings, ~inside),
                    take_groupings(plan.groupings, inside),
                    np.flatnonzero(inside),
                ),
            )
        split: tuple[tuple[RankingData, ...], tuple[RankingData, ...], NDArray[np.int64]] = self._split[1]
        return split

    def run(self, block: Block) -> dict[str, Any]:
        """Train, test and measure one block.

        Parameters
        ----------
        block : Block
            A block of the plan.

        Returns
        -------
        dict
            The block's record in plain values: its part of the table, the examples' rankings, seconds and warnings.
        """
        return recorded(block, lambda: self._parts(block))

    def _parts(self, block: Block) -> dict[str, Any]:
        plan, method = self.plan, METHODS[block.method]
        train, test, numbers = self.split(block)
        task = Task(
            train=train,
            test=test,
            notions=plan.notions,
            strengths=plan.grids[block.method],
            ks=plan.ks,
            solver=plan.solver,
            scale=plan.scale,
            seed=block.seed,
            settings=plan.settings.get(block.method, {}),
            own=plan.own,
        )
        names = list(plan.groupings)
        examples = np.flatnonzero(np.isin(numbers, plan.examples))
        example_numbers = np.searchsorted(plan.examples, numbers[examples]).tolist()
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        tops = []
        for part in run(method, task):
            data = test[part.grouping]
            row = rows.setdefault((names[part.grouping], part.notion), {})
            row |= _measured(part.scores, data, plan.ks if part.k is None else (part.k,), plan.measured_at(part.k))
            if len(examples):
                top = top_places(data.to_stored(part.scores), data, examples, plan.places)
                where = {
                    "grouping": names[part.grouping],
                    "notion": part.notion,
                    "k": part.k,
                    "queries": example_numbers,
                }
                tops.append({**where, "top": pack(top)})
        table = [
            {"grouping": grouping, "notion": notion, "values": values} for (grouping, notion), values in rows.items()
        ]
        return {"table": table, "tops": tops}


def take_groupings(groupings: Groupings, queries: NDArray[np.bool_]) -> tuple[RankingData, ...]:
    """Take queries under each grouping; the features are gathered once and shared."""
    first, *others = groupings.values()
    taken = first.take(queries)
    nothing = np.empty((first.n_rows, 0))
    regrouped = [replace(replace(other, features=nothing).take(queries), features=taken.features) for other in others]
    return taken, *(replace(other, parent=taken.parent) for other in regrouped)


def _measured(
    scores: NDArray[Any], data: RankingData, ks: Sequence[int], measures: Mapping[str, MeasureLike]
) -> dict[str, list[float]]:
    wanted = {f"{name}@{k}": (k, among) for name, among in ((RATE, "all"), (RELEVANT_RATE, "relevant")) for k in ks}
    values = measure_with_rates(scores, data, list(measures.values()), wanted)
    out = {name: value.tolist() for name, value in values.items() if name not in wanted}
    for name in wanted:
        kind, k = MeasureAt.of(name)
        out |= {str(MeasureAt(f"{kind}_{code}", k)): rate.tolist() for code, rate in enumerate(values[name])}
    return out
