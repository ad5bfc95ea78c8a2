"""Creating a data directory and starting a server in it, with any server from PostgreSQL 15 on."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
from pathlib import Path
from typing import Literal

from lakeward.control.embedded.account import USE_OWN_SERVER, Account, server_account
from lakeward.control.embedded.binaries import server_version
from lakeward.control.embedded.files import ServerFiles
from lakeward.control.embedded.locks import FileLock
from lakeward.control.embedded.ping import DATABASE, SUPERUSER
from lakeward.control.embedded.postmaster import clear_stale_locks
from lakeward.control.embedded.sockets import socket_directory
from lakeward.errors import EmbeddedPostgresError

START_SECONDS = 120
_OLDEST_MAJOR = 15
_LOG_BYTES = 16 * 1024 * 1024
_LOG_LINES = 12
_RUNNING_SECONDS = 10.0

#: What a new data directory starts with; its owner may change them in postgresql.conf or with ALTER SYSTEM.
SETTINGS = {
    # Durability is not for sale: the ledger's decision is the only commit point of the product.
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    # Bulk writes of whole datasets: few, long checkpoints, and a log that is worth compressing.
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "wal_compression": "on",
    "log_checkpoints": "off",
    "shared_buffers": "256MB",
    "work_mem": "32MB",
    "maintenance_work_mem": "256MB",
    "random_page_cost": "1.1",
    "max_connections": "200",
    "max_worker_processes": "16",
    "max_parallel_workers": "8",
    "max_parallel_workers_per_gather": "2",
    "max_parallel_maintenance_workers": "2",
    # Compiling a query costs more than all of the small ones that the control plane lives on.
    "jit": "off",
    # The same on every machine, whatever its locale says.
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
    # A statement can hold the user's data, and the log is not a place for it.
    "log_min_error_statement": "panic",
}


def start_server(bin_dir: Path, directory: Path) -> Literal["cold", "warm"]:
    """Start the server of `bin_dir` in `directory`, after creating its data directory if there is none.

    The caller holds the directory's lock and has seen that no server runs there; `EmbeddedPostgres.acquire` does.

    Args:
        bin_dir: the directory of `postgres`, `initdb` and `pg_ctl`.
        directory: the server's directory; it must exist.

    Returns:
        "cold" if the data directory was created, "warm" if it was there.

    Raises:
        EmbeddedPostgresError: the server can't be started; the text carries the end of its log.
        OSError: the directory can't be written.
    """
    files = ServerFiles.of(directory)
    account = server_account(files.data)
    major, version = server_version(bin_dir, account)
    if major < _OLDEST_MAJOR:
        raise EmbeddedPostgresError(
            f"{bin_dir} holds PostgreSQL {version}, and {_OLDEST_MAJOR} is the oldest that works",
            next_step=f"use a later one, or {USE_OWN_SERVER}",
            path=bin_dir,
        )
    for leftover in files.directory.glob("data.new-*"):
        # Of a launcher that was killed. Its initdb may still be writing there; then the next start removes the rest.
        shutil.rmtree(leftover, ignore_errors=True)
    created = not (files.data / "PG_VERSION").exists()
    if created:
        _create(bin_dir, files, account, major)
    _check_version(files, major, version)
    socket_dir = socket_directory(files, account)
    running = FileLock(files.running)
    try:
        if not running.exclusive_within(_RUNNING_SECONDS):
            raise EmbeddedPostgresError(
                f"a server that can't be seen from here uses {files.data}, perhaps in another container",
                safe="nothing was changed",
                next_step=f"stop it there (`fuser {files.running}` on the host), or {USE_OWN_SERVER}",
                path=files.data,
            )
        clear_stale_locks(files, socket_dir)
        _launch(bin_dir, files, account, socket_dir, running)
    finally:
        running.close()
    return "cold" if created else "warm"


def _create(bin_dir: Path, files: ServerFiles, account: Account, major: int) -> None:
    """Make the data directory under another name, and rename it once it is complete with its database.

    So a kill half-way leaves nothing that looks like a data directory.
    """
    draft = files.directory / f"data.new-{secrets.token_hex(4)}"
    account.make_private(draft)
    try:
        _initdb(bin_dir, draft, account, major)
        result = account.run(
            [bin_dir / "postgres", "--single", "-c", "exit_on_error=on", "template1"],
            data=draft,
            text_in=f"CREATE DATABASE {DATABASE}\n",
        )
        if result.returncode:
            raise _failed("create the database of", files, result.stdout)
        try:
            draft.rename(files.data)
        except OSError as error:
            raise EmbeddedPostgresError(
                f"{files.data} is there and is not a Postgres data directory: {error.strerror}",
                safe="nothing was changed in it",
                next_step=f"move {files.data} away, or choose another home",
                path=files.data,
            ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    parent = os.open(files.directory, os.O_RDONLY)
    try:
        os.fsync(parent)  # the rename itself must survive a power cut
    finally:
        os.close(parent)


def _initdb(bin_dir: Path, draft: Path, account: Account, major: int) -> None:
    # Order by code point everywhere, so that no upgrade of a C library can break an index. Before 17 the server has no
    # such collation of its own: there the C library's, or plain C where it has none.
    if major >= 17:
        locales = [["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]]
    else:
        locales = [["--locale=C.UTF-8"], ["--locale=C"]]
    common = [
        f"--username={SUPERUSER}",
        "--encoding=UTF8",
        "--auth-local=trust",
        "--auth-host=reject",
        "--data-checksums",
    ]
    for locale in locales:
        result = account.run([bin_dir / "initdb", *common, *locale], data=draft)
        if result.returncode == 0 or "invalid locale" not in result.stdout:
            break
    if result.returncode:
        raise _failed("create the data directory of", ServerFiles.of(draft.parent), result.stdout)
    with (draft / "postgresql.conf").open("a", encoding="utf-8") as configuration:
        configuration.write("\n# Lakeward's own choices for a new data directory. Change them here if you need to.\n")
        configuration.writelines(f"{name} = '{value}'\n" for name, value in SETTINGS.items())


def _launch(bin_dir: Path, files: ServerFiles, account: Account, socket_dir: Path, running: FileLock) -> None:
    """Start the server, which inherits `running`, and wait until it accepts connections."""
    options = {
        "cluster_name": files.tag,
        "listen_addresses": "",
        "port": "5432",
        "unix_socket_directories": f'"{socket_dir}"',
        "unix_socket_permissions": "0700",
        # A container's /dev/shm is 64 MB, and a parallel query that fills it fails.
        "shared_memory_type": "mmap",
        "dynamic_shared_memory_type": "mmap",
    }
    if files.log.exists() and files.log.stat().st_size > _LOG_BYTES:
        files.log.replace(files.log.with_suffix(".log.1"))
    with open(files.log, "ab", opener=_private) as log:
        begin = log.tell()
        arguments = " ".join(f"-c {shlex.quote(f'{name}={value}')}" for name, value in options.items())
        result = account.run(
            [bin_dir / "pg_ctl", "start", "-w", "-t", str(START_SECONDS), "-o", arguments],
            data=files.data,
            output=log,
            inherit=(running.fileno(),),
        )
    if result.returncode:
        with files.log.open("rb") as log:
            log.seek(begin)
            raise _failed("start", files, log.read().decode("utf-8", "replace"))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _check_version(files: ServerFiles, major: int, version: str) -> None:
    found = (files.data / "PG_VERSION").read_text(encoding="ascii").strip()
    if found != str(major):
        raise EmbeddedPostgresError(
            f"{files.data} was written by PostgreSQL {found}, and this server is PostgreSQL {version}",
            safe="nothing was changed in it",
            next_step=f"start it with the programs of PostgreSQL {found} and either set LAKEWARD_DATABASE_URL to that "
            f"server or carry it over with pg_dump; or move {files.data} away to begin anew",
            path=files.data,
            found=found,
            expected=str(major),
        )


def _failed(verb: str, files: ServerFiles, output: str) -> EmbeddedPostgresError:
    lines = [line for line in output.splitlines() if line.strip()]
    full = any("No space left on device" in line or "Disk quota exceeded" in line for line in lines)
    return EmbeddedPostgresError(
        f"can't {verb} the embedded Postgres in {files.directory}"
        + (": no space left on the disk" if full else "")
        + "".join(f"\n    {line}" for line in lines[-_LOG_LINES:]),
        safe="committed data is on disk",
        next_step=f"free some space and try again, or {USE_OWN_SERVER}"
        if full
        else f"read {files.log}, or {USE_OWN_SERVER}",
        path=files.directory,
    )
