"""Tables of format 3, as another engine leaves them: deletion vectors are read, and no write half happens.

The table is put together byte by byte as the specs say (Iceberg table spec, "Deletion Vectors"; Puffin spec, "File
structure" and "`deletion-vector-v1` blob type"), since PyIceberg writes none of it.
"""

from __future__ import annotations

import itertools
import json
import uuid
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_LIST_FILE_SCHEMAS,
    ManifestFile,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyroaring import BitMap

import lakeward
from lakeward.control.records import ArmVersion
from lakeward.errors import Diverged, StorageError, UsageError
from lakeward.storage.arm import Scan
from lakeward.storage.table import table_ref
from support.other_engine import OtherEngine

COLUMNS = {"id": "long", "note": "string"}


_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    with lakeward.open(tmp_path_factory.mktemp("vectors") / "home") as opened:
        yield opened


def rows(ids: Sequence[int]) -> list[dict[str, Any]]:
    return [{"id": number, "note": f"note {number}"} for number in ids]


def vector(positions: Sequence[int]) -> bytes:
    """Return a blob: its length, a magic number, a 64-bit Roaring bitmap in the portable form, and a checksum."""
    high = sorted({position >> 32 for position in positions})
    bitmap = len(high).to_bytes(8, "little")
    for key in high:
        low = BitMap(position & 0xFFFFFFFF for position in positions if position >> 32 == key)
        bitmap += key.to_bytes(4, "little") + low.serialize()
    checked = bytes.fromhex("d1d33964") + bitmap
    return len(checked).to_bytes(4, "big") + checked + zlib.crc32(checked).to_bytes(4, "big")


def puffin(path: Path, vectors: dict[str, Sequence[int]]) -> dict[str, tuple[int, int]]:
    """Write a file of deletion vectors; return the offset and length of each by data file."""
    content, places, blobs = b"PFA1", {}, []
    for data_file, positions in vectors.items():
        blob = vector(positions)
        places[data_file] = (len(content), len(blob))
        properties = {"referenced-data-file": data_file, "cardinality": str(len(positions))}
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [2147483645],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(blob),
                "properties": properties,
            }
        )
        content += blob
    payload = json.dumps({"blobs": blobs, "properties": {"created-by": "a test"}}).encode()
    path.write_bytes(content + b"PFA1" + payload + len(payload).to_bytes(4, "little") + bytes(4) + b"PFA1")
    return places


def upgrade(workspace: lakeward.Workspace, table: Table, change: dict[str, Any]) -> None:
    """Give the catalog's table metadata of format 3, as an engine does that knows how to write it."""
    before = Path(table.metadata_location.removeprefix("file://"))
    metadata = {**json.loads(before.read_text()), "format-version": 3, "next-row-id": 1_000, **change}
    after = before.with_name(f"00099-{uuid.uuid4()}.metadata.json")
    after.write_text(json.dumps(metadata))
    with psycopg.connect(workspace.database.libpq_url) as connection:
        connection.execute(
            "UPDATE iceberg_tables SET metadata_location = %s WHERE metadata_location = %s",
            (f"file://{after}", table.metadata_location),
        )


def write_manifest(table: Table, directory: Path, snapshot: int, vectors: dict[str, Sequence[int]]) -> Path:
    """Write a Puffin file, and the manifest that has an entry for each vector in it."""
    target = directory / f"{uuid.uuid4()}.puffin"
    places = puffin(target, vectors)
    entries = manifest_entry_schema_with_data_file(
        3, data_file_with_partition(table.spec().partition_type(table.schema()), 3)
    )
    manifest = directory / f"{uuid.uuid4()}-m0.avro"
    metadata = {
        "schema": table.schema().model_dump_json(),
        "partition-spec": "[]",
        "partition-spec-id": "0",
        "format-version": "3",
        "content": "deletes",
    }
    with AvroOutputFile[Record](
        table.io.new_output(f"file://{manifest}"), entries, "manifest_entry", metadata=metadata
    ) as writer:
        for data_file, (offset, length) in places.items():
            known = {
                "content": 1,
                "file_path": f"file://{target}",
                "file_format": "PUFFIN",
                "partition": Record(),
                "record_count": len(vectors[data_file]),
                "file_size_in_bytes": target.stat().st_size,
                "referenced_data_file": data_file,
                "content_offset": offset,
                "content_size_in_bytes": length,
            }
            file = Record(*(known.get(field.name) for field in DATA_FILE_TYPE[3].fields))
            writer.write_block([Record(1, snapshot, None, None, file)])
    return manifest


def delete_by_vectors(workspace: lakeward.Workspace, table: Table, vectors: dict[str, Sequence[int]]) -> int:
    """Make a snapshot on `main` that deletes rows by deletion vectors, all of them in one Puffin file."""
    head = table.current_snapshot()
    assert head is not None
    directory = Path(table.metadata_location.removeprefix("file://")).parent
    snapshot, sequence = head.snapshot_id // 2 + 1, head.sequence_number + 1
    manifest = write_manifest(table, directory, snapshot, vectors)
    listed = {
        "manifest_path": f"file://{manifest}",
        "manifest_length": manifest.stat().st_size,
        "partition_spec_id": 0,
        "content": 1,
        "sequence_number": sequence,
        "min_sequence_number": sequence,
        "added_snapshot_id": snapshot,
        "added_files_count": len(vectors),
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": sum(map(len, vectors.values())),
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
    }
    schema = MANIFEST_LIST_FILE_SCHEMAS[3]
    held = [Record(*(getattr(each, field.name, None) for field in schema.fields)) for each in head.manifests(table.io)]
    listing = directory / f"snap-{snapshot}.avro"
    with AvroOutputFile[ManifestFile](
        table.io.new_output(f"file://{listing}"), schema, "manifest_file", metadata={"format-version": "3"}
    ) as writer:
        writer.write_block([*held, Record(*(listed.get(field.name) for field in schema.fields))])
    made = {
        "snapshot-id": snapshot,
        "parent-snapshot-id": head.snapshot_id,
        "sequence-number": sequence,
        "timestamp-ms": head.timestamp_ms + 1,
        "manifest-list": f"file://{listing}",
        "summary": {"operation": "delete"},
        "schema-id": table.schema().schema_id,
        "first-row-id": 1_000,
        "added-rows": 0,
    }
    before = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    upgrade(
        workspace,
        table,
        {
            "snapshots": [*before["snapshots"], made],
            "current-snapshot-id": snapshot,
            "last-sequence-number": sequence,
            "last-updated-ms": made["timestamp-ms"],
            "refs": {**before["refs"], "main": {"snapshot-id": snapshot, "type": "branch"}},
        },
    )
    return snapshot


def held_rows(workspace: lakeward.Workspace) -> tuple[lakeward.Dataset, OtherEngine, list[str]]:
    dataset = workspace.create_dataset(f"main.sales.d{next(_numbers)}", COLUMNS, ["id"], arm="iceberg")
    dataset.write(rows(range(10)))
    dataset.write(rows(range(10, 20)))
    dataset.write(rows(range(20, 30)))
    other = OtherEngine(workspace, dataset)
    paths = [task.file.file_path for task in other.table.scan().plan_files()]
    return dataset, other, sorted(paths)


def test_rows_in_deletion_vectors_are_left_out(workspace: lakeward.Workspace) -> None:
    dataset, other, (first, second, _) = held_rows(workspace)
    found = delete_by_vectors(workspace, other.table, {first: [0, 3, 9], second: [1]})
    assert other.table.metadata.format_version == 3
    left = [number for number in range(30) if number not in (0, 3, 9, 11)]
    arm, ref, version = (
        workspace.storage.routing.arm("iceberg"),
        table_ref(dataset.record),
        ArmVersion(4, 1, found, None),
    )
    assert sorted(row["id"] for row in arm.scan(ref, version, Scan(("id",))).read_all().to_pylist()) == left
    assert arm.digest(ref, version).count == len(left)
    assert dataset.to_arrow().num_rows == 30, "readers stay at the last committed version"
    assert dataset.adopt().rows_deleted == 4
    assert sorted(dataset.to_arrow()["id"].to_pylist()) == left
    plain = workspace.create_dataset("main.sales.plain", COLUMNS, ["id"], arm="iceberg")
    plain.write(rows(left))
    assert dataset.digest() == plain.digest()


@pytest.mark.parametrize("mode", ["append", "replace", "upsert", "mirror", "delete"])
def test_write_to_a_newer_format_is_refused_before_anything_happens(workspace: lakeward.Workspace, mode: str) -> None:
    dataset, other, _ = held_rows(workspace)
    upgrade(workspace, other.table, {})
    directory = Path(other.table.location().removeprefix("file://"))
    before = sorted(directory.rglob("*"))
    given = [{"id": 3}] if mode == "delete" else rows([3, 99])
    table = ".".join(other.table.name())
    with pytest.raises(StorageError, match=f"table {table} of dataset {dataset.name} is of format 3") as raised:
        dataset.write(given, mode=mode)
    assert raised.value.safe == "nothing was written, and it can be read as before"
    assert sorted(directory.rglob("*")) == before
    assert (dataset.status().status, dataset.to_arrow().num_rows, dataset.version) == ("ok", 30, 3)


def test_what_only_moves_a_branch_is_refused_by_name_too(workspace: lakeward.Workspace) -> None:
    dataset, other, _ = held_rows(workspace)
    other.append({"id": 77, "__row_id": 77_000})
    upgrade(workspace, other.table, {})
    with pytest.raises(Diverged):
        dataset.write(rows([3]))
    with pytest.raises(StorageError, match=f"table {'.'.join(other.table.name())} is of format 3, .* can be written"):
        dataset.restore()


def test_a_table_of_a_newer_format_is_not_adopted(workspace: lakeward.Workspace) -> None:
    _, other, _ = held_rows(workspace)
    upgrade(workspace, other.table, {})
    table = ".".join(other.table.name())
    with psycopg.connect(workspace.database.libpq_url) as connection:
        connection.execute(
            "UPDATE iceberg_tables SET table_name = 'newer' WHERE table_name = %s", (table.split(".")[-1],)
        )
    name = table.rpartition(".")[0] + ".newer"
    with pytest.raises(UsageError, match=f"the Iceberg table {name} has format version 3") as caught:
        workspace.adopting.plan(name, "main.sales.newer")
    assert "copy it into a new one of version 2" in str(caught.value.next_step)
