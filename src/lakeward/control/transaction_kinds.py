"""Which transactions make no version. Apart from who decides them, so that the command line needs no driver for it."""

from __future__ import annotations

VERSIONLESS_KINDS = ("backfill", "mirror", "route", "move")
"""Transactions that make no version. The first two bring the head, as it was when they were opened, to another arm, and
so the version that they are of is their parent; the third changes the route, the last where the table is."""
