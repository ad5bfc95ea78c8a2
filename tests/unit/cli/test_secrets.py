"""S02: a password appears nowhere, whatever the command, the error or the format."""

from __future__ import annotations

import itertools
from pathlib import Path
from urllib.parse import quote

import pytest
import sqlalchemy

import lakeward
from lakeward.redaction import Redactor
from support.commands import Run

CANARY = "p@ss/w:rd%20canary"
FORMS = {CANARY, quote(CANARY), quote(CANARY, safe=""), "canary", repr(CANARY)[1:-1]}

COMMANDS: list[list[str]] = [
    ["status"],
    ["doctor"],
    ["dataset", "list"],
    ["dataset", "create", "a.b.c", "--columns", "id:long"],
    ["dataset", "create", "a.b.c", "--columns", "id:long", "--dry-run"],
    ["dataset", "import", "a.b.c", "t.csv"],
    ["plan"],
    ["apply"],
    ["build"],
    ["verify", "a.b.c"],
    ["ledger", "list"],
    ["ledger", "recover"],
]


def clean(*texts: str) -> None:
    for form, text in itertools.product(FORMS, texts):
        assert form not in text


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{quote(CANARY, safe='')}@127.0.0.1:1/db",
        f"postgresql://me:{CANARY}@127.0.0.1:1/db",
        f"postgresql://127.0.0.1:1/db?user=me&password={quote(CANARY, safe='')}",
        f"mysql://me:{quote(CANARY, safe='')}@127.0.0.1/db",
        "canary",
    ],
    ids=["encoded", "bare", "parameter", "other-database", "nonsense"],
)
def test_s02_no_command_prints_a_password(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    (place / "t.csv").write_text("id\n1\n")
    (place / "lakeward.toml").write_text("")
    monkeypatch.setenv("LAKEWARD_DATABASE_URL", url)
    for command, extra in itertools.product(COMMANDS, ([], ["-vv"], ["--output", "json", "-v"])):
        ran = run(*command, *extra)
        assert ran.code != 0
        clean(ran.out, ran.err)


def test_s02_a_wrong_password(run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    # The shared server trusts its socket; a role that does not exist is refused like a wrong password.
    host = database_url.partition("?host=")[2]
    monkeypatch.setenv("LAKEWARD_DATABASE_URL", f"postgresql://nobody:{quote(CANARY, safe='')}@/x?host={host}")
    for extra in ([], ["-vv"], ["--output", "json"]):
        for command in (["status"], ["doctor"]):
            ran = run(*command, *extra)
            assert ran.code == 1
            clean(ran.out, ran.err)


def test_s02_doctor_and_working_commands(
    run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch, place: Path, opened: lakeward.Workspace
) -> None:
    # libpq sends no password that nobody asks for, so this one works.
    scheme, _, rest = database_url.partition("://")
    user_and_host = rest.partition("@")
    assert user_and_host[1], "the shared server's URL names its user"
    user = user_and_host[0].partition(":")[0]
    monkeypatch.setenv("LAKEWARD_DATABASE_URL", f"{scheme}://{user}:{quote(CANARY, safe='')}@{user_and_host[2]}")
    monkeypatch.setenv("LAKEWARD_CATALOG__TYPE", "sql")
    monkeypatch.setenv("LAKEWARD_CATALOG__URI", f"sqlite:///{place}/catalog.db")
    monkeypatch.setenv("LAKEWARD_CATALOG__TOKEN", CANARY)
    (place / "t.csv").write_text("id\n1\n")
    for command in (
        ["dataset", "import", "a.b.c", "t.csv"],
        ["dataset", "copy", "a.b.c", "--to", "iceberg"],
        ["dataset", "show", "a.b.c"],
        ["dataset", "history", "a.b.c"],
        ["doctor"],
        ["status"],
    ):
        for extra in ([], ["-vv"], ["--output", "json"]):
            ran = run(*command, *extra)
            assert ran.code == 0, (command, ran.out, ran.err)
            clean(ran.out, ran.err)
    settings = {each["name"]: each for each in run("doctor", "--output", "json").document["settings"]}
    assert settings["database_url"]["value"] == "***"
    assert settings["database_url"]["source"] == "LAKEWARD_DATABASE_URL"
    assert settings["catalog.token"]["value"] == "***"
    metadata = [path.read_bytes() for path in place.parent.rglob("*.json")]
    assert metadata and not any(form.encode() in content for form in FORMS for content in metadata)
    kept = "select 1 from lakeward.audit_log a where a::text like '%canary%'"
    assert not opened.database.fetch(sqlalchemy.text(kept))


def test_redactor_knows_every_form() -> None:
    redactor = Redactor()
    redactor.add_url(f"postgresql://me:{quote(CANARY, safe='')}@host/db?sslpassword=second%20one")
    clean(redactor(" ".join(sorted(FORMS - {"canary"}))))
    assert redactor("second one, second%20one, postgresql://me@host") == "***, ***, postgresql://me@host"
