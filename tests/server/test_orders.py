"""Orders on the server: what is in them leads nowhere else, who asks counts, and they end with their request."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import lakeward
from lakeward.access.principal import Grant, Principal
from lakeward.access.roles import Role
from lakeward.cli.app import main
from lakeward.errors import UsageError
from lakeward.server.frames import ASKS, ENDED, ERR, OUT, frames
from lakeward.server.nursery import Nursery
from lakeward.server.orders import unpack
from lakeward.server.running import Commands
from server.conftest import serving
from support.orders import archive

OWNER = Principal("olga", (Grant(Role.ADMIN),))
BUILDER = Principal("bert", (Grant(Role.BUILDER),))
VIEWER = Principal("vera", (Grant(Role.VIEWER, ("main", "remote")),))


@pytest.fixture(scope="module", autouse=True)
def data(workspace: lakeward.Workspace) -> None:
    orders = workspace.create_dataset("main.remote.orders", {"id": "long", "note": "string"}, ["id"])
    orders.write([{"id": each, "note": f"n{each}"} for each in range(4)])


def entry(name: str, kind: bytes = tarfile.REGTYPE, to: str = "") -> tuple[tarfile.TarInfo, bytes]:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, to
    return made, b""


@pytest.mark.parametrize(
    "member",
    [
        entry("/etc/made"),
        entry("files/../../made"),
        entry("elsewhere"),
        entry("files/link", tarfile.SYMTYPE, "/etc/passwd"),
        entry("files/link", tarfile.LNKTYPE, "/etc/passwd"),
        entry("files/pipe", tarfile.FIFOTYPE),
        entry("files/device", tarfile.CHRTYPE),
        entry("files/" + "x" * 300),
        entry("files/" + "x/" * 300),
    ],
    ids=lambda each: each[0].name[:30] + each[0].type.decode(),
)
def test_an_archive_leads_nowhere_else(tmp_path: Path, member: tuple[tarfile.TarInfo, bytes]) -> None:
    unpacked(tmp_path, archive(member))


def test_a_name_of_two_things_is_refused(tmp_path: Path) -> None:
    for number, second in enumerate(("files/a", "files/a/b")):
        (place := tmp_path / str(number)).mkdir()
        unpacked(place, archive(entry("files/a"), entry(second)))


def test_holes_are_not_filled(tmp_path: Path) -> None:
    """A few bytes that say that they are a file of a terabyte would fill any disk."""
    holed, size = entry("files/holed")[0], str(1 << 40)
    holed.pax_headers = {"GNU.sparse.map": f"0,0,{size},0", "GNU.sparse.size": size, "GNU.sparse.name": holed.name}
    unpacked(tmp_path, archive((holed, b"")))
    assert not any((tmp_path / "folder" / "files").iterdir())


@pytest.mark.parametrize("content", [b"", b"x" * 2048, archive(arguments=[]), archive(what=1), archive()[:700]])
def test_what_is_no_order_is_refused(tmp_path: Path, content: bytes) -> None:
    unpacked(tmp_path, content)


def unpacked(place: Path, content: bytes) -> None:
    """Unpack what is to be refused."""
    (place / "folder").mkdir()
    (place / "packed.tar").write_bytes(content)
    with pytest.raises(UsageError, match="the archive of the command"):
        unpack(place / "packed.tar", place / "folder", OWNER)
    assert not (place / "made").exists()


@pytest.fixture(scope="module")
def commands(workspace: lakeward.Workspace) -> Iterator[Commands]:
    nursery = Nursery(workspace.settings)
    yield Commands(nursery, most=20)
    nursery.close()


def ordered(commands: Commands, folder: Path, who: Principal, *arguments: str, **order: Any) -> tuple[int, str]:
    """Run a command as somebody, and return its exit code and what it wrote."""
    folder.mkdir()
    packed = folder / "packed.tar"
    packed.write_bytes(archive(arguments=list(arguments), **order))
    unpack(packed, folder, who)

    async def run() -> bytes:
        return b"".join([part async for part in commands.run(folder, who.name)])

    told = list(frames([asyncio.run(run())]))
    written = b"".join(content for kind, content in told if kind in (OUT, ERR)).decode()
    assert told[-1][0] == ENDED
    return json.loads(told[-1][1])["code"], written


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../../../../etc/passwd", "~/x.csv", "up/../../x", "s3://bucket/key.csv"]
)
def test_files_of_the_server_are_not_for_commands(commands: Commands, tmp_path: Path, path: str) -> None:
    code, told = ordered(commands, tmp_path / "a", BUILDER, "dataset", "import", "main.remote.got", path)
    assert code == 2 and "root:" not in told, told
    mounted = {"mounts": {"x.csv": path}} if "://" not in path else {}
    code, told = ordered(commands, tmp_path / "b", BUILDER, "dataset", "import", "main.remote.got", "x.csv", **mounted)
    assert code == 2 and "root:" not in told, told
    code, told = ordered(commands, tmp_path / "c", BUILDER, "dataset", "export", "main.remote.orders", path)
    assert code == 2, told


def test_sources_reach_only_what_the_server_lists(commands: Commands, tmp_path: Path) -> None:
    for number, how in enumerate((["--url", "env:HOME"], ["--type", "files", "--path", "/etc/*"])):
        code, told = ordered(commands, tmp_path / str(number), BUILDER, "source", "add", f"s{number}", *how)
        assert code == 2 and "allowed" in told, told


def test_whoever_may_only_look_changes_nothing(
    commands: Commands, workspace: lakeward.Workspace, tmp_path: Path
) -> None:
    assert ordered(commands, tmp_path / "1", VIEWER, "dataset", "preview", "main.remote.orders")[0] == 0
    workspace.create_dataset("main.secret.plans", {"a": "string"})
    code, told = ordered(commands, tmp_path / "2", VIEWER, "dataset", "preview", "main.secret.plans")
    assert code == 2 and "unknown dataset" in told, told
    code, told = ordered(commands, tmp_path / "3", VIEWER, "status")
    assert code == 0 and "main.remote.orders" in told and "secret" not in told, told
    code, told = ordered(commands, tmp_path / "4", VIEWER, "--server", "http://127.0.0.1:1", "status")
    assert code == 2 and "does not begin with a command" in told, told
    for number, arguments in enumerate(
        (
            ["dataset", "drop", "main.remote.orders", "--yes"],
            ["dataset", "undo-edit", "main.remote.orders", "--yes"],
            ["flip", "start", "main.remote.orders", "--to", "iceberg"],
            ["run", "select 1 as a", "--into", "main.remote.made"],
            ["doctor"],
        )
    ):
        code, told = ordered(commands, tmp_path / f"w{number}", VIEWER, *arguments)
        assert code == 1 and "may not do" in told, told
    assert workspace.dataset("main.remote.orders").version == 1


def processes(scratch: Path) -> list[int]:
    """Return the processes of commands that work in a directory below."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            where = os.readlink(each / "cwd") if each.name.isdigit() else ""
            if where.startswith(str(scratch.resolve())) and "/command-" in where:
                found.append(int(each.name))
        except OSError:
            continue
    return found


def waits(url: str) -> tuple[httpx.Client, Any, Iterator[tuple[bytes, bytes]]]:
    """Order a command that waits for a name to be typed, and return when it does.

    The third is what is left of its answer: whoever lets go of that closes the connection.
    """
    client = httpx.Client(base_url=f"{url}/api/v1", timeout=60)
    order = archive(arguments=["dataset", "drop", "main.remote.orders"], terminal={"in": True})
    request = client.build_request("POST", "/commands", content=order, headers={"Content-Type": "application/x-tar"})
    answer = client.send(request, stream=True)
    left = frames(answer.iter_raw())
    assert any(kind == ASKS for kind, _ in left)
    return client, answer, left


def ended(scratch: Path) -> bool:
    gone = threading.Event()
    for _ in range(400):
        if not processes(scratch):
            return True
        gone.wait(0.05)
    return False


def test_a_command_ends_with_whoever_ordered_it_and_with_its_server(workspace: lakeward.Workspace, home: Path) -> None:
    with serving(home) as running:
        client, answer, left = waits(running.url)
        assert len(processes(home)) == 1
        del left
        answer.close()
        client.close()
        assert ended(home)
        client, answer, left = waits(running.url)
        assert len(processes(home)) == 1
        running.stop(signal.SIGKILL)
        assert ended(home)
        client.close()
        del left
    assert workspace.dataset("main.remote.orders").version == 1


def test_an_order_is_read_before_its_files(tmp_path: Path) -> None:
    packed = tmp_path / "packed.tar"
    with tarfile.open(packed, "w") as opened:
        opened.addfile(*[entry("files/x")[0]], io.BytesIO(b""))
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="does not begin with"):
        unpack(packed, tmp_path / "folder", OWNER)


def test_a_token_says_who_asks_and_the_audit_log_who_did(
    workspace: lakeward.Workspace,
    home: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    viewer = workspace.access.add_token("vera", role=Role.VIEWER, on="main.remote")[1]
    builder = workspace.access.add_token("bert", role=Role.BUILDER, on="main")[1]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("id\n1\n2\n")
    (tmp_path / "token").write_text(builder)
    monkeypatch.setenv("LAKEWARD_SERVER__AUTH", "on")
    with serving(home) as running:
        monkeypatch.delenv("LAKEWARD_SERVER__AUTH")

        def ask(said: list[str], *arguments: str) -> tuple[int, str]:
            code = main(["--server", running.url, *said, *arguments])
            told = "".join(capfd.readouterr())
            assert viewer not in told and builder not in told
            return code, told

        code, told = ask(["--token", viewer], "dataset", "preview", "main.remote.orders")
        assert code == 0 and "n3" in told, told
        code, told = ask(["--token", viewer], "dataset", "drop", "main.remote.orders", "--yes")
        assert code == 1 and "vera may not do" in told, told
        assert ask(["--token", "lw_aaaaaaaa_none"], "status")[0] == ask([], "status")[0] == 1
        code, told = ask(["--token-file", "token"], "dataset", "import", "main.remote.berts", "rows.csv")
        assert code == 0, told
    assert workspace.access.audit(subject="main.remote.berts")[-1].actor == "bert"
