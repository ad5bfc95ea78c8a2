"""Finds tables that have a second name in the catalog: both could be written to, and would split apart."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.exceptions import NoSuchNamespaceError

from lakeward.control.identifiers import TableIdentifier, home
from lakeward.storage.arms.iceberg.tables import Tables, birthplaces
from lakeward.storage.arms.iceberg.trouble import catalog_errors
from lakeward.storage.table import TableRef


def other_names(tables: Tables, refs: Sequence[TableRef]) -> dict[str, list[TableIdentifier]]:
    """Return the names besides the recorded one under which a dataset's own table is in the catalog, by dataset.

    They are looked for where it may have been: its home, the legacy namespace, and both ends of each move of it. A
    table whose move is under way is left out.

    Raises:
        CatalogError: the catalog did not answer.
    """
    moves, listed = tables.moves.names(), _Listed(tables)
    found: dict[str, list[TableIdentifier]] = {}
    for ref in refs:
        candidates = {home(ref.slugs), ref.home, *birthplaces(ref, in_place=False), *moves.get(ref.dataset_id, ())}
        others = sorted(candidates - {ref.identifier}, key=str)
        names = [each for each in others if listed.has(each) and tables.owned(ref, each) is not None]
        if names and len(tables.moves.places(ref.dataset_id)) == 1 and tables.owned(ref, ref.identifier) is not None:
            found[ref.name] = names
    return found


class _Listed:
    """The names of tables in a catalog's namespaces, each of which is asked for once."""

    def __init__(self, tables: Tables) -> None:
        self._catalog = tables.catalog
        self._names: dict[tuple[str, ...], set[str]] = {}

    def has(self, identifier: TableIdentifier) -> bool:
        """Say whether there is a table of that name."""
        namespace = identifier.namespace
        if namespace not in self._names:
            with catalog_errors(f"namespace {'.'.join(namespace)}"):
                try:
                    self._names[namespace] = {parts[-1] for parts in self._catalog.list_tables(namespace)}
                except NoSuchNamespaceError:
                    self._names[namespace] = set()
        return identifier.name in self._names[namespace]
