"""What catalogs, schemas and datasets have in common: they are listed, renamed, dropped, and brought back."""

from __future__ import annotations

from collections.abc import Sequence

from lakeward.control.objects import TreeObject
from lakeward.server.documents.document import DryRun
from lakeward.server.documents.tree import Back, Drop, Dropped, ListedPage, Named, Rename, Undrop
from lakeward.server.documents.tree import Listed as ListedDocument
from lakeward.server.name_pages import names_after
from lakeward.server.rooms import Rooms


def listed(rooms: Rooms, level: str, *, dropped: bool, limit: int, page: str | None) -> ListedPage:
    """Return a page of the objects of a level. Of those that were dropped, several may have one name."""
    found = rooms.workspace.names(level).list(dropped=dropped)
    names, following = names_after(sorted({each.what.name for each in found}), page, limit)
    wanted = set(names)
    documents = [ListedDocument.of(each) for each in found if each.what.name in wanted]
    return ListedPage(found=documents, next=following)


def named(found: TreeObject) -> Named:
    """Return an object by its name."""
    return Named(name=found.name, slug=found.slugs[-1])


def rename(rooms: Rooms, level: str, name: str, wanted: Rename) -> Named | DryRun:
    """Give an object another name."""
    names = rooms.workspace.names(level)
    if wanted.dry_run:
        return DryRun(actions=list(names.explain_rename(name, wanted.to)))
    return named(names.rename(name, wanted.to))


def drop(rooms: Rooms, level: str, name: str, wanted: Drop, *, cascade: bool = False) -> Dropped | DryRun:
    """Drop an object that is named in the request."""
    names = rooms.workspace.names(level)
    actions: Sequence[str] = names.explain_drop(name, cascade=cascade)
    if wanted.dry_run:
        return DryRun(actions=list(actions))
    full = names.get(name).name
    wanted.check(full)
    done = names.drop(name, cascade=cascade)
    return Dropped(name=full, dropped_at=done.at, undo_until=done.until)


def undrop(rooms: Rooms, level: str, name: str, wanted: Undrop) -> Back | DryRun:
    """Bring an object back."""
    names = rooms.workspace.names(level)
    if wanted.dry_run:
        return DryRun(actions=list(names.explain_undrop(name, wanted.as_name)))
    return Back(back=[{"level": each, "name": full} for each, full in names.bring_back(name, wanted.as_name)])
