"""A load package of dlt as it is on disk: the Parquet files of each table, and what a refresh wants emptied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from dlt.common.configuration.container import Container
from dlt.common.storages.load_package import LoadPackageStateInjectableContext

from lakeward.compute.engine import BATCH_ROWS
from lakeward.errors import SourceFileError, UsageError
from lakeward.types.conform import to_reader
from lakeward.types.schema import Schema


@dataclass(frozen=True)
class LoadPackage:
    """What is loaded together.

    Args:
        load_id: dlt's name of it.
        files: of each table, in the order that they were written in.
        emptied: tables that are emptied first, because the pipeline was run with `refresh`.
    """

    load_id: str
    files: Mapping[str, Sequence[Path]]
    emptied: frozenset[str]

    @classmethod
    def current(cls, load_id: str) -> LoadPackage:
        """Return the package that dlt is loading now.

        Raises:
            UsageError: one of its files failed, so that it would not be whole.
        """
        context = Container()[LoadPackageStateInjectableContext]
        jobs = context.storage.get_load_package_jobs(load_id)
        if failed := sorted(job.file_name() for job in jobs["failed_jobs"]):
            raise UsageError(
                f"load package {load_id} has files that failed: {', '.join(failed)}",
                safe="nothing of the package was written",
                next_step="correct what `dlt pipeline NAME failed-jobs` shows, and run the pipeline again",
                load_id=load_id,
            )
        files: dict[str, list[Path]] = {}
        for job in jobs["completed_jobs"]:
            path = context.storage.get_job_file_path(load_id, "completed_jobs", job.file_name())
            files.setdefault(job.table_name, []).append(Path(context.storage.storage.make_full_path(path)))
        refreshed = [*(context.state.get("dropped_tables") or ()), *(context.state.get("truncated_tables") or ())]
        emptied = [table["name"] for table in refreshed if table["name"]]
        in_order = {table: sorted(found, key=_written) for table, found in files.items()}
        return cls(load_id, in_order, frozenset(emptied))


def _written(path: Path) -> tuple[int, str]:
    return path.stat().st_mtime_ns, path.name


def check_file(path: Path) -> None:
    """Refuse a file that is no Parquet file.

    Raises:
        SourceFileError: it is named.
    """
    try:
        pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise SourceFileError(f"{path.name} of the load package can't be read: {error}", file=path.name) from error


def rows_of(files: Sequence[Path], schema: Schema, dataset: str) -> pa.RecordBatchReader:
    """Stream the rows of a table's files, in the columns of its dataset; those that a file has not are null.

    Raises:
        ColumnMismatch, ValueRefused: (while reading) see `to_reader`; the file is named.
    """

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            with pq.ParquetFile(file) as opened:
                rows = _with_all(opened, schema)
                yield from to_reader(rows, schema, dataset=dataset, batch_rows=BATCH_ROWS)

    empty = to_reader((), schema, dataset=dataset)
    return pa.RecordBatchReader.from_batches(empty.schema, batches())


def _with_all(file: pq.ParquetFile, schema: Schema) -> pa.RecordBatchReader:
    found = file.schema_arrow
    missing = [name for name in schema.names if name not in found.names]
    whole = pa.schema([*found, *(pa.field(name, pa.null()) for name in missing)])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            nulls = [pa.nulls(batch.num_rows) for _ in missing]
            yield pa.RecordBatch.from_arrays([*batch.columns, *nulls], schema=whole)

    return pa.RecordBatchReader.from_batches(whole, batches())
