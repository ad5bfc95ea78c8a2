"""What a dataset itself is expected to be is judged for every writer, on both arms, before anybody sees it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import lakeward
from lakeward.errors import ExpectationFailed, LakewardError, SpecError, SqlError, UsageError
from lakeward.storage.requests import Output
from lakeward.types.conform import to_reader
from support.arms import stored_versions
from support.crashes import unclean
from support.databases import WORKSPACE, drop_database, made_database

_numbers = itertools.count(1)

Make = Callable[..., lakeward.Dataset]


@pytest.fixture(scope="module")
def ws(postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    url = made_database(postgres, WORKSPACE)
    root = tmp_path_factory.mktemp("expected")
    with lakeward.open(root / "home", database_url=url, warehouse=root / "warehouse") as opened:
        yield opened
    drop_database(postgres.url, url)


@pytest.fixture
def make(ws: lakeward.Workspace) -> Make:
    """Makes a dataset on an arm, or on both."""

    def create(arm: str = "postgres", key: tuple[str, ...] = ("id",)) -> lakeward.Dataset:
        name = f"main.expected.d{next(_numbers)}"
        dataset = ws.create_dataset(name, {"id": "long", "note": "string"}, key, arm=None if arm == "dual" else arm)
        if arm == "dual":
            ws.flip(name).run(to="iceberg", until="mirror")
        return dataset

    return create


def rows(*ids: int, note: str | None = "a") -> list[dict[str, Any]]:
    return [{"id": each, "note": note} for each in ids]


SMALL = {"row": {"check": "id < 100"}}


@pytest.mark.parametrize("arm", ["postgres", "iceberg", "dual"])
def test_what_fails_leaves_the_version_before(ws: lakeward.Workspace, make: Make, arm: str) -> None:
    dataset = make(arm)
    dataset.expect(["primary_key", SMALL, {"not_null": {"columns": ["note"], "on_fail": "warn"}}])
    first = dataset.write(rows(1, 2))
    assert (first.committed, first.warnings) == (True, ())
    for mode in ("append", "replace", "upsert", "append_new", "mirror"):
        with pytest.raises(ExpectationFailed) as refused:
            dataset.write(rows(3, 101, 102), mode)
        error = refused.value
        assert error.exit_code == 5 and f"{dataset.name} is unchanged at version {first.version}" in (error.safe or "")
        assert "row (id < 100): 2 of" in error.message and "(id=101), (id=102)" in error.message
    with pytest.raises(ExpectationFailed, match="primary_key"):
        dataset.write(rows(1))
    told = dataset.write(rows(4, note=None), "upsert")
    assert told.warnings == ("not_null (note is not null): 1 of 3 rows fail: (id=4)",)
    assert sorted(dataset.to_arrow()["id"].to_pylist()) == [1, 2, 4]
    assert len(set(stored_versions(ws, dataset.record.id)) - {first.version, told.version}) == 0
    if arm == "dual":
        assert dataset.digest("postgres") == dataset.digest("iceberg")
    assert unclean(ws, [dataset.name]) == []
    found = {each.version: each for each in dataset.expectations()}
    assert {version: each.status for version, each in found.items() if each.status == "committed"}.keys() == {
        first.version,
        told.version,
    }
    assert [each.outcome for each in found[told.version].results] == ["passed", "passed", "failed"]
    assert found[first.version + 1].status == "aborted"
    assert found[first.version + 1].results[1].samples == [{"id": "101"}, {"id": "102"}]


def test_every_writer_is_judged(ws: lakeward.Workspace, make: Make, tmp_path: Path) -> None:
    dataset, file = make(), tmp_path / "rows.csv"
    dataset.write(rows(1))
    dataset.expect([SMALL])
    file.write_text("id,note\n101,a\n")
    sheet = dataset.editor.open()
    table = sheet.rows.table
    edited = sheet.edit(table.set_column(table.schema.get_field_index("id"), "id", [[102]]))
    writers: list[Callable[[], object]] = [
        lambda: ws.import_file(dataset.name, file),
        lambda: dataset.write([{**rows(103)[0], "__op": "insert"}], "changes"),
        lambda: dataset.editor.apply(edited, author="anna"),
        lambda: ws.run("select 104::bigint as id, 'x' as note", into=dataset.name, strategy="append_new"),
    ]
    for write in writers:
        with pytest.raises(ExpectationFailed, match="id < 100"):
            write()
    assert dataset.to_arrow()["id"].to_pylist() == [1]
    # What keeps rows is no writer: it changes none.
    dataset.expect([{"row_count": {"min": 10}}])
    dataset.copy_to("iceberg")
    assert dataset.verify().equal
    with pytest.raises(ExpectationFailed, match="row_count"):
        dataset.write(rows(2))


PIPELINE = """
pipeline: p
nodes: {{s: {{source: {source}}}}}
outputs:
  - dataset: {out}
    from: s
    strategy: replace
    primary_key: [id]
    expectations: [{{row_count: {{min: 1}}}}, {{not_null: {{columns: [note], on_fail: warn}}}}]
"""


def test_a_pipeline_is_judged_by_both(ws: lakeward.Workspace, make: Make, tmp_path: Path) -> None:
    source, out = make(), make()
    source.write(rows(1) + rows(2, note=None))
    out.expect([SMALL, {"value": {"sql": "max(id)", "max": 1, "on_fail": "warn"}}])
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "lakeward.toml").touch()
    (tmp_path / "pipelines" / "p.yml").write_text(PIPELINE.format(source=source.name, out=out.name))
    ws.apply(tmp_path)
    [built] = ws.build("p")
    assert [each.split(" (")[0] for each in built.warnings] == [f"{out.name}: value", f"{out.name}: not_null"]
    assert [each.kind for each in out.expectations()[0].results] == ["row_count", "not_null", "row", "value"]
    source.write(rows(500))
    with pytest.raises(ExpectationFailed, match="pipeline 'p' was refused") as refused:
        ws.build("p")
    assert refused.value.fields["pipeline"] == "p" and out.version == 1
    [aborted, committed] = out.expectations()
    assert [each.outcome for each in aborted.results] == ["passed", "failed", "failed", "failed"]
    assert (aborted.status, committed.status) == ("aborted", "committed")


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_a_build_of_several_is_refused_as_a_whole_and_they_know_one_another(
    ws: lakeward.Workspace, make: Make, arm: str
) -> None:
    customers, orders, plain = make(arm), make("postgres"), make(arm)
    known = {"relationship": {"columns": ["id"], "dataset": customers.name, "key": ["id"]}}
    orders.expect([known])

    def build(ids: tuple[int, ...], known_ids: tuple[int, ...]) -> Any:
        given = ((customers, known_ids), (orders, ids), (plain, (1,)))
        outputs = [
            Output(each.record, "upsert", lambda each=each, got=got: to_reader(rows(*got), each.schema, dataset="d"))
            for each, got in given
        ]
        return ws.storage.build(outputs, writer="test")

    with pytest.raises(ExpectationFailed, match=f"not what is expected of {orders.name}"):
        build((1, 2), (1,))
    assert [each.version for each in (customers, orders, plain)] == [0, 0, 0]
    # As the build would leave the other one.
    assert len(build((1, 2), (1, 2)).transactions) == 3
    with pytest.raises(ExpectationFailed):
        orders.write(rows(3))
    customers.write(rows(3))
    orders.write(rows(3))
    assert orders.row_count == 3


def test_a_write_that_changes_nothing_judges_nothing(make: Make) -> None:
    dataset = make()
    dataset.write(rows(1, 200))
    dataset.expect([SMALL])
    # The version that is there was not judged, and stays; whoever writes to it next is told.
    assert not dataset.write(rows(1), "upsert").committed
    assert not dataset.write([]).committed
    assert dataset.expectations() == []
    with pytest.raises(ExpectationFailed):
        dataset.write(rows(2))
    dataset.write([{"id": 200}], "delete")
    dataset.write(rows(2))
    assert dataset.row_count == 2


def test_only_new_rows_are_read_where_that_is_enough(ws: lakeward.Workspace, make: Make) -> None:
    dataset = make("iceberg")
    dataset.expect([SMALL, "primary_key", {"value": {"sql": "sum(id)", "max": 10}}])
    dataset.write(rows(1, 2), "append_new")
    read: list[int | None] = []
    prepared = ws.storage.read_prepared

    def watched(*given: Any) -> Any:
        read.append(given[2] if len(given) > 2 else None)
        return prepared(*given)

    ws.storage.read_prepared = watched  # type: ignore[method-assign]
    try:
        dataset.write(rows(3), "append_new")
    finally:
        del ws.storage.read_prepared
    assert read and set(read) == {1}, "those since the version before"
    with pytest.raises(ExpectationFailed, match=r"sum\(id\)"):
        dataset.write(rows(7), "append_new")


def test_a_request_that_was_refused_can_be_repeated(make: Make) -> None:
    dataset = make()
    dataset.expect([SMALL])
    with pytest.raises(ExpectationFailed):
        dataset.write(rows(1, 101), idempotency_key="k")
    dataset.expect([])
    first = dataset.write(rows(1, 101), idempotency_key="k")
    dataset.expect([SMALL])
    assert first.committed and not first.repeated
    assert dataset.write(rows(1, 101), idempotency_key="k").repeated, "nothing is written, and nothing judged"


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ([{"row": {"check": "id < 1", "on_fail": "quarantine"}}], SpecError, "can't take rows out"),
        ([{"row": {"check": "nothing < 1"}}], SqlError, "nothing"),
        ([{"row": {"check": "id + 1"}}], SpecError, "true or false"),
        ([{"not_null": ["nothing"]}], SpecError, "nothing"),
        ([{"primary": {}}], SpecError, "did you mean|there are"),
        (["row_count"], SpecError, "needs keys"),
        ([{"relationship": {"columns": ["id"], "dataset": "a.b.c", "key": ["id"]}}], SpecError, r"a\.b\.c"),
        ([{"value": {"sql": "read_csv('/etc/passwd')", "min": 1}}], LakewardError, "read_csv"),
        ([7], SpecError, "should be one of"),
    ],
)
def test_what_can_t_be_expected_is_refused_at_once(
    make: Make, wrong: list[Any], error: type[LakewardError], says: str
) -> None:
    dataset = make()
    dataset.expect([SMALL])
    with pytest.raises(error, match=says) as refused:
        dataset.expect(wrong)
    assert refused.value.exit_code == 2 and refused.value.next_step
    assert dataset.expected() == [SMALL]


def test_a_dataset_without_a_key_has_no_primary_key_to_expect(make: Make) -> None:
    with pytest.raises(SpecError, match="no 'primary_key'"):
        make(key=()).expect(["primary_key"])


def test_declarations_are_in_the_audit_log_and_once(ws: lakeward.Workspace, make: Make) -> None:
    dataset = make()
    assert dataset.expect([SMALL], dry_run=True).changed and dataset.expected() == []
    assert dataset.expect([SMALL]).changed
    assert not dataset.expect([SMALL]).changed
    dataset.expect(["primary_key"])
    dataset.expect([])
    with psycopg.connect(ws.database.libpq_url) as connection:
        found = connection.execute(
            "SELECT before, after FROM lakeward.audit_log WHERE action = 'dataset.expect' AND subject = %s ORDER BY id",
            (dataset.name,),
        ).fetchall()
    assert json.loads(json.dumps(found)) == [[None, [SMALL]], [[SMALL], ["primary_key"]], [["primary_key"], None]]
    ws.names("dataset").drop(dataset.name)
    with pytest.raises(UsageError):
        dataset.expect([SMALL])


def test_a_relationship_whose_dataset_is_dropped_refuses_writes_by_name(ws: lakeward.Workspace, make: Make) -> None:
    other, dataset = make(), make()
    other.write(rows(1))
    dataset.expect([{"relationship": {"columns": ["id"], "dataset": other.name, "key": ["id"]}}])
    dataset.write(rows(1))
    ws.names("dataset").drop(other.name)
    with pytest.raises(LakewardError, match=f"what is expected of {dataset.name}.*{other.name}"):
        dataset.write(rows(1))
    assert dataset.version == 1 and unclean(ws, [dataset.name]) == []
