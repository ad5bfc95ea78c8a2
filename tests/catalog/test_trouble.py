"""C02: whatever a catalog answers to a commit, no row is lost or doubled, and no file that a snapshot names is gone."""

from __future__ import annotations

import pytest

from lakeward.testing.faulty_proxy import FAULTS, Fault, Injection
from support.covering import covering
from support.trouble import Scene, Subject

EVERY_FAULT = pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
EVERY_MODE = pytest.mark.parametrize("mode", ["append", "replace"])

BORN = [1, 2, 3]
MORE = [4, 5]


def after(mode: str, before: list[int]) -> list[int]:
    return sorted(before + MORE) if mode == "append" else MORE


def go_through(scene: Scene, subject: Subject, injection: Injection, mode: str, before: list[int]) -> bool:
    """Write into the trouble, then check all that must hold: at once, after the trouble, and for the next writes."""
    written = subject.try_write(MORE, mode)
    assert injection.hits, "the fault met no request"
    expected = after(mode, before) if written else before
    # The outcome may still be open here.
    assert subject.ids() == expected
    subject.assert_whole()

    scene.proxy.clear()
    injection.release()
    subject.assert_whole()
    scene.settle()
    assert subject.ids() == subject.main_ids() == expected

    if not written:
        subject.write(MORE, mode)
    subject.write([99], "append")
    assert subject.ids() == subject.main_ids() == sorted([*after(mode, before), 99])
    assert subject.branches() == []
    subject.assert_whole()
    return written


@covering("fault step", "mode step")
@EVERY_MODE
@EVERY_FAULT
@pytest.mark.parametrize("step", ["prepare", "publish"])
def test_c02_one_bad_answer_is_survived(scene: Scene, fault: Fault, mode: str, step: str) -> None:
    subject = scene.subject(born=BORN)
    injection = scene.proxy.inject(fault, path=f"/tables/{subject.slug}$", nth=1 if step == "prepare" else 2)
    assert go_through(scene, subject, injection, mode, BORN)


@covering("fault step", "mode step")
@EVERY_MODE
@EVERY_FAULT
@pytest.mark.parametrize("step", ["prepare", "publish"])
def test_c02_no_good_answer_at_all(scene: Scene, fault: Fault, mode: str, step: str) -> None:
    subject = scene.subject(born=BORN)
    injection = scene.proxy.inject(
        fault, path=f"/tables/{subject.slug}$", nth=1 if step == "prepare" else 2, times=None
    )
    # What was decided stands. What was not stands only if it arrived in spite of what was answered.
    arrives = fault.forwards > 0
    assert go_through(scene, subject, injection, mode, BORN) == (step == "publish" or arrives)


@EVERY_MODE
def test_a_write_without_trouble_costs_five_requests(scene: Scene, mode: str) -> None:
    subject = scene.subject(born=BORN)
    before = len(scene.proxy.seen)
    subject.write(MORE, mode)
    assert [request.method for request in scene.proxy.seen[before:]] == ["GET", "GET", "POST", "GET", "POST"]


FIRST_WRITE = {
    "namespace": (r"/namespaces$", 1),
    "inner namespace": (r"/namespaces$", 2),
    "table": (r"/tables$", 1),
    "root": (r"/tables/d\d+$", 1),
    "prepare": (r"/tables/d\d+$", 2),
    "publish": (r"/tables/d\d+$", 3),
}
"""The requests of a dataset's first write."""


@covering("fault", "request_")
@EVERY_FAULT
@pytest.mark.parametrize("request_", FIRST_WRITE)
def test_c02_one_bad_answer_to_a_first_write_is_survived(scene: Scene, fault: Fault, request_: str) -> None:
    path, nth = FIRST_WRITE[request_]
    subject = scene.subject(schema=f"first_{scene.next_number()}")
    injection = scene.proxy.inject(fault, path=path, nth=nth)
    assert go_through(scene, subject, injection, "replace", [])


@covering("fault", "request_")
@pytest.mark.parametrize("fault", ["500-after", "500-before", "closed-after", "409-before", "resent", "504-late"])
@pytest.mark.parametrize("request_", FIRST_WRITE)
def test_c02_no_good_answer_to_a_first_write(scene: Scene, fault: str, request_: str) -> None:
    path, nth = FIRST_WRITE[request_]
    subject = scene.subject(schema=f"none_{scene.next_number()}")
    injection = scene.proxy.inject(FAULTS[fault], path=path, nth=nth, times=None)
    go_through(scene, subject, injection, "append", [])
