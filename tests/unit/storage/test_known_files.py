"""The files of a snapshot are read from its manifests once, and no more are remembered than there is room for."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import ManifestFile

import lakeward
from lakeward.storage.arms.iceberg.known_files import KnownFiles

TABLE = uuid.uuid4()


def test_what_was_asked_for_longest_ago_is_forgotten() -> None:
    known, planned = KnownFiles(most=3), []

    def ask(snapshot: int, files: int) -> int:
        def plan() -> Any:
            planned.append(snapshot)
            return [object()] * files

        return len(known.of((TABLE, snapshot), plan))

    assert [ask(1, 1), ask(2, 2), ask(1, 1)] == [1, 2, 1]
    assert planned == [1, 2]
    assert ask(3, 1) == 1
    assert [ask(1, 1), ask(3, 1)] == [1, 1]
    assert planned == [1, 2, 3]
    assert ask(2, 1) == 1
    assert planned == [1, 2, 3, 2]
    # One that alone is too many leaves the others where they are.
    assert [ask(4, 9), ask(4, 9), ask(2, 1)] == [9, 9, 1]
    assert planned == [1, 2, 3, 2, 4, 4]


def test_a_snapshot_is_read_from_its_manifests_once(
    workspace: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    plain = ManifestFile.fetch_manifest_entry

    def spied(self: ManifestFile, *arguments: Any, **options: Any) -> Any:
        read.append(self.manifest_path)
        return plain(self, *arguments, **options)

    dataset = workspace.create_dataset("main.known.d", {"id": "long"}, arm="iceberg")
    dataset.write(pa.table({"id": [1, 2]}))
    dataset.to_arrow()
    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", spied)
    assert dataset.to_arrow()["id"].to_pylist() == [1, 2]
    assert read == []
    dataset.write(pa.table({"id": [3]}))
    read.clear()
    assert sorted(dataset.to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert read, "a new snapshot has to be read"
    assert sorted(dataset.to_arrow(version=1)["id"].to_pylist()) == [1, 2]
