"""The proxy does what was ordered, to the requests that it was ordered for, and passes everything else on unchanged."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from lakeward.testing.faulty_proxy import FAULTS, FaultyProxy, Seen, delayed
from lakeward.testing.loopback_server import LoopbackServer, Reply, Request


class Counter(LoopbackServer):
    """Says how often it was asked, and what."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Request] = []

    def answer(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(201, f"{len(self.asked)} {request.body.decode()}".encode(), {"X-Mine": "yes"})


@pytest.fixture
def target() -> Iterator[Counter]:
    with Counter() as running:
        yield running


@pytest.fixture
def proxy(target: Counter) -> Iterator[FaultyProxy]:
    with FaultyProxy(f"{target.url}/base/") as running:
        yield running


def ask(proxy: FaultyProxy, method: str = "POST", target: str = "/a%1Fb?c=d", body: str = "x") -> tuple[int, str]:
    connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=5)
    try:
        connection.request(method, target, body, {"X-Theirs": "1"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_without_a_fault_everything_passes_unchanged(proxy: FaultyProxy, target: Counter) -> None:
    assert ask(proxy) == (201, "1 x")
    assert target.asked[0].target == "/base/a%1Fb?c=d" and target.asked[0].headers["X-Theirs"] == "1"
    assert proxy.seen == [Seen("POST", "/a%1Fb?c=d", 201)]


@pytest.mark.parametrize("name", ["500-after", "502-after", "503-after", "504-after", "409-after", "garbage-after"])
def test_after_means_that_it_arrived(proxy: FaultyProxy, target: Counter, name: str) -> None:
    proxy.inject(FAULTS[name])
    assert ask(proxy)[0] == FAULTS[name].status
    assert len(target.asked) == 1


@pytest.mark.parametrize("name", ["500-before", "503-before", "409-before"])
def test_before_means_that_it_did_not(proxy: FaultyProxy, target: Counter, name: str) -> None:
    proxy.inject(FAULTS[name])
    assert ask(proxy)[0] == FAULTS[name].status
    assert target.asked == []


@pytest.mark.parametrize(("name", "arrived"), [("closed-after", 1), ("closed-before", 0), ("cut", 1)])
def test_a_connection_that_ends_early(proxy: FaultyProxy, target: Counter, name: str, arrived: int) -> None:
    proxy.inject(FAULTS[name])
    with pytest.raises((http.client.RemoteDisconnected, http.client.IncompleteRead)):
        ask(proxy, body="long enough to be cut")
    assert len(target.asked) == arrived
    assert ask(proxy)[0] == 201


def test_a_resent_request_is_answered_as_the_second_one(proxy: FaultyProxy, target: Counter) -> None:
    proxy.inject(FAULTS["resent"])
    assert ask(proxy) == (201, "2 x")


def test_a_held_request_arrives_when_it_is_released(proxy: FaultyProxy, target: Counter) -> None:
    late = proxy.inject(FAULTS["504-late"])
    assert ask(proxy)[0] == 504 and target.asked == []
    proxy.clear()
    assert late.release() == [201] and len(target.asked) == 1
    assert late.release() == []


def test_only_the_ordered_requests_are_hit(proxy: FaultyProxy) -> None:
    injection = proxy.inject(FAULTS["500-before"], method="POST", path=r"/tables/t$", nth=2, times=2)
    answers = [ask(proxy, target="/tables/t")[0] for _ in range(5)]
    assert answers == [201, 500, 500, 201, 201] and injection.hits == 2
    proxy.inject(FAULTS["500-before"], method="GET", times=None)
    assert ask(proxy)[0] == 201
    assert [ask(proxy, "GET")[0] for _ in range(3)] == [500] * 3
    proxy.clear()
    assert ask(proxy, "GET")[0] == 201


def test_a_delay_passes_and_does_not_hold_others_up(proxy: FaultyProxy) -> None:
    proxy.inject(delayed(0.4), path="/slow")
    slow = threading.Thread(target=ask, args=(proxy, "POST", "/slow"))
    began = time.monotonic()
    slow.start()
    assert ask(proxy, target="/fast")[0] == 201
    assert time.monotonic() - began < 0.4
    slow.join()
    assert time.monotonic() - began >= 0.4


def test_a_target_that_is_away_is_a_bad_gateway(target: Counter) -> None:
    with FaultyProxy(target.url) as proxy:
        target.stop()
        assert ask(proxy)[0] == 502


def test_stopping_ends_whoever_waits(target: Counter) -> None:
    before = set(threading.enumerate())
    with FaultyProxy(target.url) as proxy:
        proxy.inject(delayed(60))
        waiting = threading.Thread(target=_ask_in_vain, args=(proxy,))
        waiting.start()
        while not target.asked:
            time.sleep(0.01)
    waiting.join(5)
    assert set(threading.enumerate()) <= before


def _ask_in_vain(proxy: FaultyProxy) -> None:
    try:
        ask(proxy)
    except (OSError, http.client.HTTPException):
        pass  # the proxy was stopped meanwhile
