"""C02: requests that arrive when nobody waits for them any more, and answers that never come."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from lakeward.errors import CatalogError
from lakeward.storage.arms.iceberg import trouble
from lakeward.testing.faulty_proxy import FAULTS, FaultyProxy, delayed
from lakeward.testing.rest_catalog import RestCatalogServer
from support.trouble import Scene, short_leases

LATE = FAULTS["504-late"]


def test_c02_a_commit_that_lands_after_recovery_is_never_seen_and_swept_by_the_next_write(scene: Scene) -> None:
    subject = scene.subject(born=[1, 2])
    late = scene.proxy.inject(LATE, path=f"/tables/{subject.slug}$", times=None)
    assert not subject.try_write([3], "append")
    scene.proxy.clear()
    scene.settle()

    # The first of the tries lands, and makes the others impossible.
    assert late.release() == [200, *[409] * (late.hits - 1)]
    assert len(subject.branches()) == 1
    assert subject.ids() == subject.main_ids() == [1, 2]
    scene.settle()
    subject.write([3], "append")
    assert subject.branches() == []
    assert subject.ids() == subject.main_ids() == [1, 2, 3]
    subject.assert_whole()


def test_c02_a_try_that_lands_after_a_later_one_did_changes_nothing(scene: Scene) -> None:
    subject = scene.subject(born=[1, 2])
    late = scene.proxy.inject(LATE, path=f"/tables/{subject.slug}$")
    subject.write([3], "append")
    refused = late.release()
    assert refused and set(refused) <= {400, 409}
    assert subject.ids() == subject.main_ids() == [1, 2, 3]
    subject.assert_whole()


def test_c02_a_publish_that_lands_after_later_versions_does_not_set_main_back(scene: Scene) -> None:
    subject = scene.subject(born=[1, 2])
    late = scene.proxy.inject(LATE, path=f"/tables/{subject.slug}$", nth=2, times=None)
    subject.write([3], "append")
    assert subject.ids() == [1, 2, 3] and subject.main_ids() == [1, 2]
    scene.proxy.clear()
    subject.write([4], "append")
    assert late.release() == [409] * late.hits
    assert subject.ids() == subject.main_ids() == [1, 2, 3, 4]
    subject.assert_whole()


def test_c02_a_discard_that_lands_late_does_not_harm_the_next_write(scene: Scene) -> None:
    subject = scene.subject(born=[1, 2])
    # The commit lands and its answers are lost, looks included; so it is aborted, and the discard is held back.
    scene.proxy.inject(FAULTS["closed-after"], path=f"/tables/{subject.slug}$")
    scene.proxy.inject(FAULTS["closed-before"], method="GET", path=f"/tables/{subject.slug}$", nth=2, times=None)
    late = scene.proxy.inject(LATE, path=f"/tables/{subject.slug}$", nth=2, times=1)
    assert not subject.try_write([3], "append")
    scene.proxy.clear()
    scene.settle()
    subject.write([4], "append")
    assert not late.hits or set(late.release()) == {409}
    assert subject.ids() == subject.main_ids() == [1, 2, 4]
    assert subject.branches() == []
    subject.assert_whole()


@pytest.fixture
def impatient(new_database: Callable[[], str], tmp_path: Path) -> Callable[[FaultyProxy], lakeward.Workspace]:
    """Opens workspaces that wait half a second for an answer."""
    url = new_database()

    def make(proxy: FaultyProxy) -> lakeward.Workspace:
        return lakeward.open(
            tmp_path / "home",
            database_url=url,
            warehouse=tmp_path / "warehouse",
            catalog={"type": "rest", "uri": proxy.url, "lakeward.timeout-seconds": "0.5"},
            settings_file=short_leases(tmp_path),
        )

    return make


def test_c02_an_answer_that_never_comes_is_waited_for_in_vain_once(
    impatient: Callable[[FaultyProxy], lakeward.Workspace], tmp_path: Path
) -> None:
    with (
        RestCatalogServer(f"sqlite:///{tmp_path / 'catalog.db'}", tmp_path / "warehouse") as server,
        FaultyProxy(server.url) as proxy,
        impatient(proxy) as workspace,
    ):
        dataset = workspace.create_dataset("main.slow.d", {"id": "long"}, arm="iceberg")
        dataset.write([{"id": 1}])
        for nth in (1, 2):  # prepare, publish
            hung = proxy.inject(dataclasses.replace(delayed(60), name="hung"), path="/tables/d$", nth=nth)
            began = time.monotonic()
            dataset.write([{"id": 1 + nth}])
            assert hung.hits == 1 and time.monotonic() - began < 10
            proxy.clear()
        assert sorted(dataset.to_arrow()["id"].to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize("fault", ["closed-before", "503-before", "garbage-after", "cut"])
def test_c02_a_catalog_that_is_down_at_first_is_found_later(
    fault: str,
    impatient: Callable[[FaultyProxy], lakeward.Workspace],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trouble, "PAUSES", (0.01,))
    with (
        RestCatalogServer(f"sqlite:///{tmp_path / 'catalog.db'}", tmp_path / "warehouse") as server,
        FaultyProxy(server.url) as proxy,
        impatient(proxy) as workspace,
    ):
        dataset = workspace.create_dataset("main.down.d", {"id": "long"}, arm="iceberg")
        proxy.inject(FAULTS[fault], method="GET", path="/config", times=None)
        with pytest.raises(CatalogError):
            dataset.write([{"id": 1}])
        proxy.clear()
        Scene(workspace, proxy, server).settle()
        dataset.write([{"id": 1}])
        assert dataset.to_arrow()["id"].to_pylist() == [1]
