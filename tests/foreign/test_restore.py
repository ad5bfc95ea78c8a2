"""`restore`: the table goes back to our newest version, and nothing of what the other engine wrote is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import StringType

import lakeward
from lakeward.control.divergence import Divergence
from lakeward.control.records import Resolution
from lakeward.errors import ConflictError, Diverged, StorageError
from support.foreign_scene import Scene, rows
from support.other_engine import OtherEngine


def refused(scene: Scene) -> None:
    with pytest.raises(Diverged):
        scene.dataset.write(rows(99))
    assert scene.status == "diverged"


def test_nothing_is_restored_where_nobody_wrote(scene: Scene) -> None:
    main = scene.other.main
    for _ in range(2):
        restored = scene.dataset.restore()
        assert (restored.done, restored.version, restored.kept) == (False, 2, None)
    assert (scene.other.main, scene.audit(), len(scene.history())) == (main, [], 2)


@pytest.mark.parametrize("noticed", [True, False])
def test_foreign_append_is_taken_back_and_kept_under_a_tag(scene: Scene, noticed: bool) -> None:
    ours, history = scene.ours, scene.history()
    foreign = scene.other.append({"id": 9, "__row_id": 70})
    if noticed:
        refused(scene)
        history = scene.history()
    restored = scene.workspace.restore(scene.dataset.name)
    assert (restored.done, restored.version, restored.snapshot, restored.kept) == (True, 2, ours, foreign)
    assert (scene.other.main, scene.other.refs) == (ours, {f"foreign-{foreign}": foreign})
    assert sorted(row["id"] for row in scene.other.rows(foreign)) == [1, 2, 3, 9]
    scene.assert_whole()
    assert scene.history() == history, "our rows did not change, so there is no new version"
    assert scene.audit() == [("ledger.restore", {"main": foreign, "ours": ours}, {"ours": ours})]
    assert not scene.dataset.restore().done
    scene.dataset.write(rows(4))
    assert scene.ids() == [1, 2, 3, 4]
    scene.assert_whole()


def test_rollback_is_undone(scene: Scene) -> None:
    ours = scene.ours
    scene.other.set_main(scene.other.parent(ours))
    refused(scene)
    assert scene.dataset.restore().kept is None, "what it was set back to is part of our own history"
    assert (scene.other.main, scene.other.refs) == (ours, {})
    scene.dataset.write(rows(4))
    scene.assert_whole()


def test_main_that_went_to_another_branch_comes_back(scene: Scene) -> None:
    root = scene.other.parent(scene.other.parent(scene.other.main))
    with scene.other.table.manage_snapshots() as manage:
        manage.create_branch(root, "elsewhere")
    scene.other.table.append(scene.other.table.scan().to_arrow().slice(1), branch="elsewhere")
    foreign = scene.other.set_main(scene.other.refs["elsewhere"])
    refused(scene)
    scene.dataset.restore()
    assert scene.other.refs == {"elsewhere": foreign, f"foreign-{foreign}": foreign}
    scene.dataset.write(rows(4))
    scene.assert_whole()


def add_column(other: OtherEngine) -> None:
    with other.table.update_schema() as update:
        update.add_column("added", StringType())


def drop_column(other: OtherEngine) -> None:
    with other.table.update_schema() as update:
        update.delete_column("note")


@pytest.mark.parametrize("change", [add_column, drop_column])
@pytest.mark.parametrize("rewritten", [False, True])
def test_columns_come_back(scene: Scene, change: Callable[[OtherEngine], None], rewritten: bool) -> None:
    before = scene.other.table
    change(scene.other)
    if rewritten:
        scene.other.table.overwrite(scene.other.table.scan().to_arrow())
    foreign = scene.other.main
    refused(scene)
    assert scene.dataset.restore().done
    assert scene.other.table.schema().fields == before.schema().fields
    assert scene.other.table.spec() == before.spec()
    assert scene.other.refs == ({f"foreign-{foreign}": foreign} if rewritten else {})
    scene.dataset.write(rows(4))
    scene.assert_whole()


def test_partitions_stay_unless_by_a_column_that_goes(scene: Scene) -> None:
    with scene.other.table.update_spec() as update:
        update.add_field("id", IdentityTransform(), "by_id")
    by_id = scene.other.table.spec()
    add_column(scene.other)
    refused(scene)
    assert scene.dataset.restore().done
    assert scene.other.table.spec() == by_id
    add_column(scene.other)
    with scene.other.table.update_spec() as update:
        update.add_field("added", IdentityTransform(), "by_added")
    refused(scene)
    assert scene.dataset.restore().done
    assert scene.other.table.spec() == by_id
    scene.dataset.write(rows(4))
    scene.assert_whole()


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_version_that_could_not_be_published_is_published(scene: Scene, mode: str) -> None:
    scene.interruptions.once("publish", lambda: scene.other.append({"id": 9, "__row_id": 70}))
    scene.dataset.write(rows(4), mode)
    foreign = scene.other.main
    assert scene.status == "diverged"
    assert scene.dataset.restore().kept == foreign
    assert scene.dataset.history()[0].published_at is not None
    assert scene.dataset.name not in {each.dataset for each in scene.workspace.recoverable()}
    assert set(scene.other.refs) == {f"foreign-{foreign}"}
    scene.assert_whole()


def test_after_a_compaction_and_after_an_adoption(scene: Scene) -> None:
    """What is restored then is a snapshot of the other engine, which is ours by now."""
    scene.other.compact()
    scene.dataset.write([], "replace", allow_empty=True)
    scene.dataset.write(rows(1, 2, 3))
    scene.other.delete("id = 2")
    scene.dataset.adopt()
    adopted = scene.ours
    foreign = scene.other.append({"id": 9})
    scene.dataset.copy_to("postgres")
    assert scene.dataset.restore().kept == foreign
    assert scene.other.main == adopted
    scene.dataset.write(rows(4))
    assert scene.ids() == [1, 3, 4]
    scene.assert_whole()


def test_only_the_snapshot_that_was_shown(scene: Scene) -> None:
    shown = scene.other.append({"id": 9, "__row_id": 70})
    now = scene.other.append({"id": 10, "__row_id": 71})
    with pytest.raises(ConflictError, match=f"at snapshot {now} by now, not at {shown}"):
        scene.dataset.restore(snapshot=shown)
    assert (scene.other.main, scene.other.refs) == (now, {})


def decided(scene: Scene) -> None:
    """Decide a restore and die before it is published."""
    held = scene.workspace.ledger.newest_arm_version(scene.dataset.record.id, "iceberg")
    assert held is not None
    resolution = Resolution("somebody", "ledger.restore", scene.other.main, held.snapshot_id)
    Divergence(scene.workspace.database).restore(
        scene.dataset.record.id, scene.dataset.name, "iceberg", held, scene.other.main, resolution
    )


def test_process_that_dies_in_the_middle_is_finished_by_recovery(scene: Scene) -> None:
    foreign = scene.other.append({"id": 9, "__row_id": 70})
    refused(scene)
    decided(scene)
    assert (scene.status, scene.other.main) == ("ok", foreign)
    assert scene.dataset.foreign() is None, "it is about to be published"
    assert [each.outcome for each in scene.workspace.recovery.recover(scene.dataset.record.id)] == ["published"]
    assert set(scene.other.refs) == {f"foreign-{foreign}"}
    scene.assert_whole()


def test_other_engine_that_goes_on_in_the_middle_is_not_overwritten(scene: Scene) -> None:
    scene.other.append({"id": 9, "__row_id": 70})
    refused(scene)
    decided(scene)
    later = scene.other.append({"id": 10, "__row_id": 71})
    assert [each.outcome for each in scene.workspace.recovery.recover(scene.dataset.record.id)] == ["diverged"]
    assert (scene.status, scene.other.main) == ("diverged", later)
    scene.dataset.restore()
    assert set(scene.other.refs) == {f"foreign-{later}"}
    scene.assert_whole()


def test_somebody_who_writes_is_not_disturbed(scene: Scene) -> None:
    refusals: list[ConflictError] = []

    def restore() -> None:
        with pytest.raises(ConflictError, match="is being written") as caught:
            scene.dataset.restore()
        refusals.append(caught.value)

    scene.other.delete("id = 2")
    scene.interruptions.once("prepare", restore)
    assert scene.dataset.adopt().committed
    assert len(refusals) == 1
    scene.assert_whole()


def test_main_that_somebody_set_back_by_hand(scene: Scene) -> None:
    ours = scene.ours
    scene.other.append({"id": 9, "__row_id": 70})
    refused(scene)
    scene.other.set_main(ours)
    with pytest.raises(Diverged):
        scene.dataset.write(rows(4))
    assert not scene.dataset.restore().done
    assert [action for action, *_ in scene.audit()] == ["ledger.restore"]
    scene.dataset.write(rows(4))
    scene.assert_whole()


@pytest.mark.parametrize("stale", [False, True])
def test_copy_of_a_dataset_that_another_arm_serves(shared: lakeward.Workspace, stale: bool) -> None:
    dataset = shared.create_dataset(f"main.foreign.copy_{stale}", {"id": "long", "note": "string"}, arm="postgres")
    dataset.write(rows(1, 2))
    dataset.copy_to("iceberg")
    other = OtherEngine(shared, dataset)
    ours = other.main
    if stale:
        dataset.write(rows(3))
    foreign = other.append({"id": 9, "__row_id": 70})
    if stale:
        with pytest.raises(Diverged):
            dataset.copy_to("iceberg")
        with pytest.raises(Diverged):
            dataset.write(rows(4))
    assert dataset.restore().kept == foreign
    assert (other.main, dataset.status().status) == (ours, "ok")
    dataset.write(rows(4))
    dataset.copy_to("iceberg")
    dataset.verify()
    assert sorted(row["id"] for row in other.rows()) == ([1, 2, 3, 4] if stale else [1, 2, 4])


def test_files_that_we_cannot_read_are_no_compaction(scene: Scene) -> None:
    """A foreign snapshot whose files are gone is an error of storage: nobody can say yet whether it has our rows."""
    before = set(scene.other.table.inspect.files()["file_path"].to_pylist())
    scene.other.compact()
    for path in set(scene.other.table.inspect.files()["file_path"].to_pylist()) - before:
        scene.other.table.io.delete(path)
    with pytest.raises(StorageError):
        scene.dataset.write(rows(4))
    assert (scene.status, scene.ids()) == ("ok", [1, 2, 3])
    assert scene.dataset.restore().done
    scene.dataset.write(rows(4))
    assert scene.ids() == [1, 2, 3, 4]
