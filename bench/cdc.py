"""A followed source: changes as pgbench makes them, each transaction an update and an insert, into each arm.

They are made first, so that what is measured is the worker: how many changes a second it reads, nets and writes in
micro-batches, and its memory. Then the same while others write, for the lag that is left when they end.
"""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import psycopg
from measure import in_fresh_process, table, timed

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.wiring.follow_plan import FollowRequest

CHANGES = 1_000_000
ACCOUNTS = 100_000
LIVE_SECONDS = 15
WRITERS = 2
MADE = f"""
CREATE TABLE accounts (aid int PRIMARY KEY, bid int, balance int, filler char(84));
CREATE TABLE history (hid bigserial PRIMARY KEY, aid int, delta int, at timestamp);
INSERT INTO accounts SELECT i, i % 10, 0, '' FROM generate_series(1, {ACCOUNTS}) i;
CREATE PROCEDURE change(count int) LANGUAGE plpgsql AS $$
DECLARE a int; d int;
BEGIN
    FOR i IN 1..count LOOP
        a := 1 + floor(random() * {ACCOUNTS})::int;
        d := floor(random() * 1000)::int;
        UPDATE accounts SET balance = balance + d WHERE aid = a;
        INSERT INTO history (aid, delta, at) VALUES (a, d, now());
        COMMIT;
    END LOOP;
END $$;
"""


def case(arm: str) -> dict[str, object]:
    """Measure one arm."""
    with tempfile.TemporaryDirectory(prefix="lw-", dir="/tmp") as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        with EmbeddedPostgres.acquire(root / "other", root / "cache") as server:
            with psycopg.connect(server.url, autocommit=True) as connection:
                for setting in ("wal_level = 'logical'", "synchronous_commit = off", "max_wal_size = '4GB'"):
                    connection.execute(f"ALTER SYSTEM SET {setting}")  # type: ignore[arg-type]
        with EmbeddedPostgres.acquire(root / "other", root / "cache") as server, lakeward.open(root / "home") as ws:
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(MADE)
            ws.sources.add("shop", "postgres", {"url": server.url}, ["accounts", "history"])
            ws.sources.follow(FollowRequest("shop", arm=arm), once=True)
            _change(server.url, CHANGES // 2)
            done = []
            measured = timed(lambda: done.append(ws.sources.follow(FollowRequest("shop"), once=True)))
            assert done[0].changes == CHANGES
            row: dict[str, object] = {
                "into": arm,
                "changes": done[0].changes,
                "batches": done[0].batches,
                "seconds": measured.seconds,
                "changes/s": int(done[0].changes / measured.seconds),
                "CPU": measured.cpu,
                "peak MB": measured.peak_mb,
            }
            return {**row, **_live(ws, server.url)}


def _live(ws: lakeward.Workspace, url: str) -> dict[str, object]:
    """Follow while others write, and tell what is left when both end."""
    stop, ended, made = threading.Event(), threading.Event(), []

    def write() -> None:
        count = 0
        while not ended.is_set():
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("CALL change(500)")
            count += 1000
        made.append(count)

    writers = [threading.Thread(target=write) for _ in range(WRITERS)]
    timer = threading.Timer(LIVE_SECONDS, lambda: (ended.set(), stop.set()))
    for each in (*writers, timer):
        each.start()
    followed = ws.sources.follow(FollowRequest("shop"), stop=stop)
    for each in writers:
        each.join()
    [state] = ws.sources.followed()
    assert state.log is not None
    rate = int(followed.changes / followed.seconds)
    return {"live changes/s": rate, "of": int(sum(made) / LIVE_SECONDS), "lag bytes at the end": state.log.lag_bytes}


def _change(url: str, transactions: int) -> None:
    def run() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CALL change(%s)", (transactions // WRITERS,))

    writers = [threading.Thread(target=run) for _ in range(WRITERS)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()


def main() -> str:
    """Return the table."""
    rows = [in_fresh_process(case, arm) for arm in ("iceberg", "postgres")]
    return table(f"{CHANGES:,} changes of two tables, followed", rows)


if __name__ == "__main__":
    print(main())
