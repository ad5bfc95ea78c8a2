"""Flags: the mode of the datasets that writers make, and the arm that readers prefer."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from lakeward.server.documents.document import DryRun
from lakeward.server.documents.flags import Flag, FlagChanged, FlagClear, FlagList, FlagSet
from lakeward.server.rooms import Here
from lakeward.server.routing import noun
from lakeward.server.rules import needs

router = noun("flags")


@router.get("/flags", summary="List flags", dependencies=[needs("flag.read", anywhere=True)])
def list_flags(
    rooms: Here, dataset: Annotated[str | None, Query(description="what is in force for this one")] = None
) -> FlagList:
    """Every writer and reader, and what is in force for it."""
    return FlagList(flags=[Flag.of(each) for each in rooms.workspace.flags.list(dataset)])


@router.post("/flags/set", summary="Set a flag", dependencies=[needs("flag.set", anywhere=True)])
def set_flag(rooms: Here, wanted: FlagSet) -> FlagChanged | DryRun:
    """Set the mode of a writer, or what a reader prefers. Every process follows within seconds."""
    given = {wanted.kind: wanted.name, "mode" if wanted.kind == "writer" else "prefer": wanted.value}
    if wanted.dry_run:
        return DryRun(actions=rooms.workspace.flags.explain_set(**given, dataset=wanted.dataset))
    return FlagChanged(changed=rooms.workspace.flags.set(**given, dataset=wanted.dataset))


@router.post("/flags/clear", summary="Take a flag back", dependencies=[needs("flag.clear", anywhere=True)])
def clear_flag(rooms: Here, wanted: FlagClear) -> FlagChanged | DryRun:
    """Take a flag back: the one for all datasets, or the default, is in force then."""
    given = {wanted.kind: wanted.name}
    if wanted.dry_run:
        return DryRun(actions=rooms.workspace.flags.explain_clear(**given, dataset=wanted.dataset))
    return FlagChanged(changed=rooms.workspace.flags.clear(**given, dataset=wanted.dataset))
