"""The connection: URLs that are refused, errors under our names, and no password anywhere."""

from __future__ import annotations

import ast
import fnmatch
import logging
import re
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote

import psycopg
import pytest
import sqlalchemy

import lakeward
from lakeward.control.db import Database, Queries
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import Contended, DatabaseUnavailable, LakewardError, SettingsError

PACKAGE = Path(lakeward.__file__).parent
SECRET = "p@ss/w:rd%20"
PIECES = (SECRET, "ss/w", "rd%20", "p@ss", "w:rd")


@pytest.fixture
def closed_port() -> int:
    """A TCP port of this machine at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def every_text(error: LakewardError) -> str:
    """Return all that anybody could print of an error: its texts, fields, and the locals of our frames."""
    summary = traceback.TracebackException.from_exception(error, capture_locals=True)
    ours = [frame for frame in summary.stack if Path(frame.filename).is_relative_to(PACKAGE)]
    local_values = [value for frame in ours for value in (frame.locals or {}).values()]
    return "\n".join([str(error), repr(error), str(error.to_json()), str(error.args), *local_values])


def assert_secret_free(text: str) -> None:
    forms = {SECRET, quote(SECRET), quote(SECRET, safe=""), quote_plus(SECRET), quote(SECRET, safe="").lower()}
    for form in (*forms, *PIECES):
        assert form not in text


@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid", "[::1]"])
@pytest.mark.parametrize("encode", [lambda text: quote(text, safe=""), lambda text: quote(text, safe="").lower()])
def test_s02_password_is_in_no_error_of_an_unreachable_server(
    host: str, encode: Callable[[str], str], closed_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with Database(f"postgresql://ann:{encode(SECRET)}@{host}:{closed_port}/orders?connect_timeout=5") as database:
        with pytest.raises(DatabaseUnavailable) as caught, database.transaction():
            pass
        with pytest.raises(DatabaseUnavailable) as caught_by_driver, database.driver():
            pass
        assert database.libpq_url.count(quote(SECRET, safe="")) == 1, "the password arrives unharmed"
        printed = [repr(database), database.display_url, repr(database.engine), caplog.text]
    assert_secret_free("\n".join([every_text(caught.value), every_text(caught_by_driver.value), *printed]))
    assert host.strip("[]") in str(caught.value)
    assert "orders" in str(caught.value)
    assert caught.value.__suppress_context__, "the driver's error is not printed below ours"


@pytest.mark.parametrize("option", ["password", "sslpassword"])
def test_s02_password_given_as_an_option_is_hidden(option: str, closed_port: int) -> None:
    url = f"postgresql://ann@127.0.0.1:{closed_port}/orders?{option}={quote(SECRET, safe='')}"
    with Database(url) as database, pytest.raises(DatabaseUnavailable) as caught, database.transaction():
        pass
    assert_secret_free(every_text(caught.value) + repr(database) + database.display_url)


@pytest.mark.parametrize("form", [str, quote, lambda text: quote(text, safe=""), lambda text: quote(text).lower()])
def test_s02_text_of_the_server_that_quotes_the_password_is_cleaned(
    database_url: str, form: Callable[[str], str]
) -> None:
    """Some servers and poolers repeat what they were sent."""
    statement = sqlalchemy.text(
        "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '57P03', MESSAGE = 'no login for <" + form(SECRET) + ">'; END $$"
    )
    with_password = database_url.replace("@/", f":{quote(SECRET, safe='')}@/", 1)
    with Database(with_password) as database, pytest.raises(DatabaseUnavailable, match="no login for <\\*\\*\\*>"):
        database.fetch(sqlalchemy.text(str(statement).replace(":", "\\:")))


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@127.0.0.1:1/orders",
        "postgresql://ann:p@ss@127.0.0.1:1/orders",
        "postgresql://ann:p@s?w:rd%20@127.0.0.1:1/orders",
        "postgresql://an/n:w:rd%20@127.0.0.1:1/orders",
    ],
)
def test_s02_bare_at_or_slash_in_a_password_is_refused_without_a_piece_of_it(url: str) -> None:
    """Else the rest of the password is taken for the host or the database, which every message names."""
    with pytest.raises(SettingsError, match="%40") as caught:
        Database(url)
    assert_secret_free(str(caught.value) + repr(caught.value) + str(caught.value.to_json()))


@pytest.mark.parametrize(
    "url",
    [
        "",
        " ",
        "orders",
        "host=127.0.0.1 dbname=orders",
        "mysql://ann@127.0.0.1/orders",
        "sqlite:///orders.db",
        "postgresql:/ann@127.0.0.1/orders",
        "postgresql://ann@127.0.0.1:54x32/orders",
        "http://127.0.0.1/",
        "\0",
    ],
)
def test_url_that_is_not_one_of_postgres_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="not one of Postgres") as caught:
        Database(url)
    assert "LAKEWARD_DATABASE_URL" in str(caught.value)


def test_url_with_an_unknown_option_is_refused_by_its_name() -> None:
    with pytest.raises(SettingsError, match="doesn't know: sslmod\n") as caught:
        Database("postgresql://ann@127.0.0.1/orders?sslmod=require")
    assert caught.value.fields == {"setting": "database_url"}


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_every_usual_scheme_works(database_url: str, scheme: str) -> None:
    with Database(database_url.replace("postgresql", scheme, 1)) as database:
        assert database.fetch(sqlalchemy.text("SELECT 1 AS one"))[0]["one"] == 1
        assert database.libpq_url.startswith("postgresql://")


def test_socket_directory_in_place_of_the_host_works_as_libpq_writes_it(database_url: str) -> None:
    user, host, name = re.fullmatch(r"postgresql://(\w+)@/(\w+)\?host=([^&]+)&port=5432", database_url).group(1, 3, 2)  # type: ignore[union-attr]
    with Database(f"postgresql://{user}@{host}:5432/{name}") as database:
        assert database.fetch(sqlalchemy.text("SELECT current_database() AS name"))[0]["name"] == name
        with psycopg.connect(database.libpq_url) as connection:
            assert connection.info.dbname == name


def test_socket_directory_with_a_space_and_a_plus_is_found_by_every_client(database_url: str, short_tmp: Path) -> None:
    user, host, name = re.fullmatch(r"postgresql://(\w+)@/(\w+)\?host=([^&]+)&port=5432", database_url).group(1, 3, 2)  # type: ignore[union-attr]
    (short_tmp / "a b+c").symlink_to(unquote(host))
    with Database(f"postgresql://{user}@/{name}?host={quote(str(short_tmp / 'a b+c'))}") as database:
        assert database.fetch(sqlalchemy.text("SELECT 1 AS one"))[0]["one"] == 1
        with psycopg.connect(database.libpq_url) as connection:
            assert connection.info.host == str(short_tmp / "a b+c")


def test_block_that_raises_is_rolled_back(database_url: str) -> None:
    with Database(database_url) as database:
        with pytest.raises(RuntimeError), database.transaction() as connection:
            connection.execute(sqlalchemy.text("CREATE TABLE t ()"))
            raise RuntimeError
        assert database.fetch(sqlalchemy.text("SELECT to_regclass('t') AS t"))[0]["t"] is None


def test_driver_connection_begins_outside_a_transaction(database_url: str) -> None:
    """Else its `transaction()` would be a savepoint, and what it commits would be rolled back with the connection."""
    with Database(database_url) as database:
        for _ in range(2):  # fresh, and out of the pool after its ping
            with database.driver() as connection:
                assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
                with connection.transaction():
                    connection.execute("CREATE TABLE IF NOT EXISTS t (i int)")
                    connection.execute("INSERT INTO t VALUES (1)")
        assert database.fetch(sqlalchemy.text("SELECT count(*) AS n FROM t"))[0]["n"] == 2


def test_connection_that_the_server_ended_is_replaced(database_url: str) -> None:
    with Database(database_url) as database:
        pid = database.fetch(sqlalchemy.text("SELECT pg_backend_pid() AS pid"))[0]["pid"]
        with psycopg.connect(database_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        assert database.fetch(sqlalchemy.text("SELECT pg_backend_pid() AS pid"))[0]["pid"] != pid


def test_server_that_goes_away_in_a_transaction_is_named(database_url: str) -> None:
    with Database(database_url) as database:
        with pytest.raises(DatabaseUnavailable, match="terminating connection"), database.transaction() as connection:
            pid = connection.execute(sqlalchemy.text("SELECT pg_backend_pid()")).scalar()
            with psycopg.connect(database_url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
            connection.execute(sqlalchemy.text("SELECT 1"))


def test_deadlock_is_a_conflict_that_can_be_repeated(database_url: str) -> None:
    lock = sqlalchemy.text("SELECT pg_advisory_xact_lock(:key)")
    both = threading.Barrier(2, timeout=10)
    raised: list[Exception] = []

    def take(database: Database, first: int, second: int) -> None:
        try:
            with database.transaction() as connection:
                connection.execute(sqlalchemy.text("SET LOCAL deadlock_timeout = '10ms'"))
                connection.execute(lock, {"key": first})
                both.wait()
                connection.execute(lock, {"key": second})
        except LakewardError as error:
            raised.append(error)

    with Database(database_url) as database:
        threads = [threading.Thread(target=take, args=(database, *keys)) for keys in ((1, 2), (2, 1))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [type(error) for error in raised] == [Contended]
    assert "deadlock" in str(raised[0])
    assert raised[0].exit_code == 6  # type: ignore[attr-defined]


def test_no_statement_is_prepared_in_the_server(database_url: str) -> None:
    """A pooler in transaction mode gives the next transaction another session, which doesn't know it."""
    with Database(database_url) as database, database.transaction() as connection:
        for _ in range(12):
            connection.execute(sqlalchemy.text("SELECT :i + 1"), {"i": 1})
        assert connection.execute(sqlalchemy.text("SELECT count(*) FROM pg_prepared_statements")).scalar() == 0


# Statements -----------------------------------------------------------------------------------------------------------


def sql_files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.sql") if "-- name: " in path.read_text(encoding="utf-8"))


def used_names(path: Path) -> set[str]:
    """Return what the module beside a `.sql` file asks `QUERIES` for; a pattern where an f-string asks."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.with_suffix(".py").read_text(encoding="utf-8"))):
        key: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "QUERIES":
            key = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "for_driver":
            key = node.args[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "send":
            key = node.args[1]
        if key is not None:
            parts = key.values if isinstance(key, ast.JoinedStr) else [key]
            found.add("".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in parts))
    return found


@pytest.mark.parametrize("path", sql_files(), ids=lambda path: path.name)
def test_every_statement_is_used_and_every_used_name_exists(path: Path) -> None:
    names, used = set(Queries(path)), used_names(path)
    assert names, "the file has statements"
    assert used, "the module beside it uses them"
    assert [name for name in names if not any(fnmatch.fnmatch(name, pattern) for pattern in used)] == []
    assert [pattern for pattern in used if not fnmatch.filter(names, pattern)] == []


@pytest.mark.parametrize("path", sql_files(), ids=lambda path: path.name)
def test_every_statement_has_a_name_of_its_own(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    names = re.findall(r"^-- name: (.*)$", text, re.MULTILINE)
    assert len(names) == len(set(names)) == len(list(Queries(path)))


def built_statements(source: str) -> Iterator[int]:
    """Yield the lines that hand over SQL which is put together from pieces."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and node.args):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("execute", "executemany", "exec_driver_sql", "text", "SQL", "fetch", "copy"):
            statement = node.args[0]
            pieces = isinstance(statement, ast.JoinedStr | ast.BinOp)
            methods = ("format", "join", "replace", "format_map")
            made = (
                isinstance(statement, ast.Call)
                and isinstance(statement.func, ast.Attribute)
                and statement.func.attr in methods
                and not any(
                    isinstance(each, ast.Attribute | ast.Name) and ast.unparse(each).endswith("SQL")
                    for each in ast.walk(statement.func.value)
                )
            )
            if pieces or made:
                yield node.lineno


def test_s03_no_sql_of_the_control_plane_is_built_from_strings() -> None:
    found = [
        f"{path.name}:{line}"
        for path in sorted((PACKAGE / "control").rglob("*.py"))
        for line in built_statements(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("c.execute(f'SELECT {name}')", [1]),
        ("c.execute('SELECT ' + name)", [1]),
        ("c.execute('SELECT %s' % name)", [1]),
        ("c.execute(text('SELECT {}'.format(name)))", [1]),
        ("c.execute('SELECT :name'.replace(':name', name))", [1]),
        ("c.execute(sql.SQL('SELECT {}').format(sql.Identifier(name)))", []),
        ("c.execute(QUERIES['x'], {'name': name})", []),
    ],
)
def test_the_finder_of_built_sql_finds_it(source: str, lines: list[int]) -> None:
    assert list(built_statements(source)) == lines


def test_the_url_of_a_socket_can_be_used_as_it_is_shown() -> None:
    shown = Database("postgresql://me:hidden@/lakeward?host=%2Fa%20b%2Fsocket&port=5432").display_url
    assert shown == "postgresql://me@/lakeward?host=/a%20b/socket"
    assert Database(shown).display_url == shown


def test_the_shown_url_of_the_embedded_server_leads_to_it(postgres: EmbeddedPostgres) -> None:
    with Database(Database(postgres.url).display_url) as database:
        assert database.fetch(sqlalchemy.text("select 1 as one")) == [{"one": 1}]


@pytest.mark.parametrize("password", ["postgres", "p", "shop", "db"])
def test_s02_a_password_that_is_a_word_is_masked_in_urls_only(password: str) -> None:
    """To mask it everywhere would garble the text, and tell it: what is masked of `***ql://`?"""
    database = Database(f"postgresql://postgres:{password}@db.example/shop")
    said = (
        f"connection to db.example failed: no such database shop; given was postgresql://postgres:{password}@db.example"
    )
    assert database.redacted(said) == said.replace(f"postgres:{password}@", "***@")
    assert database.redacted("user postgres, port 5432") == "user postgres, port 5432"
