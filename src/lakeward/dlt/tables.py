"""What a load does with each table: its dataset, the verb, and how rows are merged. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from dlt.common.destination.client import JobClientBase
from dlt.common.destination.utils import resolve_merge_strategy
from dlt.common.schema import Schema as DltSchema
from dlt.common.schema.typing import TTableSchema
from dlt.common.schema.utils import (
    get_columns_names_with_prop,
    get_dedup_sort_tuple,
    get_first_column_name_with_prop,
    get_nested_tables,
    get_root_table,
    has_table_seen_data,
    is_complete_column,
)

from lakeward.control.names import full_name
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.dlt.column_types import logical_type
from lakeward.errors import ColumnMismatch, NameTaken, SchemaError
from lakeward.wiring.declaring import Declaration, declare

NOT_WRITTEN = "nothing of the load package was written"

_UNKNOWN_HINTS = ("x-merge-source-filter", "x-merge-destination-scope", "x-merge-skip-unchanged-rows")
"""Of merges, which would otherwise be done as if they had not been given."""


@dataclass(frozen=True)
class Keys:
    """How the rows of a root table are known again.

    Args:
        strategy: one of `MERGE_STRATEGIES`.
        primary, merge: names of the columns of both keys; a row is met by either.
        row: the column that names each row, `_dlt_id`.
        hard_delete: the column that says that a row is gone, and whether by being true rather than by not being null.
        sort: the column whose first row is kept of several with one key, and `asc` or `desc`.
    """

    strategy: str
    primary: tuple[str, ...]
    merge: tuple[str, ...]
    row: str | None
    hard_delete: tuple[str, bool] | None
    sort: tuple[str, str] | None

    @property
    def of_dataset(self) -> tuple[str, ...]:
        """The primary key of the dataset; empty: rows can only be appended."""
        if not self.primary and not self.merge:
            return ()
        return self.primary or ((self.row,) if self.row else ())


@dataclass(frozen=True)
class TableLoad:
    """One table on its way to its dataset.

    Args:
        name: the table's.
        declaration: of its dataset.
        disposition: `append`, `replace` or `merge`.
        root: the table whose rows its rows belong to; itself, unless it is nested.
        keys: those of the root, if that is merged.
        row, root_key: of a nested table of a merged one: the columns `_dlt_id` and `_dlt_root_id`.
    """

    name: str
    declaration: Declaration
    disposition: str
    root: str
    keys: Keys | None = None
    row: str | None = None
    root_key: str | None = None


class Tables:
    """The tables of one schema of dlt, and the datasets of them.

    Args:
        client: knows the tables as dlt prepares them for a destination.
        tree: of the workspace.
        levels: catalog and schema of the datasets.
        arm: of datasets that are made; None: as `mode` says.
        mode: of datasets that are made.
    """

    def __init__(self, client: JobClientBase, tree: Tree, levels: tuple[str, str], arm: str | None, mode: str) -> None:
        self._client = client
        self._schema: DltSchema = client.schema
        self._tree = tree
        self._levels = levels
        self._arm = arm
        self._mode = mode

    def loads(self, with_rows: Sequence[str], emptied: frozenset[str] = frozenset()) -> list[TableLoad]:
        """Return what a load does with each table that it touches.

        Args:
            with_rows: tables that it has rows of.
            emptied: tables that are emptied first.

        Raises:
            SchemaError, ColumnMismatch, NameTaken: a table does not fit its dataset; table and column are named.
        """
        tables = self._schema.tables
        own = set(self._schema.dlt_table_names())
        touched: dict[str, None] = {}
        for name in with_rows:
            if name in own or name not in tables:
                continue
            root = _name(get_root_table(tables, name))
            whole = self._prepared(root).get("write_disposition") in ("replace", "merge")
            chain = [_name(table) for table in get_nested_tables(tables, root) if has_table_seen_data(table)]
            touched.update(dict.fromkeys(chain if whole else [name]))
        touched.update(dict.fromkeys(name for name in sorted(emptied) if name in tables and name not in own))
        return [self._load(name, name in with_rows) for name in touched if self._exists_or(name, name in with_rows)]

    def gone(self, emptied: frozenset[str]) -> list[DatasetRecord]:
        """Return the datasets of tables that a refresh wants emptied, and that the schema has not any more."""
        names = [name for name in sorted(emptied) if name not in self._schema.tables]
        return [found for found in (self._tree.find(self.dataset(name)) for name in names) if found is not None]

    def dataset(self, table: str) -> str:
        """Return the full name of a table's dataset."""
        return full_name((*self._levels, table))

    def _prepared(self, name: str) -> TTableSchema:
        return cast(TTableSchema, self._client.prepare_load_table(name))

    def _exists_or(self, name: str, with_rows: bool) -> bool:
        return with_rows or self._tree.find(self.dataset(name)) is not None

    def _load(self, name: str, with_rows: bool) -> TableLoad:
        table = self._prepared(name)
        root = self._prepared(_name(get_root_table(self._schema.tables, name)))
        disposition = root.get("write_disposition") or "append"
        keys = self._keys(root) if disposition == "merge" else None
        if keys is None:
            return TableLoad(name, self._declared(table, None), disposition, _name(root))
        if _name(root) == name:
            return TableLoad(name, self._declared(table, keys.of_dataset), disposition, name, keys)
        row = get_first_column_name_with_prop(table, "row_key")
        root_key = get_first_column_name_with_prop(table, "root_key")
        if root_key is None and table.get("parent") == _name(root):
            root_key = get_first_column_name_with_prop(table, "parent_key")
        if keys.of_dataset and (row is None or root_key is None or keys.row is None):
            raise SchemaError(
                f"table {name} has no column that leads to the row of {_name(root)} that its rows belong to",
                safe=NOT_WRITTEN,
                next_step="load it with write_disposition append or replace, or let dlt unnest it",
                table=name,
            )
        declaration = self._declared(table, (row,) if keys.of_dataset and row else ())
        return TableLoad(name, declaration, disposition, _name(root), keys, row, root_key)

    def _keys(self, root: TTableSchema) -> Keys:
        hints = [hint for hint in _UNKNOWN_HINTS if root.get(hint)]
        if hints:
            raise SchemaError(
                f"table {_name(root)} is merged with {hints[0]}, which this destination does not know",
                safe=NOT_WRITTEN,
                next_step="leave it out, and merge all rows of the table",
                table=_name(root),
            )
        strategy = resolve_merge_strategy({_name(root): root}, root, self._client.capabilities) or "delete-insert"
        hard_delete = get_first_column_name_with_prop(root, "hard_delete")
        primary = tuple(get_columns_names_with_prop(root, "primary_key"))
        merge = tuple(get_columns_names_with_prop(root, "merge_key")) if strategy == "delete-insert" else ()
        keys = Keys(
            strategy,
            primary,
            merge,
            get_first_column_name_with_prop(root, "row_key"),
            (hard_delete, root["columns"][hard_delete]["data_type"] == "bool") if hard_delete else None,
            get_dedup_sort_tuple(root),
        )
        if (strategy != "delete-insert" and not primary) or (hard_delete and not keys.of_dataset):
            raise SchemaError(
                f"table {_name(root)} is merged by {strategy} and has no primary key",
                safe=NOT_WRITTEN,
                next_step="name its columns: primary_key=…",
                table=_name(root),
            )
        if strategy == "insert-only" and hard_delete:
            raise SchemaError(
                f"column {hard_delete!r} of table {_name(root)} deletes rows, and insert-only merges don't",
                safe=NOT_WRITTEN,
                next_step="merge it by delete-insert or upsert",
                table=_name(root),
                column=hard_delete,
            )
        return keys

    def _declared(self, table: TTableSchema, key: Sequence[str] | None) -> Declaration:
        """Return the declaration of a table's dataset.

        Args:
            table: with all hints.
            key: its primary key; None: any will do.
        """
        name = self.dataset(_name(table))
        columns = {
            column: logical_type(declared, _name(table))
            for column, declared in table["columns"].items()
            if is_complete_column(declared)
        }
        existing = self._tree.find(name)
        if existing is None:
            return declare(self._tree, name, columns, key or (), self._arm, mode=self._mode)
        check_fits(existing, _name(table), columns, key)
        return Declaration(existing.name, existing.schema, existing.route.mode, existing)


def _name(table: TTableSchema) -> str:
    name = table["name"]
    assert name is not None, "tables of a schema have names"
    return name


def check_fits(existing: DatasetRecord, table: str, columns: Mapping[str, str], key: Sequence[str] | None) -> None:
    """Refuse a table that its dataset can't take the rows of.

    Raises:
        ColumnMismatch, SchemaError, NameTaken: naming the first difference.
    """
    has = {column.name: str(column.type) for column in existing.schema.columns}
    new = [name for name in columns if name not in has]
    if new:
        raise ColumnMismatch(
            f"table {table} has {_listed('column', new)} that dataset {existing.name} has not",
            safe=f"{NOT_WRITTEN}; the dataset is unchanged at version {existing.head_version}",
            next_step="load into new datasets (another dataset_name), or leave new columns out at the source: "
            "schema_contract={'columns': 'discard_value'}; `dlt pipeline NAME abort-packages` gives this "
            "package up",
            dataset=existing.name,
            table=table,
            unexpected=new,
        )
    for name, type_ in columns.items():
        if has[name] != type_:
            raise SchemaError(
                f"column {name!r} of table {table} is {type_}, and {has[name]} in dataset {existing.name}",
                safe=f"{NOT_WRITTEN}; the dataset is unchanged at version {existing.head_version}",
                next_step="declare the column as it was, or load into new datasets (another dataset_name)",
                dataset=existing.name,
                table=table,
                column=name,
            )
    if key is not None and tuple(key) != existing.schema.primary_key:
        own, wanted = (f"({', '.join(each)})" if each else "none" for each in (existing.schema.primary_key, key))
        raise NameTaken(
            f"dataset {existing.name} has the primary key {own}, and merging table {table} needs {wanted}",
            safe=f"{NOT_WRITTEN}; the dataset is unchanged at version {existing.head_version}",
            next_step=f"`lakeward dataset drop {existing.name}`, or load into new datasets (another dataset_name)",
            dataset=existing.name,
            table=table,
        )


def _listed(what: str, names: Sequence[str]) -> str:
    return f"{what}{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"
