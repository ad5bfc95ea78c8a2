"""Files come, change, are touched and go in any order, between syncs of any mode: the dataset has what a model says."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakeward
from lakeward.errors import SourceFileError
from lakeward.wiring.sync_plan import SyncRequest

FILES = ("a.csv", "b [1].csv", "c\n*.csv")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("write", "touch", "remove")), st.sampled_from(FILES)),
        st.sampled_from([("append", ""), ("append", ""), ("full", "")]),
    ),
    min_size=3,
    max_size=12,
)
_numbers = itertools.count(1)


class Folder:
    """The model of a folder without a key: what each file has, and what was read of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._values = itertools.count(1)
        self.files: dict[str, list[int]] = {}
        self.read: dict[str, list[int]] = {}
        self.rows: list[int] = []

    def step(self, what: str, name: str) -> None:
        """Do to a file what a step says; one more row in it than before is a change."""
        file = self._folder / name
        if what == "write":
            self.files[name] = [*self.files.get(name, []), next(self._values)]
            file.write_text("v\n" + "".join(f"{value}\n" for value in self.files[name]))
        elif what == "touch" and name in self.files:
            os.utime(file, (1, 1))
        elif what == "remove" and self.files.pop(name, None):
            file.unlink()

    def changed(self) -> list[str]:
        """Return the files whose rows would come twice."""
        return [name for name, rows in self.files.items() if name in self.read and self.read[name] != rows]

    def synced(self, mode: str) -> int:
        """Take a sync, and return how many rows it has to read."""
        new = self.files if mode == "full" else {k: v for k, v in self.files.items() if k not in self.read}
        rows = [value for values in new.values() for value in values]
        self.rows = rows if mode == "full" else self.rows + rows
        self.read = dict(new) if mode == "full" else {**self.read, **new}
        return len(rows)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS, st.sampled_from(["postgres", "iceberg"]))
def test_files_in_any_order(ws: lakeward.Workspace, tmp_path: Path, steps: list[tuple[str, str]], arm: str) -> None:
    name = f"any{next(_numbers)}"
    folder = tmp_path / name
    folder.mkdir()
    model = Folder(folder)
    ws.sources.add(name, "files", {"path": f"in={folder}/*.csv"})
    for what, file in [*steps, ("append", "")]:
        if file:
            model.step(what, file)
            continue
        request = SyncRequest(name, mode=what, columns={"v": "long"}, arm=arm, allow_empty=True)
        if what == "append" and model.changed():
            with pytest.raises(SourceFileError, match="was changed after its rows were read"):
                ws.sources.sync(request)
        else:
            [synced] = ws.sources.sync(request)
            assert synced.rows_read == model.synced(what)
        found = ws.dataset(f"main.{name}.in").to_arrow()["v"].to_pylist()
        assert sorted(found) == sorted(model.rows)
