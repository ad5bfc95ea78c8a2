"""Workers that are killed at random, and a source that crashes and stops, while others write to it: nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

import lakeward
from cdc.conftest import with_log
from cdc.followed import Shop
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.embedded.files import ServerFiles
from support.crashes import Driver, unclean

SEED = random.SystemRandom().randrange(2**32)
ROUNDS = 4
WRITERS = 4
SCHEMA = """
CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL, about text);
ALTER TABLE accounts ALTER about SET STORAGE EXTERNAL;
CREATE TABLE moves (id bigserial PRIMARY KEY, account int, amount bigint);
CREATE TABLE things (writer int, id int, note text, PRIMARY KEY (writer, id));
INSERT INTO accounts SELECT i, 0, repeat(i::text, 3000) FROM generate_series(1, 40) i;
"""


class Source:
    """The server that others write to; it comes back at the same place."""

    def __init__(self, directory: Path, cache: Path) -> None:
        self._place = directory, cache
        self.server = EmbeddedPostgres.acquire(*self._place)
        self.url = self.server.url

    def crash(self) -> None:
        """Let it die as by a fault of its own, and start it anew."""
        os.kill(int(ServerFiles.of(self._place[0]).pid_file.read_text().split()[0]), signal.SIGQUIT)
        time.sleep(0.3)
        self.server.release()
        self.server = EmbeddedPostgres.acquire(*self._place)

    def restart(self) -> None:
        """Stop and start it."""
        self.server.release()
        self.server = EmbeddedPostgres.acquire(*self._place)


class Writer(threading.Thread):
    """Writes until it is told to stop, whatever happens to the server."""

    def __init__(self, url: str, number: int, stop: threading.Event) -> None:
        super().__init__()
        self._url = url
        self._number = number
        self._stopped = stop
        self._random = random.Random(SEED + number)
        self.committed = 0

    def run(self) -> None:
        """Write."""
        while not self._stopped.is_set():
            with suppress(psycopg.Error), psycopg.connect(self._url) as connection:
                while not self._stopped.is_set():
                    with connection.transaction():
                        self._change(connection)
                    self.committed += 1
                    time.sleep(0.002)
            time.sleep(0.02)

    def _change(self, connection: psycopg.Connection) -> None:
        """Change some rows; what is moved to or from an account is noted by the same transaction."""
        chance, mine = self._random, self._number
        number = chance.randrange(30)
        kind = chance.random()
        if kind < 0.4:
            account, amount = chance.randrange(1, 41), chance.randrange(-50, 50)
            connection.execute("UPDATE accounts SET balance = balance + %s WHERE id = %s", (amount, account))
            connection.execute(
                "INSERT INTO moves (account, amount) SELECT id, %s FROM accounts WHERE id = %s", (amount, account)
            )
        elif kind < 0.6:
            insert = (
                "INSERT INTO things VALUES (%s, %s, %s) ON CONFLICT (writer, id) DO UPDATE SET note = excluded.note"
            )
            connection.execute(insert, (mine, number, f"{chance.random()}"))
        elif kind < 0.75:
            connection.execute("DELETE FROM things WHERE writer = %s AND id = %s", (mine, number))
        elif kind < 0.9:
            connection.execute(
                "UPDATE things SET id = %s WHERE writer = %s AND id = %s AND NOT EXISTS "
                "(SELECT FROM things WHERE writer = %s AND id = %s)",
                (number, mine, (number + 7) % 30, mine, number),
            )
        elif kind < 0.99:
            connection.execute("UPDATE things SET note = note || '.' WHERE writer = %s AND id %% 5 = 0", (mine,))
        elif mine == 0:
            connection.execute("TRUNCATE things")


@pytest.fixture
def source(short_tmp: Path) -> Iterator[Source]:
    """The server, stopped afterwards."""
    with with_log(short_tmp / "pg", short_tmp / "cache"):
        pass
    made = Source(short_tmp / "pg", short_tmp / "cache")
    yield made
    made.server.release()


def test_kills_and_restarts_at_random_lose_nothing_and_double_nothing(
    ws: lakeward.Workspace, cdc_url: str, cdc_warehouse: Path, source: Source, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    print(f"seed {SEED}")
    (tmp_path / "url").write_text(source.url, encoding="utf-8")
    with psycopg.connect(source.url, autocommit=True) as connection:
        connection.execute(SCHEMA)
    names = {"fast": "postgres", "lake": "iceberg", "both": None}
    shops = {}
    for name, arm in names.items():
        ws.sources.add(name, "postgres", {"url": f"file:{tmp_path / 'url'}"}, ["accounts", "moves", "things"])
        if arm is None:
            ws.flags.set(writer="cdc.changes", mode="dual")
        with psycopg.connect(source.url, autocommit=True) as connection:
            shops[name] = Shop(ws, name, connection)
            shops[name].follow("accounts", "moves", "things", arm=arm)
    ws.flags.clear(writer="cdc.changes")
    stop = threading.Event()
    writers = [Writer(source.url, number, stop) for number in range(WRITERS)]
    for each in writers:
        each.start()
    environment = {
        "LAKEWARD_DATABASE_URL": cdc_url,
        "LAKEWARD_WAREHOUSE": str(cdc_warehouse),
        "LAKEWARD_SOURCES__FOLLOW_SECONDS": "0.05",
        "LAKEWARD_LEDGER__LEASE_SECONDS": "1",
    }
    try:
        with Driver(cdc_url, cdc_warehouse) as driver:
            for number in range(ROUNDS):
                name = list(names)[number % len(names)]
                with driver.running(command=["source", "follow", name], environment=environment) as pid:
                    time.sleep(chance.uniform(0.3, 1.5))
                    if number % 3 == 1:
                        source.crash()
                    elif number % 3 == 2:
                        source.restart()
                    time.sleep(chance.uniform(0.1, 0.7))
                    os.kill(pid, signal.SIGKILL if number % 2 == 0 else signal.SIGTERM)
                if number % 2:
                    assert driver.ended["event"] == "ended" and driver.ended["code"] == 0
                pinned = ws.pin(f"main.{name}.accounts", f"main.{name}.moves")
                balance = sum(pinned.to_arrow(f"main.{name}.accounts", columns=["balance"])["balance"].to_pylist())
                moved = sum(pinned.to_arrow(f"main.{name}.moves", columns=["amount"])["amount"].to_pylist())
                assert balance == moved, "no transaction is ever seen in part"
    finally:
        stop.set()
        for each in writers:
            each.join()
    assert all(each.committed for each in writers)
    with psycopg.connect(source.url, autocommit=True) as connection:
        for name in names:
            shop = Shop(ws, name, connection)
            shop.follow()
            tables = ("accounts", "moves", "things")
            assert all(shop.rows(table) == shop.there(table) for table in tables), (SEED, name)
            assert shop.equals(*tables), (SEED, name)
            assert unclean(ws, [f"main.{name}.{table}" for table in tables]) == []
            ws.sources.unfollow(name)
            assert shop.slots() == []
