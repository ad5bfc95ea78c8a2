"""A tiny process that stops the server once its last user is gone, however that ended.

It sleeps in the kernel, on the exclusive lock of `users`, and uses no time until then. It is started as a program of
its own and loads six small files that need only the standard library: it must not cost what the product costs, and
must outlive a `kill -9` of whoever started it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lakeward.control.embedded.files import ServerFiles
from lakeward.control.embedded.locks import FileLock
from lakeward.control.embedded.postmaster import stop
from lakeward.errors import EmbeddedPostgresError

#: Loads this module without running the `__init__` of the packages above it, which would bring in the whole product.
_BOOTSTRAP = """
import sys, types
package, directory, descriptor = sys.argv[1:]
for name, path in (
    ("lakeward", package),
    ("lakeward.control", package + "/control"),
    ("lakeward.control.embedded", package + "/control/embedded"),
):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from lakeward.control.embedded.watcher import watch
watch(directory, int(descriptor))
"""


def ensure_watcher(files: ServerFiles) -> None:
    """Start a watcher unless one is there. The caller holds `lock`, and `users` shared.

    The new process is born with the `watcher` lock, so there is no moment in which two could believe to be the one.

    Raises:
        EmbeddedPostgresError: it can't be started.
    """
    mark = FileLock(files.watcher)
    try:
        if not mark.try_exclusive():
            return
        package = Path(__file__).resolve().parents[2]
        with files.log.open("ab") as log:
            result = subprocess.run(
                [sys.executable, "-I", "-S", "-B", "-c", _BOOTSTRAP, package, files.directory, str(mark.fileno())],
                cwd="/",
                env={name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[mark.fileno()],
                start_new_session=True,
                check=False,
            )
    finally:
        mark.close()
    if result.returncode:
        raise EmbeddedPostgresError(
            f"the process that stops the embedded Postgres after its last user can't be started: "
            f"{sys.executable} ended with {result.returncode}",
            next_step=f"read {files.log}",
            path=files.directory,
        )


def watch(directory: str, descriptor: int) -> None:
    """Wait until nobody uses the server in `directory`, stop it, and end.

    Args:
        directory: the server's directory.
        descriptor: the inherited, locked file `watcher`.
    """
    files = ServerFiles.of(Path(directory))
    if os.fork():
        os._exit(0)  # whoever started us waits for this one, and is not left with a zombie
    users, lock = FileLock(files.users), FileLock(files.lock)
    while True:
        users.exclusive()
        users.unlock()  # before `lock`: everybody else takes `lock` first
        lock.exclusive()
        if not lock.in_place():
            return  # the directory was deleted, and what is there now is not ours
        if not users.in_place():
            users.close()
            users = FileLock(files.users)
        elif users.try_exclusive():
            stop(files)
            break
        lock.unlock()  # somebody came in between
    # In this order: whoever finds no watcher while it holds `lock` starts one.
    os.close(descriptor)
    lock.close()
