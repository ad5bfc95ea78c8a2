"""A pin: one consistent set of versions of several datasets, to read from as long as it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from lakeward.control.ledger import Ledger
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import UnknownObject
from lakeward.storage.facade import Storage
from lakeward.storage.identity import with_identity
from lakeward.storage.requests import ReadRequest
from lakeward.types.table import arrow_schema


class Pin:
    """Versions of several datasets as they were at one instant. Made by `Workspace.pin`.

    Builds make all of their outputs visible together, and a pin sees all of them or none. It holds nothing: writers go
    on, and the versions stay readable as long as the retention policy keeps them.

    Example:
        >>> pin = ws.pin("main.sales.orders", "main.sales.customers")
        >>> pin.to_arrow("main.sales.orders", columns=["id"]).num_rows
        2
    """

    def __init__(self, storage: Storage, records: Mapping[str, DatasetRecord], heads: Mapping[int, int]) -> None:
        self._storage = storage
        self._records = dict(records)
        self._versions = {name: heads[record.id] for name, record in records.items()}

    @property
    def versions(self) -> dict[str, int]:
        """The pinned version of each dataset by full name; 0 before its first write."""
        return dict(self._versions)

    def read(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        since: int | None = None,
        identity: bool = False,
        arm: str | None = None,
    ) -> pa.RecordBatchReader:
        """Stream rows of one dataset at its pinned version. The other arguments are those of `Dataset.read`.

        Raises:
            UnknownObject: the dataset is not pinned.
            UnknownVersion: the version has expired.
        """
        record = self._records.get(name)
        if record is None:
            raise UnknownObject(
                f"dataset {name} is not pinned; pinned are {', '.join(self._records)}",
                next_step="name it where the others are pinned",
                dataset=name,
            )
        chosen = tuple(columns) if columns is not None else None
        if self._versions[name] == 0:
            schema = arrow_schema(record.schema if chosen is None else record.schema.select(chosen))
            return pa.RecordBatchReader.from_batches(with_identity(schema) if identity else schema, iter(()))
        request = ReadRequest(chosen, where, self._versions[name], since, identity, arm)
        return self._storage.read(record, request, reader="api.pin")

    def to_arrow(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        since: int | None = None,
        identity: bool = False,
        arm: str | None = None,
    ) -> pa.Table:
        """Return rows of one dataset at its pinned version as one table in memory; see `read`."""
        return self.read(name, columns, where, since, identity, arm).read_all()

    def __repr__(self) -> str:
        return f"Pin({self._versions!r})"


def pin(tree: Tree, ledger: Ledger, storage: Storage, names: Sequence[str]) -> Pin:
    """Pin the newest versions of the named datasets, all of one instant; none: of every dataset.

    Raises:
        UnknownObject: one of them is not there.
    """
    found = [tree.dataset(name) for name in names] if names else tree.datasets()
    records = {record.name: record for record in found}
    return Pin(storage, records, ledger.heads([record.id for record in records.values()]))
