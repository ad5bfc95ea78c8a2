"""Rows that are taken out: each computed row goes to exactly one of output and quarantine, on either arm."""

from __future__ import annotations

from typing import Any

import pytest

from lakeward.errors import DataError, EmptyReplace, ExpectationFailed, SchemaError, SpecError, SqlError
from support.expectations import OUT, Scene

POSITIVE = 'row: {check: "v > 0", on_fail: quarantine}'


def taken(scene: Scene) -> list[tuple[int | None, str]]:
    rows = scene.quarantine.to_arrow().to_pylist()
    return sorted(((row["id"], row["reason"]) for row in rows), key=str)


def counts(result: Any) -> dict[str, int]:
    return {each.dataset: each.rows_in for each in result.transactions}


def test_bad_rows_go_to_the_quarantine_with_reason_and_build(scene: Scene) -> None:
    scene.write((4, -4.0, "old"), (5, None, "sent"), (6, 6.0, "old"))
    scene.expect(POSITIVE, "accepted_values: {column: status, values: [new, sent], on_fail: quarantine}", "primary_key")
    result = scene.build()
    assert scene.ids() == [1, 2, 3]
    assert taken(scene) == [
        (4, "v > 0; status is one of new, sent"),
        (5, "v > 0"),
        (6, "status is one of new, sent"),
    ]
    assert counts(result) == {OUT: 3, f"{OUT}__quarantine": 3}
    rows = scene.quarantine.to_arrow().to_pylist()
    assert {row["build"] for row in rows} == {result.build_id}
    assert [each.build_id for each in scene.quarantine.history()] == [scene.out.history()[0].build_id]
    assert scene.quarantine.arm == scene.arm
    assert scene.quarantine.record.schema.primary_key == ()
    assert scene.outcomes() == {
        "row": ("failed", 6, 2),
        "accepted_values": ("failed", 6, 2),
        "primary_key": ("passed", 3, 0),
    }
    assert result.warnings == (
        f"{OUT}: row (v > 0): 2 of 6 rows fail; they go to {OUT}__quarantine",
        f"{OUT}: accepted_values (status is one of new, sent): 2 of 6 rows fail; they go to {OUT}__quarantine",
    )


@pytest.mark.parametrize("strategy", ["append_always", "append_new", "snapshot_replace", "mirror", "replace"])
def test_rows_in_are_rows_out_and_quarantined_build_by_build(scene: Scene, strategy: str) -> None:
    scene.expect(POSITIVE, strategy=strategy)
    scene.build()
    assert scene.workspace.dataset(f"{OUT}__quarantine").version == 0
    whole = strategy in ("mirror", "replace")
    scene.write((4, -4.0, None), (5, 5.0, None))
    assert counts(scene.build()) == {OUT: 4 if whole else 1, f"{OUT}__quarantine": 1}
    scene.write((6, -6.0, None))
    assert counts(scene.build()) == {OUT: 4 if whole else 0, f"{OUT}__quarantine": 2 if whole else 1}
    assert scene.ids() == [1, 2, 3, 5]
    assert taken(scene) == [(4, "v > 0"), *([(4, "v > 0")] if whole else []), (6, "v > 0")]
    assert scene.build().up_to_date


def test_a_bad_update_leaves_the_row_that_was_there(scene: Scene) -> None:
    scene.workspace.create_dataset("main.raw.keyed", {"id": "long", "v": "double"}, ["id"], arm=scene.arm)
    keyed = scene.workspace.dataset("main.raw.keyed")
    keyed.write([{"id": 1, "v": 1.0}, {"id": 2, "v": 2.0}])
    text = (
        "pipeline: p\nnodes:\n  k: {source: main.raw.keyed}\noutputs:\n  - dataset: main.m.out\n    from: k\n"
        f"    strategy: snapshot_replace\n    primary_key: [id]\n    arm: {scene.arm}\n"
        f"    expectations:\n      - {POSITIVE}\n"
    )
    scene.workspace.pipelines.apply(scene.project(p_yml=text))
    scene.build()
    keyed.write([{"id": 1, "v": -1.0}, {"id": 2, "v": 3.0}], mode="upsert")
    scene.build()
    assert sorted((row["id"], row["v"]) for row in scene.out.to_arrow().to_pylist()) == [(1, 1.0), (2, 3.0)]
    assert taken(scene) == [(1, "v > 0")]


def test_a_row_that_depends_on_chance_goes_to_one_of_both(scene: Scene) -> None:
    sql = "select i as id, random() as v from range(2000) t(i), (select count(*) from orders)"
    scene.expect('row: {check: "v < 0.5", on_fail: quarantine}', sql=sql)
    scene.build()
    good, bad = scene.out.to_arrow().to_pylist(), scene.quarantine.to_arrow().to_pylist()
    assert sorted(row["id"] for row in (*good, *bad)) == list(range(2000))
    assert all(row["v"] < 0.5 for row in good)
    assert all(row["v"] >= 0.5 for row in bad)


def test_rows_without_a_key_are_taken_out_before_they_are_refused(scene: Scene) -> None:
    scene.write((None, 4.0, None))
    scene.expect(strategy="snapshot_replace")
    with pytest.raises(DataError):
        scene.build()
    scene.expect("not_null: {columns: [id], on_fail: quarantine}", strategy="snapshot_replace")
    scene.build()
    assert scene.ids() == [1, 2, 3]
    assert taken(scene) == [(None, "id is not null")]


def test_rows_that_another_dataset_does_not_know_are_taken_out(scene: Scene) -> None:
    known = scene.workspace.create_dataset("main.raw.known", {"id": "long"}, arm=scene.arm)
    known.write([{"id": 1}, {"id": None}])
    scene.write((None, 4.0, None))
    scene.expect(
        "relationship: {columns: [id], dataset: main.raw.known, key: [id], on_fail: quarantine}",
        key="[]",
    )
    scene.build()
    assert sorted(row["id"] or 0 for row in scene.out.to_arrow().to_pylist()) == [0, 1]
    assert [id_ for id_, _ in taken(scene)] == [2, 3]


def test_more_bad_rows_than_the_declared_share_refuse_the_build(scene: Scene) -> None:
    scene.expect(POSITIVE.replace("on_fail", "at_least: 0.75, on_fail"))
    scene.write((4, -4.0, None))
    scene.build()
    scene.write((5, -5.0, None))
    with pytest.raises(ExpectationFailed, match="2 of 5 rows fail, and at least"):
        scene.build()
    assert (scene.ids(), taken(scene)) == ([1, 2, 3], [(4, "v > 0")])


def test_a_build_that_fails_leaves_nothing_in_the_quarantine(scene: Scene) -> None:
    scene.write((4, -4.0, None))
    scene.expect(POSITIVE, "row_count: {min: 4}")
    with pytest.raises(ExpectationFailed, match="row_count"):
        scene.build()
    assert (scene.out.version, scene.quarantine.version) == (0, 0)


def test_nothing_is_left_of_a_first_version(scene: Scene) -> None:
    scene.expect(POSITIVE.replace("> 0", "> 9"), strategy="append_always")
    with pytest.raises(ExpectationFailed, match="all 3 rows of its first version fail"):
        scene.build()
    scene.expect(POSITIVE.replace("> 0", "> 9"))
    with pytest.raises(EmptyReplace):
        scene.build()
    assert (scene.out.version, scene.quarantine.version) == (0, 0)


def test_a_quarantine_that_was_there_first_gets_the_same_rows(scene: Scene) -> None:
    scene.workspace.create_dataset(
        f"{OUT}__quarantine",
        {"id": "long", "v": "double", "status": "string", "reason": "string", "build": "uuid"},
        arm=scene.arm,
    )
    scene.write((4, -4.0, None))
    scene.expect(POSITIVE)
    scene.build()
    assert (scene.ids(), taken(scene)) == ([1, 2, 3], [(4, "v > 0")])


def test_another_dataset_under_the_name_is_left_alone(scene: Scene) -> None:
    scene.workspace.create_dataset(f"{OUT}__quarantine", {"id": "long"})
    scene.expect(POSITIVE)
    with pytest.raises(SchemaError, match="has not the columns of this quarantine"):
        scene.build()


def test_columns_of_the_output_keep_their_names(scene: Scene) -> None:
    scene.write((4, -4.0, None))
    scene.expect(POSITIVE, sql="select id, v, status as reason, 'b' as build from orders")
    scene.build()
    [row] = scene.quarantine.to_arrow().to_pylist()
    assert (row["reason"], row["build"], row["reason_"]) == (None, "b", "v > 0")


def test_an_output_under_the_quarantines_name_is_refused(scene: Scene) -> None:
    with pytest.raises(SpecError, match="is also where bad rows of"):
        scene.expect(POSITIVE, more=f"  - {{dataset: {OUT}__quarantine, from: all, strategy: replace}}\n")


@pytest.mark.parametrize("check", ["unnest([v > 1, true])", "product(v) > 1", "v.sum() > 1"])
@pytest.mark.parametrize("on_fail", ["quarantine", "fail"])
def test_a_check_that_is_not_one_value_for_a_row_is_refused(scene: Scene, check: str, on_fail: str) -> None:
    with pytest.raises(SqlError, match=r"p\.yml:12: expectation: "):
        scene.expect(f'row: {{check: "{check}", on_fail: {on_fail}}}')
