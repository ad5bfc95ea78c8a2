"""A machine whose clock is wrong: it writes, holds leases and recovers as it is told, one JSON command a line.

The clock is wrong for the product's Python and for PyIceberg's, which stamps snapshots with it. What is compiled keeps
the right one: it asks for the time only to measure how long something takes.
"""

from __future__ import annotations

import datetime
import json
import sys
import time
from typing import Any

import lakeward
import lakeward.wiring.opening
from lakeward.control.records import Window
from lakeward.errors import LakewardError
from lakeward.storage.requests import Output
from lakeward.types.conform import to_reader
from support.ledger import opened

_datetime = datetime.datetime


class _Alike(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _datetime)


class SkewedDatetime(_datetime, metaclass=_Alike):
    """A datetime whose `now` is wrong."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
        return _datetime.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls) -> datetime.datetime:  # type: ignore[override]
        return _datetime.fromtimestamp(time.time(), datetime.UTC).replace(tzinfo=None)


def set_clock(seconds: float) -> None:
    """Make the clock wrong for every module that is loaded."""
    right, right_ns = time.time, time.time_ns
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1e9)
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("lakeward", "pyiceberg", "__main__"):
            if vars(module).get("datetime") is _datetime:
                module.datetime = SkewedDatetime  # type: ignore[attr-defined]
            elif vars(module).get("datetime") is datetime:
                module.datetime = _Module(datetime)  # type: ignore[attr-defined]


class _Module:
    """The module `datetime` with another class of that name."""

    def __init__(self, module: Any) -> None:
        self.__dict__.update(vars(module))
        self.datetime = SkewedDatetime


def write(workspace: lakeward.Workspace, numbers: list[int], windows: dict[str, list[int]], names: list[str]) -> object:
    """Append the numbers to every dataset, as one build that has read these windows."""
    read = {workspace.dataset(source).record.id: Window(*window) for source, window in windows.items()}
    outputs = []
    for name in names:
        record = workspace.dataset(name).record
        rows = [{"id": number} for number in numbers]
        reader = to_reader(rows, record.schema, dataset=name)
        outputs.append(Output(record, "append", lambda reader=reader: reader, windows=read))  # type: ignore[misc]
    return [each.version for each in workspace.storage.build(outputs, writer="machine").transactions]


def main() -> None:
    set_clock(float(sys.argv[1]))
    place = json.loads(sys.stdin.readline())
    with lakeward.open(**place) as workspace:
        print(json.dumps({"now": datetime.datetime.now(datetime.UTC).timestamp()}), flush=True)
        for line in sys.stdin:
            command: dict[str, Any] = json.loads(line)
            try:
                if "write" in command:
                    answer: object = write(workspace, command["write"], command["windows"], command["names"])
                elif "open" in command:
                    answer = opened(workspace.ledger, workspace.dataset(command["open"]).record).version
                elif "build" in command:
                    workspace.apply(command["build"])
                    answer = [[each.version for each in build.transactions] for build in workspace.build()]
                else:
                    answer = [[each.dataset, each.outcome] for each in workspace.recover()]
            except LakewardError as error:
                answer = error.to_json()
            print(json.dumps({"answer": answer}, default=str), flush=True)


if __name__ == "__main__":
    main()
