"""How many commands run at a time: who comes then is told so before anything of theirs is read."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from lakeward.errors import Busy
from lakeward.server.nursery import Nursery
from lakeward.server.rooms import Rooms
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
