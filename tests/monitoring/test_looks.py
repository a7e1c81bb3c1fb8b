"""The tests of change against slow plain twins, and what they must and must not notice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import evenrank as er
from evenrank.monitoring.estimates import POOLED, RATIO, WITHIN
from evenrank.monitoring.looks import SPANS, corrected, looks_of, two_sided
from evenrank.monitoring.series import BINS, EXCESS, N_A, N_B, VARIANCE, WEIGHT, X_A, X_B
from weekly import rows, taken


def some_sums(seed: int, windows: int, bins: int = 30, kinds: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    out = np.zeros((windows, BINS, 4 + 3 * kinds))
    n_a, n_b = rng.integers(1, 6, (2, windows, bins))
    out[:, :bins, N_A], out[:, :bins, N_B] = n_a, n_b
    out[:, :bins, X_A], out[:, :bins, X_B] = rng.binomial(n_a, 0.4), rng.binomial(n_b, 0.3)
    for kind in range(kinds):
        out[:, :bins, EXCESS + 3 * kind] = rng.normal(0.1, 0.5, (windows, bins))
        out[:, :bins, VARIANCE + 3 * kind] = rng.uniform(0.1, 0.4, (windows, bins))
        out[:, :bins, WEIGHT + 3 * kind] = rng.uniform(0.5, 1, (windows, bins))
    return out


# ---------------------------------------------------------------------- plain twins


def plain_p(z: float, skewness: float, freedom: float) -> float:
    law = stats.pearson3(skewness)
    return float(2 * stats.t.sf(stats.norm.isf(max(1e-300, min(law.sf(z), law.cdf(z), 0.5))), freedom))


@pytest.mark.parametrize("z", [-6.0, -4.2, -1.0, 0.0, 0.5, 2.0, 4.5, 7.0])
@pytest.mark.parametrize("skewness", [-0.8, -0.2, 0.05, 0.6])
@pytest.mark.parametrize("freedom", [5.0, 40.0, 1e6])
def test_the_p_value_is_that_of_a_gamma_law_and_of_student(z: float, skewness: float, freedom: float) -> None:
    value = two_sided(np.array([z]), np.array([skewness]), np.array([freedom]))[0]
    assert value == pytest.approx(plain_p(z, skewness, freedom), rel=1e-5)


def test_without_skewness_it_is_students() -> None:
    value = two_sided(np.array([3.0, -3.0]), np.zeros(2), np.full(2, 20.0))
    assert value == pytest.approx(2 * stats.t.sf(3.0, 20), rel=1e-9)


def plain_value(kind: str, sums: np.ndarray, ratio: float, weights: list[float]) -> float:
    """From sums over bins, (columns,)."""
    if kind == WITHIN:
        return sum(w * sums[EXCESS + 3 * j] / sums[VARIANCE + 3 * j] for j, w in enumerate(weights))
    return sums[X_A] / sums[N_A] - (ratio if kind == RATIO else 1.0) * sums[X_B] / sums[N_B]


def plain_left_out(kind: str, table: np.ndarray, ratio: float, weights: list[float], bin: int) -> float:
    """The estimate less what it is without a bin; of a sum of means each is left out by itself."""
    return plain_value(kind, table.sum(0), ratio, weights) - plain_value(
        kind, table.sum(0) - table[bin], ratio, weights
    )


@pytest.mark.parametrize(("kind", "kinds"), [(WITHIN, 1), (WITHIN, 2), (POOLED, 1), (RATIO, 1)])
def test_a_large_span_is_tested_by_leaving_out_bins(kind: str, kinds: int) -> None:
    """With much data the variance is that of leaving out one bin after the other, if it is above that by chance."""
    sums = some_sums(3, 5, bins=60, kinds=kinds)
    if kind == WITHIN:
        sums[..., EXCESS::3] *= 3  # varies far more than by chance, so that this variance counts
    reference, window = sums[:4], sums[4:]
    base, own = reference.sum(0), window.sum(0)
    total, span = base.sum(0), own.sum(0)
    ratio = (total[X_A] / total[N_A]) / (total[X_B] / total[N_B]) if kind == RATIO else 1.0
    weights = [1.0]
    if kind == WITHIN:
        each = [total[VARIANCE + 3 * j] * span[VARIANCE + 3 * j] for j in range(kinds)]
        each = [v / (total[VARIANCE + 3 * j] + span[VARIANCE + 3 * j]) for j, v in enumerate(each)]
        weights = [v / sum(each) for v in each]
    factor = (span[X_B] / span[N_B]) / (total[X_B] / total[N_B]) if kind == RATIO else 1.0
    change = plain_value(kind, span, ratio, weights) - plain_value(kind, total, ratio, weights)
    moved = [
        plain_left_out(kind, own, ratio, weights, j) - factor * plain_left_out(kind, base, ratio, weights, j)
        for j in range(60)
    ]
    variance = sum(m * m for m in moved)
    skewness = sum(m**3 for m in moved) / variance**1.5
    result = looks_of(kind, [reference], [window], ratio)
    # Degrees of freedom and the other variance: found by what the p-value can be.
    by_this = [plain_p(change / np.sqrt(variance), skewness, freedom) for freedom in (1e9, 30)]
    wider = [plain_p(change / np.sqrt(1.25 * variance), skewness, freedom) for freedom in (1e9, 30)]
    assert min(by_this) * 0.999 <= result.p[0] <= max(wider) * 1.001
    assert result.span[0] == 1
    assert result.shown[0] - result.expected[0] == pytest.approx(result.change[0])


def test_looks_are_corrected_as_by_hand() -> None:
    p = np.array([[0.0001, 0.5, np.nan], [0.0002, 0.0004, np.nan], [0.9, np.nan, np.nan]])
    by_hand = np.array(
        [[0.0003 * 52, 0.5 * 52, np.nan], [0.0004 * 52, 0.0008 * 52, np.nan], [0.9 * 52, np.nan, np.nan]]
    )
    np.testing.assert_allclose(corrected(p, 52), np.minimum(1, by_hand))


def plain_looks(reference: np.ndarray, windows: np.ndarray) -> list[float]:
    """P-values within queries with one kind of list, bin by bin and span by span, as they are written down."""

    def parts(table: np.ndarray) -> tuple[float, float, list[tuple[float, float]]]:
        total, size = float(table[:, EXCESS].sum()), float(table[:, VARIANCE].sum())
        return total / size, size, [(float(row[EXCESS]), float(row[VARIANCE])) for row in table]

    def moved(table: np.ndarray, power: float) -> list[float]:
        lean, size, bins = parts(table)
        return [(d - lean * v) / size / (1 - v / size) ** power for d, v in bins]

    def number(table: np.ndarray) -> float:
        _, size, bins = parts(table)
        return size**2 / sum(v * v for _, v in bins)

    base = reference.sum(0)
    lean_base, size_base, _ = parts(base)
    growths = [sum(m * m for m in moved(base, 0.5)) * size_base]
    weights = [number(base) - 1]
    out = []
    for t in range(len(windows)):
        own = windows[t]
        squares = sum((m - b) ** 2 for m, b in zip(moved(own, 0.5), moved(base, 0.5), strict=True))
        growths.append(squares / (1 / parts(own)[1] + 1 / size_base))
        weights.append(number(own) - 1)
        growth = sum(g * w for g, w in zip(growths, weights, strict=True)) / sum(weights)
        spans = [span for span in SPANS if span <= t + 1]
        each = []
        for span in spans:
            own = windows[t - span + 1 : t + 1].sum(0)
            lean, size, _ = parts(own)
            both = [m - b for m, b in zip(moved(own, 1.0), moved(base, 1.0), strict=True)]
            few = min(size, size_base) < 25
            by_chance = (max(growth, 1.0) if few else growth) * (1 / size + 1 / size_base)
            variance = max(sum(m * m for m in both), by_chance)
            skewness = sum(m**3 for m in both) / variance**1.5
            each.append(plain_p((lean - lean_base) / variance**0.5, skewness, sum(weights)))
        out.append(min(1.0, min(each) * len(spans)))
    return out


@pytest.mark.parametrize("bins", [12, 40])
def test_all_looks_are_those_of_the_plain_twin(bins: int) -> None:
    sums = some_sums(1, 13, bins)
    sums[4:, :bins, EXCESS] += 0.15
    result = looks_of(WITHIN, [sums[:4]], [sums[4:]])
    np.testing.assert_allclose(result.p, plain_looks(sums[:4, :bins], sums[4:, :bins]), rtol=1e-6)
    assert len(set(result.span.tolist())) > 1


def test_a_span_with_too_few_bins_is_not_tested() -> None:
    sums = some_sums(2, 6, bins=5)
    assert np.isnan(looks_of(WITHIN, [sums[:4]], [sums[4:]]).p).all()
    empty = np.zeros_like(sums)
    assert np.isnan(looks_of(POOLED, [sums[:4]], [empty[4:]]).p).all()
    assert np.isnan(looks_of(WITHIN, [empty[:4]], [sums[4:]]).p).all()


def test_kinds_that_only_one_side_has_say_nothing() -> None:
    sums = some_sums(4, 6, kinds=2)
    sums[:4, :, EXCESS + 3 :] = 0
    sums[4:, :, EXCESS : EXCESS + 3] = 0
    assert np.isnan(looks_of(WITHIN, [sums[:4]], [sums[4:]]).p).all()


# ---------------------------------------------------------------------- what is noticed


def watch(frame: object, **options: object) -> er.Monitored:
    scores, data, times = taken(frame)  # type: ignore[arg-type]
    return er.monitor(scores, data, times, k=3, **options)  # type: ignore[arg-type]


def test_a_change_is_noticed_and_no_change_is_not() -> None:
    assert watch(rows(16, 40, seed=1)).alerts() == []
    changed = watch(rows(16, 40, lean=[0] * 10 + [-1.5] * 6, seed=1))
    assert changed.verdict == "changed"
    first = min(point.window for _, point in changed.alerts())
    assert "2026-03-16" <= first <= "2026-03-23"  # the eleventh week, or the one after


def test_a_flip_of_the_direction_is_a_change() -> None:
    result = watch(rows(12, 60, lean=[1.0] * 8 + [-1.0] * 4, seed=2), measures=["dp"])
    assert result.verdict == "changed"
    assert 'In the reference "b" was ahead, and now "a" is.' in result.conclusions()[1]


def test_a_lean_that_stays_is_no_change() -> None:
    assert watch(rows(16, 60, lean=1.5, seed=3)).alerts() == []


def test_shuffled_rows_and_swapped_names_change_nothing() -> None:
    frame = rows(8, 20, lean=[0] * 6 + [1.0] * 2, seed=4)
    plain = watch(frame)
    shuffled = watch(frame.sample(fraction=1.0, shuffle=True, seed=1))
    swapped = watch(rows(8, 20, lean=[0] * 6 + [1.0] * 2, seed=4, groups=("b", "a")))
    for mine, theirs, turned in zip(plain.charts, shuffled.charts, swapped.charts, strict=True):
        for x, y, z in zip(mine.points, theirs.points, turned.points, strict=True):
            assert y.p == pytest.approx(x.p, nan_ok=True, rel=1e-6)
            assert z.p == pytest.approx(x.p, nan_ok=True, rel=1e-6)
            assert y.value == pytest.approx(x.value, nan_ok=True)
            sign = -1 if mine.question == WITHIN else 1
            assert z.value == pytest.approx(sign * x.value, nan_ok=True)


def test_a_reference_of_its_own_and_by_name() -> None:
    frame = rows(10, 60, lean=[0] * 4 + [1.2] * 6, seed=5)
    scores, data, times = taken(frame)
    named = er.monitor(scores, data, times, k=3, reference=("2026-01-12", "2026-01-26"))
    assert named.reference == ("2026-01-12", "2026-01-19", "2026-01-26")
    assert [point.role for point in named.charts[0].points] == ["before"] + ["reference"] * 3 + ["look"] * 6
    assert named.verdict == "changed"
    base = er.Monitor(k=3).update(*taken(rows(4, 60, seed=6)))
    own = er.monitor(scores, data, times, k=3, reference=base)
    assert all(point.role == "look" for point in own.charts[0].points)
    assert own.verdict == "changed"
    after = er.Monitor(k=3).update(*taken(rows(4, 60, lean=1.2, seed=7)))
    assert er.monitor(er.Monitor(k=3).update(scores, data, times), reference=after).charts[0].points[-1].alert is False
    with pytest.raises(er.ConfigError, match="the reference must hold a window; none is from 2030-01-01 to 2030-02-01"):
        er.monitor(scores, data, times, k=3, reference=("2030-01-01", "2030-02-01"))
    with pytest.raises(er.ConfigError, match="the reference must agree with the monitor in its k"):
        er.monitor(scores, data, times, k=2, reference=base)


def test_intervals_are_never_of_no_width() -> None:
    frame = rows(5, 30, 12, lean=-30.0, share=0.2, seed=8)  # no item of b is ever in the top 3
    for chart in watch(frame).charts:
        for point in chart.points:
            if chart.question in (RATIO, WITHIN) and chart.measure != "exposure_gap":
                assert not point.high <= point.low
