"""Drops namespaces in which nothing is left: never one with tables, views or namespaces in it, and never by force."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import sqlalchemy
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import NamespaceNotEmptyError, NoSuchNamespaceError

from lakeward.storage.arms.iceberg.trouble import catalog_errors


def drop_if_empty(catalog: Catalog, namespace: Sequence[str]) -> str | None:
    """Drop a namespace; return why it is kept, or None if it is gone.

    Its names are compared exactly: in a namespace's name `_` stands for itself.

    Raises:
        CatalogError: the catalog did not answer.
    """
    name = tuple(namespace)
    shown = ".".join(name)
    with catalog_errors(f"namespace {shown}"):
        try:
            if not _exists(catalog, name):
                return None
            inside = sorted({*catalog.list_tables(name), *_views(catalog, name), *_children(catalog, name)})
            if inside:
                first = ".".join(inside[0])
                more = f" and {len(inside) - 1} more" if len(inside) > 1 else ""
                return f"the Iceberg namespace {shown} is not empty: {first}{more} is in it"
            catalog.drop_namespace(name)
        except NoSuchNamespaceError:
            return None
        except NamespaceNotEmptyError as error:
            # A catalog that keeps dropped tables for a while says so, too.
            return f"the catalog keeps the Iceberg namespace {shown}: {error}"
    return None


def _exists(catalog: Catalog, name: tuple[str, ...]) -> bool:
    return name in catalog.list_namespaces(name[:-1])


def _children(catalog: Catalog, name: tuple[str, ...]) -> list[tuple[str, ...]]:
    with contextlib.suppress(NotImplementedError):
        return [each for each in catalog.list_namespaces(name) if len(each) > len(name) and each[: len(name)] == name]
    return []


def _views(catalog: Catalog, name: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the views in a namespace; a catalog that knows none has none."""
    if isinstance(catalog, SqlCatalog):
        # PyIceberg lists the tables of such a catalog alone; other engines keep their views beside them.
        rows = sqlalchemy.select(IcebergTables.table_name).where(
            IcebergTables.catalog_name == catalog.name,
            IcebergTables.table_namespace == Catalog.namespace_to_string(name),
        )
        with catalog.engine.connect() as connection:
            return [(*name, row.table_name) for row in connection.execute(rows)]
    with contextlib.suppress(NotImplementedError):
        return [tuple(each) for each in catalog.list_views(name)]
    return []
