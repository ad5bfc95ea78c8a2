"""What PostgreSQL and its drivers say, as errors of ours that hold no secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import adbc_driver_manager
import psycopg
import sqlalchemy

from lakeward.control.db import Database
from lakeward.errors import ControlError, SourceError

READABLE = "check that it can be reached from here and that the user may read there, then repeat"
"""What leads out where nothing more is known."""


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
            cause = error.orig if isinstance(error, sqlalchemy.exc.DBAPIError) else error
            raise self.said(str(cause).strip()) from None

    def said(self, text: str, next_step: str = READABLE) -> SourceError:
        """Return the error of what is said of the database."""
        return self.error(f"PostgreSQL at {self._database.display_url}: {text}", next_step)

    def error(self, text: str, next_step: str = READABLE) -> SourceError:
        """Return an error whose text names the database itself."""
        return SourceError(
            self._database.redacted(text),
            safe="nothing was written",
            next_step=next_step,
            source=self._database.display_url,
        )
