"""The tables, types and functions of procrastinate, in our own schema of Postgres; made by our migration.

The package brings its SQL, and migrations from each of its versions to the next. The name of the newest migration that
our tables have seen is kept beside them, so that a newer package brings them up to date before it uses them.

Its SQL names things without a schema. Where a pooler gives each transaction another session, no `search_path` can be
relied on: ours is set for the transaction that makes things, and belongs to each function. Statements of clients name
the schema themselves (`qualified`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources

import sqlalchemy

from lakeward.control.db import Database, Queries
from lakeward.errors import ControlError

QUERIES = Queries.beside(__file__)

SCHEMA = "lakeward"

# An arbitrary number of ours, for an advisory lock of the transaction.
_LOCK = 0x1A4E3A2E

_NAME = re.compile(r"\bprocrastinate_(?=[a-z])")

_PATH = f"SET LOCAL search_path TO {SCHEMA}, pg_temp"

# With a path of its own, a function finds its tables whatever session calls it.
_PIN = f"""
DO $$ DECLARE each regprocedure; BEGIN
    FOR each IN
        SELECT p.oid::regprocedure FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = '{SCHEMA}' AND p.proname LIKE 'procrastinate\\_%'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path TO {SCHEMA}, pg_temp', each);
    END LOOP;
END $$
"""

_REMOVE = f"""
DO $$ DECLARE each text; BEGIN
    FOR each IN
        SELECT format('DROP TABLE %s CASCADE', c.oid::regclass) FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = '{SCHEMA}' AND c.relkind = 'r' AND c.relname LIKE 'procrastinate\\_%'
    LOOP EXECUTE each; END LOOP;
    FOR each IN
        SELECT format('DROP FUNCTION %s CASCADE', p.oid::regprocedure) FROM pg_catalog.pg_proc p
        JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = '{SCHEMA}' AND p.proname LIKE 'procrastinate\\_%'
    LOOP EXECUTE each; END LOOP;
    FOR each IN
        SELECT format('DROP TYPE %s CASCADE', t.oid::regtype) FROM pg_catalog.pg_type t
        JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
        WHERE n.nspname = '{SCHEMA}' AND t.typtype IN ('e', 'c') AND t.typname LIKE 'procrastinate\\_%'
    LOOP EXECUTE each; END LOOP;
END $$
"""


def qualified(statement: str) -> str:
    """Return a statement of procrastinate with its own names in our schema.

    Example:
        >>> qualified("SELECT status FROM procrastinate_jobs")
        'SELECT status FROM lakeward.procrastinate_jobs'
    """
    return _NAME.sub(f"{SCHEMA}.procrastinate_", statement)


def install(connection: sqlalchemy.Connection) -> None:
    """Make everything, in the connection's transaction, as the installed package has it."""
    _run(connection, (resources.files("procrastinate.sql") / "schema.sql").read_text(encoding="utf-8"))
    connection.execute(QUERIES["table"])
    connection.execute(QUERIES["first"], {"name": max(name for name, _ in _migrations())})


def remove(connection: sqlalchemy.Connection) -> None:
    """Drop everything, in the connection's transaction."""
    connection.exec_driver_sql(_REMOVE, execution_options={"no_parameters": True})


def bring_up_to_date(database: Database) -> list[str]:
    """Apply what a newer package brings; several processes may do it at once.

    Returns:
        The names of the migrations that were applied.

    Raises:
        ControlError: the tables were made by a newer package than the one that is installed.
    """
    migrations = dict(_migrations())
    newest, applied = max(migrations), []
    if database.fetch(QUERIES["applied"])[0]["name"] == newest:
        return []
    for name in sorted(migrations):
        # A value that a migration adds to an enumeration can't be used before it is committed: each is one transaction.
        with database.transaction() as connection:
            connection.execute(QUERIES["lock"], {"lock": _LOCK})
            last = str(connection.execute(QUERIES["applied"]).scalar_one())
            if last > newest:
                raise ControlError(
                    f"the workspace's queue of jobs is of a newer procrastinate (at {last}, this one knows {newest})",
                    safe="nothing was changed",
                    next_step="install that version of procrastinate here, too: pip install -U procrastinate",
                )
            if name > last:
                _run(connection, migrations[name])
                connection.execute(QUERIES["note"], {"name": name})
                applied.append(name)
    return applied


def _migrations() -> Iterator[tuple[str, str]]:
    """Yield the package's migrations, by names that sort as they are to be applied."""
    for file in (resources.files("procrastinate.sql") / "migrations").iterdir():
        if file.name.endswith(".sql"):
            yield file.name, file.read_text(encoding="utf-8")


def _run(connection: sqlalchemy.Connection, script: str) -> None:
    """Run a script of many statements, whose new functions get a path of their own."""
    for part in (_PATH, script, _PIN):
        # Without parameters: a script has percent signs, and only so may it have several statements.
        connection.exec_driver_sql(part, execution_options={"no_parameters": True})
