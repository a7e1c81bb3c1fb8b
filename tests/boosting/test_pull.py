"""What the fairness term adds to a boosted loss: the slope of c·α·Γ, on the scale of the loss itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evenrank.boosting import pull as pull_module
from evenrank.boosting.group_chances import group_chances, known_contrast
from evenrank.boosting.objective import held_back
from evenrank.boosting.pull import KNOWN, OWN, SMOOTHING, WARM_UP, FairPull, list_steps
from evenrank.data import RankingData
from evenrank.notions import SCOPES, bind
from evenrank.rankers.spec import FairnessSpec
from evenrank.targets import STRONGEST, LossScale, bind_target

FLOOR = 0.3


def rows(queries: int = 12, length: int = 6, seed: int = 0) -> RankingData:
    rng = np.random.default_rng(seed)
    n = queries * length
    return RankingData.from_arrays(
        rng.normal(size=(n, 2)), rng.integers(0, 3, n), rng.integers(0, 2, n), np.repeat(np.arange(queries), length)
    )


def drawn(data: RankingData, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and some slope of a loss."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=data.n_rows) + 0.5 * (data.group == 0), rng.normal(size=data.n_rows)


def pulled(pull: FairPull, scores: np.ndarray, loss: np.ndarray, alpha: float) -> np.ndarray:
    for _ in range(WARM_UP):
        pull(scores, loss, alpha)
    return pull(scores, loss, alpha)


@pytest.mark.parametrize("target", ["score", "probability", "topk", "exposure"])
@pytest.mark.parametrize("notion", ["dp", "eop", "eod"])
@pytest.mark.parametrize("scope", SCOPES)
def test_the_pull_is_the_slope_of_the_smoothed_gap_on_the_losss_scale(target: str, notion: str, scope: str) -> None:
    data, alpha = rows(), 0.7
    scores, loss = drawn(data)
    contrast = bind(notion, data, scope=scope, training=True)
    bound = bind_target(target, data.query_ptr, k=3, temperature=0.2, floor=FLOOR)
    spread = np.std(bound.value(scores))
    near = 0.8 * spread**2 if target == "topk" and spread < 0.5 else 0.4 * spread
    softness = near * np.ones(len(contrast.pairs.a))
    if scope == "amortized":  # of groups a and b: joined with √(1/n_a + 1/n_b) of the spread
        relevant = data.relevance >= 1
        strata = {"dp": [relevant | True], "eop": [relevant], "eod": [~relevant, relevant]}[notion]
        counts = [[(stratum & (data.group == g)).sum() for g in (0, 1)] for stratum in strata]
        softness = np.sqrt([near**2 + spread**2 * (1 / a + 1 / b) for a, b in counts])
    signs = np.sign(contrast.gaps(bound.value(scores)))

    def smoothed(s: np.ndarray) -> float:
        return float(contrast.pairs.weight @ np.sqrt(contrast.gaps(bound.value(s)) ** 2 + softness**2))

    def plain(s: np.ndarray) -> float:
        return float(contrast.pairs.weight @ (signs * contrast.gaps(bound.value(s))))

    step = 1e-6 * np.eye(data.n_rows)
    slopes, full = (
        np.array([(value(scores + e) - value(scores - e)) / 2e-6 for e in step]) for value in (smoothed, plain)
    )
    expected = alpha * np.abs(loss).sum() / np.abs(full).sum() * slopes
    found = pulled(FairPull(contrast, bound), scores, loss, alpha)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("change", ["loss times 1000", "every list twice", "scores times 4"])
def test_a_strength_means_the_same_on_another_scale(change: str) -> None:
    data = rows()
    scores, loss = drawn(data)
    scores += 4 * (data.group == 0)  # of twice as many rows chance can make less of a gap: let it be a large one
    once = pulled(FairPull(bind("dp", data), bind_target("topk", data.query_ptr, k=2)), scores, loss, 1.0)
    times = 1.0
    if change == "loss times 1000":
        loss, times = 1000 * loss, 1000.0
    elif change == "scores times 4":
        scores = 4 * scores
    else:
        both = np.concatenate([data.query_of_row, data.query_of_row + data.n_queries])
        twice = [np.concatenate([part, part]) for part in (data.relevance, data.group, scores, loss)]
        data = RankingData.from_arrays(np.zeros((2 * data.n_rows, 0)), twice[0], twice[1], both)
        scores, loss, once = twice[2], twice[3], np.concatenate([once, once])
    again = pulled(FairPull(bind("dp", data), bind_target("topk", data.query_ptr, k=2)), scores, loss, 1.0)
    np.testing.assert_allclose(again, times * once, rtol=0.1 if change == "every list twice" else 1e-9, atol=1e-12)


def test_a_gap_that_chance_could_have_made_pulls_less() -> None:
    few = rows(1)
    scores = np.random.default_rng(0).normal(size=few.n_rows)  # a gap within its error, 0.9
    sizes = []
    for times in (1, 100):  # the same rows, and so the same gap
        group, qid = np.tile(few.group, times), np.repeat(np.arange(times), 6)
        data = RankingData.from_arrays(np.zeros((len(qid), 0)), np.zeros(len(qid)), group, qid)
        pull = FairPull(bind("dp", data), bind_target("score", data.query_ptr))
        found = pulled(pull, np.tile(scores, times), np.ones(len(qid)), 1.0)
        sizes.append(np.abs(found).sum() / times)
    assert 0 < sizes[0] < 0.7 * sizes[1]


def test_chance_is_nothing_to_the_gap_of_these_very_rows() -> None:
    # Beside what features tell, the groups' own gap is closed where it stands, however few the rows are.
    few = rows(10)
    scores = np.random.default_rng(0).normal(size=few.n_rows)
    sizes = []
    for times in (1, 100):
        group, qid = np.tile(few.group, times), np.repeat(np.arange(10 * times), 6)
        data = RankingData.from_arrays(np.zeros((len(qid), 0)), np.zeros(len(qid)), group, qid)
        contrast = bind("dp", data, training=True)
        told = known_contrast(contrast, data, FairnessSpec("dp"), np.full((len(qid), 2), 0.5))
        pull = FairPull(contrast, bind_target("score", data.query_ptr), told)
        sizes.append(np.abs(pulled(pull, np.tile(scores, times), np.ones(len(qid)), 1.0)).sum() / times)
    assert sizes[0] == pytest.approx(sizes[1])
    assert sizes[0] > 0


def test_beyond_the_strongest_strength_nothing_changes() -> None:
    data = rows()
    scores, loss = drawn(data)
    found = [
        pulled(FairPull(bind("dp", data), bind_target("topk", data.query_ptr, k=2)), scores, loss, alpha)
        for alpha in (1.0, STRONGEST, 2 * STRONGEST, 1e300)
    ]
    np.testing.assert_allclose(found[1], STRONGEST * found[0], rtol=1e-12)
    np.testing.assert_array_equal(found[1], found[2])
    np.testing.assert_array_equal(found[1], found[3])


def test_sample_weights_of_another_unit_change_nothing() -> None:
    data = rows()
    scores, loss = drawn(data)
    weight = np.random.default_rng(4).uniform(0.5, 2, data.n_rows)
    found = [
        pulled(FairPull(bind("dp", replace(data, sample_weight=times * weight)), bound), scores, loss, 1.0)
        for times in (1.0, 1000.0)
        for bound in [bind_target("topk", data.query_ptr, k=2)]
    ]
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.parametrize("told", [1.0, 0.25, 0.01])
def test_features_that_tell_a_little_of_the_group_are_made_up_for_in_part(told: float) -> None:
    data = rows(40)
    contrast, bound = bind("dp", data, training=True), bind_target("score", data.query_ptr)
    scores, loss = drawn(data)
    known = known_contrast(contrast, data, FairnessSpec("dp"), told * np.eye(2)[data.group] + (1 - told) / 2)
    pull = FairPull(contrast, bound, known)
    pulled(pull, scores, loss, 1.0)
    own, along = (float(way.scale.value) for way in pull.ways)
    assert along / own == pytest.approx(max(told, 0.1) ** -0.6, rel=0.01)


@pytest.mark.parametrize("length", [8, 80, 800])
def test_at_full_slope_a_strength_of_1_pulls_as_the_loss_does(length: int) -> None:
    data = rows(6, length)
    scores, loss = drawn(data)
    scores = scores + 5 * (data.group == 0)  # a gap far beyond what is smoothed
    pull = pulled(FairPull(bind("dp", data), bind_target("topk", data.query_ptr, k=5, floor=FLOOR)), scores, loss, 1.0)
    assert 0.5 < np.abs(pull).sum() / np.abs(loss).sum() <= 1


def test_the_first_rounds_belong_to_the_loss() -> None:
    data = rows()
    scores, loss = drawn(data)
    pull = FairPull(bind("dp", data), bind_target("score", data.query_ptr))
    sizes = [np.abs(pull(scores, loss, 1.0)).sum() for _ in range(WARM_UP + 2)]
    assert sizes[0] == 0
    assert np.all(np.diff(sizes[: WARM_UP + 1]) > 0)
    assert sizes[-1] == pytest.approx(sizes[-2])


def test_a_gap_that_swings_uses_less_of_the_strength_and_gets_it_back() -> None:
    data = rows()
    pull = FairPull(bind("dp", data), bind_target("score", data.query_ptr))
    side, loss = np.where(data.group == 0, 1.0, -1.0), np.ones(data.n_rows)
    seen = []
    for round_number in range(4):
        pull(side if round_number % 2 else -side, loss, 1.0)
        seen.append(float(pull.ways[0].share[0]))
    assert seen == [1, 0.5, 0.25, 0.125]
    for _ in range(100):
        pull(-side, loss, 1.0)
    assert pull.ways[0].share[0] == 1


def test_a_share_of_the_strength_stays_as_it_is_while_there_is_no_gap_beyond_noise() -> None:
    # One that grew in quiet rounds would carry the gap away again, perhaps in the last ones.
    data = rows()
    pull = FairPull(bind("dp", data), bind_target("score", data.query_ptr))
    side, loss = np.where(data.group == 0, 1.0, -1.0), np.ones(data.n_rows)
    flat = np.random.default_rng(3).normal(size=data.n_rows)
    for code in (0, 1):
        flat[data.group == code] -= flat[data.group == code].mean()
    for scores in (side, -side, *50 * [flat + 1e-3 * side]):
        pull(scores, loss, 10.0)
    assert pull.ways[0].share[0] == 0.5


def test_what_is_not_followed_at_once_is_followed_slowly() -> None:
    # A pull that holds a gap near 0 against the loss must not change sides with it.
    data, share = rows(), 0.25
    contrast = bind("dp", data)
    pull = FairPull(contrast, bind_target("score", data.query_ptr))
    scores = np.random.default_rng(3).normal(size=data.n_rows)
    for code in (0, 1):
        scores[data.group == code] -= scores[data.group == code].mean() - (0.01 if code else -0.01)
    pull.ways[0].share[:] = share
    followed = []
    for _ in range(200):
        pull(scores, np.ones(data.n_rows), 1.0)
        followed.append(float(pull.ways[0].slope[0] / pull.ways[0].full[0]))
    sizes = [1 / (data.group == code).sum() for code in (0, 1)]
    wanted = 0.02 / np.hypot(0.02, np.std(scores) * np.sqrt(SMOOTHING**2 + sum(sizes)))
    missing = wanted * (1 - share) * (1 - pull_module.SLOWLY * share) ** np.arange(200)
    np.testing.assert_allclose(followed, wanted - missing, rtol=1e-9)
    assert pull.ways[0].share[0] == share


def test_equal_scores_do_not_pull() -> None:
    data = rows()
    pull = FairPull(bind("dp", data), bind_target("topk", data.query_ptr, floor=FLOOR))
    assert not pulled(pull, np.zeros(data.n_rows), np.ones(data.n_rows), 1.0).any()


def test_the_scale_is_a_running_mean_by_model() -> None:
    scale = LossScale()
    assert scale.update(np.array([1.0, -3.0]), np.array([0.0, 0.0])) == 0
    assert scale.update(np.array([1.0, -3.0]), np.array([-0.5, 0.5])) == 4
    assert scale.update(np.array([7.0, -7.0]), np.array([1.0, 0.0])) == pytest.approx(0.9 * 4 + 0.1 * 14)
    assert scale.update(np.array([7.0, -7.0]), np.array([0.0, 0.0])) == pytest.approx(0.9 * 4 + 0.1 * 14)
    by_model = LossScale().update(np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 0.0]]))
    assert by_model.tolist() == [2, 4]


# ------------------------------------------------------------------ what features tell of the group


class Recorder:
    """A classifier that says how often each class was in training, and keeps what it was given."""

    seen: list[np.ndarray] = []  # noqa: RUF012

    def fit(self, X: np.ndarray, codes: np.ndarray) -> Recorder:
        Recorder.seen.append(X)
        self.share = np.bincount(codes) / len(codes)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        assert not set(map(tuple, X)) & set(map(tuple, Recorder.seen[-1]))
        return np.tile(self.share, (len(X), 1))


def test_chances_come_from_other_queries() -> None:
    data = rows()
    Recorder.seen.clear()
    chances = group_chances(Recorder, data.features, data)
    assert len(Recorder.seen) == 3
    np.testing.assert_allclose(chances.sum(axis=1), 1)


class ByHalves:
    """A classifier of two groups: the share of the second one where the feature is above 0, and where it is not."""

    def fit(self, X: np.ndarray, codes: np.ndarray) -> ByHalves:
        above = X[:, 0] > 0
        self.share = [codes[part].mean() if part.any() else 0.5 for part in (~above, above)]
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        second = np.array(self.share)[(X[:, 0] > 0).astype(int)]
        return np.stack([1 - second, second], axis=1)


@pytest.mark.parametrize("turned", [True, False])
def test_what_misleads_among_the_relevant_rows_is_learned_anew_on_them(turned: bool) -> None:
    # The feature is the group; among the relevant rows, where it is turned, the other one.
    rng = np.random.default_rng(0)
    n = 600
    relevance, group = (rng.random(n) < 0.2).astype(int), rng.integers(0, 2, n)
    shown = np.where(turned & (relevance == 1), 1 - group, group)
    data = RankingData.from_arrays((2.0 * shown - 1)[:, None], relevance, group, np.repeat(np.arange(60), 10))
    relevant = data.relevance == 1
    pooled = group_chances(ByHalves, data.features, data)
    own = pooled[np.arange(n), data.group]
    assert (own[relevant] < 0.5).all() == turned
    found = group_chances(ByHalves, data.features, data, [relevant])
    np.testing.assert_array_equal(found[~relevant], pooled[~relevant])
    np.testing.assert_allclose(found[relevant], np.eye(2)[data.group[relevant]], atol=1e-12)
    np.testing.assert_array_equal(group_chances(ByHalves, data.features, data, [relevant | True]), pooled)


def test_what_is_learned_on_few_rows_and_tells_less_is_not_taken() -> None:
    # One row in a hundred is relevant, and there the feature is another one's: nothing can be learned of so few.
    rng = np.random.default_rng(1)
    n = 600
    group = rng.integers(0, 2, n)
    relevance = (np.arange(n) % 100 == 0).astype(int)
    data = RankingData.from_arrays((2.0 * group - 1)[:, None], relevance, group, np.repeat(np.arange(60), 10))
    relevant = data.relevance == 1

    class Shy(ByHalves):
        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return super().predict_proba(X) if self.many else np.full((len(X), 2), 0.5)

        def fit(self, X: np.ndarray, codes: np.ndarray) -> ByHalves:
            self.many = len(X) > 100
            return super().fit(X, codes)

    found = group_chances(Shy, data.features, data, [relevant])
    np.testing.assert_array_equal(found, group_chances(Shy, data.features, data))


@pytest.fixture
def exact_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """No gap has an error, and ε is the same for both ways."""
    monkeypatch.setattr(pull_module, "_relative_errors", lambda contrast, _: np.zeros(len(contrast.pairs.a)))
    monkeypatch.setattr(pull_module, "OWN_SMOOTHING", SMOOTHING)


def test_the_groups_own_gap_is_closed_further_than_the_one_that_features_tell() -> None:
    data = rows(200)
    contrast = bind("dp", data, training=True)
    scores, loss = drawn(data)
    gap, spread = abs(contrast.gaps(scores)[0]), scores.std()

    def pull_along(membership: np.ndarray, own: float) -> np.ndarray:
        told = known_contrast(contrast, data, FairnessSpec("dp"), membership)
        return pulled(FairPull(contrast, bind_target("score", data.query_ptr), told, own=own), scores, loss, 1.0)

    own = np.abs(pull_along(np.full((data.n_rows, 2), 0.5), 1.0)).sum() / np.abs(loss).sum()
    assert own == pytest.approx(gap / np.hypot(gap, 0.1 * spread), rel=1e-3)
    told = np.abs(pull_along(np.eye(2)[data.group], 0.0)).sum() / np.abs(loss).sum()
    error = sum(1 / (data.group == code).sum() for code in (0, 1))
    assert told == pytest.approx(KNOWN * gap / np.hypot(gap, spread * np.sqrt(0.4**2 + error)), rel=1e-3)


@pytest.mark.usefixtures("exact_gaps")
def test_where_features_tell_nothing_of_the_group_only_the_groups_themselves_pull() -> None:
    data = rows()
    contrast, bound = bind("eod", data, training=True), bind_target("score", data.query_ptr)
    flat = known_contrast(contrast, data, FairnessSpec("eod"), np.full((data.n_rows, 2), 0.5))
    scores, loss = drawn(data)
    alone = pulled(FairPull(contrast, bound), scores, loss, 1.0)
    for own in (0.0, OWN, 1.0):
        found = pulled(FairPull(contrast, bound, flat, own=own), scores, loss, 1.0)
        np.testing.assert_allclose(found, own * alone, atol=1e-12)


@pytest.mark.usefixtures("exact_gaps")
@pytest.mark.parametrize("scope", SCOPES)
def test_features_that_tell_the_group_pull_as_the_group_does(scope: str) -> None:
    data = rows()
    contrast = bind("eop", data, scope=scope, training=True)
    known = known_contrast(contrast, data, FairnessSpec("eop", scope=scope), np.eye(2)[data.group])
    scores, loss = drawn(data)
    found, expected = (
        pulled(FairPull(contrast, bind_target("score", data.query_ptr), each), scores, loss, 1.0)
        for each in (known, None)
    )
    np.testing.assert_allclose(found, (KNOWN + OWN) * expected, rtol=1e-12)


def test_a_gap_that_features_tell_pulls_though_the_groups_have_none() -> None:
    # Features take the rows of even numbers for group 0. The groups themselves have no gap; those as told have one.
    data = rows(40)
    told = np.eye(2)[np.arange(data.n_rows) % 2]
    contrast, bound = bind("dp", data, training=True), bind_target("score", data.query_ptr)
    known = known_contrast(contrast, data, FairnessSpec("dp"), told)
    scores = np.where(np.arange(data.n_rows) % 2, -1.0, 1.0)
    for code in (0, 1):
        scores[data.group == code] -= scores[data.group == code].mean()
    assert not contrast.gaps(scores).any()
    assert known.gaps(scores)[0] > 0.5
    found = pulled(FairPull(contrast, bound, known), scores, np.ones(data.n_rows), 1.0)
    assert (np.sign(found) == np.where(np.arange(data.n_rows) % 2, -1, 1)).all()


def test_a_single_query_is_pulled_by_the_groups_themselves() -> None:
    data = rows(1)
    Recorder.seen.clear()
    np.testing.assert_array_equal(group_chances(Recorder, data.features, data), np.eye(2)[data.group])
    assert not Recorder.seen


def test_an_unknown_group_and_a_group_of_one_query_are_taken() -> None:
    data = rows(4)
    group = np.where(data.query_of_row == 0, "rare", "common").astype(object)
    group[-3:] = None
    mixed = RankingData.from_arrays(data.features, data.relevance, group, data.query_of_row)
    Recorder.seen.clear()
    chances = group_chances(Recorder, mixed.features, mixed)
    assert (chances[-3:] == 0).all()
    np.testing.assert_allclose(chances[:-3].sum(axis=1), 1)


@pytest.mark.parametrize("notion", ["dp", "eop"])
def test_lists_of_a_single_group_are_left_to_the_loss_where_nothing_there_changes_a_gap(notion: str) -> None:
    data = rows(40)
    apart = data.with_group(np.where(data.query_of_row % 2, "a", "b"))
    mixed = data.with_group(np.where(data.query_of_row < 2, data.group, 1 - data.query_of_row % 2))
    scores, loss = drawn(data)
    for each in (apart, mixed):
        pull = FairPull(
            bind(notion, each, training=True), bind_target("topk", data.query_ptr, k=2), lists=data.query_ptr
        )
        moved = np.maximum.reduceat(pulled(pull, scores, loss, 1.0) != 0, data.query_ptr[:-1])
        # For equal opportunity, the order of a list of one group decides which of its relevant items are selected.
        cell = each.group if notion == "dp" else np.where(data.relevant, each.group, -1)
        movable = np.array([len(set(cell[data.query_of_row == query])) > 1 for query in range(40)])
        assert not (moved & ~movable).any()
        assert moved.sum() >= 0.9 * movable.sum()
        if notion == "dp":
            assert movable.sum() == 2 * (each is mixed)


def test_the_mean_step_of_a_list_is_that_of_what_holds_it() -> None:
    first, second = np.array([1.0, -3.0, 2.0, 0.0, 0.5], np.float32), np.array([2.0, 2.0, 0.0, 0.0, 0.25], np.float32)
    np.testing.assert_allclose(list_steps(first, second, np.array([0, 2, 4, 5])), [4 / 4, 0, 0.5 / 0.25])


def test_a_step_along_the_pull_is_no_longer_than_it_may_be() -> None:
    rng = np.random.default_rng(0)
    second, pull = rng.random(40) * 10.0 ** rng.integers(-4, 5, 40), rng.normal(size=40)
    longest = np.where(np.arange(40) % 4 == 0, 0.0, rng.random(40))
    held = held_back(pull, second, np.divide(1, longest, out=np.zeros(40), where=longest > 0))
    np.testing.assert_array_equal(held[longest == 0], second[longest == 0])
    some = longest > 0
    within = np.abs(pull / second)[some] <= longest[some]
    assert 0 < within.sum() < some.sum()
    np.testing.assert_array_equal(held[some][within], second[some][within])
    np.testing.assert_allclose(np.abs(pull / held)[some][~within], longest[some][~within])


def test_what_the_pull_follows_is_the_gap_of_what_is_counted() -> None:
    data = rows()
    contrast, soft = bind("dp", data), bind_target("score", data.query_ptr)
    hard = np.where(data.group == 0, 1.0, -1.0)
    soft.counted = lambda scores: hard  # type: ignore[method-assign]
    pull = FairPull(contrast, soft)
    pull(-hard, np.ones(data.n_rows), 1.0)
    np.testing.assert_array_equal(pull.ways[0].gaps, contrast.gaps(hard))
