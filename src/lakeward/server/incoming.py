"""Writes the body of a request to a dataset, read as a file of its format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from lakeward.errors import DataError
from lakeward.sources.file_formats import open_file
from lakeward.sources.source_file import LocalFile
from lakeward.storage.requests import WriteResult
from lakeward.storage.verbs import verb_named
from lakeward.wiring.counted_batches import CountedBatches
from lakeward.wiring.dataset import Dataset

CALLED = Path("the request's body")
"""What the file is called in errors: where it is kept is nobody's business."""


def columns_of(path: Path, format: str) -> Mapping[str, str]:
    """Return the type text of each column of a file, in order: what it says itself, or what all its rows fit.

    Raises:
        SourceFileError: it is not what it claims to be.
    """
    try:
        return open_file(LocalFile(path, CALLED), format).scan().columns
    except DataError as error:
        error.safe = error.safe or "nothing was changed"
        raise


def write_file(
    dataset: Dataset, path: Path, format: str, mode: str, *, allow_empty: bool, idempotency_key: str | None
) -> WriteResult:
    """Write the rows of a file.

    Args:
        dataset: where to.
        path: of the file.
        format: its name.
        mode, allow_empty, idempotency_key: as in `Dataset.write`.

    Raises:
        DataError: the rows are refused, with line and column; the dataset is unchanged.
        ConflictError: somebody else holds the dataset.
    """
    schema = dataset.schema
    verb = verb_named(mode)
    verb.check(schema, dataset.name)
    types = {column.name: str(column.type) for column in verb.input_schema(schema).columns}
    file = open_file(LocalFile(path, CALLED), format)
    try:
        read = file.read(types)
        rows = CountedBatches(read, f"writing {dataset.name}", None, None)
        reader = pa.RecordBatchReader.from_batches(read.schema, rows)
        return dataset.write(reader, mode, allow_empty, idempotency_key)
    except DataError as error:
        error.safe = error.safe or "nothing was changed"
        raise
