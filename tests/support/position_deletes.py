"""Rows that another engine deletes by position: delete files for one or several data files, with or without bounds."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from lakeward.storage.arms.iceberg.producers import RowDelta

POSITION_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
    ]
)


def delete_rows(
    table: Table,
    positions: Mapping[str, Sequence[int]],
    content: DataFileContent = DataFileContent.POSITION_DELETES,
) -> int:
    """Commit a snapshot to `main` with one delete file for rows of all these data files; return the snapshot.

    It says nothing of the files that it is for but inside, as engines may.
    """
    target = Path(table.location().removeprefix("file://")) / "data" / f"{uuid.uuid4()}-foreign-deletes.parquet"
    pairs = sorted((path, position) for path, some in positions.items() for position in some)
    columns = [[path for path, _ in pairs], [position for _, position in pairs]]
    pq.write_table(pa.table(columns, schema=POSITION_DELETES), target)
    file = DataFile.from_args(
        content=content,
        file_path=f"file://{target}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(pairs),
        file_size_in_bytes=target.stat().st_size,
    )
    file.spec_id = 0
    parent = table.current_snapshot()
    assert parent is not None
    with table.transaction() as transaction:
        producer = RowDelta(parent.snapshot_id, (), [file]).producer(transaction, {}, "main")
        producer.commit()
    found = table.refresh().current_snapshot()
    assert found is not None
    return found.snapshot_id


def delete_files(table: Table) -> list[str]:
    """Return the delete files of the table's current snapshot, by path."""
    return sorted(table.inspect.delete_files()["file_path"].to_pylist())


def data_files(table: Table) -> dict[str, int]:
    """Return the data files of the table's current snapshot and their numbers of rows, deleted ones too."""
    found = table.inspect.data_files()
    return dict(zip(found["file_path"].to_pylist(), found["record_count"].to_pylist(), strict=True))
