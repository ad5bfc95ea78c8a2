"""What another engine's commit means to writers and readers: a compaction is accepted, anything else is kept apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyiceberg.transforms import BucketTransform, IdentityTransform, Transform
from pyiceberg.types import LongType, StringType

import lakeward
from lakeward.errors import Diverged
from support.foreign_scene import Scene, output, rows
from support.other_engine import OtherEngine, Rows

# Compaction -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_compaction_becomes_a_version_and_the_writer_goes_on(scene: Scene, mode: str) -> None:
    before, digest = scene.other.rows(), scene.dataset.digest()
    compacted = scene.other.compact()
    result = scene.dataset.write(rows(4), mode)
    assert (result.version, result.committed) == (4, True)
    assert scene.history()[2:] == [(3, "adopt", "compact", "committed"), (4, "write", mode, "committed")]
    adopted = scene.dataset.history()[1]
    assert (adopted.parent_version, adopted.rows_unchanged, adopted.row_count, adopted.rows_added) == (2, 3, 3, 0)
    assert adopted.published_at is not None
    assert scene.dataset.history()[0].parent_version == 3
    for version in (2, 3):
        assert scene.dataset.digest(version=version) == digest
    assert scene.dataset.to_arrow(identity=True, version=3).sort_by("__row_id").to_pylist() == before
    assert scene.ids() == ([1, 2, 3, 4] if mode == "append" else [4])
    new = {row["__version"] for row in scene.dataset.to_arrow(identity=True, where="id = 4").to_pylist()}
    assert new == {4}
    assert scene.other.descends(scene.ours, compacted), "main goes on from what the other engine did"
    assert scene.other.refs == {}
    scene.assert_whole()


def test_many_foreign_snapshots_that_end_with_our_rows_are_one_compaction(scene: Scene) -> None:
    scene.other.append({"id": 9})
    scene.other.delete("id = 9")
    scene.other.compact()
    scene.other.compact()
    scene.dataset.write(rows(4))
    assert [verb for _, _, verb, _ in scene.history()] == ["append", "append", "compact", "append"]
    scene.assert_whole()


def test_other_arms_carry_a_compaction(scene: Scene) -> None:
    scene.dataset.copy_to("postgres")
    scene.other.compact()
    scene.dataset.write(rows(4))
    assert scene.ids(arm="postgres", version=4) == scene.ids(arm="iceberg", version=4) == [1, 2, 3]
    assert scene.history()[-2:] == [(4, "adopt", "compact", "committed"), (5, "write", "append", "committed")]


def test_compaction_is_no_write_to_pipelines(scene: Scene) -> None:
    scene.other.compact()
    scene.dataset.write([], "replace", allow_empty=True)
    assert scene.dataset.to_arrow(since=2, version=3).num_rows == 0


def test_writer_that_fails_after_a_compaction_leaves_it_adopted(scene: Scene) -> None:
    scene.other.compact()

    def fail() -> None:
        raise KeyboardInterrupt

    scene.interruptions.once("prepare:files", fail)
    with pytest.raises(KeyboardInterrupt):
        scene.dataset.write(rows(4))
    assert scene.history()[2:] == [(3, "adopt", "compact", "committed"), (4, "write", "append", "aborted")]
    assert (scene.dataset.version, scene.ids()) == (3, [1, 2, 3])
    assert scene.dataset.write(rows(5)).version == 5
    scene.assert_whole()


def test_compaction_of_a_stale_copy_lets_the_next_copy_go_on(shared: lakeward.Workspace) -> None:
    dataset = shared.create_dataset("main.foreign.stale", {"id": "long", "note": "string"}, arm="postgres")
    dataset.write(rows(1))
    dataset.copy_to("iceberg")
    other = OtherEngine(shared, dataset)
    dataset.write(rows(2))
    other.compact()
    dataset.copy_to("iceberg")
    assert [each.verb for each in reversed(dataset.history())] == ["append", "copy", "append", "copy"]
    assert sorted(row["id"] for row in other.rows()) == [1, 2]
    dataset.verify()


# In the middle of a write ---------------------------------------------------------------------------------------------


def test_compaction_after_the_files_were_written_is_built_on(scene: Scene) -> None:
    compacted: list[int] = []
    scene.interruptions.once("prepare:files", lambda: compacted.append(scene.other.compact()))
    assert scene.dataset.write(rows(4)).version == 3
    assert scene.other.descends(scene.ours, compacted[0])
    scene.assert_whole()


@pytest.mark.parametrize("point", ["audit", "decide", "decide:committed", "publish"])
@pytest.mark.parametrize("mode", ["append", "replace"])
def test_compaction_between_prepare_and_publish_is_passed_over_and_kept(scene: Scene, point: str, mode: str) -> None:
    compacted: list[int] = []
    scene.interruptions.once(point, lambda: compacted.append(scene.other.compact()))
    assert scene.dataset.write(rows(4), mode).version == 3
    assert scene.other.refs == {f"foreign-{compacted[0]}": compacted[0]}
    assert [row["id"] for row in scene.other.rows(compacted[0])] == [1, 2, 3]
    scene.assert_whole()
    scene.dataset.write(rows(5))
    scene.assert_whole()


def test_append_after_the_files_were_written_is_refused(scene: Scene) -> None:
    scene.interruptions.once("prepare:files", lambda: scene.other.append({"id": 9, "__row_id": 70}))
    with pytest.raises(Diverged, match="by append"):
        scene.dataset.write(rows(4))
    assert (scene.status, scene.ids(), scene.dataset.version) == ("diverged", [1, 2, 3], 2)
    assert scene.other.refs == {}
    assert len(scene.other.rows()) == 4


@pytest.mark.parametrize("point", ["audit", "decide:committed", "publish"])
def test_append_before_publish_leaves_the_build_committed(scene: Scene, point: str) -> None:
    scene.interruptions.once(point, lambda: scene.other.append({"id": 9, "__row_id": 70}))
    assert scene.dataset.write(rows(4)).committed
    assert (scene.status, scene.ids(), scene.dataset.version) == ("diverged", [1, 2, 3, 4], 3)
    assert sorted(row["id"] for row in scene.other.rows()) == [1, 2, 3, 9]
    scene.workspace.recover()
    assert scene.status == "diverged"
    with pytest.raises(Diverged):
        scene.dataset.write(rows(5))


# Anything else --------------------------------------------------------------------------------------------------------


def changed(name: str, value: Any) -> Callable[[OtherEngine], object]:
    """Rewrite the table with one value of its first row changed; the number of rows stays."""

    def change(found: Rows) -> Rows:
        return [{**found[0], name: value(found[0][name])}, *found[1:]]

    return lambda other: other.rewrite(change)


def to_another_branch(other: OtherEngine) -> None:
    root = other.parent(other.parent(other.main))
    with other.table.manage_snapshots() as manage:
        manage.create_branch(root, "elsewhere")
    other.table.append(other.table.scan().to_arrow(), branch="elsewhere")
    other.set_main(other.refs["elsewhere"])


FOREIGN: dict[str, Callable[[OtherEngine], object]] = {
    "append": lambda other: other.append({"id": 9, "__row_id": 70}),
    "delete": lambda other: other.delete("id = 2"),
    "delete of all": lambda other: other.delete("id > 0"),
    "changed value": changed("note", lambda value: value + "!"),
    "changed row id": changed("__row_id", lambda value: value + 70),
    "changed position": changed("__row_index", lambda value: value + 70),
    "changed version": changed("__version", lambda value: value + 1),
    "changed insertion": changed("__created_at", lambda value: value.replace(year=2001)),
    "doubled row": lambda other: other.rewrite(lambda found: [found[0], found[0], found[2]]),
    "rollback": lambda other: other.set_main(other.parent(other.main)),
    "equal rows on another branch": to_another_branch,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_anything_else_is_refused_and_reads_stay(scene: Scene, name: str) -> None:
    ours, before = scene.ours, scene.dataset.to_arrow(identity=True).sort_by("id")
    FOREIGN[name](scene.other)
    foreign = scene.other.main
    with pytest.raises(Diverged, match=r"ledger adopt main\.foreign\..*ledger restore main\.foreign\.") as caught:
        scene.dataset.write(rows(4), "replace")
    assert (caught.value.fields["found"], caught.value.fields["expected"]) == (foreign, ours)
    assert caught.value.exit_code == 6
    assert scene.status == "diverged"
    assert scene.dataset.to_arrow(identity=True).sort_by("id") == before
    with pytest.raises(Diverged, match="ledger restore"):
        scene.dataset.write(rows(4))
    assert (scene.other.main, scene.other.refs.get("lw-3")) == (foreign, None)
    assert (scene.dataset.version, scene.ids()) == (2, [1, 2, 3])


def add_column(other: OtherEngine) -> None:
    with other.table.update_schema() as update:
        update.add_column("added", StringType())


def rename_column(other: OtherEngine) -> None:
    with other.table.update_schema() as update:
        update.rename_column("id", "number")


def drop_column(other: OtherEngine) -> None:
    with other.table.update_schema() as update:
        update.delete_column("note")


def swap_columns(other: OtherEngine) -> None:
    with other.table.update_schema() as update:
        update.delete_column("note")
    with other.table.update_schema() as update:
        update.add_column("note", LongType())


COLUMN_CHANGES = {each.__name__: each for each in (add_column, rename_column, drop_column, swap_columns)}


@pytest.mark.parametrize("name", COLUMN_CHANGES)
@pytest.mark.parametrize("rewritten", [False, True])
def test_changed_columns_are_refused_and_reads_stay(scene: Scene, name: str, rewritten: bool) -> None:
    before = scene.dataset.to_arrow(identity=True).sort_by("id")
    COLUMN_CHANGES[name](scene.other)
    if rewritten:
        scene.other.table.overwrite(scene.other.table.scan().to_arrow())
    with pytest.raises(Diverged, match="another engine has changed columns"):
        scene.dataset.write(rows(4))
    assert scene.status == "diverged"
    assert scene.dataset.to_arrow(identity=True).sort_by("id") == before
    assert scene.ids(where="id = 2 and note = 'note 2'") == [2]
    assert scene.ids(since=1) == [3]
    assert scene.dataset.digest().count == 3


def test_column_comment_is_no_change(scene: Scene) -> None:
    with scene.other.table.update_schema() as update:
        update.update_column("note", doc="what it says")
    scene.dataset.write(rows(4))
    assert scene.status == "ok"


def partition(other: OtherEngine, field: str = "id", transform: Transform[Any, Any] | None = None) -> None:
    with other.table.update_spec() as update:
        update.add_field(field, transform or IdentityTransform(), f"by_{field}")


@pytest.mark.parametrize("mode", ["append", "replace", "upsert"])
def test_partitions_of_another_engine_are_written_by(scene: Scene, mode: str) -> None:
    partition(scene.other)
    partition(scene.other, "note", BucketTransform(4))
    assert scene.dataset.foreign() is None
    scene.dataset.write(rows(4, 5), mode=mode)
    files = [task.file for task in scene.other.table.scan().plan_files()]
    assert {file.spec_id for file in files if file.spec_id} == {scene.other.table.spec().spec_id}
    assert sorted(file.partition[0] for file in files if file.spec_id) == [4, 5]
    assert len(files) == (2 if mode == "replace" else 4)
    assert [len(list(scene.other.table.scan(f"id = {id_}").plan_files())) for id_ in (4, 9)] == [1, 0]
    assert scene.ids() == ([4, 5] if mode == "replace" else [1, 2, 3, 4, 5])
    assert scene.ids(where="id = 4 and note = 'note 4'") == [4]
    scene.assert_whole()


@pytest.mark.parametrize("point", ["prepare:files", "prepare:committed", "publish"])
def test_partitions_that_change_during_a_write_are_those_of_the_next(scene: Scene, point: str) -> None:
    scene.interruptions.once(point, lambda: partition(scene.other))
    scene.dataset.write(rows(4))
    assert {task.file.spec_id for task in scene.other.table.scan().plan_files()} == {0}
    scene.dataset.write(rows(5))
    spec = scene.other.table.spec()
    assert [task.file.partition[0] for task in scene.other.table.scan("id = 5").plan_files()] == [5]
    assert scene.ids() == [1, 2, 3, 4, 5]
    assert not spec.is_unpartitioned()
    scene.assert_whole()


def test_changed_columns_before_publish_leave_the_build_committed(scene: Scene) -> None:
    scene.interruptions.once("publish", lambda: add_column(scene.other))
    assert scene.dataset.write(rows(4)).committed
    assert (scene.status, scene.ids()) == ("diverged", [1, 2, 3, 4])


def test_properties_and_branches_of_others_are_their_own(scene: Scene) -> None:
    with scene.other.table.transaction() as transaction:
        transaction.set_properties(owner="somebody")
    with scene.other.table.manage_snapshots() as manage:
        manage.create_tag(scene.other.main, "quarter")
    scene.dataset.write(rows(4))
    scene.assert_whole()
    assert scene.dataset.foreign() is None
    assert list(scene.other.refs) == ["quarter"]


def test_build_of_two_outputs_is_refused_whole(scene: Scene, shared: lakeward.Workspace) -> None:
    second = shared.create_dataset(f"{scene.dataset.name}_second", {"id": "long", "note": "string"}, arm="postgres")
    scene.other.append({"id": 9, "__row_id": 70})
    outputs = [output(scene.dataset, rows(4)), output(second, rows(4))]
    with pytest.raises(Diverged):
        shared.storage.build(outputs, writer="test")
    assert (scene.status, second.status().status, second.version) == ("diverged", "ok", 0)
