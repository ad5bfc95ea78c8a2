"""What is dropped is unknown to everybody, untouched, and comes back exactly as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakeward
from lakeward.control.flips import Flips
from lakeward.control.proofs import Proofs
from lakeward.errors import ConflictError, DroppedObject, NameTaken, UnknownObject, UsageError
from lakeward.testing import AtStep
from lakeward.types.digest import Digest
from support.crashes import Driver, unclean
from support.ledger import rows

MakeDataset = Callable[..., lakeward.Dataset]

QUERY = """-- pipeline: doubled
-- sources: {{o: {source}}}
-- output: {output}
-- strategy: replace
select * from o
"""


def state(dataset: lakeward.Dataset, warehouse: Path) -> dict[str, Any]:
    """Return all that must be the same after an undrop."""
    digests: dict[int, Digest] = {version: dataset.digest(version=version) for version in (1, 2)}
    record = dataset.record
    return {
        "digests": digests,
        "files": {path: path.read_bytes() for path in warehouse.rglob("*") if path.is_file()},
        "record": (record.route, record.head_version, record.row_count, record.next_row_id, record.identifier),
        "history": [each for each in dataset.history() if each.kind == "write"],
        "since": dataset.to_arrow(since=1, identity=True).to_pylist(),
    }


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_unknown_to_all_and_back_exactly_as_it_was(
    ws: lakeward.Workspace, dataset: MakeDataset, place: str, warehouse: Path, arm: str
) -> None:
    made = dataset(arm)
    ws.flags.set(reader="api.read", prefer=arm, dataset=made.name)
    before = state(made, warehouse)
    done = ws.drop_dataset(made.name)
    assert (done.until - done.at).days == 7
    for use in (
        lambda: ws.dataset(made.name),
        made.to_arrow,
        made.digest,
        lambda: made.write([{"id": 1, "note": "late"}]),
        lambda: ws.flip(made.name),
        lambda: ws.pin(made.name),
        lambda: ws.maintain(made.name),
        lambda: ws.run(f"select * from {made.name}", into=f"{place}.copies"),
        lambda: ws.drop_dataset(made.name),
    ):
        with pytest.raises(DroppedObject, match=r"it was dropped at .* by ") as caught:
            use()
        assert f"dataset undrop {made.name}" in (caught.value.next_step or "")
    assert made.name not in [each.name for each in ws.datasets()]
    assert [each.what.name for each in ws.dropped_datasets() if each.what.drop == done] == [made.name]
    assert ws.maintain().purged == []
    assert ws.flags.list() and ws.status() is not None
    assert ws.undrop_dataset(made.name) == [made.name] and ws.undrop_dataset(made.name) == []
    assert state(ws.dataset(made.name), warehouse) == before
    assert [each.value for each in ws.flags.list(made.name) if each.name == "api.read"] == [arm]
    assert made.write([{"id": 7, "note": "after"}]).row_count == 6
    assert unclean(ws, [made.name]) == []


def test_the_name_is_free_at_once_and_both_can_be_there_again(
    ws: lakeward.Workspace, dataset: MakeDataset, place: str
) -> None:
    made = dataset()
    ws.drop_dataset(made.name)
    new = ws.create_dataset(made.name, {"id": "long"}, arm="iceberg")
    assert new.record.slugs[2] != "orders" == made._known.slugs[2]
    new.write([{"id": 1}])
    with pytest.raises(NameTaken, match="another dataset is called orders now") as caught:
        ws.undrop_dataset(made.name)
    assert "--as" in (caught.value.next_step or "")
    assert ws.undrop_dataset(made.name, "old orders") == [f"{place}.old orders"]
    assert (ws.dataset(made.name).row_count, ws.dataset(f"{place}.old orders").row_count) == (1, 5)
    ws.drop_dataset(f"{place}.old orders")
    ws.drop_dataset(made.name)
    assert ws.undrop_dataset(made.name) == [made.name], "the last one of that name"
    assert ws.dataset(made.name).row_count == 1


def test_what_holds_something_is_dropped_with_it_or_not_at_all(
    ws: lakeward.Workspace, dataset: MakeDataset, place: str
) -> None:
    catalog = place.partition(".")[0]
    made, other = dataset("postgres"), dataset("postgres", "other")
    gone = dataset("postgres", "gone")
    ws.drop_dataset(gone.name)
    for drop, name in ((ws.drop_catalog, catalog), (ws.drop_schema, place)):
        with pytest.raises(UsageError, match="not empty") as caught:
            drop(name)
        assert f"dataset {made.name}" in str(caught.value.fields["inside"])
    flip = ws.flip(other.name)
    flip.run(until="check")
    with pytest.raises(ConflictError, match=f"a flip is under way of {other.name}"):
        ws.drop_catalog(catalog, cascade=True)
    assert {made.name, other.name} <= {each.name for each in ws.datasets()}
    assert made.write([{"id": 8, "note": "goes on"}]).version == 4, "the slot is free again"
    flip.cancel()
    ws.drop_catalog(catalog, cascade=True)
    with pytest.raises(DroppedObject):
        ws.names("schema").get(place)
    assert ws.undrop_dataset(made.name) == [made.name], "its parents come back with it, and nothing else"
    assert [each.what.name for each in ws.schemas() if each.what.name == place] == [place]
    with pytest.raises(UnknownObject):
        ws.dataset(other.name)
    assert ws.undrop_dataset(other.name) and ws.undrop_dataset(gone.name)


def test_dry_runs_say_which_pipelines_will_miss_it(
    ws: lakeward.Workspace, dataset: MakeDataset, place: str, tmp_path: Path
) -> None:
    dataset("postgres")
    (tmp_path / "lakeward.toml").write_text("", encoding="utf-8")
    (tmp_path / "pipelines").mkdir()
    file = tmp_path / "pipelines" / "doubled.sql"
    file.write_text(QUERY.format(source=f"{place}.orders", output=f"{place}.doubled"), encoding="utf-8")
    ws.apply(tmp_path)
    ws.build("doubled")
    actions = ws.names("schema").explain_drop(place, cascade=True)
    assert actions[0] == f"wait for writers of dataset {place}.orders, and hold its slot"
    assert f"pipeline doubled, which reads {place}.orders, will fail until it is changed" in actions
    assert f"pipeline doubled, which writes {place}.doubled, will fail until it is changed" in actions
    ws.drop_dataset(f"{place}.doubled")
    with pytest.raises(DroppedObject, match="doubled: it was dropped"):
        ws.build("doubled", full=True)
    file.unlink()
    ws.apply(tmp_path)


# Others at the same time ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_a_writer_that_sleeps_is_taken_over_and_commits_nothing(
    ws: lakeward.Workspace, dataset: MakeDataset, driver: Driver, tree_root: Path, arm: str
) -> None:
    made = dataset(arm)
    settings = str(tree_root / "lakeward.toml")
    writer = driver.run(write=[[made.name, "append", 500, 3, "late"]], fault=["pause", "decide", 1], settings=settings)
    assert writer.event == "stopped"
    ws.drop_dataset(made.name)
    assert writer.wake()["error"] == "LeaseLost"
    ws.undrop_dataset(made.name)
    assert (made.version, made.row_count) == (2, 5)
    ws.recover()
    assert unclean(ws, [made.name]) == []


def test_a_writer_and_two_who_drop_at_once(
    ws: lakeward.Workspace, dataset: MakeDataset, driver: Driver, tree_root: Path
) -> None:
    """The writer commits before the drop, or not at all; and one of the two drops it."""
    made = dataset("postgres")
    settings = {"settings": str(tree_root / "lakeward.toml")}
    cases = [
        {"write": [[made.name, "append", 500, 3, "meanwhile"]], **settings},
        {"drop": ["dataset", made.name], **settings},
        {"drop": ["dataset", made.name], **settings},
    ]
    wrote, *drops = [each.answer() for each in driver.run_together(cases)]
    assert sorted(each.get("error", "") for each in drops) == ["", "DroppedObject"]
    ws.undrop_dataset(made.name)
    if "versions" in wrote:
        assert (wrote["versions"], made.version, made.row_count) == ([3], 3, 8)
    else:
        assert (wrote["error"], made.version, made.row_count) == ("DroppedObject", 2, 5)


def test_killed_before_the_mark_nothing_is_dropped(
    ws: lakeward.Workspace, dataset: MakeDataset, driver: Driver, place: str, tree_root: Path
) -> None:
    made, other = dataset("postgres"), dataset("postgres", "other")
    settings = str(tree_root / "lakeward.toml")
    assert driver.run(drop=["schema", place], fault=["crash", "drop:opened", 1], settings=settings).killed()
    assert made.row_count == other.row_count == 5
    assert made.write([{"id": 6, "note": "goes on"}]).row_count == 6
    assert driver.run(drop=["schema", place], fault=["crash", "drop:marked", 1], settings=settings).killed()
    assert [each.what.name for each in ws.schemas(dropped=True) if each.what.name == place] == [place]
    assert ws.undrop_schema(place) == sorted([made.name, other.name])
    assert unclean(ws, [made.name, other.name]) == []


def test_who_made_something_in_it_meanwhile_keeps_it(
    ws: lakeward.Workspace, dataset: MakeDataset, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever drops has looked before: all of it goes, or nothing."""
    dataset("postgres")
    drops = ws._names.drops
    mark = drops.drop

    def late(*args: Any) -> Any:
        ws.create_dataset(f"{place}.new", {"id": "long"})
        return mark(*args)

    monkeypatch.setattr(drops, "drop", late)
    with pytest.raises(ConflictError, match="not as it was a moment ago"):
        ws.drop_schema(place, cascade=True)
    assert ws.dataset(f"{place}.new").version == 0 and ws.dataset(f"{place}.orders").version == 2
    open_ = "SELECT count(*) FROM lakeward.dataset_transactions WHERE status = 'open'"
    assert rows(ws.database, open_) == [(0,)]


def test_a_copy_that_began_to_count_while_its_dataset_was_dropped_keeps_nobody_from_recovering(
    ws: lakeward.Workspace, dataset: MakeDataset, tree_url: str, tree_root: Path, warehouse: Path
) -> None:
    """It was compared while the slot was held, and the process that did it was killed before it was published."""
    made = dataset("postgres")
    ws.flip(made.name).run("iceberg", until="backfill")
    flip = Flips(ws.database)
    flip.end(flip.active(made.record.id), "cancelled")
    proofs = Proofs(ws.database)

    def prove() -> None:
        held = proofs.unproved(made.record.id, "iceberg")
        assert held is not None and proofs.prove(made.record.id, "iceberg", held)

    with lakeward.open(
        tree_root / "home",
        database_url=tree_url,
        warehouse=warehouse,
        settings_file=tree_root / "lakeward.toml",
        faults=AtStep("drop:opened", prove),
    ) as other:
        other.drop_dataset(made.name)
    ws.recover()
    ws.undrop_dataset(made.name)
    assert unclean(ws, [made.name]) == []
    assert ws.dataset(made.name).verify()
