"""What to make of a catalog that fails: which errors are its own, and whether it may have done what it was asked.

An answer that is lost, or says 5xx, leaves it open whether the commit landed; so does a refusal, if something between
resent the request and it met its own first try. So no answer but success is believed: `settle` looks at the table, and
asks again only for what is not there. Nothing is ever deleted here. A commit that was asked for can still land after we
have looked, and a snapshot that names deleted files breaks the table for everybody; what no snapshot names is for
maintenance to find, later than any request can be under way.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from pyiceberg.exceptions import ForbiddenError, NoSuchTableError, OAuthError, UnauthorizedError

from lakeward.clock import SystemClock
from lakeward.errors import CatalogError, StorageFull
from lakeward.storage.arms.iceberg.store_trouble import store_error

PAUSES = (0.05, 0.2, 0.8)
"""Seconds before each further try: enough for a lost race and a dropped connection, not for an outage."""

_CLIENTS = {"pyiceberg", "requests", "urllib3", "pydantic_core", "sqlalchemy", "botocore", "thrift", "google"}
"""Packages whose exceptions come from the catalog. Those of PyIceberg have no common base, and the clients of some
catalogs are not installed with us, so exceptions are known by where they are defined."""

_REFUSALS = (ForbiddenError, OAuthError, UnauthorizedError, NoSuchTableError, NotImplementedError)
"""Asking again gets the same answer."""

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The file system is full, the user's quota is, or the file would be larger than the process or the system allows."""

T = TypeVar("T")

log = logging.getLogger("lakeward.iceberg")


def settle(what: str, attempt: Callable[[], T]) -> T:
    """Repeat an attempt until it is known what became of it.

    Args:
        what: names the dataset in errors.
        attempt: loads the table, returns if what it is about is done already, and else asks for it in one commit.

    Raises:
        CatalogError: the catalog failed each time; what it was asked for may be done, or come to be done later.
    """
    # ValueError: what PyIceberg raises for metadata that went on since it was loaded.
    with catalog_errors(what, ValueError):
        for pause in PAUSES:
            try:
                return attempt()
            except Exception as error:
                if _may_differ_next_time(error):
                    log.info("%s: looking again in %.2f s after %s", what, pause, type(error).__name__)
                    SystemClock().sleep(pause)
                    continue
                raise
        return attempt()


def _may_differ_next_time(error: Exception) -> bool:
    # Loading the table gives its failures our name already.
    cause = error.__cause__ if isinstance(error, CatalogError) else error
    return (is_of_catalog(cause) or isinstance(cause, ValueError)) and not isinstance(cause, _REFUSALS)


def is_of_catalog(error: BaseException | None) -> bool:
    """Say whether an exception is the catalog's, or that of the way to it; a failure of files is not."""
    if isinstance(error, ConnectionError | TimeoutError | NotImplementedError):
        return True
    return any(kind.__module__.partition(".")[0] in _CLIENTS for kind in type(error).__mro__)


@contextmanager
def catalog_errors(what: str, *others: type[Exception]) -> Iterator[None]:
    """Turn the failures of catalog and files into ours, so that callers know what may be retried.

    Args:
        what: names the dataset.
        others: further exceptions that mean, in this block, that the catalog failed.
    """
    try:
        yield
    except Exception as error:
        # First, since those of the HTTP client are OSErrors, too.
        if is_of_catalog(error) or isinstance(error, others):
            raise CatalogError(
                f"{what}: the Iceberg catalog failed: {_text(error)}",
                safe="every committed version stands; recovery finishes or removes the rest",
                next_step="check the catalog, then `lakeward ledger recover`",
            ) from error
        if isinstance(error, OSError):
            if error.errno in _NO_SPACE:
                raise StorageFull(
                    f"{what}: no space left in the warehouse",
                    safe="nothing was made visible",
                    next_step="free space on the warehouse's disk, then repeat",
                ) from error
            raise store_error(what, error) or CatalogError(
                f"{what}: the warehouse can't be used: {error}",
                safe="the ledger knows every committed version; what another arm holds can be read there",
                next_step="bring the warehouse back, from a backup if it is lost",
            ) from error
        raise


def _has_words(error: Exception) -> bool:
    return isinstance(error, NotImplementedError) or type(error).__module__.startswith("pyiceberg.")


def _text(error: Exception) -> str:
    """Name the failure, in the catalog's own words. Those of HTTP and SQL clients may hold addresses and parameters."""
    name = type(error).__name__
    words = str(error).splitlines() if _has_words(error) else []
    return f"{name}: {words[0][:200]}" if words else name
