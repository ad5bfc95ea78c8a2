"""Who acts, for the audit log."""

from __future__ import annotations

import getpass


def actor() -> str:
    """Return who acts, for the audit log: the user of this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
