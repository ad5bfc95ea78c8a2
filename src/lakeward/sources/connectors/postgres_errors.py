"""What PostgreSQL and its drivers say, as errors of ours that hold no secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import adbc_driver_manager
import psycopg
import sqlalchemy

from lakeward.control.db import Database
from lakeward.errors import ControlError, SourceError, SourceRefused

READABLE = "check that it can be reached from here and that the user may read there, then repeat"
"""What leads out where nothing more is known."""

_FINAL_STATES = ("0A", "28", "3D", "3F", "42")
"""Classes of SQLSTATE, by PostgreSQL's list of error codes, of answers that would be the same again: what it can't do,
who may not log in, no such database or schema, no such table or column and no right to it."""

_FINAL_WORDS = re.compile(
    r"authentication failed|no pg_hba\.conf entry|pg_hba\.conf rejects|no password supplied|no such (user|database)"
    r"|FATAL: +(role|user|database) .* does not exist|is not permitted to log in|permission denied for database"
    r"|certificate verify failed|server does not support SSL|role .* is not permitted|certificate .* (invalid|required)"
)
"""What PostgreSQL, libpq and PgBouncer say to somebody who may not log in: no driver tells the code of it then. What is
said in another language is taken for what may pass, and tried again."""


class PostgresErrors:
    """Makes errors about one database.

    Args:
        database: knows what of its URL is secret.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def named(self) -> Iterator[None]:
        """Give what a driver says without any secret, and without the driver's own error behind it."""
        try:
            yield
        except ControlError as error:
            raise self.error(error.message) from None
        except (sqlalchemy.exc.SQLAlchemyError, psycopg.Error, adbc_driver_manager.Error, OSError) as error:
            raise self.of(error) from None

    def of(self, error: Exception) -> SourceError:
        """Return the error of what any of the drivers has raised."""
        cause = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
        state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or ""
        return self.said(str(cause).strip(), final=state.startswith(_FINAL_STATES))

    def said(self, text: str, next_step: str = READABLE, *, final: bool = False) -> SourceError:
        """Return the error of what is said of the database; see `error`."""
        return self.error(f"PostgreSQL at {self._database.display_url}: {text}", next_step, final=final)

    def error(self, text: str, next_step: str = READABLE, *, final: bool = False) -> SourceError:
        """Return an error whose text names the database itself.

        Args:
            text: what is wrong.
            next_step: what leads out.
            final: whether the same would be said again; what is said to somebody who may not log in is known for that.
        """
        kind = SourceRefused if final or _FINAL_WORDS.search(text) else SourceError
        return kind(
            self._database.redacted(text),
            safe="nothing was written",
            next_step=next_step,
            source=self._database.display_url,
        )
