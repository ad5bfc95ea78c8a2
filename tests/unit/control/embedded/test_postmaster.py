"""Killed servers, and lock files that lie; real processes and real `kill -9`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.embedded.account import server_account
from lakeward.control.embedded.files import SOCKET_NAME, ServerFiles
from postgres_probe import Processes, User, postmaster, socket_directory, value


def test_survives_kill_9_of_the_postmaster_while_a_backend_computes(made_home: Path, processes: Processes) -> None:
    with EmbeddedPostgres.acquire(made_home) as server:
        busy = psycopg.connect(server.url, autocommit=True)
        busy.execute("CREATE TABLE kept AS SELECT 1 AS one")
        busy.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 100000000000)")
        time.sleep(0.2)  # it computes now, and does not look whether its postmaster lives
        os.kill(postmaster(made_home), signal.SIGKILL)
        with EmbeddedPostgres.acquire(made_home) as again:
            assert again.how == "warm"
            assert value(again, "SELECT one FROM kept") == 1
        assert value(server, "SELECT one FROM kept") == 1, "the old URL leads to the new server"
        busy.close()
    assert processes() == {}


def kill_a_backend(server: EmbeddedPostgres, home: Path, wait_until: Callable[..., None]) -> None:
    """Kill one, and return once the postmaster has seen it, and restarts all of them."""
    log = ServerFiles.of(home).log
    seen = log.stat().st_size
    with psycopg.connect(server.url, autocommit=True) as victim:
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        wait_until(lambda: b"was terminated by signal 9" in log.read_bytes()[seen:])


def test_survives_kill_9_of_a_backend(made_home: Path, processes: Processes, wait_until: Callable[..., None]) -> None:
    server = EmbeddedPostgres.acquire(made_home)
    for _ in range(3):
        kill_a_backend(server, made_home, wait_until)
        with EmbeddedPostgres.acquire(made_home) as again:
            assert again.how == "attached"
            assert value(again, "SELECT 1") == 1, "it is waited for until it has replayed its log"
    server.release()
    assert processes() == {}


def test_the_last_user_leaves_while_the_server_replays_its_log(
    made_home: Path, processes: Processes, wait_until: Callable[..., None]
) -> None:
    for _ in range(3):
        server = EmbeddedPostgres.acquire(made_home)
        kill_a_backend(server, made_home, wait_until)
        begin = time.monotonic()
        server.release()
        assert processes() == {}
        assert time.monotonic() - begin < 30, "a fast shutdown during the replay hangs until it is given up"


def test_stale_lock_files_whose_pid_lives_again_as_another_program(made_home: Path) -> None:
    with EmbeddedPostgres.acquire(made_home) as server:
        files, socket = ServerFiles.of(made_home), socket_directory(server)
        locks = (files.pid_file, socket / f"{SOCKET_NAME}.lock")
        pid = postmaster(made_home)
        kept = {path: path.read_text() for path in locks}
        os.kill(pid, signal.SIGKILL)
        account = server_account(files.data)
        # As the server's own user, for which Postgres itself would take the pid file to be in use.
        innocent = subprocess.Popen(["sleep", "60"], user=account.uid if account.dropped else None)
        try:
            for path, text in kept.items():
                path.write_text(text.replace(str(pid), str(innocent.pid), 1))
            with EmbeddedPostgres.acquire(made_home) as again:
                assert again.how == "warm"
                assert value(again, "SELECT 1") == 1
            assert innocent.poll() is None, "no signal may reach a stranger"
        finally:
            innocent.kill()
            innocent.wait()


def test_a_launcher_killed_half_way_leaves_nothing_behind(
    home: Path, user: Callable[..., User], processes: Processes, wait_until: Callable[..., None]
) -> None:
    first = user()
    wait_until(lambda: home.exists() and list(home.glob("data.new-*/base")))
    first.kill()  # during initdb
    assert not (home / "data").exists()

    second = user()
    wait_until(lambda: (home / "data").exists())
    wait_until(lambda: processes())
    second.kill()  # during the start, perhaps before the server has written its pid file
    wait_until(lambda: not processes())

    with EmbeddedPostgres.acquire(home) as server:
        assert server.how == "warm"
        assert value(server, "SELECT 1") == 1
        assert not list(home.glob("data.new-*"))
