"""Runs a migration whose statements stand in a file of SQL beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from alembic import op


def run_script(migration: str, suffix: str = "", values: Mapping[str, str] | None = None) -> None:
    """Run the statements of the file that is called like a migration, in its transaction.

    Args:
        migration: the migration's `__file__`.
        suffix: comes behind its name: `_down` for the way back.
        values: what takes the place of `@name@` in the script.
    """
    path = Path(migration)
    script = path.with_name(f"{path.stem}{suffix}.sql").read_text(encoding="utf-8")
    for name, value in (values or {}).items():
        script = script.replace(f"@{name}@", value)
    # Through the driver: it runs a script of many statements, and leaves its percent signs alone.
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(script)
