"""Prepare on a branch, publish by moving `main`: each is one catalog commit, and neither ever loses another's work.

A version is prepared as ONE snapshot on the branch `lw-<version>`, which starts at the snapshot of the version before.
`main` is not touched until the ledger has decided. Whatever an answer says, the table itself is asked what became of a
commit (`trouble.settle`), which works because none can land twice: preparing asserts that the branch does not exist,
publishing that `main` is at the parent. Three traps of PyIceberg 0.12 that this module is shaped by:

* A write to a branch that does not exist makes one without a parent: the new rows alone. So the branch is created in
  the same commit, before the write.
* Its retry after a lost race rebuilds the snapshot but not the branch's creation, which is that trap again. So our
  snapshots are never handed to its retry (see `producers`), which also deletes their manifests when it gives up; we
  retry ourselves, from fresh metadata, and delete nothing.
* It asserts `main` against whatever was loaded last, which after a refresh is somebody else's commit. So it is compared
  with the parent that the ledger recorded, by the arm's `accept`, which lets a mere compaction of that pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    SetCurrentSchemaUpdate,
    SetDefaultSpecUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.table.update.snapshot import ExpireSnapshots, ManageSnapshots

from lakeward.errors import Diverged
from lakeward.storage.arms.iceberg.foreign import descends
from lakeward.storage.arms.iceberg.partitions import newest_spec
from lakeward.storage.arms.iceberg.producers import Appends, Change, Replaces
from lakeward.storage.arms.iceberg.scans import schema_of
from lakeward.storage.arms.iceberg.transactions import LeanTransaction
from lakeward.storage.arms.iceberg.trouble import settle
from lakeward.storage.table import TableRef

_BRANCH = re.compile(r"lw-(\d+)(?:-\d+)?")


Accept = Callable[[Table, int | None], int | None]
"""Takes a table and the snapshot that `main` should be at; returns the one that it is at, if that may be built on."""


def branch_name(version: int, attempt: int | None = None) -> str:
    """Return the name of the branch that a version is prepared on.

    Args:
        version: which one.
        attempt: tells those apart that bring the same version of another arm; None: there is one only.
    """
    return f"lw-{version}" if attempt is None else f"lw-{version}-{attempt}"


def foreign_tag(snapshot: int) -> str:
    """Return the name of the tag that keeps a foreign snapshot which `main` was taken away from."""
    return f"foreign-{snapshot}"


def prepare(
    load: Callable[[], Table],
    table: TableRef,
    version: int,
    parent: int,
    change: Change,
    *,
    properties: dict[str, str],
    accept: Accept,
    number: int | None = None,
) -> tuple[int, int]:
    """Commit one snapshot on the branch of `version`, and return its id and that of the snapshot it goes on from.

    Args:
        load: loads the table anew.
        table: the dataset.
        version: the version that is prepared.
        parent: the snapshot of the last committed version, which `main` should be at.
        change: what the snapshot does to the files of the one before.
        properties: for the snapshot's summary.
        accept: says which snapshot may take the parent's place, if `main` is not at the parent.
        number: see `branch_name`.

    Raises:
        Diverged: another engine wrote to the table: `accept` refuses it, or the branch is of another build.
        CatalogError: the catalog failed; the branch may be there, or come to be there later.
    """
    branch = branch_name(version, number)

    def attempt() -> tuple[int, int]:
        loaded = load()
        prepared = loaded.metadata.refs.get(branch)
        if prepared is not None:
            return prepared.snapshot_id, check_ours(loaded, table, branch, properties)
        start = accept(loaded, parent)
        assert start is not None, "what comes after the parent is a snapshot"
        transaction = LeanTransaction(loaded)
        updates, requirements = transaction._set_ref_snapshot(start, branch, "branch")
        transaction._stage(updates, requirements)
        producer = change.producer(transaction, properties, branch)
        producer.commit()
        transaction.commit_transaction()
        return producer.snapshot_id, start

    return settle(f"dataset {table.name}", attempt)


def publish(
    load: Callable[[], Table],
    table: TableRef,
    version: int,
    snapshot: int,
    parent: int | None,
    accept: Accept,
    removable: Callable[[TableMetadata], list[int]],
) -> bool:
    """Move `main` to the snapshot and remove the branch, in one commit; False if that is done already.

    Branches of earlier versions go with it. While `main` is at the last committed version's snapshot, only aborted ones
    can have any: those whose commit arrived after recovery had looked. Another engine's snapshot that `main` is taken
    away from gets a tag, so that nothing of it is lost.

    Args:
        load: loads the table anew.
        table: the dataset.
        version: the version that is published.
        snapshot: its snapshot.
        parent: the snapshot that `main` should be at; None: there should be no `main`.
        accept: says which snapshot `main` may be at instead, because it has the same rows.
        removable: says which snapshots nothing needs any more; they go with the same commit.

    Raises:
        Diverged: `main` is neither at `parent` nor past `snapshot`.
        CatalogError: the catalog failed; repeating it is safe.
    """
    asked = False

    def attempt() -> bool:
        nonlocal asked
        loaded = load()
        if is_published(loaded, snapshot, parent):
            return asked
        found = accept(loaded, parent)
        asked = True
        transaction = LeanTransaction(loaded)
        manage = ManageSnapshots(transaction).create_branch(snapshot_id=snapshot, branch_name=MAIN_BRANCH)
        for branch in _branches_up_to(loaded, version):
            manage.remove_branch(branch)
        if found is not None and not descends(loaded, snapshot, found):
            manage.create_tag(snapshot_id=found, tag_name=foreign_tag(found))
        manage.commit()
        if doomed := removable(loaded.metadata):
            ExpireSnapshots(transaction).by_ids(doomed).commit()
        transaction.commit_transaction()
        return True

    return settle(f"dataset {table.name}", attempt)


def drop(load: Callable[[], Table | None], table: TableRef, version: int) -> bool:
    """Remove the branch of an aborted version; False if there is none."""
    branch = branch_name(version)
    asked = False

    def attempt() -> bool:
        nonlocal asked
        loaded = load()
        if loaded is None or branch not in loaded.metadata.refs:
            return asked
        asked = True
        with loaded.manage_snapshots() as manage:
            manage.remove_branch(branch)
        return True

    return settle(f"dataset {table.name}", attempt)


def drop_after(load: Callable[[], Table | None], table: TableRef, version: int, may: Callable[[], bool]) -> None:
    """Remove the branches of all versions after one.

    Args:
        load: loads the table anew.
        table: the dataset.
        version: the one.
        may: is asked when the branches are known. The commit takes those away that were there then, and fails if one
            of them has moved: so nothing goes that somebody has made who was given the right to it later.
    """

    def attempt() -> None:
        loaded = load()
        late = [name for name, number in _branches(loaded) if number > version] if loaded is not None else []
        if loaded is not None and late and may():
            with loaded.manage_snapshots() as manage:
                for branch in late:
                    manage.remove_branch(branch)

    settle(f"dataset {table.name}", attempt)


def drop_at(load: Callable[[], Table | None], table: TableRef, snapshots: Collection[int | None]) -> None:
    """Remove those of our branches that are at one of some snapshots: copies that never were published."""

    def attempt() -> None:
        loaded = load()
        if loaded is None:
            return
        refs = loaded.metadata.refs
        found = [name for name, _ in _branches(loaded) if refs[name].snapshot_id in snapshots]
        if found:
            with loaded.manage_snapshots() as manage:
                for branch in found:
                    manage.remove_branch(branch)

    settle(f"dataset {table.name}", attempt)


def restore_columns(load: Callable[[], Table], table: TableRef, snapshot: int) -> None:
    """Make the columns that a snapshot was written with the table's again, in one commit.

    The columns that another engine made stay known to its own snapshots. How it partitioned the table stays, unless by
    a column that our snapshot does not have: then the newest spec that has only ours comes back.
    """

    def attempt() -> None:
        loaded = load()
        held = loaded.metadata.snapshot_by_id(snapshot)
        updates: list[TableUpdate] = []
        requirements: list[TableRequirement] = []
        if held is not None and schema_of(loaded, held).schema_id != loaded.schema().schema_id:
            updates.append(SetCurrentSchemaUpdate.model_validate({"schema-id": schema_of(loaded, held).schema_id}))
            requirements.append(AssertCurrentSchemaId.model_validate({"current-schema-id": loaded.schema().schema_id}))
            spec = newest_spec(loaded, schema_of(loaded, held))
            if spec is not None and spec.spec_id != loaded.spec().spec_id:
                updates.append(SetDefaultSpecUpdate.model_validate({"spec-id": spec.spec_id}))
                requirements.append(AssertDefaultSpecId.model_validate({"default-spec-id": loaded.spec().spec_id}))
        if updates:
            transaction = LeanTransaction(loaded)
            transaction._apply(tuple(updates), tuple(requirements))
            transaction.commit_transaction()

    settle(f"dataset {table.name}", attempt)


def commit_root(table: Table, properties: dict[str, str]) -> None:
    """Commit an empty first snapshot to `main` of a table that has none."""
    transaction = LeanTransaction(table)
    Appends(()).producer(transaction, properties, MAIN_BRANCH).commit()
    transaction.commit_transaction()


def commit_empty(
    load: Callable[[], Table | None],
    table: TableRef,
    properties: dict[str, str],
    check: Callable[[Table], bool],
) -> str | None:
    """Commit an empty snapshot to `main`, as a new table's first one is; earlier ones stay for whoever reads them.

    Args:
        load: loads the table anew.
        table: the dataset.
        properties: for the snapshot's summary.
        check: says whether there is something to take out of `main`, and raises if it must stay.

    Returns:
        The table's name; None: there was nothing to do.
    """
    emptied: list[str] = []

    def attempt() -> str | None:
        loaded = load()
        if loaded is not None and check(loaded):
            emptied[:] = [".".join(loaded.name())]
            transaction = LeanTransaction(loaded)
            Replaces(()).producer(transaction, properties, MAIN_BRANCH).commit()
            transaction.commit_transaction()
        return emptied[0] if emptied else None

    return settle(f"dataset {table.name}", attempt)


def check_ours(loaded: Table, table: TableRef, branch: str, properties: dict[str, str]) -> int:
    """Return what the branch's snapshot goes on from; raise Diverged unless it carries our build's properties.

    A branch of this version by another build is there if the ledger was set back to a backup, say.
    """
    head = loaded.metadata.snapshot_by_name(branch)
    summary = head.summary if head is not None else None
    if summary is not None and all(summary.get(name) == value for name, value in properties.items()):
        assert head is not None and head.parent_snapshot_id is not None, "prepare starts from a snapshot"
        return head.parent_snapshot_id
    raise Diverged(
        f"dataset {table.name}: the branch {branch} of its Iceberg table holds a snapshot of another build",
        safe="the last committed version was not touched",
        next_step="see that no two ledgers write to one catalog; then repeat the write",
        dataset=table.name,
        branch=branch,
    )


def _branches_up_to(loaded: Table, version: int) -> list[str]:
    return [name for name, number in _branches(loaded) if number <= version]


def _branches(loaded: Table) -> list[tuple[str, int]]:
    found = {name: _BRANCH.fullmatch(name) for name in loaded.metadata.refs}
    return [(name, int(match[1])) for name, match in found.items() if match is not None]


def is_published(table: Table, snapshot: int, parent: int | None) -> bool:
    """Say whether `main` is at the snapshot, or went on from it otherwise than by `parent`.

    Where a divergence is undone, `parent` is another engine's, and may come after our snapshot.
    """
    for each in ancestors_of(table.current_snapshot(), table.metadata):
        if each.snapshot_id in (snapshot, parent):
            return each.snapshot_id == snapshot
    return False
