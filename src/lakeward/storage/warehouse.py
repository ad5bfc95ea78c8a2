"""Where the Iceberg tables of a workspace are: a local directory, or a place in an object store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lakeward.errors import SettingsError

SCHEMES = ("s3", "s3a")
"""Kinds of object stores that a warehouse may be in."""

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
_PART = re.compile(r"[A-Za-z0-9._=+@-]+")


@dataclass(frozen=True)
class ObjectPlace:
    """A place in an object store: everything in a bucket, or below a prefix.

    Args:
        scheme: the kind of store, one of `SCHEMES`.
        bucket: which one.
        prefix: the beginning of the objects' names, without slashes at its ends; may be empty.
    """

    scheme: str
    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        return "/".join(filter(None, (f"{self.scheme}://{self.bucket}", self.prefix)))


Warehouse = Path | ObjectPlace


def warehouse_at(text: str) -> Warehouse:
    """Return the warehouse that a setting names: `s3://bucket/prefix`, a directory, or one as `file://`.

    Raises:
        SettingsError: it is in a store of another kind, or no place in one. The text is not repeated, since somebody
            may have put a key into it.
    """
    scheme, separator, rest = text.partition("://")
    if not separator or scheme == "file":
        return Path(rest if separator else text).expanduser().resolve()
    if scheme not in SCHEMES:
        raise SettingsError(
            f"the warehouse at {scheme}:// is neither a local directory nor in a store that speaks S3",
            next_step="set LAKEWARD_WAREHOUSE to a directory or to s3://bucket/prefix",
            setting="warehouse",
        )
    bucket, _, prefix = rest.partition("/")
    prefix = prefix.rstrip("/")
    parts = prefix.split("/") if prefix else []
    if not _BUCKET.fullmatch(bucket) or not all(_PART.fullmatch(part) and part.strip(".") for part in parts):
        raise SettingsError(
            f"the warehouse at {scheme}:// names no bucket, or a prefix with a part that is not made of letters, "
            "digits and . _ = + @ -",
            safe="nothing was made",
            next_step="set LAKEWARD_WAREHOUSE to s3://bucket/prefix; keys belong to `catalog`, see docs/stores.md",
            setting="warehouse",
        )
    return ObjectPlace(scheme, bucket, prefix)


def table_location(warehouse: Warehouse, slugs: tuple[str, ...], own: str) -> str:
    """Return the address of the place of one table.

    In an object store, catalog and schema are one part of it, `main.sales`: there are no directories, and buckets that
    are made for tables (S3 Tables, SeaweedFS) take a namespace, a table, and nothing between.

    Args:
        warehouse: where it is below.
        slugs: of catalog, schema and dataset; a slug has no dots.
        own: what no other dataset's place ends with.
    """
    *parents, name = slugs
    between = parents if isinstance(warehouse, Path) else [".".join(parents)]
    return "/".join([warehouse_uri(warehouse), *between, f"{name}-{own}"])


def warehouse_uri(warehouse: Warehouse) -> str:
    """Return a warehouse as the address that stands in table metadata."""
    return f"file://{warehouse}" if isinstance(warehouse, Path) else str(warehouse)
