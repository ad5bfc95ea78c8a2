"""A pin is one consistent set of versions: builds of several outputs are seen whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lakeward
from lakeward.errors import UnknownObject

SECONDS = 5.0


def test_pins_never_mix_versions_while_another_process_builds(workspace: lakeward.Workspace, tmp_path: Path) -> None:
    names = ["main.pin.rows", "main.pin.table", "main.pin.second_table"]
    for name, arm in zip(names, ("postgres", "iceberg", "iceberg"), strict=True):
        workspace.create_dataset(name, {"id": "long"}, arm=arm)
    arguments = [workspace.database.libpq_url, str(tmp_path / "warehouse"), str(tmp_path / "other"), *names]
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("pin_writer.py")), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    seen: set[tuple[int, ...]] = set()
    heads_differed = 0
    try:
        assert process.stdout is not None
        process.stdout.readline()
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            pin = workspace.pin(*names)
            found = [sorted(pin.to_arrow(name)["id"].to_pylist()) for name in names]
            assert found[0] == found[1] == found[2], f"{pin.versions} mixes builds"
            again = [sorted(pin.to_arrow(name)["id"].to_pylist()) for name in reversed(names)]
            assert again == found[::-1], "a pin stays as it is"
            heads_differed += pin.versions != {name: workspace.dataset(name).version for name in names}
            seen.add(tuple(found[0]))
    finally:
        rest, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(seen) > 3, f"the writer went on meanwhile: {rest.split()}"
    assert heads_differed, "some pins were of the past when they were read"


def test_pin_is_of_its_instant(workspace: lakeward.Workspace) -> None:
    first = workspace.create_dataset("main.pin.first", {"id": "long", "note": "string"}, ["id"], arm="iceberg")
    second = workspace.create_dataset("main.pin.second", {"id": "long"})
    first.write([{"id": 1, "note": "a"}, {"id": 2, "note": "b"}])
    pin = workspace.pin("main.pin.first", "main.pin.second")
    assert pin.versions == {"main.pin.first": 1, "main.pin.second": 0}
    assert workspace.pin().versions == pin.versions, "without names: every dataset"
    first.write([{"id": 3, "note": "c"}])
    second.write([{"id": 1}])
    assert pin.to_arrow("main.pin.first", columns=["id"], where="note = 'b'").to_pylist() == [{"id": 2}]
    assert pin.read("main.pin.first", identity=True).read_all().column_names[-1] == "__version"
    nothing = pin.to_arrow("main.pin.second", identity=True)
    assert (nothing.num_rows, nothing.column_names[0]) == (0, "id")
    assert workspace.pin().versions == {"main.pin.first": 2, "main.pin.second": 1}
    assert repr(pin) == "Pin({'main.pin.first': 1, 'main.pin.second': 0})"


def test_what_is_not_pinned_is_not_read(workspace: lakeward.Workspace) -> None:
    workspace.create_dataset("main.pin.first", {"id": "long"})
    workspace.create_dataset("main.pin.second", {"id": "long"})
    pin = workspace.pin("main.pin.first")
    with pytest.raises(UnknownObject, match=r"main\.pin\.second is not pinned; pinned are main\.pin\.first"):
        pin.read("main.pin.second")
    with pytest.raises(UnknownObject):
        workspace.pin("main.pin.missing")


def test_copies_and_compactions_keep_a_pin_readable(workspace: lakeward.Workspace) -> None:
    dataset = workspace.create_dataset("main.pin.first", {"id": "long"}, arm="postgres")
    dataset.write([{"id": 1}])
    pin = workspace.pin()
    dataset.copy_to("iceberg")
    dataset.write([{"id": 2}], mode="replace")
    assert pin.to_arrow("main.pin.first").to_pylist() == [{"id": 1}]
