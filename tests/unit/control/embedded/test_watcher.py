"""The server stops after its last user, however that ended; real processes and real `kill -9`."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from lakeward.control.embedded import server
from lakeward.control.embedded.locks import FileLock
from postgres_probe import Processes, User, value


def test_kill_9_of_the_last_user_stops_the_server(
    made_home: Path,
    user: Callable[..., User],
    processes: Processes,
    watchers: Callable[[], list[int]],
    wait_until: Callable[..., None],
) -> None:
    first, second = user(), user()
    first.answer()
    url = second.answer()["url"]
    (watcher,) = watchers()
    if Path("/proc/self/stat").exists():
        time.sleep(0.3)
        before = Path(f"/proc/{watcher}/stat").read_text().split()[13:15]
        time.sleep(0.3)
        assert Path(f"/proc/{watcher}/stat").read_text().split()[13:15] == before, "a waiting watcher uses no time"
    first.kill()
    time.sleep(0.2)
    assert value(url, "SELECT 1") == 1, "one user is left"
    second.kill()
    wait_until(lambda: not processes() and not watchers())


def test_a_killed_watcher_is_replaced_by_the_next_user(
    made_home: Path,
    user: Callable[..., User],
    processes: Processes,
    watchers: Callable[[], list[int]],
    wait_until: Callable[..., None],
) -> None:
    first = user()
    first.answer()
    os.kill(watchers()[0], signal.SIGKILL)
    first.kill()
    assert processes(), "nobody was there to stop it"
    second = user()
    assert second.answer()["how"] == "attached"
    second.kill()
    wait_until(lambda: not processes())


def test_children_of_a_user_do_not_keep_the_server(
    made_home: Path, user: Callable[..., User], processes: Processes, wait_until: Callable[..., None]
) -> None:
    children = made_home.parent / "children"
    parent = user(
        after=f"""
import subprocess, time
program = subprocess.Popen(["sleep", "60"], close_fds=False)
fork = os.fork()
if fork == 0:
    server.release()  # the child's copy: must not take the parent's use away
    time.sleep(60)
    os._exit(0)
time.sleep(0.3)
Path({str(children)!r}).write_text(f"{{program.pid}} {{fork}}")
"""
    )
    url = parent.answer()["url"]
    pids = [int(pid) for pid in children.read_text().split()]
    try:
        assert value(url, "SELECT 1") == 1
        parent.kill()
        wait_until(lambda: not processes())
        for pid in pids:
            os.kill(pid, 0)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def test_new_users_race_the_watcher(made_home: Path, user: Callable[..., User], processes: Processes) -> None:
    current = user()
    current.answer()
    for pause in (0.0, 0.005, 0.02, 0.06):
        following = user(before="sys.stdin.readline()")
        current.kill()  # the watcher wakes up …
        time.sleep(pause)
        following.go()  # … while the next user arrives
        url = following.answer()["url"]
        for _ in range(5):
            assert value(url, "SELECT 1") == 1
            time.sleep(0.03)
        current = following
    current.leave()
    assert processes() == {}


def test_a_user_who_came_while_the_watcher_waited_keeps_the_server(
    made_home: Path, user: Callable[..., User], processes: Processes, wait_until: Callable[..., None]
) -> None:
    last = user()
    url = last.answer()["url"]
    lock, users = FileLock(made_home / "lock"), FileLock(made_home / "users")
    assert lock.try_exclusive()  # as somebody who is attaching
    last.kill()
    time.sleep(0.3)  # the watcher has seen `users` free, and now waits for `lock`
    users.shared()
    lock.close()
    time.sleep(0.5)
    assert value(url, "SELECT 1") == 1
    users.close()
    wait_until(lambda: not processes())


def test_the_last_user_is_not_misled_by_the_watcher_that_slipped_in(tmp_path: Path) -> None:
    """While the last user asks whether it is the last, its lock is lost for a moment, and the watcher may be let in.

    Linux does not let it in, but promises nothing; so this begins in the state that would follow.
    """
    own, watcher, other = (FileLock(tmp_path / "users") for _ in range(3))
    assert watcher.try_exclusive()
    leaving = threading.Timer(0.1, watcher.unlock)
    leaving.start()
    assert server._nobody_else(own)
    leaving.join()

    own.shared()
    other.shared()
    assert not server._nobody_else(own), "a real user is seen as one"
    for lock in (own, watcher, other):
        lock.close()
