"""Postgres crashes in the middle of a write: that stands or not, as the caller was told, and nothing is left over."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import ControlError, LakewardError, StorageError
from lakeward.testing import AtStep, FakeClock
from support.crashes import content, unclean

OLD = [(0, "old")]
NEW = [(1, "new")]

POINTS = [
    ("postgres", "prepare"),
    ("postgres", "prepare:copy"),
    ("postgres", "prepare:chunk"),
    ("postgres", "decide"),
    ("postgres", "decide:committed"),
    ("iceberg", "prepare:files"),
    ("iceberg", "prepare:committed"),
    ("iceberg", "decide"),
    ("iceberg", "publish"),
    ("iceberg", "publish:moved"),
]


@pytest.fixture(scope="module")
def own_server(short_root: Path) -> Iterator[EmbeddedPostgres]:
    """A server that only this file's tests use, for they crash it."""
    with EmbeddedPostgres.acquire(short_root / "crashing", short_root / "cache") as server:
        yield server


def crash(url: str) -> None:
    """Kill one of the server's processes: it ends all sessions, replays its log and comes back."""
    with psycopg.connect(url) as victim:
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            for _ in range(1000):
                victim.execute("SELECT 1")
                time.sleep(0.01)
    until_up(url)


def until_up(url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with psycopg.connect(url):
                return
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise AssertionError("the server did not come back")


@pytest.mark.parametrize(("arm", "point"), POINTS)
def test_a_crash_in_the_middle_of_a_write(own_server: EmbeddedPostgres, tmp_path: Path, arm: str, point: str) -> None:
    name = f"main.outage.{arm} {point}"
    with lakeward.open(database_url=own_server.url, warehouse=tmp_path / "w") as workspace:
        workspace.create_dataset(name, {"id": "long", "note": "string"}, arm=arm).write([{"id": 0, "note": "old"}])
    faults = AtStep(point, lambda: crash(own_server.url))
    with lakeward.open(database_url=own_server.url, warehouse=tmp_path / "w", faults=faults) as workspace:
        dataset = workspace.dataset(name)
        try:
            committed = dataset.write([{"id": 1, "note": "new"}]).committed
        except (ControlError, StorageError) as error:
            assert point not in ("decide:committed", "publish", "publish:moved"), "what is committed is not an error"
            assert "opost" not in str(error), "no part of the connection string"
            committed = False
        assert content(dataset) == (OLD + NEW if committed else OLD)
        dataset.write([{"id": 2, "note": "next"}])
        assert content(dataset) == [*(OLD + NEW if committed else OLD), (2, "next")]
        assert workspace.recover() == []
        assert unclean(workspace, [dataset.name]) == []


def test_idle_connections_of_a_crashed_server_are_replaced(own_server: EmbeddedPostgres, tmp_path: Path) -> None:
    with lakeward.open(database_url=own_server.url, warehouse=tmp_path / "w") as workspace:
        for arm in ("postgres", "iceberg"):
            dataset = workspace.create_dataset(f"main.outage.idle {arm}", {"id": "long", "note": "string"}, arm=arm)
            dataset.write([{"id": 0, "note": "old"}])
            crash(own_server.url)
            dataset.write([{"id": 1, "note": "new"}])
            crash(own_server.url)
            assert content(dataset) == OLD + NEW


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
@pytest.mark.parametrize("point", ["prepare", "decide", "decide:committed"])
def test_a_server_that_stays_away(short_tmp: Path, short_root: Path, arm: str, point: str) -> None:
    """The write fails or not, and when the server is back, the dataset is as before or as after it."""
    settings = short_tmp / "lakeward.toml"
    settings.write_text("[ledger]\nlease_seconds = 1\n", encoding="utf-8")

    def serve() -> EmbeddedPostgres:
        return EmbeddedPostgres.acquire(short_tmp / "postgres", short_root / "cache")

    def opened(server: EmbeddedPostgres, faults: AtStep | None = None) -> lakeward.Workspace:
        return lakeward.open(
            database_url=server.url,
            warehouse=short_tmp / "w",
            settings_file=settings,
            faults=faults,
            clock=FakeClock(),
        )

    with serve() as server:
        faults = AtStep(point, lambda: shut_down(short_tmp / "postgres", server.url), occurrence=2)
        with opened(server, faults) as workspace:
            dataset = workspace.create_dataset("main.outage.away", {"id": "long", "note": "string"}, arm=arm)
            dataset.write([{"id": 0, "note": "old"}])
            stands = _told(lambda: dataset.write([{"id": 1, "note": "new"}]).committed)
        assert stands == (True if point == "decide:committed" else None)
        with serve() as again:
            time.sleep(1.1)
            with opened(again) as workspace:
                workspace.recover()
                dataset = workspace.dataset("main.outage.away")
                assert content(dataset) == (OLD + NEW if stands else OLD)
                assert unclean(workspace, [dataset.name]) == []


def _told(write: Callable[[], bool]) -> bool | None:
    try:
        return write()
    except LakewardError as error:
        assert isinstance(error, ControlError | StorageError), error
        return None


def shut_down(directory: Path, url: str) -> None:
    """Let the whole server end at once, without a checkpoint."""
    pid = next(int(path.read_text().splitlines()[0]) for path in directory.rglob("postmaster.pid"))
    os.kill(pid, signal.SIGQUIT)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError as error:
            if "No such file" in str(error) or "refused" in str(error):
                return
        time.sleep(0.02)
    raise AssertionError("the server did not end")
