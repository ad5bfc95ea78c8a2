"""Orders of commands as they arrive: an archive of what the command is, and of the files that it names."""

from __future__ import annotations

import errno
import json
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from lakeward.access.principal import Principal
from lakeward.errors import StorageFull, UsageError

MEDIA_TYPE = "application/x-tar"

ORDER = "order.json"
FILES = "files"
"""What is sent: the order first, and then its files, below a folder of that name."""

MOST_FILES = 100_000
MOST_BYTES = 1 << 20
"""Of the order itself."""

DEEPEST = 200
"""So many folders may lie in one another."""

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


EXAMPLE: dict[str, JsonValue] = {
    "arguments": ["dataset", "import", "main.raw.orders", "orders.csv"],
    "directory": "/home/anna",
    "mounts": {},
    "input": "",
    "terminal": {"in": True, "out": True, "err": True, "columns": 120, "lines": 40},
}


class Terminal(BaseModel):
    """Which of the standard streams are a terminal, and how large that is."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    stdin: bool = Field(False, alias="in")
    out: bool = False
    err: bool = False
    columns: int = Field(80, ge=1, le=10_000)
    lines: int = Field(24, ge=1, le=10_000)


class Order(BaseModel):
    """A command that is to be run."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": EXAMPLE},
    )

    arguments: list[str] = Field(min_length=1, max_length=10_000, description="its words, without the program's name")
    directory: str = Field("", description="where it was typed, for what it prints")
    mounts: dict[str, str] = Field({}, description="which file of the archive a path is that was typed, if not its own")
    names: dict[str, str] = Field({}, description="what paths are called in what it prints")
    input: str = Field("", description="what its standard input holds")
    terminal: Terminal = Field(default_factory=lambda: Terminal.model_validate({}))


def unpack(archive: Path, folder: Path, who: Principal) -> None:
    """Write an order and its files into a folder, for the process that runs it.

    Args:
        archive: as it was sent.
        folder: an empty one.
        who: asks.

    Raises:
        UsageError: it is none, or holds something else than files and folders of its own.
        StorageFull: there is no room for it.
    """
    (folder / FILES).mkdir()
    order: Order | None = None
    try:
        with tarfile.open(archive, "r:") as opened:
            for number, member in enumerate(opened):
                if number == 0:
                    order = _order(opened, member)
                elif number > MOST_FILES:
                    raise _wrong(f"has more than {MOST_FILES:,} files")
                else:
                    _extract(opened, member, folder)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise _wrong(f"can't be read: {error}") from None
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise StorageFull(
                f"there is no room for the files of the command: {error.strerror}",
                safe="nothing was done",
                next_step="free space where the server keeps temporary files, or send less at once",
            ) from error
        # A name is too long, or is that of two things.
        raise _wrong(f"has files that can't lie in one folder: {error.strerror}") from None
    if order is None:
        raise _wrong(f"has no {ORDER}")
    told = {**order.model_dump(by_alias=True), "principal": _principal(who)}
    (folder / ORDER).write_text(json.dumps(told), encoding="utf-8")


def _order(opened: tarfile.TarFile, member: tarfile.TarInfo) -> Order:
    content = opened.extractfile(member) if member.isfile() and member.name == ORDER else None
    if content is None or member.size > MOST_BYTES:
        raise _wrong(f"does not begin with a {ORDER} of {MOST_BYTES:,} bytes at most")
    try:
        return Order.model_validate_json(content.read())
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        raise _wrong(f"has an {ORDER} that is wrong: {'.'.join(map(str, wrong['loc']))}: {wrong['msg']}") from None


def _extract(opened: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    path = PurePosixPath(member.name)
    # One with holes says how large it is, without its bytes being sent: a few of those would fill any disk.
    if not (member.isfile() or member.isdir()) or member.issparse():
        raise _wrong(f"has {member.name!r}, which is neither file nor folder")
    if path.is_absolute() or ".." in path.parts or path.parts[:1] != (FILES,):
        raise _wrong(f"has {member.name!r}, which is not below {FILES}/")
    if len(path.parts) > DEEPEST:
        raise _wrong(f"has folders that lie more than {DEEPEST} deep")
    target = folder / path
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    content = opened.extractfile(member)
    assert content is not None
    target.parent.mkdir(parents=True, exist_ok=True)
    with content, target.open("xb") as file:
        while chunk := content.read(1 << 20):
            file.write(chunk)


def _principal(who: Principal) -> dict[str, Any]:
    grants = [[int(each.role), list(each.place)] for each in who.grants]
    said = {"ceiling": int(who.ceiling), "within": list(who.within), "token": who.token}
    return {"name": who.name, "grants": grants, **said}


def _wrong(what: str) -> UsageError:
    return UsageError(f"the archive of the command {what}", safe="nothing was done")
