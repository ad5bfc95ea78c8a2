"""Sizes of memory and disk as settings write them (`512MB`, `1.5 GiB`), divided among queries that run at a time."""

from __future__ import annotations

_UNITS = {"T": 4, "G": 3, "M": 2, "K": 1}


def divided(size: str, parts: int) -> str:
    """Return one of so many parts of a size.

    Args:
        size: a number and `B`, `kB`, `MB`, `GB` or `TB` (powers of 1000), or `KiB` to `TiB` (powers of 1024).
        parts: at least 1.

    Example:
        >>> divided("1GB", 3), divided("1GiB", 1)
        ('333.333MB', '1GiB')
    """
    if parts == 1:
        return size
    number = size.rstrip("BbiIKkMGTmgt ")
    unit = size[len(number) :].strip().upper()
    base = 1024 if "I" in unit else 1000
    each = float(number) * base ** _UNITS.get(unit[0], 0) / parts
    name, power = next(((name, power) for name, power in _UNITS.items() if each >= 1000**power), ("", 0))
    return f"{each / 1000**power:g}{name}B"
