"""`lakeward source follow`, `logs` and `unfollow`: what they say, how they end, and that they tell no secret."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import sqlalchemy

import lakeward
from cdc.followed import Shop
from lakeward.cli.app import main
from lakeward.control.embedded import EmbeddedPostgres

CANARY = "s3cr3t-canary"
Lakeward = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    cdc_url: str, cdc_warehouse: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Lakeward:
    """Runs `lakeward …` in this process; returns the exit code, and what was printed."""
    monkeypatch.setenv("LAKEWARD_DATABASE_URL", cdc_url)
    monkeypatch.setenv("LAKEWARD_WAREHOUSE", str(cdc_warehouse))

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(arguments))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_commands_follow_show_and_give_up_without_telling_a_secret(
    ws: lakeward.Workspace,
    run: Lakeward,
    logged: psycopg.Connection,
    logged_server: EmbeddedPostgres,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The server trusts its socket, and asks for no password.
    (tmp_path / "url").write_text(logged_server.url.replace("@", f":{CANARY}@", 1), encoding="utf-8")
    shop = Shop(ws, f"of_{name}", logged)
    printed: list[str] = []

    def ran(*arguments: str, code: int = 0) -> str:
        found, out, err = run(*arguments)
        printed.append(out + err)
        assert found == code, (arguments, out, err)
        return out + err

    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY); INSERT INTO {name} VALUES (1)")
    ran("source", "add", shop.name, "--url", f"file:{tmp_path / 'url'}")
    planned = ran("source", "follow", shop.name, "--table", name, "--dry-run")
    assert f"begin to log public.{name} at {shop.name}" in planned and shop.state is None and shop.slots() == []
    assert "1 row copied" in ran("source", "follow", shop.name, "--table", name, "--once")
    assert "Ctrl-C ends it" in ran("source", "follow", shop.name, "--seconds", "0.2")
    shop.run(f"INSERT INTO {name} VALUES (2)")
    assert "1 change in 1 batch" in ran("source", "follow", shop.name, "--once")
    document = json.loads(ran("source", "logs", "--output", "json"))
    [log] = [each for each in document["logs"] if each["source"] == shop.name]
    assert log["warning"] is None and log["log"]["name"] in shop.slots() and log["log"]["lag_bytes"] >= 0
    assert [each["dataset"] for each in log["tables"]] == [f"main.{shop.name}.{name}"]
    shop.run("SELECT pg_logical_emit_message(true, 'other', repeat('x', 10000))")
    monkeypatch.setenv("LAKEWARD_SOURCES__LAG_LIMIT_BYTES", "5000")
    assert f"warning: source {shop.name}: it keeps" in ran("source", "logs")
    assert f"log of {shop.name}" in ran("doctor", code=1)
    monkeypatch.delenv("LAKEWARD_SOURCES__LAG_LIMIT_BYTES")
    assert f"lakeward source unfollow {shop.name}" in ran("source", "remove", shop.name, code=2)
    assert "repeat with --yes" in ran("source", "unfollow", shop.name, code=2)
    (tmp_path / "url").write_text(f"postgresql://x:{CANARY}@localhost:1/none", encoding="utf-8")
    assert "does not answer" in ran("source", "logs")
    ran("source", "unfollow", shop.name, "--yes", code=1)
    (tmp_path / "url").write_text(logged_server.url.replace("@", f":{CANARY}@", 1), encoding="utf-8")
    ran("source", "unfollow", shop.name, "--yes")
    assert shop.slots() == [] and shop.rows(name) == [(1,), (2,)]
    ran("source", "remove", shop.name)
    assert not any(CANARY in text for text in printed)
    for table in ("audit_log", "sources", "followed_sources", "sync_positions", "dataset_transactions"):
        kept = sqlalchemy.text(f"SELECT 1 FROM lakeward.{table} a WHERE a::text LIKE '%{CANARY}%'")
        assert not ws.database.fetch(kept)
