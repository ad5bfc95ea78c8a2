"""Deletes files that a write made and gave up: no snapshot names them, so they may stay, and must not cost time."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyiceberg.io import FileIO

from lakeward.storage.arms.iceberg.store_trouble import store_error

log = logging.getLogger("lakeward.iceberg")


def discard(io: FileIO, what: str, locations: Sequence[str]) -> None:
    """Delete files. At the first one that can't be deleted, it and the rest are left to maintenance.

    A store that is down would let each of them wait for as long as the first one.

    Args:
        io: the table's.
        what: names the dataset in the log.
        locations: where the files are, or would be.
    """
    for number, location in enumerate(locations):
        try:
            io.delete(location)
        except FileNotFoundError:
            continue
        except OSError as error:
            more = f" and {len(locations) - number - 1:,} more" if number + 1 < len(locations) else ""
            reason = store_error(what, error)
            said = reason.message if reason is not None else error
            log.warning("%s: %s%s was not deleted; no snapshot names it: %s", what, location, more, said)
            return
