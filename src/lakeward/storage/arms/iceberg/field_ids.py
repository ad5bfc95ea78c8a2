"""Data files without field ids: another engine added them to its table as they were, by the names of their columns.

Rows are read by field ids here, so the columns of such a file would all be null. Its rows come with ids once the engine
that added it has written them anew.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, FileFormat

from lakeward.errors import DataError
from lakeward.storage.arms.iceberg.stores import Store

_FIELD_ID = b"PARQUET:field_id"


def check_field_ids(files: Iterable[DataFile], store: Store, what: str) -> None:
    """Open files, and raise DataError for the first one that has a column without a field id.

    Args:
        files: data files; those that are not Parquet are passed over.
        store: where they are.
        what: names the table in the error.
    """
    for file in files:
        if file.file_format != FileFormat.PARQUET:
            continue
        for field in pq.read_schema(store.opened(file.file_path)):
            if _FIELD_ID not in (field.metadata or {}):
                raise DataError(
                    f"{what} has the file {file.file_path}, whose column {field.name!r} has no field id: it was added "
                    "to the table as it was, and can't be read here",
                    safe="nothing was changed",
                    next_step="have the engine that added it write its rows anew, as Spark's rewrite_data_files does",
                    file=file.file_path,
                )
