"""What a catalog can do is found out on a scratch table, of which nothing stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakeward.control.catalog_abilities import CatalogAbilities
from lakeward.errors import CatalogError
from lakeward.storage.arms.iceberg import probing, trouble
from lakeward.storage.arms.iceberg.abilities import described
from lakeward.storage.arms.iceberg.catalogs import open_catalog
from lakeward.storage.arms.iceberg.stores.local_store import LocalStore
from lakeward.testing.faulty_proxy import FAULTS, FaultyProxy
from lakeward.testing.rest_catalog import Habits, RestCatalogServer
from support.trouble import Scene

ALL = CatalogAbilities(
    nested_namespaces=True,
    rename=True,
    register_beside=True,
    drop_keeps_files=True,
    branches=True,
    drops_full_namespaces=False,
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestCatalogServer]:
    with RestCatalogServer(f"sqlite:///{tmp_path / 'catalog.db'}", tmp_path / "warehouse") as running:
        running.backing.create_namespace("theirs")
        yield running


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trouble, "PAUSES", (0.001, 0.002, 0.004))


def probe(url: str, root: Path) -> CatalogAbilities:
    catalog = open_catalog("probed", {"type": "rest", "uri": url})
    return probing.Probe(catalog, f"file://{root / 'warehouse'}", LocalStore()).run()


def assert_nothing_is_left(server: RestCatalogServer, root: Path) -> None:
    assert server.backing.list_namespaces() == [("theirs",)]
    assert [path for path in (root / "warehouse").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("habits", "differs"),
    [
        (Habits(), {}),
        (Habits(deletes="unless_forbidden"), {}),
        (Habits(renames=False), {"rename": False}),
        (Habits(registers="never"), {"register_beside": False}),
        # SeaweedFS: another table comes of it, and a drop deletes files whatever it is told.
        (Habits(registers="anew", deletes="always"), {"register_beside": False, "drop_keeps_files": False}),
        (Habits(nests=False, drops_full=True), {"nested_namespaces": False, "drops_full_namespaces": True}),
    ],
    ids=lambda each: "" if isinstance(each, Habits) else "-".join(each) or "all",
)
def test_what_a_catalog_does_is_found_out(
    server: RestCatalogServer, tmp_path: Path, habits: Habits, differs: dict[str, bool]
) -> None:
    server.habits = habits
    assert probe(server.url, tmp_path).to_json() == {**ALL.to_json(), **differs}
    assert_nothing_is_left(server, tmp_path)


@pytest.mark.parametrize("path", [r"/namespaces$", r"/tables$", r"/tables/first$", r"/rename$", r"/register$"])
def test_one_bad_answer_does_not_count(server: RestCatalogServer, tmp_path: Path, path: str) -> None:
    with FaultyProxy(server.url) as proxy:
        injection = proxy.inject(FAULTS["500-after"], path=path)
        assert probe(proxy.url, tmp_path) == ALL and injection.hits
    assert_nothing_is_left(server, tmp_path)


@pytest.mark.parametrize("path", [r"/rename$", r"/register$"])
def test_what_may_pass_is_no_inability(scene: Scene, path: str) -> None:
    receiver = scene.workspace.storage.routing.arm("iceberg").receiver()
    before = scene.server.backing.list_namespaces()
    known = receiver.catalog()
    assert known is not None
    scene.proxy.inject(FAULTS["503-before"], path=path, times=None)
    with pytest.raises(CatalogError):
        receiver.catalog(probe=True)
    assert receiver.catalog() == known
    assert scene.server.backing.list_namespaces() == before


def test_it_is_looked_once(scene: Scene) -> None:
    receiver = scene.workspace.storage.routing.arm("iceberg").receiver()
    found = receiver.catalog(probe=True)
    asked = len(scene.proxy.seen)
    assert receiver.catalog() == found and len(scene.proxy.seen) == asked
    assert found is not None and found.abilities == ALL and scene.proxy.url in found.name


def test_an_address_is_told_without_what_is_secret_in_it(server: RestCatalogServer) -> None:
    secret = server.url.replace("http://", "http://canary:canary@")
    catalog = open_catalog("mine", {"type": "rest", "uri": secret, "token": "canary"})
    assert described(catalog) == f"mine (rest, {server.url})"
    # What one warehouse was seen to do says nothing of another one in the same catalog.
    catalog.properties["warehouse"] = "s3://canary:canary@bucket/one?canary"
    assert described(catalog) == f"mine (rest, {server.url}, s3://bucket/one)"
    catalog.properties["warehouse"] = "two"
    assert described(catalog) == f"mine (rest, {server.url}, two)"
