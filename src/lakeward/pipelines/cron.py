"""When a pipeline is to be built: the five fields of a cron line, checked and reckoned; or on change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

ON_CHANGE = "on_change"
"""Instead of a time: as soon as something that the pipeline reads has a new version."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MOST_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_PART = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[0-9]{1,3}))?", re.ASCII)


@dataclass(frozen=True)
class _Field:
    """One of the five.

    Args:
        name: what errors call it.
        low, high: its least and greatest number.
        names: words for numbers.
    """

    name: str
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)

    def read(self, text: str) -> set[int]:
        """Return the numbers that a field stands for.

        Raises:
            ValueError: with what is wrong with it.
        """
        return {number for part in text.split(",") for number in self._part(part, text)}

    def _part(self, part: str, text: str) -> range:
        found = _PART.fullmatch(part)
        if found is None:
            raise ValueError(f"the {self.name} {text!r} is no `*`, number, range as 1-5, step as */15, or list of them")
        first, last, step = found["first"], found["last"], found["step"]
        if step is not None and (int(step) < 1 or (first is not None and last is None)):
            raise ValueError(f"the {self.name} {text!r} has a step that is not of the form */15 or 1-30/2")
        low = self.low if first is None else self._number(first, text)
        high = self.high if first is None else low if last is None else self._number(last, text)
        if low > high:
            raise ValueError(f"the {self.name} {text!r} is a range from {low} down to {high}")
        return range(low, high + 1, int(step or 1))

    def _number(self, word: str, text: str) -> int:
        number = self.names.get(word.lower(), int(word) if re.fullmatch("[0-9]{1,2}", word) else -1)
        if not self.low <= number <= self.high:
            named = f", or {', '.join(self.names)}" if self.names else ""
            raise ValueError(f"the {self.name} {text!r} is not within {self.low} to {self.high}{named}")
        return number


def _numbered(names: Sequence[str], first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names, start=first)}


FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _numbered(_MONTHS, 1)),
    _Field("day of the week", 0, 7, _numbered(_DAYS, 0)),
)
"""In their order. Sunday is 0 and 7."""


def check_schedule(text: str) -> str:
    """Return a schedule in its one form: `on_change`, or a time of cron.

    Raises:
        ValueError: it is neither; see `check_cron`.
    """
    return ON_CHANGE if text.strip() == ON_CHANGE else check_cron(text)


def check_cron(text: str) -> str:
    """Return a schedule with one space between its fields.

    Args:
        text: five fields, each `*`, a number, a range, a step or a list of them, as in `0 6 * * mon-fri`.

    Raises:
        ValueError: with what is wrong with it: another number of fields, a field that can't be read, no such day.
    """
    written = text.split()
    if len(written) != len(FIELDS):
        names = ", ".join(each.name for each in FIELDS)
        raise ValueError(f"it has {len(written)} fields, and should have five: {names}")
    _, _, days, months, _ = (each.read(part) for each, part in zip(FIELDS, written, strict=True))
    # As cron has it, a day of the week that is given is enough, whatever the day of the month.
    if written[4].startswith("*") and all(min(days) > _MOST_DAYS[month - 1] for month in months):
        raise ValueError("no month of it has such a day")
    return " ".join(written)


def last_tick(text: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the last of a schedule's times that is not after `now`, in UTC; None: there was none in eight years.

    Where clocks go forward, a time that they leave out comes as much later. Where they go back, a time that comes twice
    counts once, unless the hours are `*`.

    Args:
        text: as `check_cron` returns it.
        now: with its time zone.
        zone: whose clocks the schedule is of.

    Example:
        >>> last_tick("0 6 * * *", datetime(2026, 3, 1, 5, tzinfo=UTC), ZoneInfo("UTC"))
        datetime.datetime(2026, 2, 28, 6, 0, tzinfo=datetime.timezone.utc)
    """
    return next((tick for tick in _around(text, now, zone, -1) if tick <= now), None)


def next_tick(text: str, now: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the first of a schedule's times after `now`, in UTC; None: there is none in eight years."""
    return next((tick for tick in _around(text, now, zone, 1) if tick > now), None)


_DAYS_AT_MOST = 8 * 366 + 1
"""29 February comes after eight years at the latest."""


def _around(text: str, now: datetime, zone: ZoneInfo, direction: int) -> Iterator[datetime]:
    """Yield the ticks of today and the days before or after, the nearest day first."""
    today = now.astimezone(zone).date()
    for days in range(_DAYS_AT_MOST):
        try:
            day = today + timedelta(days=days * direction)
        except OverflowError:
            return
        ticks = _ticks_of(text, day, zone)
        yield from ticks if direction > 0 else reversed(ticks)


@lru_cache(maxsize=1024)
def _ticks_of(text: str, day: date, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Return the ticks of one day of a zone's calendar, in UTC, in order."""
    written = text.split()
    minutes, hours, days, months, weekdays = (each.read(part) for each, part in zip(FIELDS, written, strict=True))
    by_day, by_weekday = day.day in days, day.isoweekday() in {number or 7 for number in weekdays}
    given = [found for found, part in ((by_day, written[2]), (by_weekday, written[4])) if not part.startswith("*")]
    # As cron has it: of two that are given, one is enough. A step from `*` narrows what the other gives.
    right = any(given) if len(given) == 2 else by_day and by_weekday
    if day.month not in months or not right:
        return ()
    folds = (0, 1) if written[1].startswith("*") else (0,)
    return tuple(
        sorted(
            {
                datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone, fold=fold).astimezone(UTC)
                for hour in hours
                for minute in minutes
                for fold in folds
            }
        )
    )
