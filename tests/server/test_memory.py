"""What was freed goes back to the system, once for all who end at about the same time."""

from __future__ import annotations

import anyio
import pytest

from lakeward.server import memory


def test_it_goes_back_once_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        done, calls = anyio.Event(), []
        loop_token = anyio.lowlevel.current_token()

        def trim(left: int) -> None:
            calls.append(left)
            anyio.from_thread.run_sync(done.set, token=loop_token)

        monkeypatch.setattr(memory, "_trim", trim)
        monkeypatch.setattr(memory, "SOON", 0.01)
        kept = memory.Memory()
        for turn in (1, 2):
            for _ in range(5):
                kept.freed()
            await done.wait()
            assert calls == [0] * turn
            done = anyio.Event()

    anyio.run(run)
