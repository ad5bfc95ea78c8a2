"""S01, S02: what may be reached is checked when a source is added and whenever it is; no secret is left anywhere."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import LakewardError, NotAllowed
from lakeward.sources.allowed import Allowed
from lakeward.sources.connectors.postgres import PostgresOptions
from lakeward.sources.known_change_logs import change_log_of
from lakeward.wiring.sync_plan import SyncRequest
from sync.conftest import SOURCE

CANARY = "c4nary/p@ss w%rd"
FORMS = ("c4nary", "p@ss w%rd", "p%40ss", "p@ss+w")


@pytest.fixture
def shared(
    ws: lakeward.Workspace, sync_url: str, sync_warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[lakeward.Workspace]:
    """The workspace as it is for people who share it: one folder, one host, and references of that folder."""
    for name in ("paths", "references"):
        prefix = "file:" if name == "references" else ""
        monkeypatch.setenv(f"LAKEWARD_SOURCES__ALLOWED_{name.upper()}", f"{prefix}{tmp_path}/in")
    monkeypatch.setenv("LAKEWARD_SOURCES__ALLOWED_HOSTS", "db.example.com:5432, 10.0.0.0/8")
    (tmp_path / "in").mkdir()
    with lakeward.open(database_url=sync_url, warehouse=sync_warehouse, recover=False) as workspace:
        yield workspace


def test_what_is_not_allowed_is_neither_added_nor_asked(
    ws: lakeward.Workspace, shared: lakeward.Workspace, name: str, tmp_path: Path, other_server: EmbeddedPostgres
) -> None:
    (tmp_path / "in" / "url").write_text(other_server.url, encoding="utf-8")
    (tmp_path / "in" / "local").write_text(f"postgresql://me:{'c4nary'}@127.0.0.1/x", encoding="utf-8")
    (tmp_path / "out.csv").write_text("id\n1\n", encoding="utf-8")
    refused: list[tuple[str, dict[str, Any]]] = [
        ("postgres", {"url": "env:PGURL"}),
        ("postgres", {"url": f"file:{tmp_path}/url"}),
        ("postgres", {"url": f"file:{tmp_path}/in/url"}),
        ("postgres", {"url": f"file:{tmp_path}/in/local"}),
        ("postgres", {"url": "postgresql://me@localhost/x"}),
        ("files", {"path": [f"{tmp_path}/*.csv"]}),
        ("files", {"path": ["/etc/passwd"]}),
        ("files", {"path": [f"{tmp_path}/in/../out.csv"]}),
        ("files", {"path": ["s3://other/x.csv"]}),
    ]
    for type_, options in refused:
        with pytest.raises(NotAllowed) as raised:
            shared.sources.add(name, type_, options)
        assert "c4nary" not in str(raised.value)
    assert name not in [each.name for each in shared.sources.all()]
    # A source that was added while more was allowed is refused at its next use, in whatever way.
    request = SyncRequest(SOURCE)
    for ask in (lambda: shared.sources.tables(SOURCE), lambda: shared.sources.plan_sync(request)):
        with pytest.raises(NotAllowed):
            ask()
    with pytest.raises(NotAllowed):
        shared.sources.sync(request)
    allowed = Allowed.declare(["db.example.com"], [], [])
    with pytest.raises(NotAllowed):
        change_log_of("postgres").made(PostgresOptions(url=other_server.url), allowed, "label")


def test_s01_a_link_is_followed_before_it_is_judged(shared: lakeward.Workspace, name: str, tmp_path: Path) -> None:
    inside, outside = tmp_path / "in" / f"{name}.csv", tmp_path / "out.csv"
    for file in (inside, outside):
        file.write_text("id\n1\n", encoding="utf-8")
    shared.sources.add(name, "files", {"path": [f"{tmp_path}/in/{name}.csv"]})
    [synced] = shared.sources.sync(SyncRequest(name))
    assert synced.rows_read == 1
    inside.unlink()
    inside.symlink_to(outside)
    with pytest.raises(NotAllowed):
        shared.sources.sync(SyncRequest(name))
    for path in (inside, outside, tmp_path / "in" / ".." / "out.csv"):
        with pytest.raises(NotAllowed):
            shared.import_file(f"main.imported.{name}", path)
    shared.sources.remove(name)


def test_s02_a_secret_of_a_url_is_left_nowhere(
    ws: lakeward.Workspace,
    shop: psycopg.Connection,
    other_server: EmbeddedPostgres,
    sync_warehouse: Path,
    name: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The server takes any password, and each step that fails after it was told may repeat it."""
    shop.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, at timestamptz)")
    shop.execute(f"INSERT INTO {name} VALUES (1, now())")
    reference = tmp_path / "url"
    reference.write_text(other_server.url.replace("?", "?password=c4nary%2Fp%40ss%20w%25rd&", 1), encoding="utf-8")
    told: list[str] = []
    with caplog.at_level(logging.DEBUG):
        ws.sources.add(f"{name}_source", "postgres", {"url": f"file:{reference}"})
        ws.sources.sync(SyncRequest(f"{name}_source", [name], arm="iceberg"))
        shop.execute(f"INSERT INTO {name} VALUES (2, 'infinity')")
        for broken in (
            None,
            "postgresql://me:c4nary%2Fp%40ss%20w%25rd@127.0.0.1:1/x",
            "postgresql://me:c4nary/p@ss@h/x",
        ):
            if broken is not None:
                reference.write_text(broken, encoding="utf-8")
            with pytest.raises(LakewardError) as raised:
                ws.sources.sync(SyncRequest(f"{name}_source", [name]))
            told += [str(raised.value), str(raised.value.to_json()), repr(raised.value.__cause__)]
    told += [record.getMessage() for record in caplog.records]
    told += [repr(each) for each in ws.sources.all()] + [repr(each) for each in ws.transactions()]
    with psycopg.connect(ws.database.libpq_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'lakeward'").fetchall()
        for (table,) in tables:
            rows = connection.execute(sql.SQL("SELECT t::text FROM lakeward.{} t").format(sql.Identifier(table)))
            told += [text for (text,) in rows]
    told += [file.read_bytes().decode("latin-1") for file in sync_warehouse.rglob("*") if file.is_file()]
    assert len(told) > 50
    assert not [text[:200] for text in told for form in FORMS if form in text]
    ws.sources.remove(f"{name}_source")
