"""The workspace's own Postgres crashes under a worker: it waits, and goes on where the ledger says it was."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import psycopg
import pytest

import lakeward
from cdc.followed import Shop
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.embedded.files import ServerFiles
from lakeward.wiring.follow_plan import FollowRequest
from support.databases import never_wait_for_the_disk


def test_a_worker_waits_for_a_control_plane_that_crashes(
    logged: psycopg.Connection, reference: str, name: str, short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEWARD_SOURCES__FOLLOW_SECONDS", "0.05")
    monkeypatch.setenv("LAKEWARD_LEDGER__LEASE_SECONDS", "2")
    place = short_tmp / "control", short_tmp / "cache"
    said: list[str] = []
    stop = threading.Event()
    server = EmbeddedPostgres.acquire(*place)
    try:
        never_wait_for_the_disk(server.url)
        with lakeward.open(database_url=server.url, warehouse=short_tmp / "warehouse") as ws:
            shop = Shop(ws, f"of_{name}", logged)
            ws.sources.add(shop.name, "postgres", {"url": reference})
            shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
            shop.follow(name, arm="iceberg")
            worker = threading.Thread(
                target=lambda: ws.sources.follow(FollowRequest(shop.name), stop=stop, say=said.append)
            )
            worker.start()
            for number in range(60):
                shop.run(f"INSERT INTO {name} VALUES ({number})")
                time.sleep(0.02)
                if number == 30:
                    os.kill(int(ServerFiles.of(place[0]).pid_file.read_text().split()[0]), signal.SIGQUIT)
            while not any("tried again" in text for text in said):
                assert worker.is_alive()
                time.sleep(0.05)
            server.release()
            server = EmbeddedPostgres.acquire(*place)
            stop.set()
            worker.join()
            shop.follow()
            assert shop.rows(name) == shop.there(name) and len(shop.rows(name)) == 60
            ws.sources.unfollow(shop.name)
            assert shop.slots() == []
    finally:
        stop.set()
        server.release()
