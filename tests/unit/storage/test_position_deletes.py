"""Rows that another engine marked as deleted by position (Iceberg spec, "Position Delete Files") are not read."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.typedef import Record

import lakeward
from lakeward.control.records import ArmVersion
from lakeward.storage.arm import Scan
from lakeward.storage.arms.iceberg import IcebergArm
from lakeward.storage.table import table_ref

POSITION_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
    ]
)


class _DeleteManifest(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _Delete(_FastAppendFiles):
    """One snapshot that adds one position-delete file."""

    delete_file: DataFile

    def _manifests(self) -> list[ManifestFile]:
        with _DeleteManifest(
            self.spec(0), self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression
        ) as writer:
            writer.add(
                ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED, snapshot_id=self._snapshot_id, data_file=self.delete_file
                )
            )
        return [*self._existing_manifests(), writer.to_manifest_file()]


def delete_positions(table: Table, directory: Path, path: str, positions: list[int]) -> int:
    """Commit a snapshot that deletes rows of one data file by their positions."""
    target = directory / f"{uuid.uuid4()}-deletes.parquet"
    rows = pa.table([pa.array([path] * len(positions)), pa.array(positions, pa.int64())], schema=POSITION_DELETES)
    pq.write_table(rows, target)
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"file://{target}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(positions),
        file_size_in_bytes=target.stat().st_size,
    )
    file.spec_id = 0
    with table.transaction() as transaction:
        producer = _Delete(Operation.DELETE, transaction, table.io)
        producer.delete_file = file
        producer.commit()
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


@pytest.mark.parametrize("odd", ["note", "filename", "file_row_number", "pos", "file_path"])
def test_deleted_rows_are_left_out(workspace: lakeward.Workspace, tmp_path: Path, odd: str) -> None:
    orders = workspace.create_dataset("main.sales.orders", {"id": "long", odd: "string"}, arm="iceberg")
    orders.write([{"id": number, odd: f"n{number}"} for number in range(10)])
    arm = workspace.storage.routing.arm("iceberg")
    assert isinstance(arm, IcebergArm)
    ref = table_ref(orders.record)
    loaded = arm._tables.load(ref)
    (task,) = loaded.scan().plan_files()
    snapshot = delete_positions(loaded, tmp_path, task.file.file_path, [0, 3, 9])
    version = ArmVersion(2, 1, snapshot, None)
    found = arm.scan(ref, version, Scan(("id", odd))).read_all().to_pylist()
    left = [1, 2, 4, 5, 6, 7, 8]
    assert sorted(row["id"] for row in found) == left
    assert all(row[odd] == f"n{row['id']}" for row in found)
    assert arm.digest(ref, version).count == len(left)
    assert orders.to_arrow().num_rows == 10, "readers stay at the last committed version"
