"""Brings the control plane's own tables to the newest form when a workspace is opened."""

from __future__ import annotations

import importlib
import threading

import sqlalchemy

from lakeward.control.db import MINIMUM_SERVER, Database
from lakeward.errors import ControlError, SettingsError

HEAD = "m0024"
"""The newest migration; a test compares it with the scripts. Knowing it spares Alembic's start-up on every open."""

_UPGRADING = "lakeward.control.upgrading"
"""What needs Alembic, and with it templates and highlighting of code: not for a workspace that is at the newest."""

# An arbitrary number of ours, for an advisory lock of the transaction: those work behind a pooler too.
_LOCK = 0x1A4E3A2D

# The grants that the user lacks, if any, to read the revision. The schema may have been made for this user by another.
_TO_READ = """
select case
    when to_regnamespace('lakeward') is null then null
    when not has_schema_privilege('lakeward', 'usage')
        then format('GRANT USAGE, CREATE ON SCHEMA lakeward TO %I', current_user)
    when to_regclass('lakeward.alembic_version') is null then null
    when not has_table_privilege('lakeward.alembic_version', 'select')
        then format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lakeward TO %I', current_user)
end
"""

# The same, to make the tables.
_TO_MIGRATE = """
select case
    when to_regnamespace('lakeward') is null and not has_database_privilege(current_database(), 'create')
        then format('GRANT CREATE ON DATABASE %I TO %I', current_database(), current_user)
    when to_regnamespace('lakeward') is not null and not has_schema_privilege('lakeward', 'create')
        then format('GRANT CREATE ON SCHEMA lakeward TO %I', current_user)
end
"""

# Read from the catalogs themselves: `to_regclass` goes by what the session remembers of them, and a session that has
# waited for another one's migration remembers that there was nothing.
_KNOWN = """
select exists (
    select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'lakeward' and c.relname = 'alembic_version'
)
"""

# Alembic's context is one for the whole process; the lock in Postgres is one for each database.
_ONE_AT_A_TIME = threading.Lock()


def migrate(database: Database) -> bool:
    """Apply the migrations that are missing; several processes and threads may do it at once.

    Returns:
        Whether anything was applied.

    Raises:
        SettingsError: the server is too old, not in UTF-8, or grants us no schema.
        ControlError: the database was written by a newer Lakeward.
    """
    with database.transaction() as connection:
        if _current(connection, database) == HEAD:
            return False
    with _ONE_AT_A_TIME, database.transaction() as connection:
        connection.execute(sqlalchemy.text("select pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        if _current(connection, database) == HEAD:
            return False
        _check_server(connection, database)
        _check_rights(connection, database, _TO_MIGRATE)
        # `if not exists` would want the right to make schemas of a user who was given this one.
        if not connection.execute(sqlalchemy.text("select to_regnamespace('lakeward') is not null")).scalar():
            connection.execute(sqlalchemy.text("create schema lakeward"))
        importlib.import_module(_UPGRADING).upgrade(connection)
    return True


def _current(connection: sqlalchemy.Connection, database: Database) -> str | None:
    """Return the revision that the database is at, None if it is empty."""
    known = connection.execute(sqlalchemy.text(_KNOWN)).scalar()
    _check_rights(connection, database, _TO_READ)
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


def _check_rights(connection: sqlalchemy.Connection, database: Database, rights: str) -> None:
    lacking = connection.execute(sqlalchemy.text(rights)).scalar()
    if lacking is not None:
        raise SettingsError(
            f"the user of {database.display_url} may not keep a workspace there",
            next_step=f"as the owner of the database: {lacking}",
        )


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
