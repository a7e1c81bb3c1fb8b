"""Times become windows; what is no time is refused with its row."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pytest

import evenrank as er
from evenrank.monitoring.windows import Windows, in_order


def labels(size: str, times: object, timezone: str = "UTC") -> list[str]:
    rule = Windows(size, timezone)
    return [rule.label(key) for key in rule.keys(times)]


@pytest.mark.parametrize(
    ("size", "time", "window"),
    [
        ("day", "2026-03-01", "2026-03-01"),
        ("day", "2026-03-01T23:59:59Z", "2026-03-01"),
        ("day", "2026-03-01 23:30:00-02:00", "2026-03-02"),
        ("week", "2026-03-01", "2026-02-23"),
        ("week", "2024-02-29", "2024-02-26"),
        ("month", "2026-12-31T12:00", "2026-12"),
        ("14d", "1970-01-15", "1970-01-15"),
        ("6h", "2026-03-01T13:00", "2026-03-01T12:00"),
        ("day", date(2026, 3, 1), "2026-03-01"),
        ("day", datetime(2026, 3, 1, 5, tzinfo=UTC), "2026-03-01"),
        ("day", np.datetime64("2026-03-01T05:00"), "2026-03-01"),
        ("day", 20260301, "2026-03-01"),
        ("day", "20260301", "2026-03-01"),
        ("day", 1772323200, "2026-03-01"),
        ("day", 1772323200000, "2026-03-01"),
        ("day", 1772323200000000, "2026-03-01"),
        ("100", 250, "200"),
        ("0.5", -0.2, "-0.5"),
        ("period", "spring", "spring"),
        ("period", 7, "7"),
    ],
)
def test_a_time_is_in_its_window(size: str, time: object, window: str) -> None:
    assert labels(size, [time]) == [window]


def test_days_begin_at_midnight_of_the_zone() -> None:
    assert labels("day", ["2026-07-01T23:30Z"], "Europe/Berlin") == ["2026-07-02"]
    assert labels("day", ["2026-07-01T23:30"], "Europe/Berlin") == ["2026-07-01"]  # without an offset: a local time
    assert labels("day", [1782948600], "Europe/Berlin") == ["2026-07-02"]  # 2026-07-01T23:30Z


@pytest.mark.parametrize("bad", ["n/a", "2026-02-30", None, "", float("nan"), True, "12:00", 1e300])
def test_what_is_no_time_is_refused_with_its_row(bad: object) -> None:
    with pytest.raises(er.DataError, match=r"row 1: time must be a date or a time, as 2026-01-31 .*; got .*\."):
        Windows("day").keys(np.array(["2026-01-01", bad], object))


@pytest.mark.parametrize(("size", "bad"), [("10", "n/a"), ("10", float("inf")), ("period", ""), ("period", None)])
def test_what_is_no_number_or_name_is_refused(size: str, bad: object) -> None:
    with pytest.raises(er.DataError, match="row 0: "):
        Windows(size).keys(np.array([bad], object))


@pytest.mark.parametrize("size", ["fortnight", "0", "-3", "6x", "", "nan", "inf", "0d"])
def test_other_windows_are_refused(size: str) -> None:
    with pytest.raises(er.ConfigError, match="window must be day, week, month"):
        Windows(size)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(er.ConfigError, match=r"timezone must be a name .*'Mars/Phobos'"):
        Windows("day", "Mars/Phobos")


def test_names_are_in_the_order_of_people() -> None:
    assert in_order(["w10", "w9", "w1"]) == ["w1", "w9", "w10"]
    assert in_order(["2026-10", "2026-9b", "2026-9"]) == ["2026-9", "2026-9b", "2026-10"]
    assert in_order([10, 9, -1]) == [-1, 9, 10]


@pytest.mark.parametrize(
    ("size", "time"),
    [("3d", "0001-01-01"), ("1", "1e25"), ("1", "-1e300"), ("1e-9", "1e9"), ("6h", "1e17")],
)
def test_times_whose_window_has_no_name_are_refused(size: str, time: str) -> None:
    with pytest.raises(er.DataError, match="row 1: time must be"):
        Windows(size).keys(["20260101", time])


def test_windows_of_large_numbers_have_names_of_their_own() -> None:
    day = 86_400
    assert labels(str(day), [1_767_225_600, 1_767_225_600 + day]) == ["1767225600", "1767312000"]
    assert labels("0.1", [0.35, 0.75]) == ["0.3", "0.7"]
