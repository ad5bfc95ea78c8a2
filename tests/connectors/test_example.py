"""The connector of `docs/connectors.md` as it stands there: found by its entry point, and held to what all are."""

from __future__ import annotations

import importlib
import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import SettingsError, UnknownObject, ValueRefused
from lakeward.sources.known_connectors import connector_named, known_connectors
from lakeward.testing.connector_conformance import ConnectorConformance, ConnectorScene, Row
from lakeward.wiring.sync_plan import SyncRequest
from support.databases import WORKSPACE, made_database

PAGE = Path(__file__).parents[2] / "docs" / "connectors.md"
MODULE = "lakeward_sqlite"


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The page's connector, as a package that stands beside Lakeward."""
    [code] = re.findall(r"<!-- example: .*?-->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    [entry] = re.findall(r'^(sqlite = "(?:.*?)")$', PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    site = tmp_path_factory.mktemp("site")
    (site / f"{MODULE}.py").write_text(code, encoding="utf-8")
    about = site / f"{MODULE}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {MODULE}\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[lakeward.connectors]\n" + entry.replace('"', "") + "\n", encoding="utf-8")
    sys.path.insert(0, str(site))
    importlib.invalidate_caches()
    yield site
    sys.path.remove(str(site))
    sys.modules.pop(MODULE, None)


class SqliteScene(ConnectorScene):
    """A database file in a folder."""

    def __init__(self, folder: Path) -> None:
        self.connector = connector_named("sqlite")  # type: ignore[misc]
        self.file = folder / "it's a shop?.db"
        self._folder = folder
        with closing(sqlite3.connect(self.file)) as connection:
            # So that whoever reads holds nobody up who writes.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER, note TEXT)")

    def options(self) -> Mapping[str, Any]:
        return {"path": str(self.file)}

    def unreachable(self) -> Mapping[str, Any]:
        return {"path": str(self._folder / "none.db")}

    @property
    def table(self) -> str:
        return "main.orders"

    def write(self, rows: Sequence[Row]) -> None:
        with closing(sqlite3.connect(self.file)) as connection, connection:
            connection.executemany("INSERT INTO orders (id, note) VALUES (?, ?)", rows)


class TestSqlite(ConnectorConformance):
    """The suite."""

    @pytest.fixture
    def scene(self, tmp_path: Path) -> ConnectorScene:
        """A fresh source."""
        return SqliteScene(tmp_path)


@pytest.fixture(scope="module")
def ws(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    """A workspace."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    with lakeward.open(database_url=made_database(postgres, WORKSPACE), warehouse=warehouse) as workspace:
        yield workspace


def test_it_syncs_as_any_other_does(ws: lakeward.Workspace, tmp_path: Path) -> None:
    scene = SqliteScene(tmp_path)
    scene.write([(1, "a"), (2, "b")])
    ws.sources.add("shop", "sqlite", scene.options())
    [first] = ws.sources.sync(SyncRequest("shop", mode="append"))
    scene.write([(3, "c")])
    [second] = ws.sources.sync(SyncRequest("shop", mode="append"))
    assert (first.rows_read, second.rows_read) == (2, 1)
    assert ws.dataset("main.shop.orders").to_arrow()["note"].to_pylist() == ["a", "b", "c"]
    scene.write([("four", "d")])  # type: ignore[list-item]
    with pytest.raises(ValueRefused, match="column 'id'"):
        ws.sources.sync(SyncRequest("shop", mode="append"))
    assert ws.dataset("main.shop.orders").to_arrow().num_rows == 3


def test_the_small_one_syncs_a_folder(ws: lakeward.Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = re.findall(r"<!-- small: .*?-->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(code.splitlines()) <= 50
    module: dict[str, Any] = {"__name__": "small_connector"}
    exec(compile(code, "small_connector.py", "exec"), module)
    monkeypatch.setattr("lakeward.wiring.sources.connector_named", lambda _: module["Documents"])
    for name, text in (("a.json", '{"n": 1.10}'), ("b.json", "[]")):
        (tmp_path / name).write_text(text)
    ws.sources.add("small", "documents", {"path": str(tmp_path)}, ["documents"])
    [synced] = ws.sources.sync(SyncRequest("small"))
    (tmp_path / "a.json").unlink()
    [again] = ws.sources.sync(SyncRequest("small"))
    assert (synced.rows_read, again.written.rows_deleted, again.written.rows_unchanged) == (2, 1, 1)
    assert ws.dataset("main.small.documents").to_arrow().to_pylist() == [{"name": "b.json", "document": "[]"}]
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(ValueRefused, match="is not JSON"):
        ws.sources.sync(SyncRequest("small"))


def test_a_type_that_no_package_has_is_named_with_those_that_there_are(installed: Path) -> None:
    with pytest.raises(UnknownObject, match="there are files, postgres, sqlite"):
        connector_named("sqlight")
    assert "sqlite" not in known_connectors()
    (installed / f"{MODULE}-1.dist-info" / "entry_points.txt").open("a", encoding="utf-8").write(
        "gone = lakeward_gone:Gone\nother = lakeward_sqlite:SqliteOptions\n"
    )
    for name, text in (("gone", "can't be loaded"), ("other", "is no Connector of that name")):
        with pytest.raises(SettingsError, match=f"which {MODULE} brings as .* {text}"):
            connector_named(name)


BREAKS = {
    "test_new_rows_come_once_without_a_key_or_are_refused": ("rowid > ?", "rowid >= ?"),
    "test_new_rows_come_once_with_a_key_if_the_table_is_followed": ('{"rowid": last}', '{"rowid": last + 1}'),
    "test_a_full_read_has_every_row_in_the_types_that_are_asked_for": ("WHERE ? IS NOT NULL", "WHERE id > ?"),
    "test_batches_are_bounded": ("fetchmany(10_000)", "fetchall()"),
    "test_nothing_is_opened_that_is_not_allowed": (
        "allowed.path(allowed.resolved(options.path))",
        "Path(options.path)",
    ),
    "test_a_snapshot_is_one_moment_for_each_of_its_readers": ('connection.execute("BEGIN")', "pass"),
    "test_it_can_be_found_and_its_options_are_documented": (
        'Field(description="The database file, or a reference to its path.")',
        "Field()",
    ),
    "test_errors_are_named_and_hold_no_secret": ("except sqlite3.Error as error", "except KeyError as error"),
}
"""A fault that somebody could make in the page's connector, by the test that finds it."""


@pytest.mark.parametrize("test", BREAKS)
def test_the_suite_finds_a_connector_that_breaks_a_promise(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str
) -> None:
    code = (installed / f"{MODULE}.py").read_text(encoding="utf-8")
    right, wrong = BREAKS[test]
    assert code.count(right) == 1
    module: dict[str, Any] = {"__name__": "broken_connector", "Path": Path}
    exec(compile(code.replace(right, wrong), "broken_connector.py", "exec"), module)
    broken = SqliteScene(tmp_path)
    broken.connector = module["SqliteSource"]  # type: ignore[misc]
    with pytest.raises((AssertionError, sqlite3.Error, TypeError)):
        getattr(ConnectorConformance(), test)(broken)
