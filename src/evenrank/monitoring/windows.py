"""Times and periods as windows: which one each row is in, and what it is called.

A window has a key that sorts as time does: a whole number where rows have times, a name where they have periods.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from evenrank.errors import ConfigError, DataError
from evenrank.labels import label_array
from evenrank.row_checks import Locate, shown
from evenrank.wording import tidy

CALENDAR = ("day", "week", "month")
PERIOD = "period"
UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
DURATION = re.compile(r"([1-9][0-9]{0,5})([mhdw])")
EPOCH = datetime(1970, 1, 1)
MONDAY = date(1970, 1, 5).toordinal()  # weeks begin on Mondays
# Numbers above these are milliseconds or microseconds, and not seconds, since 1970.
MILLISECONDS, MICROSECONDS = 1e11, 1e14
DIGITS = (19000101, 21001231)  # whole numbers between are dates as 20260131
MOST = 1 << 53  # windows from 0: beyond, numbers have no digits left to tell them apart

Key = int | str


@dataclass(frozen=True)
class Windows:
    """The rule that puts rows into windows.

    Attributes
    ----------
    size : str
        "day", "week", "month", a duration as "6h" or "14d", a number (then times are numbers, in any unit), or
        "period": each row names its window.
    timezone : str
        Where days begin: an IANA name as "Europe/Berlin". Times with an offset are brought there; others are there.

    Examples
    --------
    >>> rule = Windows("week")
    >>> keys = rule.keys(["2026-01-01", "2026-01-04T23:59", "2026-01-05"])
    >>> [rule.label(key) for key in keys]
    ['2025-12-29', '2025-12-29', '2026-01-05']
    """

    size: str = "week"
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        if self.size not in (*CALENDAR, PERIOD) and self._duration is None and self._number is None:
            raise ConfigError(
                f"window must be day, week, month, a duration as 6h, 14d or 2w, or a number; got {self.size!r}."
            )
        self._zone  # noqa: B018  (an unknown zone is refused here, not at the first row)

    @property
    def _duration(self) -> timedelta | None:
        match = DURATION.fullmatch(self.size)
        return None if match is None else int(match[1]) * UNITS[match[2]]

    @property
    def _number(self) -> float | None:
        try:
            number = float(self.size)
        except ValueError:
            return None
        return number if 0 < number < 1e300 else None

    @property
    def _zone(self) -> tzinfo:
        try:
            return ZoneInfo(self.timezone)
        except (KeyError, ValueError, OSError):
            raise ConfigError(f"timezone must be a name such as UTC or Europe/Berlin; got {self.timezone!r}.") from None

    def keys(self, times: Any, at: Locate = lambda row: f"row {row}") -> NDArray[Any]:
        """Find the window of each row.

        Parameters
        ----------
        times : array-like
            (n,): dates, times, texts as 2026-01-31 or 2026-01-31T12:00+01:00, numbers of seconds (or milli- or
            microseconds) since 1970, or names of periods.
        at : callable
            From a row to its place, for errors.

        Returns
        -------
        ndarray
            (n,): keys.
        """
        array = label_array(times, len(times), "time")
        values, first, of_row = _distinct(array)
        keys: list[Key] = []
        named: set[Key] = set()
        for value, row in zip(values, first, strict=True):
            try:
                keys.append(self.key(value))
                if keys[-1] not in named:
                    self.label(keys[-1])  # the window of a first or last date there is may have no name
                    named.add(keys[-1])
            except (ValueError, TypeError, OverflowError):
                raise DataError(f"{at(row)}: {self._wanted}; got {shown(value)}. Fill it or drop the row.") from None
        return np.array(keys, object if self.size == PERIOD else np.int64)[of_row]

    @property
    def _wanted(self) -> str:
        if self.size == PERIOD:
            return "period must be a name"
        if self._number is not None:
            return f"time must be a finite number, as the window {self.size} is"
        return "time must be a date or a time, as 2026-01-31 or 2026-01-31T12:00"

    def key(self, value: Any) -> Key:
        """Find the window of one time; a `ValueError` if it is none."""
        if self.size == PERIOD:
            if value is None or str(value).strip() == "" or value != value:
                raise ValueError
            return str(value)
        if self._number is not None:
            key = int(np.floor(float(value) / self._number))
            if abs(key) > MOST:
                raise OverflowError
            return key
        moment = self._local(value)
        if self.size == "month":
            return moment.year * 12 + moment.month - 1
        if self.size == "week":
            return (moment.toordinal() - MONDAY) // 7
        if self.size == "day":
            return moment.toordinal()
        assert self._duration is not None
        return (moment - EPOCH) // self._duration

    def label(self, key: Key) -> str:
        """Name a window: by its first day, its month, its beginning, or its own name."""
        if isinstance(key, str):
            return tidy(key)
        if self._number is not None:
            return f"{key * self._number:.15g}"
        if self.size == "month":
            return f"{key // 12:04}-{key % 12 + 1:02}"
        if self.size in ("week", "day"):
            return date.fromordinal(MONDAY + 7 * key if self.size == "week" else key).isoformat()
        assert self._duration is not None
        start = EPOCH + key * self._duration
        whole_days = self._duration % timedelta(days=1) == timedelta(0)
        return start.date().isoformat() if whole_days else start.isoformat(timespec="minutes")

    def _local(self, value: Any) -> datetime:
        """A time without its zone, as clocks of the rule's zone show it."""
        if isinstance(value, np.datetime64):
            value = value.astype("datetime64[us]").item()
        if isinstance(value, str):
            text = value.strip()
            value = int(text) if text.isdecimal() else datetime.fromisoformat(text)
        if isinstance(value, bool) or value is None:
            raise ValueError
        if isinstance(value, int | float | np.number):
            value = _from_number(float(value), self._zone)
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        moment: datetime = value
        return moment if moment.tzinfo is None else moment.astimezone(self._zone).replace(tzinfo=None)


def _from_number(value: float, zone: tzinfo) -> datetime:
    if DIGITS[0] <= value <= DIGITS[1] and value == int(value):
        return datetime.strptime(str(int(value)), "%Y%m%d")
    size = abs(value)
    seconds = value / (1e6 if size > MICROSECONDS else 1e3 if size > MILLISECONDS else 1)
    return (datetime.fromtimestamp(0, zone) + timedelta(seconds=seconds)).astimezone(zone)


def _distinct(array: NDArray[Any]) -> tuple[list[Any], list[int], NDArray[np.int64]]:
    """The distinct values, the first row of each, and which of them each row has."""
    if array.dtype == object:
        place: dict[Any, int] = {}
        of_row = np.fromiter((place.setdefault(value, len(place)) for value in array.tolist()), np.int64, len(array))
        values: list[Any] = list(place)
        first = np.unique(of_row, return_index=True)[1]
        return values, first.tolist(), of_row
    distinct, first, of_row = np.unique(array, return_index=True, return_inverse=True)
    return (list(distinct) if distinct.dtype.kind == "M" else distinct.tolist()), first.tolist(), of_row


def in_order(keys: Any) -> list[Key]:
    """Sort the keys of windows: numbers by size, names as people do ("2" before "10")."""
    return sorted(set(keys), key=lambda key: _natural(key) if isinstance(key, str) else key)


def _natural(name: str) -> tuple[Any, ...]:
    parts = re.split(r"([0-9]+)", name)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part), name
