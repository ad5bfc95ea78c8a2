"""What a workspace offers about its tree: what is in it is made, renamed, dropped and brought back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakeward.clock import Faults, Ids
from lakeward.control.drops import Drops
from lakeward.control.ledger import Ledger
from lakeward.control.names import full_name
from lakeward.control.objects import LEVELS, Drop, Listed, TreeObject, new_name, parse_path
from lakeward.control.slots import Slots
from lakeward.control.tree import Tree
from lakeward.errors import UnknownObject
from lakeward.pipelines.service import Pipelines
from lakeward.storage.dropping import Dropping
from lakeward.storage.recovery import Recovery
from lakeward.types.schema import name_key
from lakeward.wiring.actor import actor


@dataclass(frozen=True)
class TreeRooms:
    """The parts of a workspace that its tree uses."""

    tree: Tree
    drops: Drops
    dropping: Dropping
    pipelines: Pipelines


def tree_rooms(
    tree: Tree,
    ledger: Ledger,
    slots: Slots,
    recovery: Recovery,
    pipelines: Pipelines,
    days: float,
    faults: Faults,
    ids: Ids,
) -> TreeRooms:
    """Put them together; `days` is how long what is dropped can come back."""
    drops = Drops(ledger.database, tree.objects, days)
    return TreeRooms(
        tree, drops, Dropping(tree.objects, drops, ledger, slots, recovery.recover, faults, ids), pipelines
    )


class Named:
    """The objects of one level, by their full names: `ws.names("schema").rename("main.sales", "Sales EU")`.

    Args:
        rooms: the parts that it uses.
        level: `catalog`, `schema` or `dataset`.
    """

    def __init__(self, rooms: TreeRooms, level: str) -> None:
        if level not in LEVELS:
            raise UnknownObject.among("level", level, LEVELS, level=level)
        self._rooms = rooms
        self._level = level

    def find(self, name: str) -> TreeObject | None:
        """Return the live one of that full name, or None."""
        return self._rooms.tree.objects.find(self._level, parse_path(self._level, name))

    def get(self, name: str) -> TreeObject:
        """Return the live one of that full name.

        Raises:
            UnknownObject: there is none; says what became of one that had this name.
        """
        return self._rooms.tree.objects.get(self._level, parse_path(self._level, name))

    def list(self, *, dropped: bool = False) -> Sequence[Listed]:
        """Return all of them by name: live ones, or those that were dropped and are not purged."""
        return self._rooms.tree.objects.all(self._level, dropped=dropped)

    def rename(self, name: str, new: str) -> TreeObject:
        """Give one another name under the same parent; tables and files are called what they were.

        Args:
            name: its full name.
            new: the new name of its own level, or its new full name.

        Raises:
            NameTaken: a sibling has the name, or a twin of it, which differs only in case or Unicode form.
            UsageError: the new full name is below another parent.
        """
        found = self.get(name)
        return self._rooms.tree.objects.rename(found, new_name(found, new), actor())

    def explain_rename(self, name: str, new: str) -> Sequence[str]:
        """Return what `rename` would do; it raises what `rename` would. Changes nothing."""
        found = self.get(name)
        called = new_name(found, new)
        if called == found.path[-1]:
            return []
        self._rooms.tree.objects.check_rename(found, called)
        kept = f"what it is called by in the catalog and on disk stays: {found.slugs[-1]}"
        return [f"call {self._level} {found.name} {full_name((*found.path[:-1], called))}; {kept}"]

    def explain_drop(self, name: str, *, cascade: bool = False) -> Sequence[str]:
        """Return what `drop` would do, in order, and which pipelines will miss it. Changes nothing.

        Raises:
            UnknownObject, UsageError: as `drop`.
            ConflictError: a flip or a backfill of a dataset is under way, as `drop`.
        """
        found = self.get(name)
        inside = self._rooms.tree.objects.inside(found)
        datasets = self._rooms.dropping.datasets(found, cascade=cascade)
        self._rooms.drops.check_idle(datasets)
        actions = [f"wait for writers of dataset {each}, and hold its slot" for each in datasets.values()]
        for level in reversed(LEVELS):
            for each in sorted(inside[level].values()):
                kept = "; its rows, table and files stay as they are" if level == "dataset" else ""
                actions.append(f"drop {level} {each}{kept}")
        days = self._rooms.drops.days
        actions.append(f"keep it for {days:g} days: until then `lakeward {self._level} undrop` brings it back")
        return [*actions, *self._missed(datasets.values())]

    def drop(self, name: str, *, cascade: bool = False) -> Drop:
        """Drop one: from now on it is unknown to readers and writers, and its name is free. It can come back.

        Args:
            name: its full name.
            cascade: with all that is in it, in one step.

        Returns:
            When it was dropped, and until when it can come back.

        Raises:
            UnknownObject: there is none.
            UsageError: something is in it, and `cascade` is False.
            LockTimeout: a writer did not end in time; nothing was dropped.
            ConflictError: a flip or a backfill of a dataset is under way; nothing was dropped.
        """
        return self._rooms.dropping.drop(self.get(name), actor(), cascade=cascade)

    def undrop(self, name: str, as_: str | None = None) -> Sequence[str]:
        """Bring back the last one of that name that was dropped, as it was, with what was dropped in the same step.

        Parents that are dropped come back with it, empty but for that.

        Args:
            name: its full name.
            as_: its new name, if its own was taken meanwhile.

        Returns:
            The full names of the datasets that are there again; none if it is live, and nothing is dropped.

        Raises:
            NameTaken: something else has its name now.
            UnknownObject: none was dropped, or it is purged.
            ConflictError: its time is over, and it is being removed.
        """
        return [each for level, each in self.bring_back(name, as_) if level == "dataset"]

    def bring_back(self, name: str, as_: str | None = None) -> Sequence[tuple[str, str]]:
        """Do what `undrop` does, and return everything that is there again, its parents first: level and full name."""
        path = parse_path(self._level, name)
        found = self._rooms.tree.objects.dropped(self._level, path)
        if found is None:
            self.get(name)
            return []
        return self._rooms.drops.undrop(found, actor(), new_name(found, as_) if as_ is not None else None)

    def explain_undrop(self, name: str, as_: str | None = None) -> Sequence[str]:
        """Return what `undrop` would do. Changes nothing.

        Raises:
            UnknownObject: none was dropped, or it is purged.
            UsageError: the new name is below another parent.
        """
        path = parse_path(self._level, name)
        found = self._rooms.tree.objects.dropped(self._level, path)
        if found is None:
            self.get(name)
            return []
        called = found.path[-1] if as_ is None else new_name(found, as_)
        return [f"bring {self._level} {found.name} back as {full_name((*found.path[:-1], called))}, as it was"]

    def _missed(self, datasets: Iterable[str]) -> Sequence[str]:
        """Return which pipelines read or write some datasets."""
        keys = {name_key(each): each for each in datasets}
        found = []
        for name, applied in self._rooms.pipelines.registry.applied().items():
            if applied.pipeline is None:
                continue
            for verb, names in (
                ("reads", applied.pipeline.sources.values()),
                ("writes", [output.dataset for output in applied.pipeline.spec.outputs]),
            ):
                used = [keys[name_key(each)] for each in dict.fromkeys(names) if name_key(each) in keys]
                found += [f"pipeline {name}, which {verb} {each}, will fail until it is changed" for each in used]
        return found


class TreeOfNames:
    """The part of a `Workspace` about its tree."""

    def __init__(self, rooms: TreeRooms) -> None:
        self._names = rooms

    def names(self, level: str) -> Named:
        """Return the objects of a level: `catalog`, `schema` or `dataset`."""
        return Named(self._names, level)

    def create_catalog(self, name: str) -> TreeObject:
        """Make a catalog, or return the one of that name.

        Raises:
            NameTaken: a twin of it exists, which differs only in case or Unicode form.
            InvalidName: the name can't be stored.

        Example:
            >>> ws.create_catalog("Sales EU").slugs
            ('sales_eu',)
        """
        return self._names.tree.create_catalog(name, actor=actor())

    def create_schema(self, name: str) -> TreeObject:
        """Make a schema, `catalog.schema`, and its catalog where that is missing, or return the one of that name.

        Raises:
            NameTaken, InvalidName: see `create_catalog`.
        """
        return self._names.tree.create_schema(name, actor=actor())

    def catalogs(self, *, dropped: bool = False) -> Sequence[Listed]:
        """Return the catalogs with what is in them; or those that were dropped and can come back."""
        return self.names("catalog").list(dropped=dropped)

    def schemas(self, *, dropped: bool = False) -> Sequence[Listed]:
        """Return the schemas with what is in them; or those that were dropped and can come back."""
        return self.names("schema").list(dropped=dropped)

    def dropped_datasets(self) -> Sequence[Listed]:
        """Return the datasets that were dropped and can come back, with when and by whom, and until when."""
        return self.names("dataset").list(dropped=True)

    def rename_catalog(self, name: str, new: str) -> TreeObject:
        """Give a catalog another name; see `Named.rename`."""
        return self.names("catalog").rename(name, new)

    def rename_schema(self, name: str, new: str) -> TreeObject:
        """Give a schema another name in its catalog; see `Named.rename`."""
        return self.names("schema").rename(name, new)

    def rename_dataset(self, name: str, new: str) -> TreeObject:
        """Give a dataset another name in its schema; see `Named.rename`."""
        return self.names("dataset").rename(name, new)

    def drop_catalog(self, name: str, *, cascade: bool = False) -> Drop:
        """Drop a catalog, with `cascade` all that is in it; see `Named.drop`."""
        return self.names("catalog").drop(name, cascade=cascade)

    def drop_schema(self, name: str, *, cascade: bool = False) -> Drop:
        """Drop a schema, with `cascade` all that is in it; see `Named.drop`."""
        return self.names("schema").drop(name, cascade=cascade)

    def drop_dataset(self, name: str) -> Drop:
        """Drop a dataset; see `Named.drop`."""
        return self.names("dataset").drop(name)

    def undrop_catalog(self, name: str, as_: str | None = None) -> Sequence[str]:
        """Bring a catalog back, with what was dropped in the same step; see `Named.undrop`."""
        return self.names("catalog").undrop(name, as_)

    def undrop_schema(self, name: str, as_: str | None = None) -> Sequence[str]:
        """Bring a schema back, with what was dropped in the same step; see `Named.undrop`."""
        return self.names("schema").undrop(name, as_)

    def undrop_dataset(self, name: str, as_: str | None = None) -> Sequence[str]:
        """Bring a dataset back, exactly as it was; see `Named.undrop`."""
        return self.names("dataset").undrop(name, as_)
