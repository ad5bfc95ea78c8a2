"""A sheet of a manual table as a form: what people typed into its cells, and the edit that it means.

A cell is text, as in a CSV file: nothing is null, `""` is an empty string, and a text that begins and ends with a quote
is quoted. What a browser sends back as it was shown has not been edited, whatever the browser does to ends of lines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakeward.errors import UsageError, ValueRefused
from lakeward.sources.formats.nested_text import is_nested, parse_nested
from lakeward.sources.formats.text_values import Unconvertible, parse_text
from lakeward.types.schema import ROW_ID, Schema
from lakeward.types.table import arrow_type
from lakeward.wiring.edit_diff import Edit
from lakeward.wiring.editing import Sheet

Cells = dict[str, str]
"""What was typed into cells, by column."""


@dataclass
class Pending:
    """What was typed so far, and is not applied.

    Args:
        version: of the rows that were read.
        changed: rows by their number from 0, each with its cells that were typed into.
        removed: numbers of rows.
        added: new rows.
    """

    version: int
    changed: dict[int, Cells] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    added: list[Cells] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.changed or self.removed or self.added)

    def __str__(self) -> str:
        """Return it as the form carries it."""
        return json.dumps([self.version, list(self.changed.items()), sorted(self.removed), self.added])

    @classmethod
    def read(cls, text: str) -> Pending:
        """Return what a form carried.

        Raises:
            UsageError: it is none.
        """
        try:
            version, changed, removed, added = json.loads(text)
            return cls(
                int(version),
                {int(row): _texts(cells) for row, cells in changed},
                {int(row) for row in removed},
                [_texts(cells) for cells in added],
            )
        except (ValueError, TypeError, AttributeError):
            raise UsageError("the form is not one of this page", safe="nothing was changed") from None


def _texts(cells: Mapping[str, str]) -> Cells:
    return {str(name): str(text) for name, text in cells.items()}


def shown(text: str | None) -> str:
    """Return a cell as it stands in its field."""
    if text is None:
        return ""
    if text == "" or (len(text) > 1 and text[0] == text[-1] == '"'):
        return '"' + text.replace('"', '""') + '"'
    return text


def meant(text: str) -> str | None:
    """Return what a field says."""
    if text == "":
        return None
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1].replace('""', '"')
    return text


def take(pending: Pending, form: Mapping[str, str], sheet: Sheet) -> None:
    """Add to what is pending what a page of the form says.

    Args:
        pending: is added to.
        form: `c.7.2` is row 7, column 2; `d.7` is there if row 7 is to go; `n.0.2` is a cell of a new row.
        sheet: the rows that were read.
    """
    names = sheet.rows.schema.names
    added: dict[int, Cells] = {}
    for key, text in form.items():
        kind, _, place = key.partition(".")
        row, _, column = place.partition(".")
        if kind not in ("c", "n") or not (row.isdecimal() and column.isdecimal()) or int(column) >= len(names):
            continue
        name, typed = names[int(column)], _unix(text)
        if kind == "n":
            if typed:
                added.setdefault(int(row), {})[name] = typed
        elif int(row) < len(sheet.rows):
            _take_cell(pending, int(row), name, typed, shown(sheet.rows.texts[int(row)][int(column)]))
    pending.removed -= {int(each) for each in form.get("rows", "").split(",") if each.isdecimal()}
    gone = [key.partition(".")[2] for key in form if key.startswith("d.")]
    pending.removed |= {int(each) for each in gone if each.isdecimal() and int(each) < len(sheet.rows)}
    pending.added = [cells for _, cells in sorted(added.items())]


def _take_cell(pending: Pending, row: int, name: str, typed: str, was: str) -> None:
    cells = pending.changed.setdefault(row, {})
    if typed == _unix(was):
        cells.pop(name, None)
    else:
        cells[name] = typed
    if not cells:
        del pending.changed[row]


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def edit_of(sheet: Sheet, pending: Pending) -> Edit:
    """Return what is pending as an edit.

    Args:
        sheet: the rows that were read, at the version of `pending`.
        pending: what was typed.

    Raises:
        ValueRefused: a text is no value of its column.
        DuplicateKey: two rows have one key.
    """
    schema = sheet.rows.schema
    # A key that somebody emptied is refused in words by `Sheet.edit`.
    nullable = pa.schema([each.with_nullable(True) for each in sheet.rows.table.schema])
    table = sheet.rows.table.cast(nullable)
    changed = [row for row in sorted(pending.changed) if row not in pending.removed]
    texts: list[dict[str, str | None]] = []
    for row in changed:
        typed = {name: meant(text) for name, text in pending.changed[row].items()}
        texts.append({**sheet.rows.named(row), **typed})
    texts += [{name: meant(cells.get(name, "")) for name in schema.names} for cells in pending.added]
    labels = [f"row {row + 1}" for row in changed] + [f"new row {row + 1}" for row in range(len(pending.added))]
    columns = {name: _parsed(texts, name, schema, labels, sheet.dataset) for name in schema.names}
    if not schema.primary_key:
        ids = [*table[ROW_ID].take(pa.array(changed, pa.int64())).to_pylist(), *(None for _ in pending.added)]
        columns[ROW_ID] = pa.array(ids, pa.int64())
    typed_rows = pa.table({name: columns[name] for name in table.column_names}).cast(nullable)
    instead = {row: len(table) + place for place, row in enumerate(changed)}
    taken = [instead.get(row, row) for row in range(len(table)) if row not in pending.removed]
    taken += range(len(table) + len(changed), len(table) + len(typed_rows))
    return sheet.edit(pa.concat_tables([table, typed_rows]).take(pa.array(taken, pa.int64())))


def _parsed(
    texts: Sequence[Mapping[str, str | None]], name: str, schema: Schema, labels: Sequence[str], dataset: str
) -> pa.Array:
    type_ = schema.column(name).type
    values = pa.array([each[name] for each in texts], pa.string())
    try:
        parsed = parse_nested(values, type_) if is_nested(type_) else parse_text(values, type_)
    except Unconvertible as error:
        raise ValueRefused(
            f"dataset {dataset}: {labels[error.index]}, column {name!r}: {error.value!r} {error.reason}",
            safe="nothing was changed",
            next_step="correct the cell",
            dataset=dataset,
            column=name,
            value=error.value,
        ) from None
    return parsed.cast(arrow_type(type_))
