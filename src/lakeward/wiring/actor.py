"""Who acts, for the audit log."""

from __future__ import annotations

from lakeward.control.audit import by


def actor() -> str:
    """Return who acts, for the audit log: by name, or, where the owner does, the user of this process."""
    return by()
