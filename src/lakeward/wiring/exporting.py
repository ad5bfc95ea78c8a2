"""Datasets out to files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from lakeward.control.tree import DatasetRecord
from lakeward.errors import UsageError
from lakeward.sources.file_formats import checked_options
from lakeward.sources.formats.csv import CsvFile, CsvOptions, write_csv
from lakeward.sources.formats.parquet import ParquetFile, write_parquet
from lakeward.storage.facade import Storage
from lakeward.storage.requests import ReadRequest
from lakeward.wiring.counted_batches import CountedBatches, Progress

READER = "export"
EXPORT_SUFFIXES = (".csv", ".parquet")


@dataclass(frozen=True)
class ExportResult:
    """What an export wrote."""

    dataset: str
    version: int
    path: str
    rows: int
    size_bytes: int

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return dict(vars(self))


class Exporting:
    """Writes rows of the datasets of one workspace to files."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def export(
        self,
        record: DatasetRecord,
        path: Path,
        request: ReadRequest,
        *,
        overwrite: bool = False,
        options: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> ExportResult:
        """Write rows to a file, which appears when it is complete.

        Args:
            record: the dataset.
            path: ends with one of `EXPORT_SUFFIXES`.
            request: which rows and columns.
            overwrite: replace a file that is there.
            options: for CSV, as in `ImportRequest`.
            progress: is told the rows so far.

        Raises:
            UsageError: the file is there, can't be written, or its suffix is unknown.
            SchemaError, ValueRefused: the format can't hold a type or value.
        """
        check_target(path, overwrite)
        csv = path.suffix.lower() == ".csv"
        settings = cast(CsvOptions, checked_options(CsvFile if csv else ParquetFile, options or {}))
        version = request.version if request.version is not None else record.head_version
        request = ReadRequest(**{**vars(request), "version": version or None})
        reader = self._storage.read(record, request, reader=READER)
        whole = request.where is None and request.since is None and version == record.head_version
        counted = CountedBatches(reader, f"exporting {record.name}", record.row_count if whole else None, progress)
        stream = pa.RecordBatchReader.from_batches(reader.schema, counted)
        rows = write_csv(stream, path, settings) if csv else write_parquet(stream, path)
        return ExportResult(record.name, version, str(path), rows, path.stat().st_size)


def write_file(rows: pa.RecordBatchReader, path: Path) -> int:
    """Write rows to a file, which appears when it is complete, and return how many there were.

    Args:
        rows: what is written.
        path: ends with one of `EXPORT_SUFFIXES`; a file that is there is replaced.

    Raises:
        SchemaError, ValueRefused: the format can't hold a type or value.
    """
    if path.suffix.lower() == ".csv":
        return write_csv(rows, path, cast(CsvOptions, checked_options(CsvFile, {})))
    return write_parquet(rows, path)


def check_target(path: Path, overwrite: bool) -> None:
    """Refuse a target that can't be exported to.

    Raises:
        UsageError: an unknown suffix, or a file that is there.
    """
    if path.suffix.lower() not in EXPORT_SUFFIXES:
        raise UsageError(
            f"{path.name!r} names no format to export to",
            next_step=f"end the file's name with {' or '.join(EXPORT_SUFFIXES)}",
            path=str(path),
        )
    if path.exists() and not overwrite:
        raise UsageError(
            f"{path} exists already",
            safe="the file is unchanged",
            next_step="choose another name, or add --force to replace it",
            path=str(path),
        )
