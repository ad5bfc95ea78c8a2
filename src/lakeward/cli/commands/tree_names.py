"""What the commands about catalogs, schemas and datasets have in common: listing, renaming, dropping, bringing back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.confirm import confirm
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import table
from lakeward.errors import DroppedObject

if TYPE_CHECKING:
    from lakeward.control.objects import Listed

NewNameArgument = Annotated[
    str, typer.Argument(metavar="NEW_NAME", show_default=False, help="Its new name under the same parent; any text.")
]
DroppedOption = Annotated[
    bool, typer.Option("--dropped", help="Those that were dropped, with when, by whom, and until when they can return.")
]
CascadeOption = Annotated[bool, typer.Option("--cascade", help="With all that is in it, in one step or not at all.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Don't ask for the name.")]
AsOption = Annotated[
    str | None,
    typer.Option("--as", metavar="NEW_NAME", show_default=False, help="Under this name, if its own is in use now."),
]

_COUNTS = {"catalog": ("schemas", "datasets", "rows"), "schema": ("datasets", "rows"), "dataset": ("rows",)}


def show_list(session: Session, level: str, *, dropped: bool) -> None:
    """List the objects of a level, with what is in them."""
    with session.workspace() as workspace:
        found = workspace.names(level).list(dropped=dropped)
    document = {"dropped" if dropped else f"{level}s": [each.to_json() for each in found]}
    counts = _COUNTS[level]
    columns = (level, "slug", *counts, *(("dropped at", "by", "can return until") if dropped else ()))
    rows = [_row(each, counts) for each in found]
    nothing = f"no {level} is dropped" if dropped else f"no {level}s yet"
    steps = [lakeward(level, "undrop", found[0].what.name)] if dropped and found else []
    session.show(document, [table(columns, rows, counts)] if rows else [nothing], steps)


def _row(each: Listed, counts: Sequence[str]) -> tuple[object, ...]:
    drop = each.what.drop
    gone = (drop.at, drop.by, drop.until) if drop is not None else ()
    times = [f"{value:%Y-%m-%d %H:%M:%S}" if hasattr(value, "strftime") else value for value in gone]
    return (each.what.name, each.what.slugs[-1], *(f"{getattr(each, count):,}" for count in counts), *times)


def create(session: Session, level: str, name: str, *, dry_run: bool) -> None:
    """Make a catalog or schema; nothing happens if it is there."""
    if dry_run:
        with session.rehearsal() as (workspace, before):
            there = workspace.names(level).find(name) is not None
        parent = ", and its catalog if that is missing" if level == "schema" else ""
        session.show_actions(
            [] if there else [*before, f"make {level} {name}{parent}"], lakeward(level, "create", name)
        )
        return
    with session.workspace(make=True) as workspace:
        there = workspace.names(level).find(name) is not None
        made = (workspace.create_catalog if level == "catalog" else workspace.create_schema)(name)
    done = "exists already; nothing to do" if there else f"created; its slug is {made.slugs[-1]}"
    session.show(
        {level: made.name, "slug": made.slugs[-1], "created": not there},
        [f"{level} {made.name}: {done}"],
        [] if there else [lakeward(level, "list")],
    )


def rename(session: Session, level: str, name: str, new: str, *, dry_run: bool) -> None:
    """Give an object another name."""
    with session.workspace() as workspace:
        names = workspace.names(level)
        actions = list(names.explain_rename(name, new))
        if dry_run:
            session.show_actions(actions, lakeward(level, "rename", name, new))
            return
        before, now = names.get(name), names.rename(name, new)
    line = f"{level} {before.name} is {now.name} now" if actions else f"{level} {now.name}: nothing to do"
    session.show({level: now.name, "before": before.name, "slug": now.slugs[-1], "renamed": bool(actions)}, [line])


def drop(session: Session, level: str, name: str, *, cascade: bool, yes: bool, dry_run: bool) -> None:
    """Drop an object, after its name was typed."""
    again = lakeward(level, "drop", name, *(("--cascade",) if cascade else ()))
    with session.workspace() as workspace:
        names = workspace.names(level)
        try:
            actions = names.explain_drop(name, cascade=cascade)
        except DroppedObject as error:
            session.show({"dropped": False, level: name}, [f"nothing to do: {error.message}"])
            return
        if dry_run:
            session.show_actions(actions, again)
            return
        full = names.get(name).name
        if not yes:
            for action in actions:
                session.say(action)
            confirm(full)
        done = names.drop(name, cascade=cascade)
    session.show(
        {"dropped": True, level: full, "dropped_at": done.at, "undo_until": done.until},
        [f"{level} {full} is dropped; it can come back until {done.until:%Y-%m-%d %H:%M:%S %Z}"],
        [lakeward(level, "undrop", full)],
    )


def undrop(session: Session, level: str, name: str, as_: str | None, *, dry_run: bool) -> None:
    """Bring an object back."""
    with session.workspace() as workspace:
        names = workspace.names(level)
        actions = list(names.explain_undrop(name, as_))
        if dry_run:
            session.show_actions(actions, lakeward(level, "undrop", name, *(("--as", as_) if as_ is not None else ())))
            return
        back = list(names.bring_back(name, as_))
    lines = [f"{kind} {each} is back" for kind, each in back]
    by_level = {f"{kind}s": [each for of, each in back if of == kind] for kind in ("catalog", "schema", "dataset")}
    session.show(
        {level: name, "back": bool(actions), **by_level},
        lines if actions else [f"nothing to do: {level} {name} is not dropped"],
        [lakeward(level, "list")] if actions else [],
    )
