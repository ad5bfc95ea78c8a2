"""`lakeward doctor`: it says what is there, what is broken, and where every setting came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeward.wiring.settings import Settings
from support.commands import Ran, Run


def checks(ran: Ran) -> dict[str, bool]:
    return {check["name"]: check["ok"] for check in ran.document["checks"]}


def test_all_is_well(run: Run) -> None:
    ran = run("doctor", "--output", "json")
    assert ran.code == 0 and ran.document["ok"] is True
    assert all(checks(ran).values()) and {"python", "duckdb", "database", "warehouse"} <= set(checks(ran))
    names = [setting["name"] for setting in ran.document["settings"]]
    operations = {"connections", "migrations", "clock", "disk of home", "diverged datasets", "datasets behind"}
    assert operations | {"stale datasets", "transactions", "workers", "server", "extra telemetry"} <= set(checks(ran))
    assert set(Settings.model_fields) <= {name.partition(".")[0] for name in names}
    text = run("doctor").out
    assert "ok     database: PostgreSQL" in text and "BROKEN" not in text


def test_settings_name_their_source(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "lakeward.toml").write_text("[ledger]\nlease_seconds = 7\nlock_timeout_seconds = 8\n")
    monkeypatch.setenv("LAKEWARD_LEDGER__LOCK_TIMEOUT_SECONDS", "9")
    found = {
        each["name"]: each for each in run("doctor", "--output", "json", "--home", place / "h").document["settings"]
    }
    assert (found["home"]["value"], found["home"]["source"]) == (str(place / "h"), "flag")
    assert (found["ledger.lease_seconds"]["value"], found["ledger.lease_seconds"]["source"]) == (
        "7.0",
        str(place / "lakeward.toml"),
    )
    timeout = found["ledger.lock_timeout_seconds"]
    assert (timeout["value"], timeout["source"]) == ("9.0", "LAKEWARD_LEDGER__LOCK_TIMEOUT_SECONDS")
    assert found["compute.memory_limit"]["source"] == "default"


def test_what_is_broken_is_1(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "file").write_text("")
    monkeypatch.setenv("LAKEWARD_WAREHOUSE", str(place / "file" / "warehouse"))
    ran = run("doctor", "--output", "json")
    assert ran.code == 1 and checks(ran)["warehouse"] is False and ran.document["next_steps"]
    monkeypatch.delenv("LAKEWARD_WAREHOUSE")
    monkeypatch.setenv("LAKEWARD_DATABASE_URL", "postgresql://127.0.0.1:1/db")
    ran = run("doctor", "--output", "json")
    assert ran.code == 1 and checks(ran)["database"] is False
    assert "BROKEN database: Postgres at postgresql://127.0.0.1" in run("doctor").out
    monkeypatch.setenv("LAKEWARD_LEDGER__LEASE_SECONDS", "soon")
    ran = run("doctor", "--output", "json")
    assert ran.code == 1 and checks(ran)["settings"] is False


def test_a_workspace_that_is_not_made_yet(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEWARD_DATABASE_URL")
    ran = run("doctor", "--home", place / "new", "--output", "json")
    assert ran.code == 0 and checks(ran)["workspace"] and checks(ran)["embedded postgres"]
    assert not (place / "new").exists()
    (place / "file").write_text("")
    assert run("doctor", "--home", place / "file" / "new").code == 1
    monkeypatch.delenv("LAKEWARD_HOME")
    assert run("doctor").code == 0
