"""Where the files of tables lie: on this machine, or in an object store. Nothing else asks which of them it is."""

from __future__ import annotations

from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table

from lakeward.errors import SettingsError
from lakeward.storage.arms.iceberg.stores.local_store import LocalStore, is_local
from lakeward.storage.arms.iceberg.stores.object_store import ObjectStore
from lakeward.storage.arms.iceberg.stores.store import Store, StoredFile

__all__ = ["Store", "StoredFile", "store_at", "store_of"]


def store_of(table: Table, what: str | None = None) -> Store:
    """Return the store of a table's files.

    Args:
        table: the table, whose own `io` says how files are reached.
        what: names the dataset in errors; None: what it was called when the table was loaded, or the table's name.
    """
    key = table.metadata.table_uuid.hex
    return store_at(table.io, table.location(), what or f"table {'.'.join(table.name())}", key, renames=bool(what))


def store_at(io: FileIO, location: str, what: str, key: str | None = None, *, renames: bool = False) -> Store:
    """Return the store of a location.

    Args:
        io: how files are reached there.
        location: a table's, or that of the warehouse.
        what: names the dataset in errors.
        key: the table's, by which DuckDB finds the way to its files; None: DuckDB reads none of them.
        renames: whether `what` replaces the name under which DuckDB's errors know the table.
    """
    if is_local(location):
        return LocalStore()
    if not isinstance(io, PyArrowFileIO):
        raise SettingsError(
            f"{what}: its files at {location} are opened by {type(io).__name__}, which DuckDB can't read through",
            safe="nothing was touched",
            next_step="take `py-io-impl` out of `catalog`",
            setting="catalog",
        )
    return ObjectStore(io, location, what, key, renames)
