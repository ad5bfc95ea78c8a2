"""Brings the control plane's own tables to the newest form when a workspace is opened."""

from __future__ import annotations

from pathlib import Path

import psycopg
import sqlalchemy
from alembic import command
from alembic.config import Config

from lakeward.control.db import MINIMUM_SERVER, Database
from lakeward.errors import ControlError, SettingsError

HEAD = "m0001"
"""The newest migration; a test compares it with the scripts. Knowing it spares Alembic's start-up on every open."""

# An arbitrary number of ours, for an advisory lock of the transaction: those work behind a pooler too.
_LOCK = 0x1A4E3A2D


def migrate(database: Database) -> bool:
    """Apply the migrations that are missing; several processes may do it at once.

    Returns:
        Whether anything was applied.

    Raises:
        SettingsError: the server is too old, not in UTF-8, or grants us no schema.
        ControlError: the database was written by a newer Lakeward.
    """
    with database.transaction() as connection:
        if _current(connection) == HEAD:
            return False
    with database.transaction() as connection:
        connection.execute(sqlalchemy.text("select pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        if _current(connection) == HEAD:
            return False
        _check_server(connection, database)
        try:
            connection.execute(sqlalchemy.text("create schema if not exists lakeward"))
        except sqlalchemy.exc.ProgrammingError as error:
            if not isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
                raise
            raise SettingsError(
                f"the user of {database.display_url} may not create the schema `lakeward`",
                next_step="as its owner: GRANT CREATE ON DATABASE … TO …",
            ) from None
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return True


def _current(connection: sqlalchemy.Connection) -> str | None:
    known = connection.execute(sqlalchemy.text("select to_regclass('lakeward.alembic_version') is not null")).scalar()
    if not known:
        return None
    revision = connection.execute(sqlalchemy.text("select version_num from lakeward.alembic_version")).scalar()
    if revision is not None and str(revision) > HEAD:
        raise ControlError(
            f"the workspace was written by a newer Lakeward (its tables are at {revision}, this one knows {HEAD})",
            safe="nothing was changed",
            next_step="upgrade lakeward",
        )
    return revision


def _check_server(connection: sqlalchemy.Connection, database: Database) -> None:
    version, encoding = connection.execute(
        sqlalchemy.text("select current_setting('server_version_num')::int, current_setting('server_encoding')")
    ).one()
    if version < MINIMUM_SERVER:
        raise SettingsError(
            f"Postgres at {database.display_url} is version {version // 10_000}; Lakeward needs 15 or newer",
            next_step="upgrade the server, or leave LAKEWARD_DATABASE_URL unset to use the embedded one",
        )
    if encoding != "UTF8":
        raise SettingsError(
            f"the database of {database.display_url} is encoded in {encoding}; Lakeward needs UTF8",
            next_step="create one: CREATE DATABASE lakeward ENCODING 'UTF8' TEMPLATE template0",
        )
