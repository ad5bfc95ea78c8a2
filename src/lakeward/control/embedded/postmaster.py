"""Finding, judging and stopping the processes of a server. Standard library only, because the watcher loads it too.

A pid in a file proves nothing: after `kill -9` or a power cut the number may belong to another program by now, to which
no signal may go. A process counts as ours only if its command line carries the server's tag and it runs as the owner of
the data directory.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from lakeward.control.embedded.files import SOCKET_NAME, PidFile, ServerFiles, read_pid_file
from lakeward.control.embedded.ping import accepting
from lakeward.errors import EmbeddedPostgresError

_POLL_SECONDS = 0.01
_LAUNCH_SECONDS = 20.0
_REPLAY_SECONDS = 10.0

#: Fast shutdown, then an immediate one (safe like a power cut: the log is replayed), then what a frozen process needs.
_STOPS = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 15.0), (getattr(signal, "SIGKILL", signal.SIGQUIT), 5.0))

_HAS_PROC = Path("/proc/self/cmdline").exists()

_PROGRAM = re.compile(r"(?:^|/)(?:postgres|postmaster|pg_ctl|sh) ")


def live_postmaster(files: ServerFiles) -> int | None:
    """Return the pid of the server's live postmaster, or None.

    A server that is being launched has processes and no pid file yet (its launcher may have been killed right then):
    this waits for the one or the other.
    """
    deadline = time.monotonic() + _LAUNCH_SECONDS
    while True:
        processes = server_processes(files)
        recorded = read_pid_file(files.pid_file)
        if recorded is not None and recorded.pid in processes:
            return recorded.pid
        launching = any(not command.startswith("postgres: ") for command in processes.values())
        if not launching or time.monotonic() > deadline:
            return None
        time.sleep(_POLL_SECONDS)


def stop(files: ServerFiles) -> None:
    """Stop the server and wait until it is gone; return at once if none runs. The caller holds `lock`.

    Raises:
        EmbeddedPostgresError: it did not go.
    """
    pid = live_postmaster(files)
    recorded = read_pid_file(files.pid_file)
    if pid is not None:
        # A fast shutdown that reaches a server while it replays its log can hang for ever (seen with 15 and 18). So it
        # is given time to finish; or else the replay is cut short, and the next start does it.
        stops = _STOPS if recorded is not None and _settled(files, pid, recorded) else _STOPS[1:]
        for number, seconds in stops:
            _send(pid, number)
            if _gone(files, {pid}, seconds):
                break
    remove_orphans(files)
    if recorded is not None and recorded.socket_directory is not None and recorded.socket_directory.name == files.tag:
        try:
            recorded.socket_directory.rmdir()
        except OSError:
            pass  # a short socket directory that still holds something is used again by the next start


def remove_orphans(files: ServerFiles) -> None:
    """End what is left of a server whose postmaster is dead or unknown to its data directory. The caller holds `lock`.

    A backend that computes does not notice that its postmaster was killed, and no new server can start beside it.

    Raises:
        EmbeddedPostgresError: a process did not go.
    """
    for number, seconds in _STOPS[1:]:
        orphans = server_processes(files)
        for pid in orphans:
            _send(pid, number)
        if _gone(files, set(orphans), seconds):
            return
    raise EmbeddedPostgresError(
        f"processes {sorted(server_processes(files))} of the embedded Postgres in {files.directory} don't end",
        safe="committed data is on disk",
        next_step="end these processes by hand and try again",
        path=files.directory,
    )


def clear_stale_locks(files: ServerFiles, socket_dir: Path) -> None:
    """Remove the lock files of a dead server. The caller holds `lock` and has seen that no process of ours lives.

    Postgres itself removes only those whose pid is free; after a crash the pid may live again as another program. A
    live server that somebody started by hand in this data directory keeps its lock file, and ours refuses to start.
    """
    for path in (files.pid_file, socket_dir / f"{SOCKET_NAME}.lock"):
        recorded = read_pid_file(path)
        command = _command_line(recorded.pid) if recorded is not None else ""
        if _PROGRAM.search(command) and str(files.data) in command:
            continue
        path.unlink(missing_ok=True)


def server_processes(files: ServerFiles) -> dict[int, str]:
    """Return the command lines, by pid, of every live process of the server, its launching ones included."""
    try:
        owner = files.data.stat().st_uid
    except FileNotFoundError:
        return {}
    return {pid: command for pid, uid, command in _processes() if uid == owner and _carries(command, files.tag)}


def _carries(command: str, tag: str) -> bool:
    if command.startswith(f"postgres: {tag}: "):  # the title of a backend
        return True
    return f"cluster_name={tag}" in command and _PROGRAM.search(command) is not None


def _processes() -> list[tuple[int, int, str]]:
    """Return (pid, uid, command line) of every process; a zombie has an empty command line."""
    if _HAS_PROC:
        found = []
        for entry in os.scandir("/proc"):
            if entry.name.isdecimal():
                try:
                    found.append((int(entry.name), entry.stat().st_uid, _command_line(int(entry.name))))
                except (FileNotFoundError, ProcessLookupError):
                    pass  # ended while we looked
        return found
    listing = subprocess.run(["ps", "-axww", "-o", "pid=,uid=,command="], capture_output=True, check=False)
    rows = (line.split(None, 2) for line in os.fsdecode(listing.stdout).splitlines())
    return [(int(row[0]), int(row[1]), row[2]) for row in rows if len(row) == 3]


def _command_line(pid: int) -> str:
    """Return the arguments of a process with a space after each, or nothing if it is dead or a zombie."""
    if _HAS_PROC:
        try:
            return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            return ""
    return next((command for number, _, command in _processes() if number == pid), "")


def _settled(files: ServerFiles, pid: int, recorded: PidFile) -> bool:
    """Wait until the server accepts connections; return False if it does not come to."""
    deadline = time.monotonic() + _REPLAY_SECONDS
    places = [place for place in (recorded.socket_directory, files.directory / "socket") if place is not None]
    while not any(accepting(place) for place in places):
        if time.monotonic() > deadline or _gone(files, {pid}, 0):
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # gone already, which is what the signal was for


def _gone(files: ServerFiles, pids: set[int], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(_carries(_command_line(pid), files.tag) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
