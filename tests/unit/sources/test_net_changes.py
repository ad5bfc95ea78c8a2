"""Many changes come to what the rows are after them, however they are cut into batches and wherever they are kept."""

from __future__ import annotations

import datetime
import resource
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakeward.errors import StorageError, StorageFull
from lakeward.sources.change_log import CHANGE_COLUMNS
from lakeward.sources.change_spool import ChangeSpool
from lakeward.sources.net_changes import Netting

OWN = pa.schema([("id", pa.int32()), ("v", pa.int64()), ("doc", pa.string()), ("tags", pa.list_(pa.string()))])
SCHEMA = pa.schema([*CHANGE_COLUMNS, *OWN])
LARGE = ("doc", "tags")
Row = tuple[int, str, list[str]]


class Table:
    """A table, and the log of what is done to it."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {number: (0, f"d{number}", [str(number)]) for number in range(8)}
        self.log: list[dict[str, object]] = []
        self._fresh = 0

    def do(self, what: str, key: int, other: int, kept: Sequence[str]) -> None:
        """Do one thing to the row of a key, if it can be done; large columns that are `kept` are not sent."""
        self._fresh += 1
        fresh: Row = (self._fresh, f"f{self._fresh}", [f"t{self._fresh}"])
        if what == "truncate":
            self.rows.clear()
            self._tell(what, None)
        elif what == "insert" and key not in self.rows:
            self.rows[key] = fresh
            self._tell(what, key, fresh)
        elif what == "delete" and self.rows.pop(key, None):
            self._tell(what, key)
        elif what == "update" and key in self.rows:
            self.rows[key] = self._kept(key, fresh, kept)
            self._tell(what, key, self.rows[key], kept)
        elif what == "move" and key in self.rows and other not in self.rows:
            self.rows[other] = self._kept(key, fresh, kept)
            del self.rows[key]
            self._tell("delete", key)
            self._tell("insert", other, self.rows[other], kept)

    def _kept(self, key: int, fresh: Row, kept: Sequence[str]) -> Row:
        old = self.rows[key]
        return fresh[0], old[1] if "doc" in kept else fresh[1], old[2] if "tags" in kept else fresh[2]

    def _tell(self, op: str, key: int | None, row: Row | None = None, kept: Sequence[str] = ()) -> None:
        values = dict(zip(("v", *LARGE), row or (None, None, None), strict=True))
        sent = {name: None if name in kept else value for name, value in values.items()}
        at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
        told = {"__op": op, "__commit": 1, "__ordinal": len(self.log), "__committed_at": at}
        self.log.append({**told, "__unchanged": list(kept) or None, "id": key, **sent})


def netted(directory: Path, log: Sequence[Mapping[str, object]], cut: int, before: Mapping[int, Row]) -> dict[int, Row]:
    """Return what a dataset with the rows `before` has after the net changes."""
    spool = ChangeSpool(directory, in_memory=500)
    for start in range(0, len(log), cut):
        spool.add(pa.RecordBatch.from_pylist(list(log[start : start + cut]), schema=SCHEMA))

    def present(
        columns: Sequence[str], ranges: Mapping[str, tuple[int, int]], keys: pa.Table
    ) -> Iterator[pa.RecordBatch]:
        low, high = ranges["id"]
        rows = [dict(zip(OWN.names, (key, *row), strict=True)) for key, row in before.items() if low <= key <= high]
        yield from pa.Table.from_pylist(rows, schema=OWN).select(list(columns)).to_batches()

    netting = Netting(directory, "100MB")
    try:
        net = netting.net(spool, ["id"], present)
        found = [row for batch in net.batches for row in batch.to_pylist()]
    finally:
        netting.close()
        spool.close()
    assert len(found) == net.rows == len({row["id"] for row in found}), "no key comes twice"
    after = {} if net.replaces else dict(before)
    for row in found:
        if row.get("__op") == "delete":
            after.pop(row["id"], None)
        else:
            after[row["id"]] = (row["v"], row["doc"], row["tags"])
    return after


KINDS = ("insert", "delete", "update", "update", "move", "move")
STEPS = st.tuples(
    st.sampled_from((*KINDS, *KINDS, *KINDS, "truncate")),
    st.integers(0, 9),
    st.integers(0, 9),
    st.sampled_from(((), ("doc",), ("tags",), LARGE)),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=12, max_size=60), cut=st.integers(1, 20))
def test_net_changes_make_the_rows_what_they_are(
    tmp_path: Path, steps: list[tuple[str, int, int, tuple[str, ...]]], cut: int
) -> None:
    table = Table()
    before = dict(table.rows)
    for step in steps:
        table.do(*step)
    if table.log:
        assert netted(tmp_path, table.log, cut, before) == table.rows
    assert list(tmp_path.iterdir()) == []


def test_a_row_that_must_have_been_there_and_is_not_is_named(tmp_path: Path) -> None:
    table = Table()
    table.do("update", 3, 0, ["doc"])
    with pytest.raises(StorageError, match="was updated at the source, and is not here") as caught:
        netted(tmp_path, table.log, 10, {})
    assert caught.value.fields["key"] == {"id": "3"}


def test_a_disk_that_is_full_before_the_end_of_the_file_is_said_and_closing_is_no_error(tmp_path: Path) -> None:
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    row: dict[str, object] = {"__op": "insert", "__commit": 1, "__ordinal": 1, "__committed_at": at}
    spool = ChangeSpool(tmp_path, in_memory=0)
    spool.add(pa.RecordBatch.from_pylist([{**row, "id": 1, "v": 1, "doc": "x", "tags": []}], schema=SCHEMA))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256, hard))
    try:
        with pytest.raises(StorageFull, match="can't be kept"):
            list(spool.batches())
        spool.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
