"""What a sync will do: which tables become which datasets, as which types, by which verbs. Nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lakeward.control.names import DatasetName, parse_levels
from lakeward.control.routes import in_words
from lakeward.control.sources import Feed, SourceRecord
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import ColumnMismatch, InvalidName, NameTaken, SchemaError, UsageError
from lakeward.sources.connector import Cursor, SourceTable
from lakeward.sources.file_types import as_text
from lakeward.storage.verbs import verb_named
from lakeward.wiring.declaring import Declaration, declare
from lakeward.wiring.rejected import COLUMNS, QUARANTINE, REFUSE, Limit, check_on_error, rejected_name
from lakeward.wiring.sources import check_types, choose
from lakeward.wiring.sync_modes import SyncMode


@dataclass(frozen=True)
class SyncRequest:
    """What to sync, and how.

    Args:
        source: its name.
        tables: of the source; none: those that it was added with, or else all that keep rows themselves.
        mode: the name of a sync mode.
        into: `catalog.schema` of the datasets; None: `main.SOURCE`.
        key: the primary key of a dataset that is made; none: the table's.
        columns: the logical types' texts of a dataset that is made, where the source has no types of its own; those of
            columns that are not named are found by a full scan.
        text: columns of a dataset that is made, which are read as the source prints them; of several tables as
            `TABLE.COLUMN`.
        exclude: tables that are left out of those that `tables` stands for.
        arm: of datasets that are made; None: as the flag of the mode's writer says.
        allow_empty: lets a table without rows empty its dataset.
        cursor: a column whose values grow, by which new rows are found instead of by the source's own way.
        lag: how much a row's value may lie behind when it becomes visible; see `Cursor`.
        overwrite: lets `full` take away what other writers have changed since the last sync.
        on_error: what becomes of records of files that can't be taken: `refuse` the sync at the first, or `quarantine`:
            they go to the dataset `<dataset>__rejected`, visible together with the rows of the others.
        max_rejected: how many may, of each table: a number, or a part as `0.5%`. None: any number.
        run: a name. Each table is synced for itself, with a moment and a version of its own, and one that a run of
            this name has done is left alone; None: all tables are of one moment, and visible together.
    """

    source: str
    tables: Sequence[str] = ()
    mode: str = "full"
    into: str | None = None
    key: Sequence[str] = ()
    text: Sequence[str] = ()
    exclude: Sequence[str] = ()
    arm: str | None = None
    allow_empty: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    cursor: str | None = None
    lag: str | None = None
    run: str | None = None
    overwrite: bool = False
    on_error: str = REFUSE
    max_rejected: str | int | None = None


@dataclass(frozen=True)
class TablePlan:
    """One table and its dataset.

    Args:
        source: the source's name.
        table: as it was discovered.
        declaration: of the dataset.
        types: the logical type's text of every column, in the dataset's order.
        mode: how it is synced.
        verb: how it is written.
        first: whether the dataset has no version; nobody may give it one meanwhile.
        cursor: how new rows are found; None: the source's own way.
        text: columns that are text by choice.
        rejected: the dataset of rejected records; None: none is rejected.
        limit: how many may be.
    """

    source: str
    table: SourceTable
    declaration: Declaration
    types: Mapping[str, str]
    mode: SyncMode
    verb: str
    first: bool
    cursor: Cursor | None = None
    text: tuple[str, ...] = ()
    rejected: Declaration | None = None
    limit: Limit = field(default_factory=Limit)

    @property
    def keyed(self) -> bool:
        """Whether rows are known again by a key."""
        return bool(self.declaration.schema.primary_key)

    def actions(self) -> list[str]:
        """Return what the sync does with it, in order."""
        target = f"{self.declaration.name} on {in_words(self.declaration.mode)}"
        by = f", by {self.cursor.column} with a lag of {self.cursor.lag}" if self.cursor is not None else ""
        read = f"read {self.table.full_name} of {self.source}: {self.mode.about}{by}"
        actions = [*self.declaration.actions(), f"{read}; {self.verb} them to {target}, as one new version"]
        if self.rejected is not None:
            told = f"append records that can't be taken to {self.rejected.name}, visible with it"
            actions += [*self.rejected.actions(), told]
        return actions


def choose_tables(
    record: SourceRecord, found: Sequence[SourceTable], wanted: Sequence[str], exclude: Sequence[str] = ()
) -> list[SourceTable]:
    """Return the tables of a sync, at least one.

    Raises:
        UnknownObject: one is not there.
        UsageError: there is none.
    """
    names = wanted or record.tables
    chosen = choose(found, names, record.name) if names else [table for table in found if table.followed]
    left_out = choose(found, exclude, record.name)
    chosen = [table for table in chosen if table not in left_out]
    if not chosen:
        raise UsageError(
            f"source {record.name} has no table that keeps rows itself",
            safe="nothing was changed",
            next_step=f"name a view: lakeward source sync {record.name} VIEW",
            source=record.name,
        )
    return chosen


def text_of(request: SyncRequest, tables: Sequence[SourceTable]) -> list[list[str]]:
    """Return the columns of each table that are text by choice.

    Raises:
        UsageError: a column is named without its table, and there are several.
        SchemaError: no table has it.
    """
    found: list[list[str]] = [[] for _ in tables]
    for text in request.text:
        owners = [
            (number, text.removeprefix(start))
            for number, table in enumerate(tables)
            for start in (f"{table.full_name}.", f"{table.name}.")
            if text.startswith(start) and (_has(table, text.removeprefix(start)) if table.typed else len(tables) > 1)
        ]
        if len(tables) == 1 and not owners:
            owners = [(0, text)]
        if not owners:
            raise UsageError(
                f"--text {text}: none of the {len(tables)} tables that are synced has such a column",
                safe="nothing was changed",
                next_step="write --text TABLE.COLUMN, or sync the table by itself",
            )
        for number, column in dict.fromkeys(owners):
            found[number].append(column)
    return found


def _has(table: SourceTable, name: str) -> bool:
    return any(column.name == name for column in table.columns)


def dataset_names(request: SyncRequest, tables: Sequence[SourceTable]) -> list[str]:
    """Return the full name of each table's dataset.

    Raises:
        InvalidName: `into` is no catalog and schema.
        UsageError: two tables would become one dataset, or a key or columns are named for several tables.
    """
    if len(tables) > 1 and (request.key or request.columns):
        raise UsageError(
            f"a key and columns are those of one table, and {len(tables)} are synced",
            safe="nothing was changed",
            next_step="sync the tables one by one",
        )
    into = parse_levels(request.into, 2) if request.into is not None else ("main", request.source)
    if into is None:
        raise InvalidName(f"{request.into!r} is no catalog.schema", next_step="--into main.raw", name=request.into)
    names = [str(DatasetName(into[0], into[1], table.name)) for table in tables]
    for position, name in enumerate(names):
        if name in names[:position]:
            twins = [table.full_name for table, other in zip(tables, names, strict=True) if other == name]
            raise UsageError(
                f"tables {' and '.join(twins)} would both become dataset {name}",
                safe="nothing was changed",
                next_step="sync them one by one, each with its own --into catalog.schema",
                dataset=name,
            )
    return names


def plan_table(
    tree: Tree, request: SyncRequest, mode: SyncMode, table: SourceTable, name: str, feed: Feed | None, made_as: str
) -> TablePlan:
    """Return the plan of one table.

    Args:
        tree: of the workspace.
        request, mode: what is asked for.
        table: as it was discovered.
        name: of its dataset.
        feed: what feeds the dataset until now.
        made_as: the mode of a dataset that is made, if no arm is declared.

    Raises:
        SchemaError: a column has a type that is refused, or not the dataset's.
        ColumnMismatch: the dataset has other columns.
        NameTaken: the dataset was declared otherwise, or is not fed by this table.
        UsageError: the mode needs a key.
    """
    existing = tree.find(name)
    if request.columns and table.typed:
        raise UsageError(
            f"{table.full_name} of source {request.source} has types of its own",
            safe="nothing was changed",
            next_step="leave the columns out; --text COLUMN reads one as text",
            table=table.full_name,
        )
    if existing is None:
        tree.check_unused(name)
        _check_columns(request.text, table)
        check_types(table, request.source, request.text)
        types = {each.name: "string" if each.name in request.text else str(each.type) for each in table.columns}
        key = list(request.key) or list(table.primary_key)
    else:
        check_fed(existing.name, existing.head_version, feed, request.source, table.full_name)
        types = _existing_types(existing, table, request) if table.typed else _own_types(existing, request)
        key = list(request.key) or list(existing.schema.primary_key)
    declaration = declare(tree, name, types, key, request.arm, mode=made_as)
    verb = mode.verb(bool(key))
    if verb is None:
        raise UsageError(
            f"{mode.name} matches rows by a primary key, and {table.full_name} has none",
            safe="nothing was changed",
            next_step="name the key columns: --key COLUMN; or use --mode full",
            table=table.full_name,
        )
    cursor = _cursor(request, mode, table, bool(key))
    taken = verb_named(verb)
    limit = check_on_error(
        request.on_error, request.max_rejected, taken.name, taken.keyed and taken.clears, "--mode incremental"
    )
    rejected = None
    if request.on_error == QUARANTINE:
        rejected = declare(tree, rejected_name(declaration.name), COLUMNS, mode=declaration.mode)
    first = existing is None or existing.head_version == 0
    # The database itself lets no key of it come twice, and there is nothing yet to match it with.
    by_itself = first and set(key) == set(table.primary_key)
    written = "replace" if by_itself else verb
    return TablePlan(
        request.source, table, declaration, types, mode, written, first, cursor, tuple(request.text), rejected, limit
    )


def check_fed(dataset: str, version: int, feed: Feed | None, source: str, table: str) -> None:
    """Refuse to write to a dataset whose rows are not those of this table.

    Raises:
        NameTaken: it has rows that no sync wrote, or another table's.
    """
    if feed is not None and (feed.source, feed.relation) != (source, table):
        what = f"is fed by {feed.relation} of source {feed.source}"
    elif feed is None and version > 0:
        what = "has rows that no sync wrote"
    else:
        return
    raise NameTaken(
        f"dataset {dataset} {what}, not by {table} of source {source}",
        safe=f"the dataset is unchanged at version {version}",
        next_step="sync into another schema: --into catalog.schema",
        dataset=dataset,
    )


def _own_types(existing: DatasetRecord, request: SyncRequest) -> dict[str, str]:
    """Return the types of a dataset that is there, for a table that has none; what was declared has to be the same."""
    types = {column.name: str(column.type) for column in existing.schema.columns}
    # The order of columns is the dataset's; a declaration may have the files', or be of some alone.
    return as_text({**types, **request.columns}, request.text, existing.name)


def _cursor(request: SyncRequest, mode: SyncMode, table: SourceTable, keyed: bool) -> Cursor | None:
    """Return how new rows of a table are found, if that is asked for.

    Raises:
        SchemaError: the table has no such column.
        UsageError: rows would be skipped, or come twice.
    """
    if request.cursor is None and request.lag is None:
        return None
    if request.cursor is None:
        why, way_out = "a lag is that of a cursor, and none is named", "name it: --cursor COLUMN"
    elif mode.whole:
        why, way_out = f"{mode.name} reads every row, whatever a cursor says", "leave it out, or use --mode incremental"
    elif not keyed:
        why = "rows from the cursor's last value on are read again, and without a key they would come twice"
        way_out = "name a key: --key COLUMN; or use --mode full"
    elif request.lag is None:
        why = "a row whose transaction ends late has a value that was passed already, and would be skipped for ever"
        way_out = "say how late rows may come: --lag '1 hour'; --lag 0 if values are given in the order of the commits"
    else:
        _check_columns([request.cursor], table)
        return Cursor(request.cursor, request.lag)
    raise UsageError(
        f"table {table.full_name}: {why}", safe="nothing was changed", next_step=way_out, table=table.full_name
    )


def _check_columns(names: Sequence[str], table: SourceTable) -> None:
    known = [column.name for column in table.columns]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SchemaError(
            f"table {table.full_name} has no column {unknown[0]!r}; there are {', '.join(known)}",
            safe="nothing was changed",
            column=unknown[0],
        )


def _existing_types(existing: DatasetRecord, table: SourceTable, request: SyncRequest) -> dict[str, str]:
    """Return the types of a dataset that is there, if the table still fits it."""
    types = {column.name: str(column.type) for column in existing.schema.columns}
    columns = {column.name: column for column in table.columns}
    missing = [name for name in types if name not in columns]
    unexpected = [name for name in columns if name not in types]
    way_out = "sync it into a new dataset: --into catalog.schema"
    if missing or unexpected:
        raise ColumnMismatch(
            f"table {table.full_name} has not the columns of dataset {existing.name}; "
            f"missing in the table: {', '.join(missing) or 'none'}; new there: {', '.join(unexpected) or 'none'}",
            safe=f"the dataset is unchanged at version {existing.head_version}",
            next_step=way_out,
            dataset=existing.name,
            missing=missing,
            unexpected=unexpected,
        )
    for name, type_ in types.items():
        wanted = "string" if name in request.text else columns[name].type
        if type_ != wanted and (name in request.text or type_ != "string"):
            raise SchemaError(
                f"column {name!r} of table {table.full_name} is {columns[name].native}, for which dataset "
                f"{existing.name} would have {wanted or 'no type'}; it has {type_}",
                safe=f"the dataset is unchanged at version {existing.head_version}",
                next_step=way_out,
                dataset=existing.name,
                column=name,
            )
    return types
