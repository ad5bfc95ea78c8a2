"""Durations as people write them on a command line."""

from __future__ import annotations

import re

import typer

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?([smhd]?)")


def seconds_of(text: str, option: str) -> float:
    """Return the seconds of a duration such as `90s`, `30m`, `1h` or `2d`; without a unit it is in seconds.

    Args:
        text: what was typed.
        option: where, for the error.

    Raises:
        typer.BadParameter: it is no duration.

    Example:
        >>> seconds_of("1.5h", "--for")
        5400.0
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a duration; write 90s, 30m, 1h or 2d", param_hint=option)
    return float(match[1]) * _UNITS[match[2]]
