"""The private directory of the socket."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.embedded.account import server_account
from lakeward.control.embedded.files import ServerFiles
from lakeward.control.embedded.sockets import answering, connection_url, socket_directory
from lakeward.errors import EmbeddedPostgresError


@pytest.fixture
def deep(short_tmp: Path) -> ServerFiles:
    """A server whose own directory is too deep for a socket."""
    path = short_tmp / ("d" * 120)
    path.mkdir(mode=0o755)
    return ServerFiles.of(path)


def test_a_directory_that_others_prepared_is_not_used(deep: ServerFiles) -> None:
    account = server_account(deep.data)
    squatted = Path(tempfile.gettempdir()) / deep.tag
    squatted.mkdir()
    squatted.chmod(0o777)
    try:
        place = socket_directory(deep, account)
        assert place != squatted
        assert (place.stat().st_mode & 0o777, place.stat().st_uid) == (0o700, account.uid)
        place.rmdir()
    finally:
        squatted.rmdir()


def test_a_link_that_others_prepared_is_not_used(deep: ServerFiles, short_tmp: Path) -> None:
    account = server_account(deep.data)
    account.make_private(short_tmp / "mine")
    squatted = Path(tempfile.gettempdir()) / deep.tag
    squatted.symlink_to(short_tmp / "mine")
    try:
        place = socket_directory(deep, account)
        assert place != squatted
        place.rmdir()
    finally:
        squatted.unlink()


def test_its_own_short_directory_is_found_again(deep: ServerFiles) -> None:
    account = server_account(deep.data)
    place = socket_directory(deep, account)
    assert socket_directory(deep, account) == place
    place.rmdir()


def test_no_place_at_all_is_an_error_that_names_the_way_out(
    deep: ServerFiles, short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = server_account(deep.data)
    files = ServerFiles(deep.directory, "t" * 120)
    with pytest.raises(EmbeddedPostgresError, match=str(deep.directory)) as caught:
        socket_directory(files, account)
    assert caught.value.next_step is not None and "TMPDIR" in caught.value.next_step


def test_url_escapes_the_directory() -> None:
    assert connection_url(Path("/a b/ü")) == "postgresql://postgres@/lakeward?host=%2Fa%20b%2F%C3%BC&port=5432"


def test_a_server_of_another_directory_does_not_answer_for_this_one(made_home: Path, deep: ServerFiles) -> None:
    with EmbeddedPostgres.acquire(made_home):
        files = ServerFiles.of(made_home)
        assert answering(files) is not None
        deep.data.mkdir()
        lines = files.pid_file.read_text().split("\n")
        deep.pid_file.write_text("\n".join(["999999", *lines[1:]]))
        assert answering(deep) is None
