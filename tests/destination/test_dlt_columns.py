"""What dlt writes is kept exactly, on both arms, or refused by name before anything is visible."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import dlt
import pyarrow as pa
import pytest
from dlt.pipeline.exceptions import PipelineStepFailed

import lakeward
from destination.conftest import ARMS, Made, Rows
from lakeward.errors import ColumnMismatch, DuplicateKey, LakewardError, NameTaken, SchemaError, ValueRefused

NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=datetime.UTC)
VALUES: dict[str, tuple[object, str]] = {
    "text": ("ä\n'", "string"),
    "bigint": (-(2**63), "long"),
    "double": (0.1, "double"),
    "bool": (False, "boolean"),
    "timestamp": (NOON, "timestamptz"),
    "date": (datetime.date(1, 1, 1), "date"),
    "time": (datetime.time(23, 59, 59, 999_999), "time"),
    "binary": (b"\x00\xff", "binary"),
    "wei": (Decimal(10**38 - 1), "decimal(38,0)"),
    "decimal": (Decimal("-12345678901234567890123456789.123456789"), "decimal(38,9)"),
    "json": ({"a": [1, None, "x"]}, "json"),
}
ARROW = pa.table(
    {
        "fine": pa.array([1_000], pa.timestamp("ns", "UTC")),
        "naive": pa.array([1], pa.timestamp("us")),
        "digits": pa.array([Decimal("1.2345")], pa.decimal128(30, 4)),
        "many": pa.array([[1, 2]], pa.list_(pa.int64())),
        "deep": pa.array([{"a": 1.5}], pa.struct([("a", pa.float64())])),
        "nan": pa.array([float("nan")]),
        "words": pa.array(["w"]).dictionary_encode(),
    }
)


@pytest.mark.parametrize("arm", ARMS)
def test_every_type_keeps_its_values(ws: lakeward.Workspace, pipeline: Made, arm: str) -> None:
    columns: Any = {f"c_{kind}": {"data_type": kind} for kind in VALUES}
    naive = NOON.replace(tzinfo=None)
    row = {"naive": naive, **{f"c_{kind}": value for kind, (value, _) in VALUES.items()}}
    columns["naive"] = {"data_type": "timestamp", "timezone": False}
    plain = dlt.resource([row, {"naive": naive}], name="plain", columns=columns)
    pipeline("types", arm).run([plain, dlt.resource(ARROW, name="arrow")])
    dataset = ws.dataset(f"{arm}.types.plain")
    types = {column.name: str(column.type) for column in dataset.schema.columns}
    assert {name: types[f"c_{name}"] for name in VALUES} == {name: type_ for name, (_, type_) in VALUES.items()}
    first, second = sorted(dataset.to_arrow().to_pylist(), key=lambda found: found["c_text"] is None)
    assert first["c_json"] == '{"a": [1, null, "x"]}' and first["naive"] == naive and types["naive"] == "timestamp"
    assert {name: first[f"c_{name}"] for name in VALUES if name != "json"} == {
        name: value for name, (value, _) in VALUES.items() if name != "json"
    }
    assert {second[f"c_{name}"] for name in VALUES} == {None}
    arrow = ws.dataset(f"{arm}.types.arrow").to_arrow()
    found = {column.name: str(column.type) for column in ws.dataset(f"{arm}.types.arrow").schema.columns}
    assert found["many"] == "list<long>" and found["deep"] == "struct<a: double>" and found["digits"] == "decimal(30,4)"
    assert arrow["fine"].cast(pa.int64()).to_pylist() == [1] and str(arrow["nan"][0]) == "nan"
    assert arrow["many"].to_pylist() == [[1, 2]] and arrow["words"].to_pylist() == ["w"]


def refused(run: Callable[[], object]) -> LakewardError:
    with pytest.raises(PipelineStepFailed) as failed:
        run()
    error: BaseException | None = failed.value
    while error is not None and not isinstance(error, LakewardError):
        error = error.__cause__
    assert error is not None, failed.value
    return error


def test_d01_what_can_not_be_kept_is_refused_by_name_and_nothing_of_the_package_is_seen(
    ws: lakeward.Workspace, pipeline: Made, rows: Callable[[str, str, str], Rows]
) -> None:
    late = pa.table({"id": [1], "at": pa.array([1_001], pa.timestamp("ns", "UTC"))})
    wide = pa.table({"wide": pa.array([Decimal(1)], pa.decimal256(50))})
    cases: list[tuple[list[Any], type[LakewardError], str]] = [
        ([dlt.resource(late, name="fine")], ValueRefused, "at"),
        ([dlt.resource([{"id": 1, "note": "a\x00b"}], name="zero")], ValueRefused, "note"),
        ([dlt.resource(pa.table({"big": pa.array([2**63], pa.uint64())}), name="big")], ValueRefused, "big"),
        ([dlt.resource(wide, name="wide")], SchemaError, "wide"),
        (
            [
                dlt.resource(
                    [{"id": 7}, {"id": 7}],
                    name="twice",
                    primary_key="id",
                    write_disposition={"disposition": "merge", "strategy": "upsert"},
                )
            ],
            DuplicateKey,
            "id=7",
        ),
    ]
    for number, (bad, kind, told) in enumerate(cases):
        name = f"refused{number}"
        good = dlt.resource([{"id": 1}], name="good")
        target = pipeline(name)
        error = refused(lambda target=target, good=good, bad=bad: target.run([good, *bad]))  # type: ignore[misc]
        assert isinstance(error, kind) and told in str(error), error
        assert rows(name, "postgres", "good") == rows(name, "postgres", "_dlt_loads") == []
        assert target.has_pending_data
    # The last one goes on without what was refused.
    target.abort_packages()
    target.run([good])
    assert len(rows(name, "postgres", "good")) == len(rows(name, "postgres", "_dlt_loads")) == 1


def test_t06_new_columns_and_keys_are_refused_before_anything_is_written(
    ws: lakeward.Workspace, pipeline: Made, rows: Callable[[str, str, str], Rows]
) -> None:
    target = pipeline("evolving")
    target.run([{"id": 1, "note": "a"}], table_name="items")
    error = refused(lambda: target.run([{"id": 2, "note": "b", "extra": 1.5}], table_name="items"))
    assert isinstance(error, ColumnMismatch) and error.fields["table"] == "items"
    assert error.fields["unexpected"] == ["extra"]
    assert "discard_value" in str(error.next_step)
    target.abort_packages()
    target.run([{"id": 2, "note": "b", "extra": 1.5}], table_name="items", schema_contract={"columns": "discard_value"})
    assert sorted(row["id"] for row in rows("evolving", "postgres", "items")) == [1, 2]  # type: ignore[type-var]
    error = refused(lambda: target.run([{"id": 2}], table_name="items", write_disposition="merge", primary_key="id"))
    assert isinstance(error, NameTaken) and "primary key" in str(error)
    target.abort_packages()
    with pytest.raises(PipelineStepFailed, match="scd2"):
        pipeline("scd").run([{"id": 1}], table_name="t", write_disposition={"disposition": "merge", "strategy": "scd2"})
    history = ws.dataset("postgres.evolving.items").history()
    assert [(entry.verb, entry.writer, entry.status) for entry in history] == [("append", "dlt.load", "committed")] * 2
