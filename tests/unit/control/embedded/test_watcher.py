"""The server stops after its last user, however that ended; real processes and real `kill -9`."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

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
