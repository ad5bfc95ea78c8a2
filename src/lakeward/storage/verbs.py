"""The write verbs: what each does with a row of its input, and with rows of the dataset that the input does not name.

| verb       | key is there               | key is not there | rows that the input does not name |
|------------|----------------------------|------------------|-----------------------------------|
| replace    | (no key is looked at)      | added            | deleted                           |
| append     | (no key is looked at)      | added            | stay                              |
| append_new | skipped                    | added            | stay                              |
| upsert     | updated if it differs      | added            | stay                              |
| mirror     | updated if it differs      | added            | deleted                           |
| changes    | as upsert, or deleted      | added, or skipped | stay                             |
| delete     | deleted                    | skipped          | stay                              |

A row differs if the canonical text of its business columns does (see `lakeward.types.digest`): NaN equals NaN, -0.0
equals 0.0, null differs from an empty list, nested values are compared by value. A row that does not differ is not
written, and keeps its `__version`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakeward.errors import SchemaError, UnknownObject
from lakeward.types.logical import parse_type
from lakeward.types.schema import OP, Column, Schema, name_key


@dataclass(frozen=True)
class Verb:
    """One way to write.

    Args:
        name: what it is called.
        keyed: whether rows are matched by the primary key.
        updates: whether a row whose key is there takes its place, if it differs; else it is skipped.
        clears: whether rows that the input does not name are deleted. An empty input then needs `allow_empty`.
        removes: whether the input's rows are keys to delete.
        per_row: whether each row says by `__op` what is to be done with it.
    """

    name: str
    keyed: bool = True
    updates: bool = False
    clears: bool = False
    removes: bool = False
    per_row: bool = False

    def input_schema(self, schema: Schema) -> Schema:
        """Return the columns that the rows of this verb's input have."""
        if self.removes:
            return Schema(schema.select(schema.primary_key).columns, schema.primary_key)
        if self.per_row:
            return Schema((*schema.columns, Column(OP, parse_type("string"), 0)), schema.primary_key)
        return schema

    def check(self, schema: Schema, dataset: str) -> None:
        """Raise SchemaError if a dataset with these columns can't be written in this way."""
        if self.keyed and not schema.primary_key:
            raise SchemaError(
                f"dataset {dataset} has no primary key, which {self.name} matches rows by",
                safe="nothing was written",
                next_step="append or replace its rows, or create it with a primary key",
                dataset=dataset,
            )
        twin = next((name for name in schema.names if name_key(name) == OP), None)
        if self.per_row and twin is not None:
            raise SchemaError(
                f"dataset {dataset} has a column {twin!r} of its own, so that no row can say by {OP!r} what is to be "
                "done with it",
                safe="nothing was written",
                next_step="use upsert and delete",
                dataset=dataset,
                column=twin,
            )


REPLACE = Verb("replace", keyed=False, clears=True)
APPEND = Verb("append", keyed=False)
APPEND_NEW = Verb("append_new")
UPSERT = Verb("upsert", updates=True)
MIRROR = Verb("mirror", updates=True, clears=True)
CHANGES = Verb("changes", updates=True, per_row=True)
DELETE = Verb("delete", removes=True)

VERBS = {verb.name: verb for verb in (REPLACE, APPEND, APPEND_NEW, UPSERT, MIRROR, CHANGES, DELETE)}
"""The verbs that every arm has, by name."""

KEYED = tuple(verb.name for verb in VERBS.values() if verb.keyed)


def verb_named(name: str) -> Verb:
    """Return the verb called `name`.

    Raises:
        UnknownObject: there is none.
    """
    if name not in VERBS:
        raise UnknownObject.among("write mode", name, VERBS, mode=name)
    return VERBS[name]
