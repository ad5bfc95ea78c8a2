"""What a request for rows comes to: checked columns and a checked filter, in the types that the rows will have."""

from __future__ import annotations

import pyarrow as pa

from lakeward.control.tree import DatasetRecord
from lakeward.errors import SchemaError, UnknownVersion
from lakeward.storage.arm import Scan
from lakeward.storage.changes import check_order
from lakeward.storage.filters import behind, parse_filter, quote_list
from lakeward.storage.identity import with_identity
from lakeward.storage.requests import ReadRequest
from lakeward.types.schema import ROW_ID, ROW_INDEX, Schema
from lakeward.types.table import arrow_schema

KEYS = "lakeward_keys"
"""What the keys of a scan are called in SQL."""

SCAN, FILTERED, POINT, SINCE, CHANGES, FIRST = KINDS = ("scan", "filtered", "point", "since", "changes", "first")
"""Kinds of reads: of all rows; of those that a filter picks; of single rows, by their whole key or their identity; of
what was written since a version; of what changed between two; of the first rows, to look at."""


def scan_of(dataset: DatasetRecord, request: ReadRequest) -> Scan:
    """Return what an arm is asked for.

    Raises:
        SchemaError, SqlError, UsageError, UnknownVersion: see `Storage.read`.
    """
    if request.since is not None:
        check_order(dataset.name, request.since, request.version)
        if request.version is None and request.since > dataset.head_version:
            # It is another dataset's, say of the one that had this name before. It must not come to nothing for ever.
            raise UnknownVersion(
                f"dataset {dataset.name} has no version {request.since} to read since: "
                f"its head is {dataset.head_version}",
                next_step=f"`lakeward dataset history {dataset.name}` lists its versions",
                dataset=dataset.name,
                version=request.since,
            )
    columns = columns_of(dataset, request.columns)
    where = parse_filter(request.where, dataset.schema, dataset.name) if request.where is not None else None
    if request.after is not None:
        where = behind(where, request.after)
    return Scan(columns, request.identity, request.since, where, request.keys)


def with_keys(scan: Scan, schema: Schema) -> list[str]:
    """Return the conditions of a scan on the rows that are read for it, as SQL; its keys are the table `KEYS`."""
    conditions = [f"({scan.where.sql})"] if scan.where is not None else []
    if scan.keys is not None:
        names = quote_list(schema.primary_key)
        conditions.append(f"({names}) IN (SELECT {f'({names})' if len(schema.primary_key) > 1 else names} FROM {KEYS})")
    return conditions


def kind_of(dataset: DatasetRecord, scan: Scan) -> str:
    """Return what kind of read a scan is, one of `KINDS`."""
    if scan.keys is not None:
        return POINT
    if scan.where is None:
        return SINCE if scan.since is not None else SCAN
    pinned, key = scan.where.pinned, dataset.schema.primary_key
    single = bool(pinned & {ROW_ID, ROW_INDEX}) or (bool(key) and pinned.issuperset(key))
    return POINT if single else FILTERED


def columns_of(dataset: DatasetRecord, asked: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the business columns that are asked for; None: all.

    Raises:
        SchemaError: one is unknown, or asked for twice, or none is.
    """
    columns = dataset.schema.names if asked is None else asked
    repeated = [name for position, name in enumerate(columns) if name in columns[:position]]
    if repeated or not columns:
        what = f"column {repeated[0]!r} is asked for twice" if repeated else "no column is asked for"
        raise SchemaError(f"dataset {dataset.name}: {what}", dataset=dataset.name)
    dataset.schema.select(columns)
    return tuple(columns)


def schema_of(dataset: DatasetRecord, scan: Scan) -> pa.Schema:
    """Return the Arrow schema of the rows that a scan gives."""
    schema = arrow_schema(dataset.schema.select(scan.columns))
    return with_identity(schema) if scan.identity else schema
