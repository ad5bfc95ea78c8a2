"""A small Iceberg REST catalog over a PyIceberg SqlCatalog, to test against what many have in production.

It speaks the part of the Iceberg REST specification that clients need to work with namespaces and tables. Commits are
atomic: requirements are checked against the table that the new metadata is made from, and it takes that one's place by
a compare-and-swap in the database. No authentication, no views, no scan planning: it is for tests. What catalogs in
production do differently from each other is in `Habits`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, unquote

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchIdentifierError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, StagedTable, StaticTable, Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from lakeward.control.db import Database
from lakeward.testing.loopback_server import LoopbackServer, Reply, Request

SEPARATOR = "\x1f"
"""Between the levels of a namespace, where they stand in a path or a query: the specification's default."""

SWAP_TRIES = 4
"""How often a commit whose requirements still hold is made anew after another server's commit came between."""

_ERRORS: tuple[tuple[type[Exception], int, str], ...] = (
    (NoSuchNamespaceError, 404, "NoSuchNamespaceException"),
    (NoSuchTableError, 404, "NoSuchTableException"),
    (NoSuchIdentifierError, 404, "NoSuchTableException"),
    (NamespaceAlreadyExistsError, 409, "AlreadyExistsException"),
    (TableAlreadyExistsError, 409, "AlreadyExistsException"),
    (NamespaceNotEmptyError, 409, "NamespaceNotEmptyException"),
    (CommitFailedException, 409, "CommitFailedException"),
    (NotImplementedError, 406, "UnsupportedOperationException"),
    # Requests that can't be parsed, and updates that the table's metadata refuses.
    (ValueError, 400, "BadRequestException"),
    (KeyError, 400, "BadRequestException"),
)


@dataclass(frozen=True)
class Habits:
    """What a catalog does of that which the specification leaves open, or which many don't keep to.

    Args:
        nests: namespaces may be in others.
        renames: tables can be renamed.
        registers: `beside`: a metadata file can be had under a second name; `anew`: what comes of it is another table,
            with metadata of its own; `never`: it has no such endpoint.
        deletes: when the drop of a table deletes its files: `asked`, `unless_forbidden` (it was not said that they
            shall stay), or `always`.
        drops_full: a namespace goes together with its tables.
    """

    nests: bool = True
    renames: bool = True
    registers: Literal["beside", "anew", "never"] = "beside"
    deletes: Literal["asked", "unless_forbidden", "always"] = "asked"
    drops_full: bool = False

    def lacks(self, endpoint: _Endpoint) -> bool:
        """Say whether the catalog does not have an endpoint."""
        return (endpoint.answer is _rename_table and not self.renames) or (
            endpoint.answer is _register_table and self.registers == "never"
        )


@dataclass(frozen=True)
class _Call:
    """A request, taken apart: names from the path, the query, and the JSON body."""

    namespace: tuple[str, ...]
    table: str
    query: Mapping[str, str]
    body: Any
    habits: Habits

    @property
    def identifier(self) -> tuple[str, ...]:
        return (*self.namespace, self.table)


class RestCatalogServer(LoopbackServer):
    """Serves a catalog on 127.0.0.1; `url` is the `uri` of `{"type": "rest", "uri": …}`.

    Args:
        database_url: where the catalog keeps its tables: `sqlite:///<file>`, or a Postgres URL.
        warehouse: the directory of tables that are made without a location.
        name: the catalog's name in the database.
        habits: what it does where catalogs differ; can be set anew between two requests.

    Example:
        >>> with RestCatalogServer("sqlite:///catalog.db", "warehouse") as server:
        ...     catalog = load_catalog("mine", type="rest", uri=server.url)
    """

    def __init__(
        self, database_url: str, warehouse: str | Path, name: str = "rest", habits: Habits | None = None
    ) -> None:
        super().__init__()
        self.habits = habits or Habits()
        if database_url.startswith("postgres"):
            with Database(database_url) as database:
                database_url = database.sqlalchemy_url
        self._database_url = database_url
        self._warehouse = Path(warehouse).resolve().as_uri()
        self._name = name
        self._lock = threading.Lock()
        self._backing: SqlCatalog | None = None

    def start(self) -> None:
        """Make the catalog's tables if they are missing, and begin to listen."""
        self._backing = SqlCatalog(self._name, uri=self._database_url, warehouse=self._warehouse)
        super().start()

    def stop(self) -> None:
        """End every thread and database connection."""
        super().stop()
        if self._backing is not None:
            self._backing.close()
            self._backing = None

    @property
    def backing(self) -> SqlCatalog:
        """The catalog itself, past the network: for looking at what is really there."""
        assert self._backing is not None, "it was not started"
        return self._backing

    def answer(self, request: Request) -> Reply:
        """Find the endpoint and answer; errors in the specification's form."""
        path, _, query = request.target.partition("?")
        parts = path.strip("/").split("/")
        for endpoint in ENDPOINTS:
            names = endpoint.match(request.method, parts)
            if names is not None and not self.habits.lacks(endpoint):
                return self._call(endpoint, names, query, request.body)
        return _error(404, "NoSuchEndpointException", f"no endpoint {request.method} {path}")

    def _call(self, endpoint: _Endpoint, names: Mapping[str, str], query: str, body: bytes) -> Reply:
        try:
            call = _Call(
                namespace=_levels(names.get("namespace", "")),
                table=unquote(names.get("table", "")),
                query={name: values[0] for name, values in parse_qs(query).items()},
                body=json.loads(body) if body else {},
                habits=self.habits,
            )
            # One at a time: SQLite has one writer, and the catalog's own checks look before they leap.
            with self._lock:
                return endpoint.answer(self.backing, call)
        except tuple(kind for kind, _, _ in _ERRORS) as error:
            _, status, name = next(each for each in _ERRORS if isinstance(error, each[0]))
            return _error(status, name, str(error))


# Namespaces ----------------------------------------------------------------------------------------------------------


def _config(catalog: SqlCatalog, call: _Call) -> Reply:
    served = [each for each in ENDPOINTS if "{prefix}" in each.path and not call.habits.lacks(each)]
    names = [f"{endpoint.method} {endpoint.path}" for endpoint in served]
    return Reply.of_json(200, {"defaults": {}, "overrides": {}, "endpoints": names})


def _list_namespaces(catalog: SqlCatalog, call: _Call) -> Reply:
    found = catalog.list_namespaces(_levels(call.query.get("parent", "")))
    return Reply.of_json(200, {"namespaces": sorted(found)})


def _create_namespace(catalog: SqlCatalog, call: _Call) -> Reply:
    namespace, properties = _valid(call.body["namespace"]), call.body.get("properties") or {}
    if len(namespace) > 1 and not call.habits.nests:
        raise ValueError("a namespace has one level here")
    # "exists" is the namespace itself or a part of its path, as the backing catalog sees it.
    catalog.create_namespace(namespace, properties)
    return Reply.of_json(200, {"namespace": namespace, "properties": properties})


def _load_namespace(catalog: SqlCatalog, call: _Call) -> Reply:
    properties = catalog.load_namespace_properties(call.namespace)
    return Reply.of_json(200, {"namespace": call.namespace, "properties": properties})


def _namespace_exists(catalog: SqlCatalog, call: _Call) -> Reply:
    return Reply(204 if catalog.namespace_exists(call.namespace) else 404)


def _update_namespace(catalog: SqlCatalog, call: _Call) -> Reply:
    done = catalog.update_namespace_properties(
        call.namespace, set(call.body.get("removals") or ()), call.body.get("updates") or {}
    )
    return Reply.of_json(200, {"removed": done.removed, "updated": done.updated, "missing": done.missing})


def _drop_namespace(catalog: SqlCatalog, call: _Call) -> Reply:
    if children := catalog.list_namespaces(call.namespace):
        raise NamespaceNotEmptyError(f"namespace {'.'.join(call.namespace)} holds {len(children)} namespaces")
    if call.habits.drops_full:
        for table in catalog.list_tables(call.namespace):
            catalog.purge_table(table)
    catalog.drop_namespace(call.namespace)
    return Reply(204)


# Tables --------------------------------------------------------------------------------------------------------------


def _list_tables(catalog: SqlCatalog, call: _Call) -> Reply:
    found = sorted(catalog.list_tables(call.namespace))
    return Reply.of_json(200, {"identifiers": [{"namespace": each[:-1], "name": each[-1]} for each in found]})


def _create_table(catalog: SqlCatalog, call: _Call) -> Reply:
    wanted = CreateTableRequest.model_validate(
        {"location": None, "partition-spec": None, "write-order": None, **call.body}
    )
    identifier = (*call.namespace, *_valid([wanted.name]))
    spec, order = wanted.partition_spec or UNPARTITIONED_PARTITION_SPEC, wanted.write_order or UNSORTED_SORT_ORDER
    if not wanted.stage_create:
        made = catalog.create_table(identifier, wanted.table_schema, wanted.location, spec, order, wanted.properties)
        return _table(made.metadata, made.metadata_location)
    # Staged: its metadata is thought out here and stored by the commit that asserts its creation.
    if not catalog.namespace_exists(call.namespace):
        raise NoSuchNamespaceError(f"namespace {'.'.join(call.namespace)} does not exist")
    if catalog.table_exists(identifier):
        raise TableAlreadyExistsError(f"table {'.'.join(identifier)} already exists")
    location = catalog._resolve_table_location(wanted.location, ".".join(call.namespace), wanted.name)
    staged = new_table_metadata(wanted.table_schema, spec, order, location, wanted.properties)
    return _table(staged, load_location_provider(location, wanted.properties).new_table_metadata_file_location())


def _load_table(catalog: SqlCatalog, call: _Call) -> Reply:
    found = catalog.load_table(call.identifier)
    return _table(found.metadata, found.metadata_location)


def _table_exists(catalog: SqlCatalog, call: _Call) -> Reply:
    return Reply(204 if catalog.table_exists(call.identifier) else 404)


def _commit_table(catalog: SqlCatalog, call: _Call) -> Reply:
    asked = CommitTableRequest.model_validate(
        {**call.body, "identifier": {"namespace": call.namespace, "name": call.table}}
    )
    created = any(requirement.type == "assert-create" for requirement in asked.requirements)
    if not created and not catalog.table_exists(call.identifier):
        raise NoSuchTableError(f"table {'.'.join(call.identifier)} does not exist")
    for tries_left in reversed(range(SWAP_TRIES)):
        before = catalog.load_table(call.identifier).metadata_location if not created else None
        try:
            done = catalog.commit_table(_named(catalog, call.identifier), asked.requirements, asked.updates)
        except CommitFailedException:
            moved = not created and catalog.load_table(call.identifier).metadata_location != before
            if not moved or not tries_left:
                raise
            continue
        body = {"metadata-location": done.metadata_location, "metadata": _plain(done.metadata)}
        return Reply.of_json(200, body)
    raise AssertionError("unreachable")


def _drop_table(catalog: SqlCatalog, call: _Call) -> Reply:
    asked = call.query.get("purgeRequested", "")
    # As in Java's: whatever is not "true" in some case is false.
    deletes = {"asked": asked.lower() == "true", "unless_forbidden": asked.lower() in ("", "true"), "always": True}
    if deletes[call.habits.deletes]:
        catalog.purge_table(call.identifier)
    else:
        catalog.drop_table(call.identifier)
    return Reply(204)


def _rename_table(catalog: SqlCatalog, call: _Call) -> Reply:
    source, destination = (
        (*_valid(call.body[end]["namespace"]), *_valid([call.body[end]["name"]])) for end in ("source", "destination")
    )
    catalog.rename_table(source, destination)
    return Reply(204)


def _register_table(catalog: SqlCatalog, call: _Call) -> Reply:
    identifier = (*call.namespace, *_valid([call.body["name"]]))
    if call.habits.registers == "anew":
        like = StaticTable.from_metadata(call.body["metadata-location"])
        made = catalog.create_table(identifier, like.schema())
        return _table(made.metadata, made.metadata_location)
    made = catalog.register_table(
        identifier,
        call.body["metadata-location"],
        bool(call.body.get("overwrite")),
    )
    return _table(made.metadata, made.metadata_location)


def _take_metrics(catalog: SqlCatalog, call: _Call) -> Reply:
    return Reply(204)


# Endpoints -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Endpoint:
    method: str
    path: str
    answer: Callable[[SqlCatalog, _Call], Reply]

    def match(self, method: str, parts: list[str]) -> dict[str, str] | None:
        """Return the names in the path, still encoded, or None if it is another endpoint."""
        pattern = self.path.replace("/{prefix}", "").strip("/").split("/")
        if method != self.method or len(parts) != len(pattern):
            return None
        names: dict[str, str] = {}
        for want, have in zip(pattern, parts, strict=True):
            if want.startswith("{"):
                names[want.strip("{}")] = have
            elif want != have:
                return None
        return names


_NAMESPACES = "/v1/{prefix}/namespaces"
_NAMESPACE = f"{_NAMESPACES}/{{namespace}}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"

ENDPOINTS: tuple[_Endpoint, ...] = (
    _Endpoint("GET", "/v1/config", _config),
    _Endpoint("GET", _NAMESPACES, _list_namespaces),
    _Endpoint("POST", _NAMESPACES, _create_namespace),
    _Endpoint("GET", _NAMESPACE, _load_namespace),
    _Endpoint("HEAD", _NAMESPACE, _namespace_exists),
    _Endpoint("POST", f"{_NAMESPACE}/properties", _update_namespace),
    _Endpoint("DELETE", _NAMESPACE, _drop_namespace),
    _Endpoint("GET", f"{_NAMESPACE}/tables", _list_tables),
    _Endpoint("POST", f"{_NAMESPACE}/tables", _create_table),
    _Endpoint("POST", f"{_NAMESPACE}/register", _register_table),
    _Endpoint("GET", _TABLE, _load_table),
    _Endpoint("HEAD", _TABLE, _table_exists),
    _Endpoint("POST", _TABLE, _commit_table),
    _Endpoint("DELETE", _TABLE, _drop_table),
    _Endpoint("POST", f"{_TABLE}/metrics", _take_metrics),
    _Endpoint("POST", "/v1/{prefix}/tables/rename", _rename_table),
)
"""What it serves, and what it tells clients that it serves."""


def _levels(encoded: str) -> tuple[str, ...]:
    """Take a namespace from a path or query apart."""
    return tuple(unquote(encoded).split(SEPARATOR)) if encoded else ()


def _valid(names: list[str]) -> tuple[str, ...]:
    """Refuse what the backing catalog, which joins the levels by dots, could not tell apart again."""
    for name in names:
        if not name or "." in name or SEPARATOR in name:
            raise ValueError(f"a name may not be empty or hold a dot: {name!r}")
    if not names:
        raise ValueError("a namespace needs a level")
    return tuple(names)


def _named(catalog: SqlCatalog, identifier: tuple[str, ...]) -> Table:
    """Return what the backing catalog wants for a commit: it reads nothing but the name, and loads the rest itself."""
    metadata = SqlCatalog._empty_table_metadata()
    return StagedTable(identifier, metadata, "", load_file_io({}), catalog)


def _plain(metadata: TableMetadata) -> Any:
    return json.loads(metadata.model_dump_json())


def _table(metadata: TableMetadata, location: str) -> Reply:
    return Reply.of_json(200, {"metadata-location": location, "metadata": _plain(metadata), "config": {}})


def _error(status: int, kind: str, message: str) -> Reply:
    message = message or HTTPStatus(status).phrase
    return Reply.of_json(status, {"error": {"message": message, "type": kind, "code": status}})
