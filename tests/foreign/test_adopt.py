"""`adopt`: another engine's rows become a version of ours, with sound identity, and everybody goes on from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from pyiceberg.types import StringType

import lakeward
from lakeward.control.last_writes import LastWrites
from lakeward.errors import ColumnMismatch, ConflictError, DataError, Diverged, UsageError
from support.foreign_scene import Scene, rows
from support.other_engine import Interruptions, OtherEngine, Rows


def counts(result: lakeward.WriteResult) -> tuple[int, ...]:
    """Return rows in, added, updated, unchanged, deleted and the total."""
    return (
        result.rows_in,
        result.rows_added,
        result.rows_updated,
        result.rows_unchanged,
        result.rows_deleted,
        result.row_count,
    )


def refused(scene: Scene) -> None:
    with pytest.raises(Diverged):
        scene.dataset.write(rows(99))
    assert scene.status == "diverged"


# Rows that are sound --------------------------------------------------------------------------------------------------


def test_nothing_is_adopted_where_nobody_wrote(scene: Scene) -> None:
    assert scene.dataset.foreign() is None
    for _ in range(2):
        result = scene.dataset.adopt()
        assert (result.committed, result.version, result.row_count) == (False, 2, 3)
    assert len(scene.history()) == 2
    assert scene.audit() == []


def test_foreign_delete_is_adopted(scene: Scene) -> None:
    ours = scene.ours
    foreign = scene.other.delete("id = 2")
    refused(scene)
    result = scene.workspace.adopt(scene.dataset.name)
    assert counts(result) == (2, 0, 0, 2, 1, 2)
    assert (result.verb, scene.ours, scene.other.main) == ("adopt", foreign, foreign)
    assert scene.history()[-1] == (result.version, "adopt", "adopt", "committed")
    assert scene.ids() == [1, 3]
    assert scene.ids(version=2) == [1, 2, 3]
    scene.assert_whole()
    assert scene.audit() == [("ledger.adopt", {"main": foreign, "ours": ours}, {"ours": foreign})]
    assert not scene.dataset.adopt().committed
    scene.dataset.write(rows(4))
    assert scene.ids() == [1, 3, 4]
    scene.assert_whole()


def test_it_need_not_be_noticed_by_a_writer_first(scene: Scene) -> None:
    scene.other.delete("id = 2")
    assert scene.status == "ok"
    assert scene.dataset.adopt().committed
    scene.assert_whole()


def test_digest_of_the_adopted_rows_is_recorded(scene: Scene) -> None:
    scene.other.delete("id = 2")
    scene.dataset.adopt()
    digest = scene.dataset.digest()
    stored = scene.workspace.database.fetch(
        sqlalchemy.text("SELECT digest_high, digest_low, row_count FROM lakeward.datasets WHERE id = :id"),
        {"id": scene.dataset.record.id},
    )[0]
    assert (stored["digest_high"], stored["digest_low"], stored["row_count"]) == (digest.high, digest.low, 2)


def test_ids_of_the_other_engine_are_never_given_again(scene: Scene) -> None:
    scene.other.append({"id": 4, "__row_id": 70, "__row_index": 80})
    result = scene.dataset.adopt()
    assert counts(result) == (4, 1, 0, 3, 0, 4)
    scene.dataset.write(rows(5))
    (new,) = scene.dataset.to_arrow(where="id = 5", identity=True).to_pylist()
    assert (new["__row_id"], new["__row_index"]) == (71, 81)
    scene.assert_whole()


def test_foreign_update_keeps_its_row(scene: Scene) -> None:
    scene.other.rewrite(lambda found: [{**found[0], "note": "changed"}, *found[1:]])
    result = scene.dataset.adopt()
    assert counts(result) == (3, 0, 1, 2, 0, 3)
    assert scene.dataset.to_arrow(where="id = 1")["note"].to_pylist() == ["changed"]
    scene.assert_whole()


def test_rollback_is_adopted(scene: Scene) -> None:
    scene.other.set_main(scene.other.parent(scene.other.main))
    refused(scene)
    assert counts(scene.dataset.adopt()) == (2, 0, 0, 2, 1, 2)
    scene.dataset.write(rows(9))
    assert scene.ids() == [1, 2, 9]
    (new,) = scene.dataset.to_arrow(where="id = 9", identity=True).to_pylist()
    assert new["__row_id"] == 3, "the id of row 3, which was rolled back, is not given again"
    scene.assert_whole()


def test_emptied_table_is_adopted(scene: Scene) -> None:
    scene.other.delete("id > 0")
    refused(scene)
    assert counts(scene.dataset.adopt()) == (0, 0, 0, 0, 3, 0)
    scene.assert_whole()
    assert scene.dataset.write(rows(4)).row_count == 1
    scene.assert_whole()


def test_compaction_can_be_adopted_at_once(scene: Scene) -> None:
    scene.other.compact()
    assert counts(scene.dataset.adopt()) == (3, 0, 0, 3, 0, 3)
    scene.assert_whole()


def test_version_that_could_not_be_published_stays_readable(scene: Scene) -> None:
    scene.interruptions.once("publish", lambda: scene.other.delete("id = 2"))
    assert scene.dataset.write(rows(4)).version == 3
    assert scene.status == "diverged"
    result = scene.dataset.adopt()
    assert counts(result) == (2, 0, 0, 2, 2, 2)
    assert scene.ids() == [1, 3]
    assert scene.ids(version=3) == [1, 2, 3, 4]
    scene.assert_whole()
    assert scene.workspace.recovery.recover(scene.dataset.record.id) == []
    scene.dataset.write(rows(5))
    assert scene.ids() == [1, 3, 5]
    scene.assert_whole()


def test_adopted_rows_count_as_a_write_to_pipelines(scene: Scene) -> None:
    last = LastWrites(scene.workspace.database)
    dataset_id = scene.dataset.record.id
    scene.other.compact()
    scene.dataset.write(rows(4))
    assert last.of([dataset_id])[dataset_id].version == 4
    scene.other.delete("id = 2")
    result = scene.dataset.adopt()
    assert last.of([dataset_id])[dataset_id].version == result.version


def test_our_snapshot_is_gone(scene: Scene) -> None:
    ours = scene.ours
    foreign = scene.other.compact()
    scene.other.table.maintenance.expire_snapshots().by_id(ours).commit()
    refused(scene)
    with pytest.raises(Diverged, match=f"our snapshot {ours} is not in its Iceberg table"):
        scene.dataset.restore()
    assert scene.status == "diverged"
    assert counts(scene.dataset.adopt()) == (3, 3, 0, 0, 0, 3)
    assert scene.ours == foreign
    scene.assert_whole()


# Rows that are not ----------------------------------------------------------------------------------------------------


def test_repeated_ids_are_refused_and_renumbered(scene: Scene) -> None:
    before = scene.other.rows()
    foreign = scene.other.append({"id": 4}, {"id": 5}, {"id": 6, "__row_id": 70})
    refused(scene)
    state = scene.dataset.foreign(survey=True)
    assert state is not None and state.survey is not None
    assert (state.found, state.survey.repeated, state.survey.added, state.renumbers) == (foreign, 2, 3, True)
    with pytest.raises(DataError, match=r"2 rows with another row's __row_id(.|\n)*--renumber(.|\n)*restore"):
        scene.dataset.adopt()
    assert (scene.status, scene.dataset.version, scene.ids()) == ("diverged", 2, [1, 2, 3])

    result = scene.dataset.adopt(renumber=True)
    assert (result.verb, counts(result)) == ("renumber", (6, 3, 0, 3, 0, 6))
    scene.assert_whole()
    after = scene.dataset.to_arrow(identity=True).sort_by("id").to_pylist()
    assert after[:3] == before, "kept rows keep theirs"
    assert {row["__version"] for row in after[3:]} == {result.version}
    assert [row["__row_id"] for row in after[3:]][-1] == 70, "it was its own"
    assert sorted(row["__row_id"] for row in after[3:5]) == [71, 72]
    assert scene.ids(since=2) == [4, 5, 6]
    scene.dataset.write(rows(7))
    scene.dataset.copy_to("postgres")
    scene.dataset.verify()
    scene.assert_whole()


def test_row_that_is_ours_keeps_its_id_against_copies_of_it(scene: Scene) -> None:
    scene.other.rewrite(lambda found: [{**found[1], "id": 20}, *found, {**found[1], "id": 21}])
    scene.dataset.adopt(renumber=True)
    by_id = {row["id"]: row["__row_id"] for row in scene.dataset.to_arrow(identity=True).to_pylist()}
    assert (by_id[1], by_id[2], by_id[3]) == (0, 1, 2)
    assert {by_id[20], by_id[21]} == {3, 4}
    scene.assert_whole()


def nulls(scene: Scene, *names: str) -> None:
    """Let the other engine write nulls to columns that are required before and after."""
    with scene.other.table.update_schema() as update:
        for name in names:
            update.update_column(name, required=False)
    scene.other.append({"id": 4, **dict.fromkeys(names)}, {"id": 5, **dict.fromkeys(names)})
    with scene.other.table.update_schema(allow_incompatible_changes=True) as update:
        for name in names:
            update.update_column(name, required=True)


@pytest.mark.parametrize(
    "names", [["__row_id"], ["__version"], ["__row_id", "__row_index", "__created_at", "__version"]]
)
def test_nulls_are_refused_and_renumbered(scene: Scene, names: list[str]) -> None:
    nulls(scene, *names)
    with pytest.raises(DataError, match="2 rows without identity, all rows written under other columns"):
        scene.dataset.adopt()
    result = scene.dataset.adopt(renumber=True)
    assert counts(result) == (5, 2, 0, 3, 0, 5)
    assert scene.ids(since=2) == [4, 5]
    created = {row["__created_at"] for row in scene.dataset.to_arrow(identity=True, since=2).to_pylist()}
    opened = next(each.opened_at for each in scene.dataset.history() if each.version == result.version)
    assert created == {opened}
    scene.assert_whole()


@pytest.mark.parametrize(
    "change",
    [
        {"__row_id": 70, "__version": 9_000},
        {"__row_id": 70, "__version": 0},
        {"__row_id": -1},
        {"__row_id": 2**63 - 1},
        {"__row_id": 70, "__row_index": 2**63 - 1},
    ],
)
def test_identity_that_was_never_given_is_refused_and_renumbered(scene: Scene, change: dict[str, Any]) -> None:
    scene.other.append({"id": 4, **change})
    with pytest.raises(DataError, match="1 rows with an identity that was never given"):
        scene.dataset.adopt()
    scene.dataset.adopt(renumber=True)
    (row,) = scene.dataset.to_arrow(where="id = 4", identity=True).to_pylist()
    assert row["__version"] == scene.dataset.version
    assert 3 <= row["__row_id"] <= 70
    scene.dataset.write(rows(5))
    scene.assert_whole()


def test_update_is_stamped_when_renumbered(scene: Scene) -> None:
    scene.other.rewrite(lambda found: [{**found[0], "note": "changed"}, *found[1:]])
    state = scene.dataset.foreign(survey=True)
    assert state is not None and state.survey is not None
    assert (state.refusal, state.survey.unstamped, state.renumbers) == (None, 1, True)
    result = scene.dataset.adopt(renumber=True)
    assert counts(result) == (3, 0, 1, 2, 0, 3)
    assert scene.ids(since=2) == [1]
    (row,) = scene.dataset.to_arrow(where="id = 1", identity=True).to_pylist()
    assert (row["__row_id"], row["__version"]) == (0, result.version)
    scene.assert_whole()


def test_any_column_name_can_be_renumbered(shared: lakeward.Workspace, interruptions: Interruptions) -> None:
    names = [
        "id",
        "note",
        "c0",
        "c1",
        "hash",
        "known",
        "equal",
        "same",
        "keeps",
        "repeated",
        "ours",
        'a "b".c',
        "nulls",
    ]
    scene = Scene.make(shared, interruptions, dict.fromkeys(names, "long") | {"note": "string"})
    other: Rows = scene.other.rows()
    scene.other.append({name: 7 for name in names if name != "note"} | {"note": "new"})
    scene.dataset.adopt(renumber=True)
    found = scene.dataset.to_arrow().sort_by("id").to_pylist()
    assert found[:3] == [{name: row[name] for name in names} for row in other]
    assert found[3] == dict.fromkeys(names, 7) | {"note": "new"}
    scene.assert_whole()


# What can't be adopted ------------------------------------------------------------------------------------------------


def test_s01_files_outside_of_the_warehouse_are_refused_and_copied(scene: Scene, tmp_path: Path) -> None:
    with scene.other.table.transaction() as transaction:
        transaction.set_properties({"write.data.path": f"file://{tmp_path}/elsewhere"})
    scene.other.rewrite(lambda rows: rows[:2])
    before = scene.history()
    with pytest.raises(DataError, match=f"has the file file://{tmp_path}/elsewhere/.*not in the warehouse") as raised:
        scene.dataset.adopt()
    assert raised.value.next_step and "--renumber" in raised.value.next_step
    assert [each for each in scene.history() if each[3] == "committed"] == before and scene.ids() == [1, 2, 3]
    with scene.other.table.transaction() as transaction:
        transaction.remove_properties("write.data.path")
    scene.dataset.adopt(renumber=True)
    assert scene.ids() == [1, 2]
    files = [task.file.file_path for task in scene.other.table.scan().plan_files()]
    assert files and not any("elsewhere" in file for file in files)
    scene.assert_whole()


def test_other_columns_are_refused(scene: Scene) -> None:
    with scene.other.table.update_schema() as update:
        update.add_column("added", StringType())
    refused(scene)
    for renumber in (False, True):
        with pytest.raises(ColumnMismatch, match=r"changed columns of its Iceberg table: added(.|\n)*ledger restore"):
            scene.dataset.adopt(renumber)
    assert scene.status == "diverged"


def test_copy_of_a_dataset_that_another_arm_serves_is_refused(shared: lakeward.Workspace) -> None:
    dataset = shared.create_dataset("main.foreign.served", {"id": "long", "note": "string"}, arm="postgres")
    dataset.write(rows(1, 2))
    dataset.copy_to("iceberg")
    OtherEngine(shared, dataset).delete("id = 1")
    with pytest.raises(UsageError, match="served by the postgres arm, and its Iceberg table is a copy"):
        dataset.adopt()
    assert dataset.version == 2


def test_only_the_snapshot_that_was_shown(scene: Scene) -> None:
    shown = scene.other.delete("id = 2")
    now = scene.other.delete("id = 3")
    with pytest.raises(ConflictError, match=f"at snapshot {now} by now, not at {shown}"):
        scene.dataset.adopt(snapshot=shown)
    assert scene.dataset.version == 2
    assert scene.dataset.adopt(snapshot=now).row_count == 1


def test_main_moves_on_while_it_is_adopted(scene: Scene) -> None:
    scene.other.delete("id = 2")
    scene.interruptions.once("prepare", lambda: scene.other.delete("id = 3"))
    with pytest.raises(ConflictError, match="has moved on"):
        scene.dataset.adopt()
    assert scene.dataset.version == 2
    scene.interruptions.once("publish", lambda: scene.other.delete("id = 1"))
    assert scene.dataset.adopt(renumber=True).row_count == 1
    assert (scene.status, scene.ids(), scene.other.rows()) == ("diverged", [1], [])
    assert scene.dataset.adopt().row_count == 0
    scene.assert_whole()
