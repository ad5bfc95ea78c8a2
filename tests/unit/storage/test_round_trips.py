"""How often a write waits for Postgres: the protocol's own cost, whatever it writes.

What is counted is what `CountingProxy` sees: each time that a client speaks after the server did, from any client of
the process (the ledger's, the catalog's, COPY, ADBC), once connections are open. BEGIN and COMMIT count, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakeward
from support.round_trips import CountingProxy

ARMS = ("postgres", "iceberg")

MOST_OF_A_WRITE = 12
MOST_OF_A_BUILD = 20
"""With what comes before it: looking up pipeline, sources and output, and reading the sources, however many."""

PIPELINE = """
pipeline: small_{arm}
nodes:
  source: {{source: main.trips.source_{arm}}}
outputs:
  - {{dataset: main.trips.small_{arm}, from: source, arm: {arm}, strategy: replace, primary_key: [id]}}
"""


@pytest.fixture
def proxy(database_url: str, short_tmp: Path) -> Iterator[CountingProxy]:
    with CountingProxy(database_url, short_tmp) as running:
        yield running


@pytest.fixture
def ws(proxy: CountingProxy, tmp_path: Path) -> Iterator[lakeward.Workspace]:
    with lakeward.open(tmp_path / "home", database_url=proxy.url, warehouse=tmp_path / "warehouse") as workspace:
        yield workspace


def trips(proxy: CountingProxy, work: Callable[[], object]) -> list[str]:
    """Return the fewest round trips of three times: a thread that listens for flags may connect during one of them."""
    said: list[list[str]] = []
    for _ in range(3):
        proxy.take()
        work()
        said.append(proxy.take())
    return min(said, key=len)


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("mode", ["append", "replace"])
def test_a_write(ws: lakeward.Workspace, proxy: CountingProxy, arm: str, mode: str) -> None:
    dataset = ws.create_dataset("main.trips.written", {"id": "long"}, arm=arm)
    dataset.write([{"id": 0}])
    said = trips(proxy, lambda: dataset.write([{"id": 1}], mode=mode))
    assert 0 < len(said) <= MOST_OF_A_WRITE, said


def test_a_key_is_looked_for_twice(ws: lakeward.Workspace, proxy: CountingProxy) -> None:
    dataset = ws.create_dataset("main.trips.keyed", {"id": "long"})
    dataset.write([{"id": 0}])
    plain = len(trips(proxy, lambda: dataset.write([{"id": 1}])))
    keys = iter("abc")
    assert len(trips(proxy, lambda: dataset.write([{"id": 1}], idempotency_key=next(keys)))) <= plain + 2
    assert len(trips(proxy, lambda: dataset.write([{"id": 1}], idempotency_key="a"))) == 1


@pytest.mark.parametrize("arm", ARMS)
def test_a_build_of_100_rows(ws: lakeward.Workspace, proxy: CountingProxy, tmp_path: Path, arm: str) -> None:
    project = tmp_path / "project"
    (project / "pipelines").mkdir(parents=True)
    (project / "lakeward.toml").write_text("[project]\nname = 'trips'\n", encoding="utf-8")
    (project / "pipelines" / "small.yml").write_text(PIPELINE.format(arm=arm), encoding="utf-8")
    source = ws.create_dataset(f"main.trips.source_{arm}", {"id": "long", "note": "string"}, ["id"], arm=arm)
    source.write([{"id": number, "note": "x"} for number in range(100)])
    ws.apply(project)
    said = trips(proxy, lambda: ws.build(f"small_{arm}", full=True))
    assert len(said) <= MOST_OF_A_BUILD, said
    intent = next(number for number, each in enumerate(said) if "Waits for a decide under way" in each)
    reading = [
        each
        for each in said[intent:]
        if "dataset with its route" in each or "an arm serves for a reader" in each or '"document"' in each
    ]
    assert len(said[intent:]) - len(reading) <= MOST_OF_A_WRITE, said[intent:]


def test_more_sources_in_files_are_waited_for_no_longer(
    ws: lakeward.Workspace, proxy: CountingProxy, tmp_path: Path
) -> None:
    pipelines = tmp_path / "project" / "pipelines"
    pipelines.mkdir(parents=True)
    (pipelines.parent / "lakeward.toml").touch()
    for number in range(3):
        ws.create_dataset(f"main.trips.s{number}", {"id": "long"}, arm="iceberg").write([{"id": number}])
    said = []
    for count in (1, 3):
        names = [f"s{number}" for number in range(count)]
        nodes = ", ".join(f"{name}: {{source: main.trips.{name}}}" for name in names)
        sql = " union all ".join(f"from {name}" for name in names)
        output = f"{{dataset: main.trips.of_{count}, from: all_rows, arm: iceberg, strategy: replace}}"
        text = f"pipeline: of_{count}\nnodes: {{{nodes}, all_rows: {{transform: '{sql}'}}}}\noutputs: [{output}]\n"
        (pipelines / f"of_{count}.yml").write_text(text, encoding="utf-8")
        ws.apply(pipelines.parent)
        said.append(trips(proxy, lambda count=count: ws.build(f"of_{count}", full=True)))  # type: ignore[misc]
    # Asked one by one, two more would be six waits more; fewer may be those of threads beside.
    assert len(said[1]) <= len(said[0]) + 4, said


@pytest.mark.parametrize("arm", ARMS)
def test_the_wait_does_not_grow_with_the_past(ws: lakeward.Workspace, proxy: CountingProxy, arm: str) -> None:
    dataset = ws.create_dataset("main.trips.grown", {"id": "long"}, arm=arm)
    for number in range(20):
        dataset.write([{"id": number}])
    assert len(trips(proxy, lambda: dataset.write([{"id": 1}]))) <= MOST_OF_A_WRITE
    assert len(trips(proxy, lambda: dataset.to_arrow())) <= 7


def test_the_proxy_counts(proxy: CountingProxy, ws: lakeward.Workspace) -> None:
    def two() -> None:
        for _ in range(2):
            ws.tree.datasets()

    assert len(trips(proxy, two)) == 2
    assert len(trips(proxy, lambda: ws.maintain())) > 0
