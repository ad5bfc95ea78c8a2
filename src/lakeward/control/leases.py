"""Who holds an open transaction: the owner's identity, proof of its death, and the heartbeat that keeps its lease."""

from __future__ import annotations

import functools
import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from lakeward.errors import LakewardError

log = logging.getLogger("lakeward.leases")


@dataclass(frozen=True)
class Owner:
    """A process, named so that another one on the same machine can tell whether it still lives.

    `boot` and `namespace` (of process ids) say which machine, run and container a pid belongs to; `started` (clock
    ticks after boot) tells a pid's first owner from a later one. They are empty where the system doesn't say.
    """

    host: str
    pid: int
    boot: str = ""
    namespace: str = ""
    started: str = ""

    @classmethod
    def current(cls) -> Owner:
        """Return this process."""
        boot, namespace = _machine()
        return cls(socket.gethostname(), os.getpid(), boot, namespace, _started(os.getpid()) or "")

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> Owner:
        """Read what `to_json` wrote."""
        return cls(
            str(values["host"]),
            int(str(values["pid"])),
            str(values.get("boot", "")),
            str(values.get("namespace", "")),
            str(values.get("started", "")),
        )

    def to_json(self) -> dict[str, object]:
        """Return the owner as its lease row keeps it."""
        return asdict(self)

    def is_dead(self) -> bool:
        """Say whether this process has certainly ended. False where that can't be known, as on another machine.

        A wrong True would cost the owner its work but no data: taking over raises the fence, and decide refuses it.
        """
        if not self.boot or not self.started or (self.boot, self.namespace) != _machine():
            return False
        started = _started(self.pid)
        return not _exists(self.pid) if started is None else started != self.started

    def __str__(self) -> str:
        return f"{self.host}, pid {self.pid}"


@functools.cache
def _machine() -> tuple[str, str]:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return boot, str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return "", ""


def _started(pid: int) -> str | None:
    """Return the start time of a process in clock ticks after boot (field 22 of proc(5)'s stat).

    "" if it has ended and is only not yet waited for, None if nothing can be read of it.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]


def _exists(pid: int) -> bool:
    # With /proc mounted hidepid=2, the processes of other users look as if they were gone. To a signal they don't.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Heartbeat:
    """Renews leases from a thread of its own while a build runs, and notices when one is gone.

    Args:
        renew: extends the leases and says whether all of them are still ours.
        seconds: between two renewals; a third of the lease's length.
    """

    def __init__(self, renew: Callable[[], bool], seconds: float) -> None:
        self._renew = renew
        self._seconds = seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lakeward-heartbeat", daemon=True)
        self.lost = False

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            try:
                if not self.beat():
                    return
            except LakewardError as error:
                # A missed beat is no fault: the next one, or decide, tells the truth.
                log.warning("a lease was not renewed: %s", error)

    def beat(self) -> bool:
        """Renew the leases now, and say whether all of them are still ours."""
        if not self._renew():
            self.lost = True
        return not self.lost

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
