"""A process is killed at every step of a keyed write: the dataset is as before or as after it, with each key once.

C06: there is no moment between the rows that go and the rows that come. C04: processes that write the same keys at once
leave one row of each.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakeward
from lakeward.storage import protocol
from lakeward.storage.verbs import KEYED
from lakeward.testing import AtStep
from support.covering import covering
from support.crashes import Driver, content, unclean

Make = Callable[[str], lakeward.Dataset]
Rows = list[tuple[int, str]]

COMMITTED = protocol.POINTS[protocol.POINTS.index(protocol.COMMITTED_FROM) :]
"""From here on the write stands."""

NOT_THERE = {
    "postgres": ("prepare:files", "prepare:deletes", "prepare:committed", "publish", "publish:moved"),
    "iceberg": ("prepare:copy", "prepare:chunk"),
}
"""Points that a keyed write to the arm does not pass."""

FOR_ONE_VERB = ("intent", "intent:opened", "compute", "audit")
"""Where it makes no difference yet, or no more, which verb it is: these are tried with one."""

OLD = [(number, "old") for number in range(6)]
WRITTEN = (3, 5, "new")
"""First id, rows and text of each write; `changes` deletes every third id."""

NEW: dict[str, Rows] = {
    "append_new": [*OLD, (6, "new"), (7, "new")],
    "upsert": [*OLD[:3], *((number, "new") for number in range(3, 8))],
    "mirror": [(number, "new") for number in range(3, 8)],
    "changes": [*OLD[:3], (4, "new"), (5, "new"), (7, "new")],
    "delete": OLD[:3],
}


POINTS = {arm: [point for point in protocol.POINTS if point not in missing] for arm, missing in NOT_THERE.items()}

CASES = [
    (arm, verb, point)
    for arm in POINTS
    for point in POINTS[arm]
    for verb in (("mirror",) if point in FOR_ONE_VERB else KEYED)
]


@pytest.fixture
def filled(make: Callable[[str], lakeward.Dataset]) -> Callable[[str], lakeward.Dataset]:
    """Makes a dataset of six rows on an arm."""

    def create(arm: str) -> lakeward.Dataset:
        dataset = make(arm)
        dataset.write([{"id": number, "note": note} for number, note in OLD])
        return dataset

    return create


@pytest.mark.parametrize("arm", POINTS)
@pytest.mark.parametrize("verb", KEYED)
def test_the_points_are_all_that_a_keyed_write_passes(
    crash_url: str, crash_warehouse: object, driver: Driver, filled: Make, arm: str, verb: str
) -> None:
    dataset = filled(arm)
    faults = AtStep("never", lambda: None)
    rows = [{"id": number, "note": "new", "__op": "update" if number % 3 else "delete"} for number in range(3, 8)]
    columns = {"delete": ("id",), "changes": ("id", "note", "__op")}.get(verb, ("id", "note"))
    with lakeward.open(database_url=crash_url, warehouse=str(crash_warehouse), faults=faults) as workspace:
        given = [{name: row[name] for name in columns} for row in rows]
        workspace.dataset(dataset.name).write(given, mode=verb)
    assert list(dict.fromkeys(faults.seen)) == POINTS[arm]
    assert content(dataset) == NEW[verb]


@covering("arm point", "arm verb")
@pytest.mark.parametrize(("arm", "verb", "point"), CASES)
def test_c06_old_or_new(ws: lakeward.Workspace, driver: Driver, filled: Make, arm: str, verb: str, point: str) -> None:
    dataset = filled(arm)
    before = dataset.to_arrow(identity=True).sort_by("__row_index")
    assert driver.run(write=[[dataset.name, verb, *WRITTEN]], fault=["crash", point, 1]).killed()
    expected = NEW[verb] if point in COMMITTED else OLD
    # Readers never wait for recovery, and never see anything else.
    assert content(dataset) == expected
    assert dataset.to_arrow(version=1, identity=True).sort_by("__row_index") == before
    # In turn: recovery on request, and the recovery that comes before every write.
    if CASES.index((arm, verb, point)) % 2:
        driver.run(recover=True).answer()
        assert driver.run(recover=True).answer() == {"recovered": []}
        assert unclean(ws, [dataset.name]) == []
        assert content(dataset) == expected
    # The same write once more: it does what is not done, and adds no key a second time.
    answer = driver.run(write=[[dataset.name, verb, *WRITTEN]]).answer()
    assert "versions" in answer, answer
    assert content(dataset) == NEW[verb]
    assert dataset.to_arrow(version=1, identity=True).sort_by("__row_index") == before
    assert unclean(ws, [dataset.name]) == []
    assert ws.recover() == []


@pytest.mark.parametrize("arm", POINTS)
@pytest.mark.parametrize("point", ["prepare", "audit", "decide"])
def test_killed_recovery_of_a_keyed_write(
    ws: lakeward.Workspace, driver: Driver, filled: Make, arm: str, point: str
) -> None:
    """What marked rows as replaced is taken back, also by a recovery that is killed itself."""
    dataset = filled(arm)
    assert driver.run(write=[[dataset.name, "mirror", *WRITTEN]], fault=["crash", point, 1]).killed()
    for _ in range(2):
        assert driver.run(recover=True, fault=["crash", "recover:discarded", 1]).killed()
        assert content(dataset) == OLD
    assert driver.run(recover=True).answer() == {"recovered": [[dataset.name, 2, "aborted"]]}
    assert content(dataset) == OLD
    assert unclean(ws, [dataset.name]) == []


@pytest.mark.parametrize("arm", POINTS)
@pytest.mark.parametrize("verb", ["upsert", "append_new", "changes"])
def test_c04_ten_processes_write_the_same_keys_at_once(
    ws: lakeward.Workspace, driver: Driver, filled: Make, arm: str, verb: str
) -> None:
    dataset = filled(arm)
    cases = [{"write": [[dataset.name, verb, 3, 5, f"writer {number}"]]} for number in range(10)]
    answers = [case.answer() for case in driver.run_together(cases)]
    assert all("versions" in answer for answer in answers), answers
    found = content(dataset)
    assert [number for number, _ in found] == [number for number, _ in NEW[verb]], "each key once"
    notes = {note for _, note in found} - {"old"}
    assert len(notes) == 1, "one of them was the last, or the only one that found the keys missing"
    assert unclean(ws, [dataset.name]) == []
    assert {each.status for each in dataset.history(100)} <= {"committed", "aborted"}


def test_c04_upserts_and_replaces_of_several_processes(ws: lakeward.Workspace, driver: Driver, filled: Make) -> None:
    datasets = [filled(arm) for arm in POINTS]
    for dataset in datasets:
        cases = [
            {"write": [[dataset.name, ("upsert", "replace", "delete", "mirror")[number % 4], 3, 5, f"writer {number}"]]}
            for number in range(8)
        ]
        answers = [case.answer() for case in driver.run_together(cases)]
        assert all("versions" in answer for answer in answers), answers
        found = [number for number, _ in content(dataset)]
        assert len(set(found)) == len(found), "a key twice"
        assert unclean(ws, [dataset.name]) == []


@pytest.mark.parametrize("order", ["postgres first", "iceberg first"])
@pytest.mark.parametrize("point", ["prepare:chunk", "prepare:deletes", "prepare:committed", "decide", *COMMITTED])
def test_two_keyed_outputs_together_or_not_at_all(
    ws: lakeward.Workspace, driver: Driver, filled: Make, point: str, order: str
) -> None:
    arms = ("postgres", "iceberg") if order == "postgres first" else ("iceberg", "postgres")
    datasets = [filled(arm) for arm in arms]
    names = [dataset.name for dataset in datasets]
    outputs = [[names[0], "upsert", *WRITTEN], [names[1], "mirror", *WRITTEN]]
    assert driver.run(write=outputs, fault=["crash", point, 1]).killed()
    expected = [NEW["upsert"], NEW["mirror"]] if point in COMMITTED else [OLD, OLD]
    assert [content(dataset) for dataset in datasets] == expected
    driver.run(recover=True).answer()
    assert unclean(ws, names) == []
    assert [content(dataset) for dataset in datasets] == expected
