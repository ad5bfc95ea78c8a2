"""What an Iceberg catalog can do, as it was found by trying: one row for each catalog, by its name and address."""

from __future__ import annotations

import json
from dataclasses import dataclass

from lakeward.control.db import Database, Queries

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class CatalogAbilities:
    """What was found on a scratch table.

    Args:
        nested_namespaces: a namespace can be in another one.
        rename: a table can get another name, and keeps its files, its uuid and its metadata file.
        register_beside: a table can be had under a second name, by the same metadata file.
        drop_keeps_files: a table can be dropped so that its files stay.
        branches: snapshots can be committed to a branch while `main` stays.
        drops_full_namespaces: a namespace that is dropped takes its tables along.
    """

    nested_namespaces: bool
    rename: bool
    register_beside: bool
    drop_keeps_files: bool
    branches: bool
    drops_full_namespaces: bool

    @property
    def ways(self) -> tuple[str, ...]:
        """How a table can be moved to another name, the best way first."""
        beside = self.register_beside and self.drop_keeps_files
        return tuple(way for way, can in (("rename", self.rename), ("register", beside)) if can)

    @property
    def lacks(self) -> str:
        """Say in words what keeps tables from being moved; only if there is no way."""
        second = (
            "register a table under a second name" if not self.register_beside else "drop a name and keep the files"
        )
        return f"the catalog can neither rename tables nor {second}"

    def in_words(self) -> str:
        """Return all of it for people."""
        pairs = (
            (self.nested_namespaces, "nested namespaces"),
            (self.rename, "rename that keeps a table as it is"),
            (self.register_beside, "a second name for a table"),
            (self.drop_keeps_files, "drop that keeps files"),
            (self.branches, "branches"),
        )
        has = [words for can, words in pairs if can]
        lacks = [words for can, words in pairs if not can]
        parts = [f"has {', '.join(has)}" if has else "", f"lacks {', '.join(lacks)}" if lacks else ""]
        parts.append("drops namespaces with their tables" if self.drops_full_namespaces else "keeps full namespaces")
        parts.append(f"tables are moved by {self.ways[0]}" if self.ways else "tables can't be moved")
        return "; ".join(filter(None, parts))

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it and as Postgres keeps it."""
        return dict(vars(self))


@dataclass(frozen=True)
class KnownCatalog:
    """A catalog by its name and address, without anything secret; `abilities` None: nobody has looked yet."""

    name: str
    abilities: CatalogAbilities | None

    def in_words(self) -> str:
        """Return what is known of it for people."""
        found = self.abilities.in_words() if self.abilities is not None else "nobody has looked yet what it can do"
        return f"{self.name}: {found}"


class KnownCatalogs:
    """The abilities of the catalogs that the workspace has had."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, catalog: str) -> CatalogAbilities | None:
        """Return what was found, or None if nobody has looked.

        Args:
            catalog: its name and address, without anything secret.
        """
        rows = self._database.fetch(QUERIES["of"], {"catalog": catalog})
        return CatalogAbilities(**rows[0]["abilities"]) if rows else None

    def keep(self, catalog: str, found: CatalogAbilities) -> None:
        """Remember what was found, in place of what was found before."""
        self._database.fetch(QUERIES["keep"], {"catalog": catalog, "abilities": json.dumps(found.to_json())})
