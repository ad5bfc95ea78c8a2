"""How a process of a drill carries out a write, and what it is told of it."""

from __future__ import annotations

from collections.abc import Callable

from lakeward.control.records import OpenTransaction, Window
from lakeward.errors import LakewardError, OutcomeUnknown
from lakeward.storage.requests import Output
from lakeward.storage.verbs import VERBS
from lakeward.testing.drill.model import Rooms, sets_watermark
from lakeward.testing.drill.writes import Write
from lakeward.types.conform import to_reader


def write(rooms: Rooms, asked: Write, opened: Callable[[OpenTransaction], None] | None = None) -> dict[str, object]:
    """Write, and return the answer: `acknowledged`, with the outputs that changed nothing; `refused`; or `unknown`.

    Args:
        rooms: the workspace.
        asked: what.
        opened: is called once per output, as soon as its turn has come.
    """
    try:
        outputs = [_output(rooms, asked, name, mode, opened) for name, mode, _ in asked.outputs]
        build = rooms.storage.build(outputs, writer="drill", pipeline=asked.label)
    except OutcomeUnknown as error:
        return {"answer": "unknown", "error": str(error)}
    except LakewardError as error:
        return {"answer": "refused", "error": f"{type(error).__name__}: {error}"}
    return {
        "answer": "acknowledged",
        "nothing": {each.dataset: each.version for each in build.transactions if not each.committed},
    }


def _output(
    rooms: Rooms, asked: Write, name: str, mode: str, opened: Callable[[OpenTransaction], None] | None
) -> Output:
    record = rooms.tree.dataset(name)
    return Output(
        record,
        mode,
        lambda: to_reader(asked.given(name), VERBS[mode].input_schema(record.schema), dataset=name),
        windows={record.id: Window(0, asked.number)} if sets_watermark(mode) else {},
        opened=opened,
    )
