"""`lakeward source`, and S02: a secret of a source is in nothing that anybody sees or that is stored."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from support.commands import Run

SECRET = "p@ss/w:rd%20"
CODED = "p%40ss%2Fw%3Ard%2520"


@pytest.fixture
def shop(new_database: object, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with a table, named by a variable."""
    url: str = new_database()  # type: ignore[operator]
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        connection.execute("INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
    monkeypatch.setenv("SHOP", url)
    return url


def test_a_source_is_added_looked_into_synced_and_removed(run: Run, shop: str) -> None:
    added = run("source", "add", "shop", "--type", "postgres", "--url", "env:SHOP", "--table", "orders")
    assert added.code == 0 and "added source shop: postgres, 1 table" in added.out
    again = run("source", "add", "shop", "--url", "env:SHOP")
    assert again.code == 2 and "there is a source 'shop' already" in again.err
    listed = run("source", "list", "--output", "json").document["sources"]
    assert [(each["name"], each["options"], each["tables"]) for each in listed] == [
        ("shop", {"url": "env:SHOP"}, ["public.orders"])
    ]
    tables = run("source", "tables", "shop", "--output", "json").document["tables"]
    assert [(each["table"], each["primary_key"], each["followed"]) for each in tables] == [
        ("public.orders", ["id"], True)
    ]
    rehearsed = run("source", "sync", "shop", "--dry-run")
    assert "read public.orders of shop: every row" in rehearsed.out
    synced = run("source", "sync", "shop", "--output", "json").document["datasets"]
    assert [(each["dataset"], each["rows_read"], each["rows_in"], each["created"]) for each in synced] == [
        ("main.shop.orders", 2, 2, True)
    ]
    text = run("source", "sync", "shop", "orders", "--mode", "incremental")
    assert text.code == 0 and "read = " in text.out
    assert run("source", "remove", "shop").code == 0
    assert run("source", "sync", "shop").code == 2
    assert run("dataset", "show", "main.shop.orders").code == 0


def test_what_is_wrong_says_the_way_out(run: Run, shop: str, tmp_path: Path) -> None:
    for arguments, said in (
        (("--url", "env:NOT_SET"), "the variable NOT_SET is not set"),
        (("--url", "file:relative"), "write its full path"),
        (("--url", f"file:{tmp_path}/none"), "No such file"),
        (("--url", "env:SHOP", "--type", "oracle"), "unknown type of source 'oracle'"),
        (("--url", "env:SHOP", "--table", "nope"), "has no table 'nope'"),
        (("--url", "env:SHOP", "--type", "postgrse"), "did you mean postgres?"),
    ):
        ran = run("source", "add", "shop", *arguments)
        assert ran.code == 2 and said in ran.err, ran.err
    bad = run("source", "add", "a b", "--url", "env:SHOP")
    assert bad.code == 2 and "can't name a source" in bad.err


@pytest.mark.parametrize("detail", [[], ["-vv"], ["--output", "json"]])
def test_s02_a_password_is_never_seen(
    run: Run, opened: lakeward.Workspace, postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch, detail: list[str]
) -> None:
    closed = f"postgresql://me:{CODED}@127.0.0.1:1/shop"
    for literal in (closed, f"postgresql://h/d?password={CODED}", f"host=h password='{SECRET}'"):
        refused = run("source", "add", "shop", "--url", literal, *detail)
        assert refused.code == 2 and "holds a password" in refused.out + refused.err
        _hushed(refused.out + refused.err)
    # A password that was not encoded ends early, and looks like part of the host.
    for url in (closed, f"postgresql://me:{SECRET}@127.0.0.1:1/shop", f"nonsense {SECRET}"):
        monkeypatch.setenv("SHOP", url)
        ran = run("source", "add", "shop", "--url", "env:SHOP", *detail)
        assert ran.code in (1, 2)
        _hushed(ran.out + ran.err)
    with psycopg.connect(opened.database.libpq_url) as connection:
        stored = connection.execute(
            "SELECT (SELECT coalesce(string_agg(s::text, ''), '') FROM lakeward.sources s)"
            " || (SELECT coalesce(string_agg(a::text, ''), '') FROM lakeward.audit_log a)"
        ).fetchone()
    assert stored is not None
    _hushed(stored[0])


def _hushed(text: str) -> None:
    for form in (SECRET, CODED, "p@ss", "w:rd", "p%40ss"):
        assert form not in text, text
