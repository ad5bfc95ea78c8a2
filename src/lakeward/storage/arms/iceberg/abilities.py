"""What the workspace's catalog can do: found out once, and remembered by the catalog's name, address and warehouse."""

from __future__ import annotations

from urllib.parse import urlsplit

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

from lakeward.control.catalog_abilities import CatalogAbilities, KnownCatalogs
from lakeward.storage.arms.iceberg.probing import Probe
from lakeward.storage.arms.iceberg.tables import Tables


class Abilities:
    """Asks Postgres first, and then the catalog.

    Args:
        tables: know the catalog, and where files go.
        known: what was found before.
    """

    def __init__(self, tables: Tables, known: KnownCatalogs) -> None:
        self._tables = tables
        self._known = known

    @property
    def catalog(self) -> str:
        """The catalog's name and address, without what is secret in it."""
        return described(self._tables.catalog)

    def known(self) -> CatalogAbilities | None:
        """Return what was found before; None: nobody has looked at this catalog under this address."""
        return self._known.of(self.catalog)

    def get(self) -> CatalogAbilities:
        """Return what was found before, or look.

        Raises:
            CatalogError: the catalog failed in a way that may pass.
        """
        return self.known() or self.probe()

    def probe(self) -> CatalogAbilities:
        """Look on a scratch table, and remember what was found.

        Raises:
            CatalogError: the catalog failed in a way that may pass; what was known before stays.
        """
        store = self._tables.store(self._tables.warehouse, "the warehouse")
        found = Probe(self._tables.catalog, self._tables.warehouse, store).run()
        self._known.keep(self.catalog, found)
        return found


def described(catalog: Catalog) -> str:
    """Return a catalog's name, kind, address and warehouse, without anything secret.

    Of addresses only host and path are told, since the rest can hold secrets. The warehouse belongs to it: some
    catalogs under one address delete the files of a table that is dropped in one warehouse, and keep them in another.
    """
    properties, ours = catalog.properties, isinstance(catalog, SqlCatalog)
    kind = properties.get("type") or ("sql" if ours else type(catalog).__name__)
    address, warehouse = properties.get("uri", ""), "" if ours else properties.get("warehouse", "")
    told = (kind, _shown(address) or "of its own", _shown(warehouse) if "://" in warehouse else warehouse)
    return f"{catalog.name} ({', '.join(filter(None, told))})"


def _shown(address: str) -> str:
    parts = urlsplit(address)
    host = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
    return f"{parts.scheme}://{host}{parts.path}" if parts.scheme else ""
