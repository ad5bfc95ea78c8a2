"""Finds out what a catalog can do, by trying it on a scratch table in a namespace of its own, which is gone afterwards.

What catalogs say of themselves is not enough: some answer a registration with another table, and some delete the files
of a table that is dropped, whatever they were told. A failure that could pass is no answer: then nothing is known, and
the next one who wants to know looks again.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import uuid
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    BadRequestError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
)
from pyiceberg.table import Table

from lakeward.control.catalog_abilities import CatalogAbilities
from lakeward.errors import CatalogError
from lakeward.storage.arms.iceberg.stores import Store
from lakeward.storage.arms.iceberg.stores.local_store import is_local, local_path
from lakeward.storage.arms.iceberg.trouble import catalog_errors, settle

_ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})
_PROPERTIES = {"format-version": "2", "gc.enabled": "false"}
_WHAT = "the probe of the Iceberg catalog"

log = logging.getLogger("lakeward.iceberg")


class _Different(Exception):
    """The catalog did something else than it was asked for."""


class Probe:
    """One look at a catalog. Touches nothing but what it makes.

    Args:
        catalog: which one.
        warehouse: the address below which the scratch table's files are put.
        store: the store of that place.

    Example:
        >>> Probe(catalog, "file:///warehouse", store).run().rename  # doctest: +SKIP
        True
    """

    def __init__(self, catalog: Catalog, warehouse: str, store: Store) -> None:
        self._catalog = catalog
        self._store = store
        self._namespace = (f"lakeward_probe_{uuid.uuid4().hex[:12]}",)
        self._inner = (*self._namespace, "inner")
        # Two levels, as some catalogs want it of every table.
        self._root = f"{warehouse}/{self._namespace[0]}"
        self._files: set[str] = set()

    def run(self) -> CatalogAbilities:
        """Try everything in turn; what a trial may break comes after what needs it whole.

        Raises:
            CatalogError: the catalog failed in a way that may pass; nothing is known.
        """
        with catalog_errors(_WHAT, ValueError):
            try:
                self._make()
                return CatalogAbilities(
                    nested_namespaces=self._can(self._nest),
                    branches=self._can(self._branch),
                    rename=self._can(self._rename),
                    register_beside=self._can(self._register),
                    drop_keeps_files=self._can(self._drop),
                    drops_full_namespaces=self._can(self._drop_full),
                )
            finally:
                self._clean()

    def _can(self, trial: Callable[[], None]) -> bool:
        """Say whether a trial does what it should; False: the catalog refuses it, or does something else."""
        try:
            settle(_WHAT, trial)
        except Exception as error:
            cause = error.__cause__ or error
            if isinstance(cause, _Different) or _is_refusal(cause):
                log.info("the Iceberg catalog can't %s: %s", trial.__name__.strip("_"), type(cause).__name__)
                return False
            raise
        return True

    # The trials: each can be repeated, since its answer may be lost. -------------------------------------------------

    def _make(self) -> None:
        def attempt() -> None:
            self._catalog.create_namespace_if_not_exists(self._namespace)
            if self._found("first") is None:
                self._catalog.create_table(
                    self._table("first"), _ROWS.schema, location=f"{self._root}/scratch", properties=_PROPERTIES
                )
            table = self._loaded("first")
            if table.current_snapshot() is None:
                table.append(_ROWS)
                self._loaded("first")

        settle(_WHAT, attempt)

    def _nest(self) -> None:
        self._catalog.create_namespace_if_not_exists(self._inner)
        if not self._catalog.namespace_exists(self._inner):
            raise _Different

    def _branch(self) -> None:
        table = self._loaded("first")
        head = table.current_snapshot()
        assert head is not None, "rows were appended"
        if "probe" not in table.metadata.refs:
            table.manage_snapshots().create_branch(head.snapshot_id, "probe").commit()
        if "probe" not in self._loaded("first").metadata.refs:
            raise _Different

    def _rename(self) -> None:
        before = self._found("first")
        if before is not None:
            self._before = before
            with contextlib.suppress(NoSuchTableError):
                self._catalog.rename_table(self._table("first"), self._table("second"))
        if self._found("first") is not None:
            raise _Different
        self._check_same(self._before, self._loaded("second"))

    def _register(self) -> None:
        first = self._one()
        beside = self._found("beside")
        if beside is None:
            self._catalog.register_table(self._table("beside"), first.metadata_location)
            beside = self._loaded("beside")
        self._check_same(first, beside)
        self._check_same(first, self._one())

    def _drop(self) -> None:
        """Drop one of two names, or the only one, and look whether the rows are there."""
        dropped = self._found("beside") or self._found("second") or self._found("first")
        if dropped is not None:
            self._dropped = dropped
            with contextlib.suppress(NoSuchTableError):
                self._catalog.drop_table(dropped.name())
        if self._found(self._dropped.name()[-1]) is not None:
            raise _Different
        for file in self._files_of(self._dropped):
            if self._store.modified(file) is None:
                raise _Different

    def _drop_full(self) -> None:
        """Drop the namespace while it has a table. The catalog refuses that, as it should, or the namespace is gone."""
        if not self._catalog.namespace_exists(self._namespace):
            return
        with contextlib.suppress(NoSuchNamespaceError):
            self._catalog.drop_namespace(self._inner)
        if self._found("last") is None:
            self._catalog.create_table(self._table("last"), _ROWS.schema, location=f"{self._root}/last")
            self._loaded("last")
        try:
            self._catalog.drop_namespace(self._namespace)
        except NamespaceNotEmptyError:
            raise _Different from None
        if self._catalog.namespace_exists(self._namespace):
            raise _Different

    # What there is ---------------------------------------------------------------------------------------------------

    def _table(self, name: str) -> tuple[str, ...]:
        return (*self._namespace, name)

    def _found(self, name: str) -> Table | None:
        try:
            found = self._catalog.load_table(self._table(name))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        # Whatever a catalog makes of our names, nothing is deleted whose path has not our random part in it.
        self._files.update(file for file in self._files_of(found) if self._namespace[0] in file)
        return found

    def _loaded(self, name: str) -> Table:
        found = self._found(name)
        if found is None:
            raise _Different
        return found

    def _one(self) -> Table:
        """Return the scratch table, under its second name if it could be renamed."""
        return self._found("second") or self._loaded("first")

    @staticmethod
    def _files_of(table: Table) -> set[str]:
        """Return all files that a table names, and its metadata files."""
        metadata = table.metadata
        files = {table.metadata_location, *(each.metadata_file for each in metadata.metadata_log)}
        with contextlib.suppress(OSError):
            for snapshot in metadata.snapshots:
                files.add(snapshot.manifest_list)
                for manifest in snapshot.manifests(table.io):
                    entries = manifest.fetch_manifest_entry(table.io)
                    files |= {manifest.manifest_path, *(entry.data_file.file_path for entry in entries)}
        return files

    @staticmethod
    def _check_same(before: Table, after: Table) -> None:
        """Refuse a table that is not the very same one, or can't be read."""
        same = (
            after.metadata.table_uuid == before.metadata.table_uuid
            and after.metadata_location == before.metadata_location
        )
        try:
            if not same or after.scan().to_arrow()["id"].to_pylist() != _ROWS["id"].to_pylist():
                raise _Different
        except OSError as error:
            raise _Different from error

    # Afterwards ------------------------------------------------------------------------------------------------------

    def _clean(self) -> None:
        """Remove everything, whatever happened. What can't be removed is named, and keeps nobody from going on."""
        left = [step for step, act in self._cleaning() if not _done(act)]
        if left:
            log.warning("the probe's namespace %s stays in the Iceberg catalog: %s", self._namespace[0], left[0])

    def _cleaning(self) -> Iterator[tuple[str, Callable[[], object]]]:
        for name in ("first", "second", "beside", "last"):
            yield f"table {name}", partial(self._forget, self._table(name))
        for namespace in (self._inner, self._namespace):
            yield f"namespace {'.'.join(namespace)}", partial(self._end, namespace)
        for file in sorted(self._files):
            yield file, partial(self._store.remove, file)
        if is_local(self._root):
            yield self._root, partial(shutil.rmtree, local_path(self._root))

    def _forget(self, identifier: tuple[str, ...]) -> None:
        self._found(identifier[-1])
        with contextlib.suppress(NoSuchTableError, NoSuchNamespaceError):
            self._catalog.drop_table(identifier)

    def _end(self, namespace: tuple[str, ...]) -> None:
        with contextlib.suppress(NoSuchNamespaceError):
            if self._catalog.namespace_exists(namespace):
                self._catalog.drop_namespace(namespace)


def _done(act: Callable[[], object]) -> bool:
    """Do it, several times if need be; False: the catalog or the store does not let us."""

    def attempt() -> None:
        with contextlib.suppress(FileNotFoundError):
            act()

    try:
        settle(_WHAT, attempt)
    except CatalogError:
        return False
    return True


def _is_refusal(error: BaseException) -> bool:
    """Say whether the catalog has understood, and does not do it. What it fails at, or does not allow us, may pass."""
    return isinstance(error, NotImplementedError | BadRequestError) or type(error) is RESTError
