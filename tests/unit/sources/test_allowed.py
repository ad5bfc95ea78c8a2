"""S01, S02: what sources may reach, where that is limited; no way round it, and no secret told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from lakeward.control.db import Database
from lakeward.errors import LakewardError, NotAllowed, SettingsError, SourceError
from lakeward.sources.allowed import Allowed, addresses_of
from lakeward.sources.connectors.postgres import PostgresOptions, PostgresSource

CANARY = "c4nary/p@ss w%rd"
IN_URL = "c4nary%2Fp%40ss%20w%25rd"


def led_to(rules: Sequence[str], *addresses: str) -> Allowed:
    """Return an allow-list of hosts with a name service that knows one answer."""
    return replace(Allowed.declare(rules), lookup=lambda host, port: list(addresses))


@pytest.mark.parametrize(
    ("rule", "host", "fits"),
    [
        ("db.example.com", "DB.example.com.", True),
        ("db.example.com", "db.example.com.evil.org", False),
        ("db.example.com:5433", "db.example.com", False),
        ("db.example.com:5432", "db.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "badexample.com", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8:5432", "10.1.2.3", True),
        ("[::1]:5432", "::1", True),
        ("::1", "::1", True),
        ("fd00::/8", "fd12::1", True),
        ("10.0.0.7", "10.0.0.8", False),
        ("10.0.0.0/8", "::ffff:10.0.0.1", True),
        ("::ffff:0:0/96", "10.0.0.1", False),
    ],
)
def test_a_rule_is_a_name_a_suffix_or_a_network(rule: str, host: str, fits: bool) -> None:
    allowed = led_to([rule], host if ":" in host or host[0].isdigit() else "192.0.2.1")
    if fits:
        assert len(allowed.addresses(host, 5432)) == 1
    else:
        with pytest.raises(NotAllowed, match="5432"):
            allowed.addresses(host, 5432)


@pytest.mark.parametrize("rule", ["", "a b", "http://x", "*x.com", "a.*.com", "10.0.0.0/99", "h:port", "h:1:2:x"])
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(SettingsError, match=r"sources\.allowed_hosts"):
        Allowed.declare([rule])


def test_a_name_is_not_asked_for_where_no_address_could_allow_it() -> None:
    def never(host: str, port: int) -> list[str]:
        raise AssertionError(host)

    with pytest.raises(NotAllowed):
        replace(Allowed.declare(["db.example.com"]), lookup=never).addresses("secret.evil.org", 53)


def test_a_name_that_leads_elsewhere_later_is_connected_to_where_it_was_checked() -> None:
    answers = iter([["10.0.0.5"], ["169.254.169.254"]])
    allowed = replace(Allowed.declare(["10.0.0.0/8"]), lookup=lambda host, port: next(answers))
    url = allowed.database_url("postgresql://me@rebinding.example:5433/shop?sslmode=verify-full")
    found = conninfo_to_dict(Database(url).libpq_url)
    # libpq connects to `hostaddr`, and verifies the certificate against `host`.
    assert (found["host"], found["hostaddr"], found["port"]) == ("rebinding.example", "10.0.0.5", "5433")
    with pytest.raises(NotAllowed, match=r"host rebinding.example, port 5432") as raised:
        allowed.database_url("postgresql://rebinding.example/shop")
    assert "169.254" not in str(raised.value)


def test_one_address_that_is_not_allowed_is_enough() -> None:
    with pytest.raises(NotAllowed):
        led_to(["10.0.0.0/8"], "10.0.0.5", "127.0.0.1").database_url("postgresql://two.example/shop")


def test_every_address_of_every_host_is_tried() -> None:
    url = led_to(["a", "b"], "::1", "127.0.0.1").database_url(f"postgresql://me:{IN_URL}@/my%20shop?host=a,b&port=1,2")
    for driver in (conninfo_to_dict(Database(url).libpq_url), _of_sqlalchemy(url)):
        assert driver["hostaddr"] == "::1,127.0.0.1,::1,127.0.0.1"
        assert (driver["host"], driver["port"]) == ("a,a,b,b", "1,1,2,2")
        assert (driver["user"], driver["password"], driver["dbname"]) == ("me", CANARY, "my shop")
    assert Database(url).display_url == "postgresql://a,b/"


def _of_sqlalchemy(url: str) -> dict[str, object]:
    database = Database(url)
    _, options = database.engine.dialect.create_connect_args(database.engine.url)
    return dict(options)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://evil.org/x",
        "postgresql:///x",
        "postgresql://db.example.com/x?hostaddr=127.0.0.1",
        "postgresql://db.example.com/x?host=evil.org",
        "postgresql:///x?host=db.example.com,evil.org",
        "postgresql:///x?host=db.example.com&host=evil.org",
        "postgresql://db.example.com/x?service=other",
        "postgresql://db.example.com/x?passfile=/etc/shadow",
        "postgresql://db.example.com/x?sslkeylogfile=/tmp/x",
        "postgresql://db.example.com/x?sslkey=/etc/ssl/key",
        "postgresql://db.example.com/x?sslrootcert=/etc/passwd",
        "postgresql:///x?host=/run/postgresql",
        "postgresql://%2Frun%2Fpostgresql/x",
        "postgresql:///x?host=%40abstract",
        "postgresql://db.example.com/x?gssdelegation=1",
    ],
)
def test_s02_no_option_of_a_url_leads_round_it(url: str, tmp_path: Path) -> None:
    allowed = replace(led_to(["db.example.com"], "192.0.2.1"), paths=(str(tmp_path),))
    secret = url.replace("://", f"://me:{IN_URL}@", 1)
    with pytest.raises(NotAllowed) as raised:
        PostgresSource.made(PostgresOptions(url=secret), allowed)
    assert "nary" not in f"{raised.value} {raised.value.to_json()}"


def test_s02_a_url_with_a_bare_secret_is_refused_and_not_repeated() -> None:
    for url in (f"postgresql://me:{CANARY}@db.example.com/x", f"postgresql://db.example.com:{CANARY}/x"):
        with pytest.raises(LakewardError) as raised:
            led_to(["db.example.com"], "192.0.2.1").database_url(url)
        assert "nary" not in f"{raised.value} {raised.value.to_json()}" and raised.value.__cause__ is None


def test_sockets_and_certificates_are_files(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    allowed = replace(led_to(["db"], "192.0.2.1"), paths=(str(tmp_path),))
    [socket_url] = [allowed.database_url(f"postgresql:///x?host={tmp_path}/run")]
    assert conninfo_to_dict(Database(socket_url).libpq_url)["host"] == f"{tmp_path}/run"
    with_ca = allowed.database_url(f"postgresql://db/x?sslrootcert={tmp_path}/ca.pem&sslmode=verify-full")
    assert conninfo_to_dict(with_ca)["sslrootcert"] == f"{tmp_path}/ca.pem"


def test_nothing_is_limited_where_nothing_is_set() -> None:
    url = "postgresql:///x?service=any&passfile=/any"
    assert Allowed().database_url(url) == url
    assert Allowed().path("any") == Path("any")
    assert Allowed().location("https://any") == "https://any"
    assert Allowed().addresses("any", 1) == ()


def test_s01_a_path_lies_where_it_leads_to(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "into"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "x.csv").write_text("a\n1\n", encoding="utf-8")
    (inside / "link.csv").symlink_to(outside / "x.csv")
    (inside / "folder").symlink_to(outside)
    (outside / "back.csv").symlink_to(inside / "x.csv")
    allowed = Allowed.declare(paths=[str(inside), "s3://lake/drop/"])
    assert allowed.path(outside / "back.csv") == inside / "x.csv"
    assert allowed.location(f"{inside}/../in/x.csv") == str(inside / "x.csv")
    for path in (
        outside / "x.csv",
        inside / "link.csv",
        inside / "folder" / "x.csv",
        f"{inside}/../into/x.csv",
        "/etc/passwd",
        f"/proc/self/root{outside}/x.csv",
        "a\0b",
        "..",
        "%2e%2e%2f",
        "file:///etc/passwd",
        "C:\\x",
    ):
        with pytest.raises(NotAllowed, match="allowed_paths"):
            allowed.path(path)
        with pytest.raises(NotAllowed, match="allowed_paths"):
            allowed.location(str(path))
    assert allowed.location("s3://lake/drop/2026/*.csv") == "s3://lake/drop/2026/*.csv"
    assert allowed.location("s3a://lake/drop/x") == "s3a://lake/drop/x"
    assert allowed.location("s3://lake/drop") == "s3://lake/drop"
    for location in (
        "s3://lake/dropped/x",
        "s3://lake/dr*",
        "s3://lake/drop/../x",
        "https://lake/drop/",
    ):
        with pytest.raises(NotAllowed, match="allowed_paths"):
            allowed.location(location)


def test_references_are_limited_likewise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "url").write_text("postgresql://db/x", encoding="utf-8")
    (tmp_path / "other").write_text(CANARY, encoding="utf-8")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "other")
    monkeypatch.setenv("PG_SHOP", "postgresql://db/y")
    monkeypatch.setenv("OTHER", CANARY)
    allowed = Allowed.declare(references=["env:PG_*", f"file:{tmp_path}/in/"])
    assert allowed.resolved("env:PG_SHOP") == "postgresql://db/y"
    assert allowed.resolved(f"file:{tmp_path}/in/url") == "postgresql://db/x"
    assert allowed.resolved("postgresql://db/z") == "postgresql://db/z"
    for reference in ("env:OTHER", "env:pg_shop", f"file:{tmp_path}/other", f"file:{tmp_path}/in/link"):
        with pytest.raises(NotAllowed, match="allowed_references") as raised:
            allowed.resolved(reference)
        assert "nary" not in str(raised.value)
    # A password that nobody referred to is not looked for either.
    assert conninfo_to_dict(allowed.database_url("postgresql://db/x"))["passfile"] == "/dev/null/none"


@pytest.mark.parametrize(("paths", "references"), [(["relative"], None), (["http://x/"], None), (None, ["PGURL"])])
def test_entries_that_can_not_be_meant_are_refused(paths: list[str] | None, references: list[str] | None) -> None:
    with pytest.raises(SettingsError, match=r"sources\.allowed_(paths|references)"):
        Allowed.declare(paths=paths, references=references)


def test_the_checked_address_is_connected_to_by_every_driver() -> None:
    """A server that hangs up: what matters is that somebody came, though the name leads nowhere."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        port = server.getsockname()[1]
        allowed = led_to(["*.invalid"], "127.0.0.1")
        options = PostgresOptions(url=f"postgresql://me@nowhere.invalid:{port}/x?connect_timeout=20&sslmode=disable")
        for ask in (PostgresSource.discover, lambda source: source.snapshot().__enter__()):
            source = PostgresSource.made(options, allowed)
            caller = threading.Thread(target=lambda: server.accept()[0].close(), daemon=True)
            caller.start()
            with pytest.raises(SourceError, match=r"nowhere\.invalid"):
                ask(source)
            caller.join()
            source.close()


def test_a_name_that_is_not_known_is_named() -> None:
    with pytest.raises(SourceError, match=r"host no\.such\.host\.invalid is not known"):
        addresses_of("no.such.host.invalid", 1)
