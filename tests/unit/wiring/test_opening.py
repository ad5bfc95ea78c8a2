"""Opening a workspace: what can't be meant or used is refused before anything is made."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import DatabaseUnavailable, HomeNotWritable, LakewardError, SettingsError

DEBIAN = min((path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name >= "15"), default=None)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting comes from the environment of whoever runs the tests."""
    for name in os.environ:
        if name.startswith("LAKEWARD_"):
            monkeypatch.delenv(name)


def refused(kind: type[LakewardError], *arguments: object, **named: object) -> LakewardError:
    with pytest.raises(kind) as caught:
        lakeward.open(*arguments, **named)  # type: ignore[arg-type]
    assert type(caught.value) is kind
    return caught.value


def test_neither_home_nor_database_is_refused_with_both_ways_out(database_url: str, tmp_path: Path) -> None:
    for named in ({}, {"warehouse": tmp_path}, {"database_url": database_url}):
        error = refused(SettingsError, **named)
        assert "--home DIR" in str(error)
        assert "LAKEWARD_DATABASE_URL and LAKEWARD_WAREHOUSE" in str(error)


def test_empty_home_is_not_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(SettingsError, "")
    assert list(tmp_path.iterdir()) == []


def test_home_that_is_a_file_or_below_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    for home in (file, file / "below", file / "further" / "below"):
        error = refused(HomeNotWritable, home)
        assert str(home) in error.message
        assert error.safe == "nothing was changed"
    assert file.read_text() == "precious"


def test_home_that_can_not_be_made_or_written_is_refused() -> None:
    """Root may write everywhere but into /proc and /sys."""
    for home in ("/proc/lakeward", "/sys/lakeward", "/proc"):
        assert home in refused(HomeNotWritable, home).message


def test_home_in_a_circle_of_links_or_of_nobody_is_refused(tmp_path: Path) -> None:
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    assert str(circle) in refused(SettingsError, circle).message
    assert "~nobody-of-that-name" in refused(HomeNotWritable, "~nobody-of-that-name/x").message
    refused(SettingsError, "a\0b")


def test_home_of_an_ordinary_user_that_is_read_only_is_refused(short_tmp: Path) -> None:
    """As root no mode binds, so root tries it as another user."""
    home = short_tmp / "closed"
    home.mkdir(mode=0o555)
    if os.geteuid() != 0:
        assert str(home) in refused(HomeNotWritable, home).message
        return
    pid = os.fork()
    if pid == 0:
        os.setgid(65534)
        os.setuid(65534)
        try:
            lakeward.open(home)
        except HomeNotWritable as error:
            os._exit(0 if str(home) in error.message else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize("warehouse", ["s3://key:p@ss@bucket/x", "gs://bucket", "hdfs://host/x", "https://host/x"])
def test_s01_warehouse_that_is_elsewhere_is_refused_before_anything_starts(tmp_path: Path, warehouse: str) -> None:
    home = tmp_path / "home"
    error = refused(SettingsError, home, warehouse=warehouse)
    assert f"warehouse at {warehouse.partition('://')[0]}://" in error.message
    assert "p@ss" not in str(error.to_json())
    assert list(home.iterdir()) == [], "no server was started"


def test_s02_database_that_can_not_be_reached_is_refused_without_its_password(tmp_path: Path) -> None:
    error = refused(DatabaseUnavailable, tmp_path / "home", database_url="postgresql://ann:s%40cret@127.0.0.1:1/orders")
    assert "127.0.0.1" in error.message
    for form in ("s%40cret", "s@cret", "cret"):
        assert form not in str(error.to_json())


def test_named_settings_file_must_be_there(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    assert refused(SettingsError, tmp_path / "home", settings_file=missing).message.endswith(str(missing))


def test_settings_of_the_home_count_and_are_beaten_by_flags(tmp_path: Path, database_url: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "lakeward.toml").write_text("warehouse = 'tables'\n[ledger]\nlease_seconds = 5\n")
    with lakeward.open(home, database_url=database_url) as workspace:
        assert workspace.settings.values.ledger.lease_seconds == 5
        assert workspace.settings.values.warehouse == str(home / "tables")
    with lakeward.open(home, database_url=database_url, warehouse=tmp_path / "other") as workspace:
        assert workspace.settings.sources["warehouse"] == "flag"


def test_scratch_of_workspaces_without_home_is_in_one_place_and_left_empty(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with lakeward.open(database_url=database_url, warehouse=tmp_path / "warehouse") as workspace:
        workspace.create_dataset("m.s.d", {"id": "long"}).write([{"id": 1}], mode="append")
        [shared] = scratch.iterdir()
        assert stat.S_IMODE(shared.stat().st_mode) == 0o700
    assert list(scratch.iterdir()) == [shared]
    assert list(shared.iterdir()) == []


def test_open_twice_closes_twice(database_url: str, tmp_path: Path) -> None:
    first = lakeward.open(tmp_path / "home", database_url=database_url)
    second = lakeward.open(tmp_path / "home", database_url=database_url)
    first.close()
    first.close()
    assert second.datasets() == []
    second.close()


@pytest.fixture(params=["packaged", "debian"] if DEBIAN else ["packaged"])
def server_url(request: pytest.FixtureRequest, short_tmp: Path, new_database: Callable[[], str]) -> object:
    """An empty database: of the packaged server, and of Debian's where it is installed."""
    if request.param == "packaged":
        yield new_database()
        return
    with EmbeddedPostgres.acquire(short_tmp / "debian", short_tmp / "cache", binaries=DEBIAN) as server:
        yield server.url


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_database_url_of_the_environment_replaces_the_embedded_server(
    server_url: str, arm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEWARD_DATABASE_URL", server_url)
    monkeypatch.setenv("LAKEWARD_WAREHOUSE", str(tmp_path / "warehouse"))
    rows = pa.table({"id": [1, 2], "note": ["a", None]})
    with lakeward.open() as workspace:
        made = workspace.create_dataset(
            "Größe.a/b.x.y".replace("x.y", '"x.y"'), {"id": "long", "note": "string"}, arm=arm
        )
        assert made.write(rows, mode="append").version == 1
        assert made.to_arrow().equals(rows)
        digest = made.digest()
    with lakeward.open() as again:
        assert again.dataset(made.name).digest() == digest
        assert again.settings.sources["database_url"] == "LAKEWARD_DATABASE_URL"
        again.create_dataset("m.s.other", {"id": "long"})
    program = "import lakeward; print(len(lakeward.open().datasets()))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "2\n"
