"""The embedded Postgres: starts the server that `pip install` brought, shares it, and stops it after its last user.

    files.py       what lies where in the server's directory, and the name its processes carry
    locks.py       flocks that die with their process and never leak into a fork
    account.py     which operating system user the server runs as
    binaries.py    where the programs come from
    ping.py        asking whether a server accepts connections
    sockets.py     the private directory of the socket, the URL, and whether this very server answers there
    postmaster.py  finding, judging and stopping server processes
    cluster.py     initdb, settings, start
    watcher.py     stops the server when the last user was killed
    server.py      `EmbeddedPostgres`, which puts these together

Four locks carry the correctness, each a flock that the kernel drops when its holder dies:

- `lock`, exclusive: held through every start and every stop, so that there is one decision at a time.
- `users`, shared: held by every user for as long as it uses the server. Who can take it exclusively while holding
  `lock` has proved that nobody uses the server, and may stop it.
- `running`, exclusive: inherited by the server's processes. Pids and shared memory say nothing about a server in
  another container that has the same directory mounted, and two servers on one data directory destroy it; this says.
- `watcher`, exclusive: held by the one watcher. It blocks on `users` and, once let in, drops `users` BEFORE it takes
  `lock`. So the order is always `lock` → `users`, and nobody waits in the other direction.
"""

from __future__ import annotations

from lakeward.control.embedded.cluster import start_server
from lakeward.control.embedded.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres", "start_server"]
