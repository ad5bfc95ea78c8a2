"""How people are told what a stage of a flip has found: one line of what the log keeps by name."""

from __future__ import annotations

ORDER = ("mode", "epoch", "reads", "version", "rows", "bytes", "digest", "lossy", "expected_seconds", "basis")
"""In which order people are told of what a stage has found. The log does not keep one; what is not here comes last."""

COUNTED = {
    "reads": "read",
    "rows": "row",
    "bytes": "byte",
    "mismatches": "difference",
    "removed": "row",
    "brought": "row",
}
"""What is counted, by the names that the log has."""

PHRASES = {
    "reads": "{} compared",
    "removed": "{} removed",
    "brought": "{} brought",
    "unreadable": "not readable any more: {}",
    "lossy": "lossy: {}",
    "expected_seconds": "expected to take {} s",
    "basis": "going by {}",
    "seconds": "in seconds {}",
    "ignored": "not compared: {}",
    "ignored_exact": "the rest is equal: {}",
    "latency_ratio": "reads take {} times as long",
    "error": "{}",
}
"""How people are told what the log has under a name; what is not here is told by its name."""

FOR_PROGRAMS = {"columns"}
"""Of what a stage tells, that which is of no use to people: a fingerprint."""


def told(details: object) -> str:
    """Return what a stage found, for people."""
    assert isinstance(details, dict)
    shown = [name for name in details if name not in FOR_PROGRAMS]
    names = sorted(shown, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    return ", ".join(_phrase(name, details[name]) for name in names)


def _phrase(name: str, value: object) -> str:
    what = COUNTED.get(name)
    text = _counted(value, what) if what is not None and isinstance(value, int) else _plain(value)
    unsaid = "{}" if what is not None else name.replace("_", " ") + " {}"
    return PHRASES.get(name, unsaid).format(text)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return f"({told(value)})"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
