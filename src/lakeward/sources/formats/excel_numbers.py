"""Numbers of cells as values: Excel keeps doubles, and the format of a cell says that one is a date or a time.

A date is a number of days. In the 1900 system day 1 is 1900-01-01, and day 60 is a 29 February that 1900 did not have:
a fault of Lotus 1-2-3 that Excel keeps. In the 1904 system day 0 is 1904-01-01. The part behind the point is the time.
Programs write 15 to 17 digits of a number, and Excel shows milliseconds. So a time that is a whole millisecond to 15
digits is that one, and any other is told to the microsecond.
"""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta

from lakeward.sources.formats.excel_texts import NoValue

NUMBER, DATE, INSTANT, TIME, ELAPSED = range(5)
"""What numbers are by their cells' format. `ELAPSED` goes past 24 hours: `[h]:mm`."""

EXACT = 2**53
"""Up to here a double holds every whole number."""

_CHARACTERS = "0123456789.+-eE"
_MAX_DIGITS = 38
_DAY = 86_400_000_000
_LAST_DAY = {False: 2_958_465, True: 2_957_003}
_NO_DAY = 60


class Elapsed(str):
    """A time that may go past 24 hours, as `31:30:00`."""

    __slots__ = ()


Number = int | float | date | datetime | time | Elapsed | NoValue


def number(text: str) -> int | float | NoValue:
    """Return the number that a cell holds; a whole one is an int.

    Example:
        >>> [number(text) for text in ("12", "5.0", "0.1", "1E-07", "0.10000000000000001")]
        [12, 5, 0.1, 1e-07, 0.1]
    """
    if text.strip(_CHARACTERS):
        return NoValue(text, "is no number")
    try:
        if "." not in text and "e" not in text and "E" not in text and len(text) <= _MAX_DIGITS:
            return int(text)
        value = float(text)
    except ValueError:
        return NoValue(text, "is no number")
    if math.isinf(value):
        return NoValue(text, "is out of the range of a double")
    if value.is_integer() and abs(value) <= EXACT and (value or math.copysign(1.0, value) > 0):
        return int(value)
    return value


def dated(text: str, kind: int, from_1904: bool) -> Number:
    """Return what a number stands for in a cell with a format of dates or times.

    What the format hides is not lost: a date with hours is an instant, and so is a time with days before it.

    Example:
        >>> dated("45351", DATE, False), dated("45351.5", DATE, False), dated("0.25", TIME, False)
        (datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 0), datetime.time(6, 0))
        >>> dated("1.3125", ELAPSED, False), dated("60", DATE, False).reason
        ('31:30:00', 'is the 29 February 1900, which was not')
    """
    serial = number(text)
    if isinstance(serial, NoValue):
        return serial
    if kind == ELAPSED:
        return _elapsed(serial, text)
    days = math.floor(serial)
    micros = _micros(serial - days, days)
    if micros == _DAY:
        days, micros = days + 1, 0
    if kind == TIME and days == 0:
        return _clock(micros)
    if days < (0 if from_1904 else 1) or days > _LAST_DAY[from_1904]:
        return NoValue(text, "has a format of dates, and is no day that Excel knows")
    if days == _NO_DAY and not from_1904:
        return NoValue(text, "is the 29 February 1900, which was not")
    first = date(1904, 1, 1) if from_1904 else date(1899, 12, 31) if days < _NO_DAY else date(1899, 12, 30)
    day = first + timedelta(days=days)
    if kind == DATE and micros == 0:
        return day
    return datetime.combine(day, _clock(micros))


def _micros(part: float, days: int) -> int:
    """Return the microseconds of a part of a day, beside a number of days that takes its share of the digits."""
    micros = round(part * _DAY)
    whole = round(micros, -3)
    noise = _DAY * 10.0 ** (len(str(abs(days))) - 15) if days else 0.0
    return whole if abs(whole - micros) <= noise else micros


def _clock(micros: int) -> time:
    seconds, micros = divmod(micros, 1_000_000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros)


def _elapsed(serial: int | float, text: str) -> Elapsed | NoValue:
    if abs(serial) > _LAST_DAY[False]:
        return NoValue(text, "has a format of times, and is longer than Excel knows")
    seconds, micros = divmod(round(abs(serial) * _DAY), 1_000_000)
    fraction = f".{micros:06d}" if micros else ""
    sign = "-" if serial < 0 else ""
    return Elapsed(f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}")
