"""Settings of a workspace whose data files are rewritten, beside one on the same database that leaves them alone."""

from __future__ import annotations

from pathlib import Path

CALM = 20.0
"""The shortest grace that its leases allow. They are long: what is tested is not who loses one on a busy machine."""


def compaction_settings(root: Path, mode: str, more: str = "") -> Path:
    """Write a settings file that differs from the one in `root` in when files are rewritten, and in its leases."""
    file = root / f"compaction-{mode}-{len(more)}.toml"
    common = (root / "lakeward.toml").read_text(encoding="utf-8")
    changed = common.replace("mode = 'off'", f"mode = '{mode}'").replace("lease_seconds = 1", f"lease_seconds = {CALM}")
    file.write_text(changed + more, encoding="utf-8")
    return file
