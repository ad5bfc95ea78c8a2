"""Who holds a transaction: proof of death that is never wrong by accident, and the heartbeat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from lakeward.control import leases
from lakeward.control.leases import Heartbeat, Owner
from lakeward.control.slots import _timeout
from lakeward.errors import DatabaseUnavailable

WAIT = (
    "import sys; from lakeward.control.leases import Owner; import json; "
    "print(json.dumps(Owner.current().to_json()), flush=True); sys.stdin.read()"
)


def child_owner() -> tuple[subprocess.Popen[bytes], Owner]:
    child = subprocess.Popen([sys.executable, "-c", WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    return child, Owner.from_json(json.loads(child.stdout.readline()))


def test_owner_survives_its_row() -> None:
    owner = Owner.current()
    assert Owner.from_json(owner.to_json()) == owner
    assert (owner.pid, str(owner)) == (os.getpid(), f"{owner.host}, pid {owner.pid}")
    assert owner.boot
    assert owner.started


def test_living_process_is_not_dead() -> None:
    child, owner = child_owner()
    try:
        assert not owner.is_dead()
        assert not Owner.current().is_dead()
    finally:
        child.kill()
        child.wait()


def test_killed_process_is_dead_at_once_waited_for_or_not() -> None:
    child, owner = child_owner()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is a zombie
    assert owner.is_dead()
    child.wait()
    assert owner.is_dead()


def test_pid_that_lives_again_as_another_process_is_dead() -> None:
    assert replace(Owner.current(), started="1").is_dead()


@pytest.mark.parametrize("changes", [{"boot": "another boot"}, {"namespace": "pid:[1]"}, {"boot": ""}, {"started": ""}])
def test_process_of_another_machine_boot_or_container_can_not_be_judged(changes: dict[str, str]) -> None:
    assert not replace(Owner.current(), pid=2**22 - 1, **changes).is_dead()
    assert not Owner("elsewhere", 1).is_dead()


def test_process_that_proc_hides_is_not_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mounted with hidepid=2, /proc shows a user nothing of the processes of others."""
    owner = Owner.current()
    monkeypatch.setattr(leases, "_started", lambda pid: None)
    assert not owner.is_dead()
    assert replace(owner, pid=2**22 - 1).is_dead()


def test_heartbeat_renews_until_it_is_left() -> None:
    beats = threading.Semaphore(0)

    def renew() -> bool:
        beats.release()
        return True

    with Heartbeat(renew, 0.005) as heartbeat:
        for _ in range(3):
            assert beats.acquire(timeout=10)
    assert not heartbeat.lost
    while beats.acquire(blocking=False):
        pass
    assert not beats.acquire(timeout=0.05), "nothing beats after the block"


def test_heartbeat_goes_on_after_an_error_and_ends_with_the_lease() -> None:
    answers = [DatabaseUnavailable("gone for a moment"), True, False]
    asked = threading.Event()

    def renew() -> bool:
        answer = answers.pop(0)
        if not answers:
            asked.set()
        if isinstance(answer, Exception):
            raise answer
        return answer

    with Heartbeat(renew, 0.001) as heartbeat:
        assert asked.wait(10)
    assert heartbeat.lost
    assert answers == []


def test_lock_timeout_without_a_holder_still_names_the_dataset() -> None:
    error = _timeout("main.sales.orders", 1.25, None)
    assert "main.sales.orders had other writers for 1.2 s" in str(error)
    assert error.fields == {"dataset": "main.sales.orders"}
