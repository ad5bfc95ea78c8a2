"""How numbers, times and names are written on a page."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from lakeward.control.names import full_name, parse_levels

_STEPS = (
    (60, 1, "s"),
    (3600, 60, "min"),
    (86_400, 3600, "h"),
    (86_400 * 60, 86_400, "d"),
    (86_400 * 730, 86_400 * 30.4, "months"),
)


_ARMS = {"postgres": "Postgres", "iceberg": "Iceberg"}


def number(value: int | float | None) -> str:
    """Return a number with a thin space between each three digits; nothing for None."""
    return "" if value is None else f"{value:,}".replace(",", "\u202f")


def short_number(value: int | float) -> str:
    """Return a number in at most five characters: 950, 1.2k, 34.5M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.1f}".removesuffix(".0") + unit
    return f"{value:g}"


def size(value: int | float | None) -> str:
    """Return a number of bytes: 12 B, 3.4 MiB; nothing for None."""
    if value is None:
        return ""
    left = float(value)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if left < 1024:
            return f"{left:.1f} {unit}" if unit != "B" else f"{left:.0f} B"
        left /= 1024
    return f"{left:.1f} TiB"


def ago(moment: datetime, now: datetime | None = None) -> str:
    """Return how long ago a moment was, in the one unit that says most."""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    return "now" if seconds < 1 else f"{duration(seconds)} ago"


def duration(seconds: float) -> str:
    """Return a span of time in the one unit that says most."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for limit, unit_seconds, unit in _STEPS:
        if seconds < limit:
            return f"{seconds / unit_seconds:.0f} {unit}"
    return f"{seconds / 86_400 / 365.25:.0f} years"


def moment(value: datetime) -> str:
    """Return a moment in full, in UTC."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def plural(count: int, thing: str) -> str:
    """Return `1 row`, `2 rows`."""
    return f"{number(count)} {thing}{'' if count == 1 else 's'}"


def last_of(name: str) -> str:
    """Return the last level of a full name, as it stands there."""
    levels = parse_levels(name, 3)
    return full_name(levels[-1:]) if levels else name


def parent_of(name: str) -> str:
    """Return what stands before the last level of a full name, with its dot."""
    levels = parse_levels(name, 3)
    return f"{full_name(levels[:-1])}." if levels else ""


def ticked(text: str) -> Markup:
    """Return a text with what stands between backticks as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if n % 2 else escape(part) for n, part in enumerate(parts)
    )


def in_path(name: str) -> str:
    """Return a name as a part of a path, whatever it is."""
    return quote(name, safe="")


def address(path: str, **parameters: object) -> str:
    """Return a path with those parameters that are something."""
    given = {name: str(value) for name, value in parameters.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(given)}" if given else path


def arm_word(arm: str | None) -> str:
    """Return what an arm is called in a sentence; nothing for None."""
    return _ARMS.get(arm or "", arm or "")


FILTERS = (arm_word, ticked, number, short_number, size, ago, duration, moment, plural, last_of, parent_of, in_path)
"""Those that templates use, by their names."""
