"""A receiver on this machine that keeps what it is sent, and a workspace that sends to it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import lakeward
from support.receiver import Opens, Receiver

_numbers = count(1)

PIPELINE = """pipeline: totals
nodes:
  orders: {source: main.told.orders}
  summed: {transform: "select customer, sum(amount) as total, count(*) as n from orders group by customer"}
outputs:
  - dataset: main.told.totals
    from: summed
    strategy: replace
    primary_key: [customer]
    expectations:
      - row: {check: "total < 1000"}
"""


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def opens(tmp_path_factory: pytest.TempPathFactory, short_root: Path) -> Iterator[Opens]:
    """Opens one workspace with the settings of telemetry that are given, with a project applied."""
    home = short_root / f"told{next(_numbers)}"
    folder = tmp_path_factory.mktemp("project")
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "totals.yml").write_text(PIPELINE)
    (folder / "lakeward.toml").write_text('[project]\nname = "told"\n')
    with lakeward.open(home) as workspace:
        orders = workspace.create_dataset("main.told.orders", {"customer": "string", "amount": "long"})
        orders.write([{"customer": "a", "amount": 3}, {"customer": "b", "amount": 4}])
        workspace.apply(folder)

        def opened(settings: str) -> lakeward.Workspace:
            file = folder / "settings.toml"
            file.write_text(f"[telemetry]\n{settings}\n")
            return lakeward.open(home, settings_file=file)

        # Open meanwhile, so that its server is started once.
        yield opened


@pytest.fixture
def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
