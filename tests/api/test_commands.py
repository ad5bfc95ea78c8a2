"""How many commands run at a time: who comes then is told so before anything of theirs is read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest
from starlette.testclient import TestClient

from lakeward.access.principal import OWNER, Principal
from lakeward.errors import Busy
from lakeward.server import presence as presence_module
from lakeward.server.frames import ENDED, ERR, OUT, STILL, frame, frames
from lakeward.server.nursery import Nursery
from lakeward.server.presence import Presence
from lakeward.server.rooms import Rooms
from lakeward.server.routes.commands import watched
from lakeward.server.running import Commands

TAR = {"Content-Type": "application/x-tar"}


def test_a_full_server_refuses_commands_and_gives_places_back(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms: Rooms = api.app.state.rooms  # type: ignore[attr-defined]
    commands = Commands(Nursery(rooms.workspace.settings), most=1)
    monkeypatch.setitem(vars(rooms), "commands", commands)
    with commands.place(""):
        refused = api.post("/commands", content=b"never read", headers=TAR)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert refused.json()["title"] == "Busy" and "server.commands" in refused.json()["next_steps"][0]
    for _ in range(2):
        assert api.post("/commands", content=b"no archive", headers=TAR).status_code == 400, "its place is free again"


def test_one_user_leaves_places_for_others(api: TestClient) -> None:
    """Where users have names; where nobody is asked for one, whoever comes may have all."""
    commands = Commands(Nursery(api.app.state.rooms.workspace.settings), most=3)  # type: ignore[attr-defined]
    with commands.place("ann"), commands.place("ann"):
        with pytest.raises(Busy, match="2 commands of ann run"), commands.place("ann"):
            pass
        with commands.place("bob"), pytest.raises(Busy, match="3 commands run"), commands.place("cy"):
            pass
    with commands.place(""), commands.place(""), commands.place(""), pytest.raises(Busy), commands.place(""):
        pass


@pytest.mark.parametrize("silent", [False, True])
def test_a_command_ends_with_its_token(monkeypatch: pytest.MonkeyPatch, silent: bool) -> None:
    """One that has just taken its own away ends well."""
    monkeypatch.setattr(presence_module, "ASKED_SECONDS", 0.0)
    now: list[Principal | None] = [OWNER]
    closed = []

    async def told(last: list[bytes]) -> AsyncGenerator[bytes]:
        try:
            yield frame(OUT, b"begun")
            now[0] = None
            for each in last:
                yield each
        finally:
            closed.append(True)

    async def run(last: list[bytes]) -> list[tuple[bytes, bytes]]:
        now[0] = OWNER
        parts = [part async for part in watched(told(last), Presence(OWNER, lambda: now[0]))]
        return list(frames(parts))

    goes_on = asyncio.run(run([frame(STILL) if silent else frame(OUT, b"more")] * 20))
    assert [kind for kind, _ in goes_on] == [OUT, *[STILL if silent else OUT] * 2, ERR, ENDED]
    assert json.loads(goes_on[-1][1]) == {"code": 1}
    by_itself = asyncio.run(run([frame(OUT, b"revoked"), frame(ENDED, b'{"code": 0}')]))
    assert by_itself[-1] == (ENDED, b'{"code": 0}') and len(by_itself) == 3
    assert closed == [True, True]
