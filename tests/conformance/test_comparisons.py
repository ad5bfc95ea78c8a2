"""What comparisons of two arms find, what is done about it, and that a check says what a flip will do."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeward
from conformance.test_types import EXTREMES, UTC
from lakeward.errors import LakewardError, ParityMismatch, UnknownObject, UsageError, ValueRefused
from lakeward.storage import certifying, finding
from lakeward.testing import AtStep
from support.arms import HeldDataset, iceberg_table
from support.other_engine import OtherEngine
from support.rows import arrow_table

KEYS = ["a", "B", "_", "é", "z", "", "Z", "null", "0"]
"""Locales sort these in as many ways as there are locales."""

_numbers = itertools.count(1)


def made(workspace: lakeward.Workspace, columns: dict[str, Any], key: Any = (), arm: str = "postgres") -> HeldDataset:
    name = f"main.comparisons.d{next(_numbers)}"
    return HeldDataset(workspace, arm, workspace.create_dataset(name, columns, key, arm=arm).record)


def flipped(workspace: lakeward.Workspace, rows: int = 0) -> HeldDataset:
    """Return a dataset on Postgres, mirrored to Iceberg by a flip that is under way."""
    held = made(workspace, {"id": "string", "note": "string", "n": "long"}, ["id"])
    ids = [*KEYS, *(f"k{number}" for number in range(rows))]
    held.write([{"id": id_, "note": f"note {id_}", "n": at} for at, id_ in enumerate(ids)])
    workspace.flip(held.created.name).run(until="mirror")
    return held


def in_postgres(held: HeldDataset, statement: str, *values: object) -> None:
    """Change the stored rows of a dataset behind everybody's back."""
    with psycopg.connect(held.workspace.database.libpq_url, autocommit=True) as connection:
        connection.execute(statement.encode(), (*values, held.created.id))


def set_value(held: HeldDataset, id_: str, column: str, document: str) -> None:
    in_postgres(
        held,
        "UPDATE lakeward.dataset_rows SET data = jsonb_set(data, ARRAY[%s], %s::jsonb) "
        "WHERE data ->> 'id' = %s AND dataset_id = %s",
        column,
        document,
        id_,
    )


def in_parquet(held: HeldDataset, id_: object, column: str, value: pa.Array, branch: str = "main") -> None:
    """Write a data file of a dataset anew, with another value in one row."""
    table = iceberg_table(held.workspace, held.table)
    paths = table.inspect.files(table.metadata.refs[branch].snapshot_id)["file_path"].to_pylist()
    for path in (path.removeprefix("file://") for path in paths):
        rows = pq.read_table(path)
        at = rows.schema.get_field_index(column)
        if id_ not in rows["id"].to_pylist():
            continue
        row = rows["id"].to_pylist().index(id_)
        values = rows.column(at).combine_chunks()
        changed = pa.concat_arrays([values[:row], value.cast(values.type), values[row + 1 :]])
        pq.write_table(rows.set_column(at, rows.schema.field(at), changed), path)


def mismatch(held: HeldDataset) -> dict[str, Any]:
    """Return what a comparison finds, which is also what is kept."""
    with pytest.raises(ParityMismatch) as caught:
        held.workspace.comparisons.verify(held.created.name)
    (kept,) = held.workspace.comparisons._rooms.parity.newest(held.created.id, "full", most=1)
    found: dict[str, Any] = caught.value.fields["finding"]  # type: ignore[assignment]
    assert (kept.equal, kept.details["finding"]) == (False, found)
    return found


def told(found: dict[str, Any]) -> list[tuple[str, str, str | None, Any]]:
    return [
        (each["key"]["id"], each["what"], each["column"] or each["arm"], each["values"]) for each in found["samples"]
    ]


def test_exactly_the_rows_that_differ_are_found_and_a_new_copy_heals(shared: lakeward.Workspace) -> None:
    held = flipped(shared, rows=3_000)
    name = held.created.name
    assert shared.comparisons.verify(name).compared is not None
    set_value(held, "é", "note", '"other"')
    set_value(held, "k7", "id", '"k2000"')
    set_value(held, "k9", "n", '"ten"')
    in_postgres(held, "DELETE FROM lakeward.dataset_rows WHERE data ->> 'id' = 'B' AND dataset_id = %s")
    in_parquet(held, "k2500", "note", pa.array(["rewritten"]))
    with pytest.raises(LakewardError, match="ten"):
        shared.comparisons.verify(name)  # its number is none: the digest of all rows can't be computed
    set_value(held, "k9", "n", "18.5")
    found = mismatch(held)
    assert sorted(told(found), key=str) == sorted(
        [
            ("k9", "unreadable", "n", {"postgres": "'18.5'"}),
            ("é", "differs", "note", {"postgres": "other", "iceberg": "note é"}),
            ("k7", "missing", "postgres", None),
            ("k2000", "twice", "postgres", None),
            ("B", "missing", "postgres", None),
            ("k2500", "differs", "note", {"postgres": "note k2500", "iceberg": "rewritten"}),
        ],
        key=str,
    )
    assert found["missing"] == {"postgres": 2}
    with pytest.raises(ParityMismatch):
        shared.flip(name).stage("switch")
    set_value(held, "k9", "n", "18")
    with pytest.raises(ParityMismatch, match="k2500"):
        shared.flip(name).run()
    epoch = held.record.route.epoch
    assert "remove the copy" in " ".join(shared.comparisons.explain_resync(name))
    assert held.record.route.epoch == epoch
    done = shared.comparisons.resync(name)
    assert (done["mode"], done["brought"], held.record.route.mode) == ("dual", held.record.row_count - 1, "dual")
    assert [each.outcome for each in shared.comparisons.recheck(name)] == ["equal"]
    assert held.leftovers() == {}
    # Both arms agree, on rows that are not those that were written.
    with pytest.raises(ParityMismatch, match="not what they were"):
        shared.comparisons.verify(name)


def test_a_sound_copy_of_damaged_rows_is_not_thrown_away(shared: lakeward.Workspace) -> None:
    held = flipped(shared)
    shared.comparisons.verify(held.created.name)
    set_value(held, "a", "n", "-1")
    with pytest.raises(ParityMismatch, match="only the iceberg arm is as it was recorded"):
        shared.comparisons.verify(held.created.name)
    with pytest.raises(UsageError, match="the copy on the iceberg arm is"):
        shared.comparisons.resync(held.created.name)


def test_a_new_copy_that_was_cut_short_is_begun_anew(shared: lakeward.Workspace, shared_url: str) -> None:
    """Between the removal of the old copy and the new one: the mode of the route before it is not forgotten."""
    held = flipped(shared)
    name, warehouse = held.created.name, shared.settings.values.warehouse

    def stop() -> None:
        raise RuntimeError("stopped")

    faults = AtStep("flip:resync:drained", stop)
    with lakeward.open(database_url=shared_url, warehouse=warehouse, faults=faults) as other:
        with pytest.raises(RuntimeError, match="stopped"):
            other.comparisons.resync(name)
    assert (held.record.route.mode, shared.replication.lag(held.record, "iceberg").holds) == ("pg", None)
    held.write([{"id": "later", "note": "n", "n": 1}])
    assert shared.comparisons.resync(name)["mode"] == held.record.route.mode == "dual"
    assert [each.outcome for each in shared.comparisons.recheck(name)] == ["equal"]


def test_work_and_memory_are_bounded_when_all_rows_differ(
    shared: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PARTS": 16, "FOLLOWED": 4, "LEAF_ROWS": 8}.items():
        monkeypatch.setattr(finding, name, value)
    held = flipped(shared, rows=500)
    in_postgres(held, "UPDATE lakeward.dataset_rows SET data = data || '{\"n\": -1}' WHERE dataset_id = %s")
    found = mismatch(held)
    assert not found["exact"]
    assert 8 <= found["rows"] <= 509
    assert {(each["what"], each["column"]) for each in found["samples"]} == {("differs", "n")}
    assert len(found["samples"]) <= 20


def test_known_differences_are_counted_apart_until_a_day(shared: lakeward.Workspace) -> None:
    held = flipped(shared)
    name, ours = held.created.name, shared.comparisons
    until = dt.datetime.now(UTC) + dt.timedelta(days=1)
    for column, why in {"id": "primary key", "n": "needs a reason"}.items():
        with pytest.raises(UsageError, match=why):
            ours.ignore(name, column, reason=" ", until=until)
    with pytest.raises(UsageError, match="is past"):
        ours.ignore(name, "n", reason="x", until=dt.datetime(2020, 1, 1, tzinfo=UTC))
    set_value(held, "a", "n", "-1")
    ours.ignore(name, "n", reason="the old writer counted from one", until=until, owner="data team")
    compared = ours.verify(name).compared
    assert compared is not None and (compared.ignored, compared.exact) == ({"n": 1}, True)
    shared.flip(name).run()
    shared.flip(name).revert()
    # Another column is not accepted, nor is a row that is missing.
    in_postgres(held, "DELETE FROM lakeward.dataset_rows WHERE data ->> 'id' = 'z' AND dataset_id = %s")
    found = mismatch(held)
    assert told(found) == [("z", "missing", "postgres", None)]
    with psycopg.connect(shared.database.libpq_url, autocommit=True) as connection:
        connection.execute("UPDATE lakeward.ignore_rules SET until = now() WHERE dataset_id = %s", (held.created.id,))
    assert {each[0] for each in told(mismatch(held))} == {"a", "z"}
    (rule,) = ours.rules(name)
    assert (rule.column, rule.owner, rule.expired) == ("n", "data team", True)
    ours.count_again(name, "n")
    with pytest.raises(UnknownObject):
        ours.count_again(name, "n")


def test_mirrors_are_compared_once_in_a_while(shared: lakeward.Workspace) -> None:
    good, bad = flipped(shared), flipped(shared)
    in_parquet(bad, "_", "note", pa.array(["rewritten"]))
    names = [good.created.name, bad.created.name]
    recent = shared.comparisons.recheck(*names, older_than=3600)
    assert [each.outcome for each in recent] == ["recent", "recent"]
    found = shared.comparisons.recheck(*names)
    assert [(each.dataset, each.outcome) for each in found] == [(names[0], "equal"), (names[1], "differs")]
    assert "id=_" in str(found[1].error)


def test_what_a_check_calls_lossless_flips_there_and_back(shared: lakeward.Workspace) -> None:
    """Every type with its extremes, nulls and empty lists, under the names of columns that arms have trouble with."""
    odd = ['a"b', "ä ö", "select", "a.b", "a_x2Eb", "%s", "\\"]
    columns = {odd[number] if number < len(odd) else f"c{number}": type_ for number, type_ in enumerate(EXTREMES)}
    held = made(shared, columns)
    rows = itertools.zip_longest(*EXTREMES.values())
    held.write(arrow_table(held.schema, [dict(zip(columns, row, strict=True)) for row in rows]))
    name, before = held.created.name, held.digest()
    for to in ("iceberg", "postgres"):
        found = shared.flip(name).check(to)
        assert found.ok and found.certificate is not None
        assert {column.verdict for column in found.certificate.columns} == {"lossless"}
        assert {column.rows for column in found.certificate.columns} == {held.record.row_count}
        shared.flip(name).run(to)
        shared.flip(name).complete(confirm=name)
        assert held.digest(arm=to) == before


def bits(value: int) -> pa.Array:
    return pa.array(np.array([value], np.uint64).view(np.float64))


ODD: dict[str, tuple[str, pa.Array, str]] = {
    "a NUL": ("string", pa.array(["a\0b"]), "NUL"),
    "a year after 9999": ("timestamp", pa.array([253_402_300_800_000_000], pa.timestamp("us")), "years 1 to 9999"),
    "a year before 1": ("date", pa.array([-719_163], pa.date32()), "years 1 to 9999"),
    "no JSON": ("json", pa.array(["{"]), "JSON"),
    "JSON in another form": ("json", pa.array(['{"b":1.0,"a":2}']), "would become"),
}
"""Values that only another engine can have written to Iceberg, by type, and what is said of them."""


@pytest.mark.parametrize("odd", ODD)
def test_what_a_check_refuses_would_have_failed(shared: lakeward.Workspace, odd: str) -> None:
    type_, value, why = ODD[odd]
    held, name = adopted(shared, type_, value)
    found = shared.flip(name).check("postgres")
    assert not found.ok and found.certificate is not None
    (column,) = found.certificate.refused
    assert column.column == "value" and why in column.examples[0].reason
    assert column.examples[0].key == {"id": "1"}
    with pytest.raises(ValueRefused, match="id=1"):
        shared.flip(name).run("postgres")
    assert shared.flip(name).status().stages[0].done is False
    with pytest.raises(LakewardError):
        shared.flip(name).stage("backfill")
        # What came over in another form is found by the comparison, before it counts.
        shared.flip(name).stage("verify")
    assert shared.replication.lag(held.record, "postgres").holds is None


def test_large_rows_are_tried_by_the_code_that_writes(
    shared: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an engine can hold depends on its memory, so that no number says what is too large."""
    monkeypatch.setattr(certifying, "LARGE_ROW_BYTES", 1)
    _, name = adopted(shared, "json", pa.array(["{"]))
    monkeypatch.setattr(type(shared.comparisons._rooms.flips), "adopted", lambda *_: False)
    found = shared.flip(name).check("postgres")
    assert found.certificate is not None
    (column,) = found.certificate.refused
    assert "refused by PostgreSQL" in column.examples[0].reason
    assert shared.flip(name).check("iceberg").ok


def test_a_nan_of_other_bits_is_called_lossy_and_flips(shared: lakeward.Workspace) -> None:
    held, name = adopted(shared, "double", bits(0xFFF8000000000001))
    found = shared.flip(name).check("postgres")
    assert found.ok and found.certificate is not None
    assert [column.verdict for column in found.certificate.columns] == ["lossless", "lossy"]
    before = held.digest(arm="iceberg")
    shared.flip(name).run("postgres")
    assert held.digest(arm="postgres") == before


def adopted(workspace: lakeward.Workspace, type_: str, value: pa.Array) -> tuple[HeldDataset, str]:
    """Return a dataset on Iceberg with a row of another engine, and a value in a file that no writer has judged."""
    held = made(workspace, {"id": "long", "value": type_}, ["id"], arm="iceberg")
    held.write([{"id": 1, "value": None}])
    OtherEngine(workspace, workspace.dataset(held.created.name)).append({"id": 2})
    workspace.adopt(held.created.name, renumber=True)
    in_parquet(held, 1, "value", value)
    return held, held.created.name
