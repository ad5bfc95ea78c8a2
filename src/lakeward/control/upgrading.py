"""Runs the migrations by Alembic. Loaded only where some are missing, since that takes an eighth of a second."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy
from alembic import command
from alembic.config import Config


def upgrade(connection: sqlalchemy.Connection) -> None:
    """Apply the migrations that are missing, in the connection's transaction."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
