"""What following a source will do: which tables feed which datasets, and which of them are copied first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakeward.control.follows import FollowedRelation, FollowedSource
from lakeward.control.sources import Feed, SourceRecord
from lakeward.control.tree import Tree
from lakeward.errors import SchemaError, UsageError
from lakeward.sources.change_log import FollowedTable
from lakeward.sources.connector import Position, SourceColumn, SourceTable
from lakeward.types.schema import Schema, name_key
from lakeward.wiring.follow_modes import LOG_COLUMNS, FollowMode, follow_mode
from lakeward.wiring.sync_plan import SyncRequest, TablePlan, choose_tables, dataset_names, plan_table


@dataclass(frozen=True)
class FollowRequest:
    """What to follow, and how.

    Args:
        source: its name.
        tables: of the source, besides those that are followed already; none: those, or else those that the source was
            added with, or all that keep rows themselves.
        mode: the name of a mode; None: that of the source, at first `changes`.
        into: `catalog.schema` of datasets that are made; None: `main.SOURCE`.
        key: the primary key of a dataset that is made; none: the table's.
        text: columns of a dataset that is made, which are read as the database prints them.
        arm: of datasets that are made; None: as the flag of the mode's writer says.
    """

    source: str
    tables: Sequence[str] = ()
    mode: str | None = None
    into: str | None = None
    key: Sequence[str] = ()
    text: Sequence[str] = ()
    arm: str | None = None


@dataclass(frozen=True)
class TableFollow:
    """One followed table and its dataset.

    Args:
        plan: of the dataset and its first copy.
        table: as it was discovered.
        known: whether it is followed already.
    """

    plan: TablePlan
    table: SourceTable
    known: bool

    @property
    def types(self) -> dict[str, str]:
        """The logical type's text of the table's own columns."""
        own = {column.name for column in self.table.columns}
        return {name: type_ for name, type_ in self.plan.types.items() if name in own}

    def followed(self, after: Position) -> FollowedTable:
        """Return what the log is asked for."""
        key = self.plan.declaration.schema.primary_key or None
        return FollowedTable(self.table, self.types, after, key)

    def actions(self) -> list[str]:
        """Return what following does with it, in order."""
        source, name, target = self.plan.source, self.table.full_name, self.plan.declaration.name
        if self.known:
            return [f"follow {name} of {source} on into {target}: {self.plan.mode.about}"]
        begin = f"begin to log {name} at {source}, and copy it into {target} from the moment at which the log begins"
        return [*self.plan.declaration.actions(), begin, f"follow its changes: {self.plan.mode.about}"]


@dataclass(frozen=True)
class FollowPlan:
    """What is followed of one source."""

    mode: FollowMode
    tables: tuple[TableFollow, ...]

    def actions(self) -> list[str]:
        """Return what following does, in order."""
        return [action for each in self.tables for action in each.actions()]


class FollowPlanning:
    """Plans for one source.

    Args:
        tree: of the workspace.
        record: the source.
        followed: how it is followed; None: it is not yet.
        relations: its tables that are followed.
        request: what is asked for.
    """

    def __init__(
        self,
        tree: Tree,
        record: SourceRecord,
        followed: FollowedSource | None,
        relations: Sequence[FollowedRelation],
        request: FollowRequest,
    ) -> None:
        self._tree = tree
        self._record = record
        self._request = request
        self._relations = {each.relation: each for each in relations}
        self.mode = _mode(followed, request)

    def plan(self, found: Sequence[SourceTable], feed_of: Callable[[int], Feed | None], made_as: str) -> FollowPlan:
        """Return the plan.

        Args:
            found: what the source has.
            feed_of: tells what feeds a dataset, by its id.
            made_as: the mode of a dataset that is made, if no arm is declared.

        Raises:
            UnknownObject: a table is not there.
            UsageError: a table has no key, and the mode needs one.
            What `plan_table` raises.
        """
        wanted = self._request.tables or ([] if self._relations else self._record.tables)
        known = [table for table in found if table.full_name in self._relations]
        if gone := self._relations.keys() - {table.full_name for table in known}:
            raise self._gone(sorted(gone))
        chosen = choose_tables(self._record, found, wanted) if wanted or not self._relations else []
        new = [table for table in chosen if table.full_name not in self._relations]
        names = dataset_names(self._asked(), new)
        follows = [
            self._of(table, self._tree.by_id(self._relations[table.full_name].dataset_id).name, feed_of, made_as)
            for table in known
        ]
        follows += [self._of(table, name, feed_of, made_as) for table, name in zip(new, names, strict=True)]
        return FollowPlan(self.mode, tuple(follows))

    def _asked(self) -> SyncRequest:
        request = self._request
        if self.mode.log and request.key:
            raise UsageError(
                "where each change is a row, a key comes as often as it changes",
                safe="nothing was changed",
                next_step="leave out --key",
            )
        return SyncRequest(request.source, into=request.into, key=request.key, text=request.text, arm=request.arm)

    def _of(self, table: SourceTable, name: str, feed_of: Callable[[int], Feed | None], made_as: str) -> TableFollow:
        known = table.full_name in self._relations
        asked = replace(self._asked(), key=(), text=(), arm=None) if known else self._asked()
        existing = self._tree.find(name)
        has_key = asked.key or table.primary_key or (existing is not None and existing.schema.primary_key)
        if not self.mode.log and not has_key:
            raise UsageError(
                f"{table.full_name} has no primary key, by which the rows of its dataset would be known",
                safe="nothing was changed",
                next_step="keep its changes as rows: --mode append; or name the key columns: --key COLUMN, for which "
                f"the source has to send whole rows: ALTER TABLE {table.full_name} REPLICA IDENTITY FULL",
                table=table.full_name,
            )
        feed = feed_of(existing.id) if existing is not None else None
        if known and existing is not None:
            table = _as_it_was(table, existing.schema, LOG_COLUMNS if self.mode.log else ())
        seen = _with_log_columns(table) if self.mode.log else table
        plan = plan_table(self._tree, asked, self.mode, seen, name, feed, made_as)
        return TableFollow(plan, table, known)

    def _gone(self, names: Sequence[str]) -> SchemaError:
        return SchemaError(
            f"source {self._record.name} has no table {', '.join(names)} any more; it was dropped or renamed",
            safe="its dataset is unchanged",
            next_step=f"lakeward source unfollow {self._record.name} --table {names[0]}",
            tables=list(names),
        )


def _mode(followed: FollowedSource | None, request: FollowRequest) -> FollowMode:
    name = request.mode or (followed.mode if followed is not None else "changes")
    if followed is not None and name != followed.mode:
        raise UsageError(
            f"source {request.source} is followed with --mode {followed.mode}, all of its tables",
            safe="nothing was changed",
            next_step="add the database as another source, and follow that",
            source=request.source,
        )
    return follow_mode(name)


def _as_it_was(table: SourceTable, schema: Schema, besides: Sequence[SourceColumn]) -> SourceTable:
    """Return a table with the columns that its dataset has, whatever became of them since.

    Up to where it was changed, the log is that of the table as it was, and says where that ends.
    """
    there = {column.name: column for column in table.columns}
    others = {column.name for column in besides}
    columns = []
    for name, type_ in ((each.name, str(each.type)) for each in schema.columns if each.name not in others):
        fits = name in there and type_ in (there[name].type, "string")
        columns.append(there[name] if fits else SourceColumn(name, type_, type_))
    return replace(table, columns=tuple(columns))


def _with_log_columns(table: SourceTable) -> SourceTable:
    """Return the table as its dataset has it where each change is a row."""
    own = {name_key(column.name) for column in LOG_COLUMNS}
    if twins := [column.name for column in table.columns if name_key(column.name) in own]:
        raise SchemaError(
            f"table {table.full_name} has a column {twins[0]!r}, as the rows of its changes have",
            safe="nothing was changed",
            next_step="follow it with --mode changes",
            table=table.full_name,
            column=twins[0],
        )
    return replace(table, columns=(*LOG_COLUMNS, *table.columns), primary_key=())
