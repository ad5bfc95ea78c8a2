"""The flags of a workspace: what is set, and setting it. For one dataset a writer's flag is a change of its route."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakeward.access.guard import require
from lakeward.control.flags.cache import FlagCache, clamped
from lakeward.control.flags.registry import (
    READER,
    READERS,
    WRITER,
    WRITERS,
    check_mode,
    check_preference,
    reader_named,
    writer_named,
)
from lakeward.control.flags.store import Flag, FlagTable
from lakeward.control.flips import Flips
from lakeward.control.parity import ParityChecks
from lakeward.control.routes import ARMS_OF
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import ArmNotCurrent, ConflictError, ParityMismatch, UsageError
from lakeward.storage.replication import Replication
from lakeward.wiring.actor import actor


@dataclass(frozen=True)
class FlagState:
    """One flag as it is in force.

    Args:
        kind: `writer` or `reader`.
        name: of the writer or reader.
        value: the mode of the datasets that the writer makes (for one dataset: the mode of its route), or what the
            reader prefers.
        source: `default`, `flag`, or the `dataset`: its own flag or, for a writer, its route.
        dataset: the dataset that it is for; None: all.
        about: what the writer or reader is.
        ceiling: the highest mode that the writer may write to; None for a reader.
        set_by, set_at: who set it, and when; None: nobody did, or the route says it.
    """

    kind: str
    name: str
    value: str
    source: str
    dataset: str | None = None
    about: str = ""
    ceiling: str | None = None
    set_by: str | None = None
    set_at: datetime | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "set_at": self.set_at.isoformat() if self.set_at else None}


class Flags:
    """Sets, clears and lists flags. `Workspace.flags` is one.

    Args:
        tree: names of datasets.
        table: where flags stand.
        cache: what this process knows of them, which is told of changes at once.
        replication: changes routes.
        parity: knows whether the arms of a dataset differ.
        flips: knows which dataset is being flipped.
    """

    def __init__(
        self,
        tree: Tree,
        table: FlagTable,
        cache: FlagCache,
        replication: Replication,
        parity: ParityChecks,
        flips: Flips,
    ) -> None:
        self._tree = tree
        self._table = table
        self._cache = cache
        self._replication = replication
        self._parity = parity
        self._flips = flips

    def set(
        self,
        *,
        writer: str | None = None,
        mode: str | None = None,
        reader: str | None = None,
        prefer: str | None = None,
        dataset: str | None = None,
    ) -> bool:
        """Set the mode of a writer, or what a reader prefers.

        Args:
            writer: its name; with `mode`.
            mode: `pg`, `dual`, `iceberg_dual` or `iceberg_native`: of the datasets that the writer makes from now on.
                With `dataset`: of that one, which changes its route.
            reader: its name; with `prefer`.
            prefer: `primary`, `postgres`, `iceberg` or `shadow`.
            dataset: for this one only; None: for all.

        Returns:
            Whether anything changed.

        Raises:
            UnknownObject: no such writer, reader or dataset.
            UsageError: the mode is above the writer's ceiling, or there is no such mode or preference.
            ArmNotCurrent: an arm of the mode does not hold the dataset's newest version: that takes a flip.
            ParityMismatch, ConflictError: the dataset's arms differ, or it is being flipped.

        Example:
            >>> ws.flags.set(reader="api.read", prefer="shadow", dataset="main.sales.orders")
            True
        """
        kind, name, value, record = self._asked(writer, mode, reader, prefer, dataset)
        if kind == WRITER and record is not None:
            return self._reroute(name, record, value)
        return self._put(kind, name, value, record)

    def explain_set(
        self,
        *,
        writer: str | None = None,
        mode: str | None = None,
        reader: str | None = None,
        prefer: str | None = None,
        dataset: str | None = None,
    ) -> list[str]:
        """Return what `set` would do, in order; it raises what `set` would. Changes nothing."""
        kind, name, value, record = self._asked(writer, mode, reader, prefer, dataset)
        if kind == WRITER and record is not None:
            if record.route.mode == value:
                return []
            self._check(record, value)
            return [
                f"wait for the write to {record.name} that is under way, if any",
                f"change its route from mode {record.route.mode} to {value}, epoch {record.route.epoch + 1}",
            ]
        return _explained(self._table, kind, name, value, record)

    def clear(self, *, writer: str | None = None, reader: str | None = None, dataset: str | None = None) -> bool:
        """Take a flag back, so that the one above it, or the default, is in force. Returns whether there was one.

        Raises:
            UnknownObject: no such writer, reader or dataset.
            UsageError: a writer and a dataset: the dataset's mode is its route, which it always has.
        """
        kind, name, record = self._to_clear(writer, reader, dataset)
        return self._put(kind, name, None, record)

    def explain_clear(
        self, *, writer: str | None = None, reader: str | None = None, dataset: str | None = None
    ) -> list[str]:
        """Return what `clear` would do; it raises what `clear` would. Changes nothing."""
        kind, name, record = self._to_clear(writer, reader, dataset)
        return _explained(self._table, kind, name, None, record)

    def list(self, dataset: str | None = None) -> tuple[FlagState, ...]:
        """Return every writer and reader with what is in force, and the flags that are set for single datasets.

        Args:
            dataset: as it is for this one; None: for all, and behind them the flags of single datasets.
        """
        flags = {(flag.kind, flag.name, flag.dataset_id): flag for flag in self._table.all()}
        record = self._tree.dataset(dataset) if dataset is not None else None
        states = [self._writer(name, flags, record) for name in WRITERS]
        states += [self._reader(name, flags, record) for name in READERS]
        if record is None:
            names = {each.id: each.name for each in self._tree.datasets()}
            states += [
                _state(flag, "dataset", READERS[flag.name].about, names[flag.dataset_id])
                for flag in flags.values()
                if flag.dataset_id in names and flag.name in READERS
            ]
        return tuple(states)

    def _asked(
        self, writer: str | None, mode: str | None, reader: str | None, prefer: str | None, dataset: str | None
    ) -> tuple[str, str, str, DatasetRecord | None]:
        """Return kind, name, value and dataset of what is to be set, checked as far as the code can tell."""
        kind, name = _which(writer, reader)
        value, other = (mode, prefer) if kind == WRITER else (prefer, mode)
        if value is None or other is not None:
            raise UsageError(
                f"a {kind} is set with {'mode' if kind == WRITER else 'prefer'}, and with that alone",
                safe="nothing was changed",
            )
        if kind == WRITER:
            check_mode(writer_named(name), value)
        else:
            reader_named(name)
            check_preference(value)
        return kind, name, value, self._tree.dataset(dataset) if dataset is not None else None

    def _to_clear(
        self, writer: str | None, reader: str | None, dataset: str | None
    ) -> tuple[str, str, DatasetRecord | None]:
        """Return kind, name and dataset of what is to be cleared, checked."""
        kind, name = _which(writer, reader)
        record = self._tree.dataset(dataset) if dataset is not None else None
        if kind == WRITER:
            writer_named(name)
        else:
            reader_named(name)
        if kind == WRITER and record is not None:
            raise UsageError(
                f"dataset {record.name} has no flag of a writer that could be cleared: its mode, {record.route.mode}, "
                "is its route",
                safe="nothing was changed",
                next_step=f"lakeward flags set writer {name} MODE --dataset {record.name}",
                dataset=record.name,
            )
        return kind, name, record

    def _writer(
        self, name: str, flags: dict[tuple[str, str, int | None], Flag], record: DatasetRecord | None
    ) -> FlagState:
        writer = WRITERS[name]
        if record is not None:
            mode = record.route.mode
            return FlagState(WRITER, name, mode, "dataset", record.name, writer.about, writer.ceiling)
        flag = flags.get((WRITER, name, None))
        if flag is None:
            return FlagState(WRITER, name, writer.default, "default", None, writer.about, writer.ceiling)
        value = clamped(writer, flag.value)
        return FlagState(WRITER, name, value, "flag", None, writer.about, writer.ceiling, flag.set_by, flag.set_at)

    def _reader(
        self, name: str, flags: dict[tuple[str, str, int | None], Flag], record: DatasetRecord | None
    ) -> FlagState:
        about = READERS[name].about
        own = flags.get((READER, name, record.id)) if record is not None else None
        if own is not None and record is not None:
            return _state(own, "dataset", about, record.name)
        flag = flags.get((READER, name, None))
        dataset = record.name if record is not None else None
        if flag is None:
            return FlagState(READER, name, READERS[name].default, "default", dataset, about)
        return _state(flag, "flag", about, dataset)

    def _put(self, kind: str, name: str, value: str | None, record: DatasetRecord | None) -> bool:
        dataset = (record.id, record.name) if record is not None else None
        place = record.slugs if record is not None else ()
        changed = self._table.put(kind, name, value, actor=actor(), dataset=dataset, place=place)
        self._cache.forget()
        return changed

    def _reroute(self, writer: str, record: DatasetRecord, mode: str) -> bool:
        """Change a dataset's route to a mode both of whose arms hold its newest version."""
        require("flag.set", record.slugs, record.name)
        if record.route.mode == mode:
            return False
        self._check(record, mode)
        # And again once no write is under way, which could have left the mirror behind.
        route = self._replication.reroute(
            record, mode, writer="flags.set", checked=lambda _: self._check(self._tree.by_id(record.id), mode)
        )
        modes = record.route.mode, route.mode
        self._table.audit_route(writer, record.name, *modes, actor=actor(), place=record.slugs)
        return True

    def _check(self, record: DatasetRecord, mode: str) -> None:
        """Refuse a change of the route that takes a flip."""
        if self._flips.active(record.id) is not None:
            raise ConflictError(
                f"dataset {record.name} is being flipped, which changes its route",
                safe="the route is as it was",
                next_step=f"lakeward flip status {record.name}",
                dataset=record.name,
            )
        found = self._parity.mismatch(record.id)
        if found is not None:
            raise ParityMismatch(
                f"dataset {record.name}: a comparison of its arms at version {found.version} found that they differ",
                safe="the route is as it was",
                next_step=f"lakeward verify {record.name}",
                dataset=record.name,
            )
        for arm in ARMS_OF[mode]:
            lag = self._replication.lag(record, arm) if arm is not None else None
            if lag is not None and not lag.current:
                raise _takes_a_flip(record, mode, lag.arm, lag.holds)


def _explained(table: FlagTable, kind: str, name: str, value: str | None, record: DatasetRecord | None) -> list[str]:
    """Return what setting a flag, or clearing it, would do: one action, or none."""
    flags = {(flag.kind, flag.name, flag.dataset_id): flag.value for flag in table.all()}
    before = flags.get((kind, name, record.id if record is not None else None))
    if before == value:
        return []
    what = f"{kind} {name}" + (f" for {record.name}" if record is not None else "")
    return [f"clear {what} (was: {before})" if value is None else f"set {what} to {value} (was: {before or 'not set'})"]


def _takes_a_flip(record: DatasetRecord, mode: str, arm: str, holds: int | None) -> ArmNotCurrent:
    to = next(each for each in ("iceberg", "postgres") if each != record.arm)
    return ArmNotCurrent(
        f"dataset {record.name} can't go from mode {record.route.mode} to {mode} at once: the {arm} arm "
        f"{f'holds version {holds}' if holds else 'holds none of its versions'}, its head is {record.head_version}",
        safe="the route is as it was",
        next_step=f"lakeward flip start {record.name} --to {to}",
        dataset=record.name,
        arm=arm,
        mode=mode,
    )


def _which(writer: str | None, reader: str | None) -> tuple[str, str]:
    if (writer is None) == (reader is None):
        raise UsageError(
            "name a writer or a reader, and one of them only",
            safe="nothing was changed",
            next_step="`lakeward flags list` shows both",
        )
    return (WRITER, writer) if writer is not None else (READER, str(reader))


def _state(flag: Flag, source: str, about: str, dataset: str | None) -> FlagState:
    return FlagState(flag.kind, flag.name, flag.value, source, dataset, about, None, flag.set_by, flag.set_at)
