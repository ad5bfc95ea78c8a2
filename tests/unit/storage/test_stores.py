"""The two kinds of store, where they need no store that runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.io.fsspec import FsspecFileIO

from lakeward.errors import SettingsError
from lakeward.storage.arms.iceberg.file_io import StoreIO
from lakeward.storage.arms.iceberg.stores import store_at
from lakeward.storage.arms.iceberg.stores.local_store import LocalStore
from lakeward.storage.arms.iceberg.stores.object_store import ObjectStore

KEYS = {"s3.endpoint": "http://127.0.0.1:9", "s3.access-key-id": "key", "s3.secret-access-key": "canary"}


def test_the_location_decides() -> None:
    io = StoreIO(KEYS)
    assert isinstance(store_at(io, "file:///w/t", "d"), LocalStore) and isinstance(
        store_at(io, "/w/t", "d"), LocalStore
    )
    assert isinstance(store_at(io, "s3://lake/t", "d"), ObjectStore)
    with pytest.raises(SettingsError, match="dataset d: its files at s3://lake/t are opened by FsspecFileIO"):
        store_at(FsspecFileIO(KEYS), "s3://lake/t", "dataset d")
    with pytest.raises(SettingsError, match="s3://lake/x is in another store"):
        LocalStore().duckdb_path("s3://lake/x")


def test_s01_what_lies_below_a_place_and_what_only_begins_like_it(tmp_path: Path) -> None:
    remote = store_at(StoreIO(KEYS), "s3://lake/w", "d")
    for store, root in ((LocalStore(), f"file://{tmp_path}/w"), (remote, "s3://lake/w")):
        assert store.is_below(f"{root}/ord/x", f"{root}/ord") and store.is_below(f"{root}/ord/", root)
        for other in (f"{root}/orders/x", f"{root}/ord", f"{root}/ord/../orders/x", f"{root}/../x", root):
            assert not store.is_below(other, f"{root}/ord")
    assert not remote.is_below("s3://other/w/ord", "s3://lake/w")
    assert remote.resolved("s3a://lake/w/") == remote.resolved("s3://lake/w") == "s3://lake/w"


def test_tables_with_the_same_keys_share_a_client_and_others_do_not() -> None:
    first, second = (StoreIO(dict(KEYS)).fs_by_scheme("s3", "lake") for _ in range(2))
    assert first is second and first.region == "us-east-1"
    assert StoreIO(KEYS | {"s3.session-token": "t"}).fs_by_scheme("s3", "lake") is not first
    assert StoreIO(KEYS | {"client.region": "eu-west-1"}).fs_by_scheme("s3", "lake").region == "eu-west-1"


def test_s02_its_text_has_no_keys() -> None:
    assert "canary" not in repr(StoreIO(KEYS)) + str(StoreIO(KEYS)) + repr(store_at(StoreIO(KEYS), "s3://lake/w", "d"))


def test_links_are_no_files_and_empty_folders_go(tmp_path: Path) -> None:
    store, root = LocalStore(), tmp_path / "t"
    (root / "data" / "empty").mkdir(parents=True)
    (root / "data" / "x").write_bytes(b"12")
    (root / "data" / "link").symlink_to(root / "data" / "x")
    (found,) = store.files(f"file://{root}")
    assert (found.location, found.name, found.bytes) == (str(root / "data" / "x"), "x", 2)
    assert store.clear(str(root)) == 2 and not (root / "data" / "empty").exists()
    assert store.remove(found.location) and not store.remove(found.location) and store.size(found.location) is None
    (root / "data" / "link").unlink()
    assert store.clear(str(root)) == 0 and not root.exists()
