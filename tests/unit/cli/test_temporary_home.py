"""Nothing is left of a workspace that is thrown away, however its command ends."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from lakeward.cli import temporary_home as module
from lakeward.cli.temporary_home import signals_held_back, temporary_home
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.embedded.files import ServerFiles
from lakeward.control.embedded.postmaster import server_processes


def test_a_server_that_was_left_running_ends_with_it() -> None:
    """As by Ctrl-C between its start and whoever is to end it; its user is this very process."""
    with pytest.raises(KeyboardInterrupt), temporary_home("lakeward-test-") as home:
        used = EmbeddedPostgres.acquire(home / "postgres")
        files = ServerFiles.of(home / "postgres")
        assert used.url and server_processes(files)
        raise KeyboardInterrupt
    assert not home.exists() and not server_processes(files)


def test_ctrl_c_while_it_is_removed_waits_for_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = module._remove

    def interrupted(home: Path) -> None:
        signal.raise_signal(signal.SIGINT)
        remove(home)

    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(module, "_remove", interrupted)
    with pytest.raises(KeyboardInterrupt), temporary_home("lakeward-test-") as home:
        (home / "rows").write_text("…")
    assert not list(tmp_path.iterdir())


def test_signals_are_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with signals_held_back():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
