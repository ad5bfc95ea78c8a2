"""Where a dataset's Iceberg table is in its catalog. `resolve` is the one answer; nothing is derived when reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEGACY_NAMESPACE = ("datasets",)
"""Where a dataset's Iceberg table is if no namespace is recorded."""


@dataclass(frozen=True)
class TableIdentifier:
    """A table's name in its catalog: the levels of its namespace, which are never joined, and its own name."""

    namespace: tuple[str, ...]
    name: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The levels and the name, as PyIceberg takes them."""
        return (*self.namespace, self.name)

    def __str__(self) -> str:
        """Return it for people, levels joined by dots."""
        return ".".join(self.parts)

    @classmethod
    def of(cls, parts: Sequence[str]) -> TableIdentifier:
        """Make one of the levels and the name."""
        return cls(tuple(parts[:-1]), parts[-1])


def resolve(namespace: Sequence[str] | None, name: str | None, slug: str) -> TableIdentifier:
    """Return where a dataset's table is.

    Args:
        namespace: what `datasets.iceberg_namespace` says; None: the legacy namespace.
        name: what `datasets.iceberg_table` says; None: the dataset's slug.
        slug: of the dataset.
    """
    return TableIdentifier(tuple(namespace) if namespace is not None else LEGACY_NAMESPACE, name or slug)


def recorded(identifier: TableIdentifier | None) -> dict[str, object]:
    """Return the parameters by which statements record an identifier; None: nothing is known of it.

    The name is left out by them where it is the dataset's slug.
    """
    if identifier is None:
        return {"iceberg_namespace": None, "iceberg_table": None}
    legacy = identifier.namespace == LEGACY_NAMESPACE
    return {"iceberg_namespace": None if legacy else list(identifier.namespace), "iceberg_table": identifier.name}


def home(slugs: tuple[str, str, str]) -> TableIdentifier:
    """Return where a dataset's table belongs if nothing was declared: under the slugs of its tree, by its own."""
    return TableIdentifier(slugs[:2], slugs[2])


def home_of(slugs: tuple[str, str, str], declared: TableIdentifier | None) -> TableIdentifier:
    """Return where a dataset's table belongs, by its slugs or as it was declared."""
    return declared or home(slugs)


def declared(identifier: TableIdentifier | None) -> dict[str, object]:
    """Return the parameters by which statements record where a table was declared to belong; None: nothing was."""
    if identifier is None:
        return {"home_namespace": None, "home_table": None}
    return {"home_namespace": list(identifier.namespace), "home_table": identifier.name}
