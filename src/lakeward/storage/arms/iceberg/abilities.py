"""What the workspace's catalog can do: found out once, and remembered by the catalog's name and address."""

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
    """Return a catalog's name, kind and address; of the address only host and path, since the rest can hold secrets."""
    properties = catalog.properties
    kind = properties.get("type") or ("sql" if isinstance(catalog, SqlCatalog) else type(catalog).__name__)
    address = urlsplit(properties.get("uri", ""))
    host = (address.hostname or "") + (f":{address.port}" if address.port else "")
    where = f"{address.scheme}://{host}{address.path}" if address.scheme else "of its own"
    return f"{catalog.name} ({kind}, {where})"
