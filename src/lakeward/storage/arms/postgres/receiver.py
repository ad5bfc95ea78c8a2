"""What the Postgres arm says of itself before a dataset comes to it."""

from __future__ import annotations

import psycopg
import pyarrow as pa

from lakeward.control.db import Database
from lakeward.errors import ValueRefused
from lakeward.storage.duck import Duck
from lakeward.storage.receiving import Ability, Receiver
from lakeward.storage.table import TableRef
from lakeward.types.jsonb import encode_sql
from lakeward.types.schema import FLOAT_KINDS

_FORMS = {"boolean": "boolean", "int": "number", "long": "number", "list": "array", "struct": "object", "json": "value"}


class PostgresReceiver(Receiver):
    """Looks ahead for the Postgres arm.

    Args:
        database: where the rows go.
        duck: makes documents of them.
    """

    def __init__(self, database: Database, duck: Duck) -> None:
        self._database = database
        self._duck = duck

    def column_types(self, table: TableRef) -> dict[str, str]:
        """Say what each value is in the row's JSON document."""
        forms = _FORMS | dict.fromkeys(FLOAT_KINDS, "number, or a string where JSON has no number")
        return {column.name: f"jsonb {forms.get(column.type.kind, 'string')}" for column in table.schema.columns}

    def abilities(self, table: TableRef, size: int) -> list[Ability]:
        """Say where the rows go; how much room the server has, only its own machine knows."""
        found = f"{self._database.display_url} answers, and will hold about {size / 1e6:,.1f} MB more"
        return [Ability("database", True, found)]

    def rehearse(self, table: TableRef, rows: pa.RecordBatch) -> None:
        """Make documents, and have Postgres read them as jsonb."""
        documents = self._duck.stream(
            f"SELECT {encode_sql(table.schema)} AS data FROM source",
            pa.schema([pa.field("data", pa.string(), nullable=False)]),
            {"source": pa.Table.from_batches([rows])},
        )
        for batch in documents:
            try:
                with self._database.driver() as connection:
                    read = "SELECT count(document::jsonb) FROM unnest(%s::text[]) AS given(document)"
                    connection.execute(read, (batch["data"].to_pylist(),))
            except psycopg.Error as error:
                raise ValueRefused(
                    f"dataset {table.name}: PostgreSQL refuses a row: {str(error).splitlines()[0]}",
                    safe="nothing was written",
                    dataset=table.name,
                    reason=f"is refused by PostgreSQL: {str(error).splitlines()[0]}",
                ) from error
