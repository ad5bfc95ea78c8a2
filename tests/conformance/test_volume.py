"""Many rows and wide ones on every arm: several batches, chunks and files; a late refusal leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lakeward
from lakeward.errors import ValueRefused
from lakeward.storage.arms.iceberg import files
from lakeward.storage.arms.iceberg.stores.local_store import local_path
from lakeward.testing import InMemoryArm
from lakeward.types.digest import digest_batches
from support.arms import ArmUnderTest, iceberg_table

ROWS = 200_000


def batch(first: int, rows: int) -> pa.RecordBatch:
    ids = pa.arange(first, first + rows)
    return pa.RecordBatch.from_pydict({"id": ids, "note": pc.binary_join_element_wise("n", ids.cast(pa.string()), "")})


def many(step: int = 30_000) -> pa.RecordBatchReader:
    batches = [batch(first, min(step, ROWS - first)) for first in range(0, ROWS, step)]
    return pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))


@pytest.fixture
def small_files(shared_url: str, tmp_path: Path) -> Iterator[lakeward.Workspace]:
    """A workspace whose Iceberg files are closed at a megabyte."""
    settings = tmp_path / "lakeward.toml"
    settings.write_text("[storage]\ntarget_file_bytes = 1000000\n", encoding="utf-8")
    with lakeward.open(
        tmp_path / "home",
        database_url=shared_url,
        warehouse=tmp_path / "warehouse",
        settings_file=settings,
        extra_arms=[InMemoryArm],
    ) as workspace:
        yield workspace


def test_many_rows_come_back_in_their_positions(arm: ArmUnderTest) -> None:
    dataset = arm.create({"id": "long", "note": "string"}, ["id"])
    result = dataset.write(many())
    assert (result.rows_in, result.row_count) == (ROWS, ROWS)
    dataset.write(batch(ROWS, 7))
    table = dataset.to_arrow(identity=True)
    assert table.num_rows == ROWS + 7
    for column in ("__row_index", "__row_id"):
        assert table.column(column).equals(table.column("id")), column
    assert dataset.digest(version=1) == digest_batches(dataset.schema, many())
    assert sorted(dataset.to_arrow(columns=["id"], where="id >= 150000 AND id < 150003")["id"].to_pylist()) == [
        150_000,
        150_001,
        150_002,
    ]


def test_several_files_in_one_snapshot(small_files: lakeward.Workspace) -> None:
    dataset = ArmUnderTest(small_files, "iceberg").create({"id": "long", "text": "string"})
    wide = pa.table({"id": pa.arange(0, 600_000), "text": pa.repeat("x" * 10, 600_000)})
    dataset.write(wide)
    table = iceberg_table(small_files, dataset.table)
    written = list(table.scan().plan_files())
    assert len(written) == 3
    assert len(table.metadata.snapshots) == 2, "the empty root and one for the version"
    assert dataset.digest() == digest_batches(dataset.schema, wide.to_reader())
    assert dataset.to_arrow(where="id = 599999").num_rows == 1


def test_a_row_group_of_wide_rows_is_bounded_by_bytes(
    small_files: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "ROW_GROUP_BYTES", 300_000)
    dataset = ArmUnderTest(small_files, "iceberg").create({"id": "long", "text": "string"})
    wide = pa.table({"id": pa.arange(0, 500), "text": pa.repeat("x" * 2_000, 500)})
    dataset.write(pa.RecordBatchReader.from_batches(wide.schema, wide.to_batches(50)))
    (file,) = iceberg_table(small_files, dataset.table).scan().plan_files()
    metadata = pq.read_metadata(local_path(file.file.file_path))
    assert [metadata.row_group(each).num_rows for each in range(metadata.num_row_groups)] == [100, 100, 100, 100, 100]
    assert dataset.digest() == digest_batches(dataset.schema, wide.to_reader())


def test_an_upsert_of_all_rows_takes_no_more_than_the_memory_limit(shared_url: str, tmp_path: Path) -> None:
    """The batch alone is larger than the limit, and every row is compared with one that is there, in full."""
    settings = tmp_path / "lakeward.toml"
    settings.write_text('[storage]\nmemory_limit = "32MB"\n', encoding="utf-8")
    ids = pa.arange(0, 50_000)
    text = pc.binary_join_element_wise("x" * 1_000, ids.cast(pa.string()), "")
    rows = pa.table({"id": ids, "number": ids, "text": text})
    with lakeward.open(
        tmp_path / "home", database_url=shared_url, warehouse=tmp_path / "warehouse", settings_file=settings
    ) as workspace:
        columns = {"id": "long", "number": "long", "text": "string"}
        dataset = ArmUnderTest(workspace, "iceberg").create(columns, ["id"])
        dataset.write(rows)
        assert dataset.write(rows, "upsert").rows_unchanged == 50_000
        other = rows.set_column(2, "text", pc.if_else(pc.equal(pc.bit_wise_and(ids, 4095), 7), "other", text))
        assert dataset.write(other, "upsert").rows_updated == 13
        assert dataset.digest() == digest_batches(dataset.schema, other.to_reader())


def test_a_wrong_value_in_row_150001_leaves_nothing(arm: ArmUnderTest) -> None:
    dataset = arm.create({"id": "long", "note": "string"}, ["id"])
    dataset.write(batch(0, 10))
    good = list(many())
    wrong = pa.RecordBatch.from_pydict({"id": ["150000", "150001x"], "note": ["", ""]})

    def rows() -> Iterator[dict[str, object]]:
        for part in good[:5]:
            yield from part.to_pylist()
        yield from wrong.slice(1).to_pylist()

    for mode in ("append", "replace"):
        with pytest.raises(ValueRefused, match="row 150001") as caught:
            dataset.write(rows(), mode)
        assert caught.value.fields["row"] == 150_001
        assert caught.value.fields["column"] == "id"
        assert caught.value.fields["dataset"] == dataset.created.name
    assert dataset.to_arrow().num_rows == 10
    assert (dataset.version, dataset.leftovers()) == (1, {})
    assert dataset.write(batch(10, 1)).row_count == 11


def test_rows_of_several_pages(arm: ArmUnderTest) -> None:
    """Wider than Postgres keeps in a page (8 kB), compressible and not."""
    dataset = arm.create({"id": "int", "wide": "string", "raw": "binary"})
    rows = [
        {"id": n, "wide": chr(0x4E00 + n) * 20_000, "raw": bytes((n * k) % 251 for k in range(9_000))}
        for n in range(40)
    ]
    dataset.write(rows)
    assert dataset.rows() == rows
    assert dataset.rows(where="id = 7") == [rows[7]]
    assert dataset.digest().count == 40


def test_many_columns(arm: ArmUnderTest) -> None:
    names = [f"c{number}" for number in range(400)]
    dataset = arm.create(dict.fromkeys(names, "long"))
    row = {name: number for number, name in enumerate(names)}
    dataset.write([row, dict.fromkeys(names)])
    assert dataset.rows() == [row, dict.fromkeys(names)]
