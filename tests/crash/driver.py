"""A process that forks real processes to be killed: it has the imports done, so that a case costs no second.

Reads one JSON command a line and answers with one: `{"start": case}` forks, `{"watch": pid}` tells when the child
stopped or ended, `{"wait": pid}` when it has ended. Started by `support.crashes.Driver`; opens nothing itself, so that
what it forks has neither threads nor connections.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import json
import os
import resource
import sys
import traceback
from pathlib import Path
from typing import Any

from lakeward import errors
from lakeward.cli.app import main as main_of_commands
from lakeward.clock import Faults
from lakeward.discovery import discover
from lakeward.migration.options import Limits
from lakeward.storage import arms
from lakeward.storage.arm import StorageArm
from lakeward.storage.requests import Output
from lakeward.storage.verbs import VERBS
from lakeward.testing import crash_at, pause_at
from lakeward.types.conform import to_reader

# Not through `lakeward.open`, which imports when it is called: here that would be in every child.
from lakeward.wiring import opening
from lakeward.wiring.follow_plan import FollowRequest
from lakeward.wiring.opening import open_workspace
from lakeward.wiring.sync_plan import SyncRequest
from lakeward.wiring.workspace import Workspace
from support.moves import to_its_home

FAULTS = {"crash": crash_at, "pause": pause_at}


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Do what the case says in a workspace of its own; the fault may end this process on the way."""
    kind, step, occurrence = case.get("fault") or ("crash", "never", 1)
    if "command" in case:
        return {"code": command(case["command"], case["environment"], FAULTS[kind](step, occurrence))}
    with open_workspace(
        database_url=case["url"],
        warehouse=case["warehouse"],
        catalog=case.get("catalog"),
        settings_file=case.get("settings"),
        faults=FAULTS[kind](step, occurrence),
    ) as workspace:
        if "file_limit" in case:
            resource.setrlimit(resource.RLIMIT_FSIZE, (case["file_limit"], case["file_limit"]))
        if "copy" in case:
            result = workspace.dataset(case["copy"]).copy_to(case["to"])
            return {"versions": [result.version]}
        if "bring" in case:
            bring = getattr(workspace.replication, case["bring"])
            bring(workspace.tree.dataset(case["dataset"]), case["to"])
            return {"versions": []}
        if "move" in case:
            dataset = workspace.dataset(case["move"])
            return {"way": workspace.moving.move(dataset.record, to_its_home(dataset)).way}
        if "flip" in case:
            done = getattr(workspace.flip(case["dataset"]), case["flip"])(**case["how"])
            return {"done": len(done) if isinstance(done, list) else 1}
        if "resync" in case:
            return {"done": workspace.comparisons.resync(case["resync"])["mode"]}
        if "watch" in case:
            return {"done": len(workspace.flip(case["watch"]).canary(Limits(**case["limits"])))}
        if "build" in case:
            [build] = workspace.build(case["build"])
            return {"rows_in": {each.dataset: each.rows_in for each in build.transactions}}
        if "maintain" in case:
            return workspace.maintain(*case["maintain"], older_than=case["older_than"]).to_json()
        if "sync" in case:
            synced = workspace.sources.sync(SyncRequest(**case["sync"]))
            return {"rows_read": [each.rows_read for each in synced]}
        if "follow" in case:
            followed = workspace.sources.follow(FollowRequest(**case["follow"]), once=True)
            return {"changes": followed.changes}
        if "drop" in case:
            level, name = case["drop"]
            return {"dropped": workspace.names(level).drop(name, cascade=True).id}
        if "call" in case:
            module, function = case["call"]
            answered: dict[str, Any] = getattr(sys.modules[module], function)(workspace, **case["how"])
            return answered
        if "recover" in case:
            return {"recovered": [[each.dataset, each.version, each.outcome] for each in workspace.recover()]}
        outputs = [output(workspace, *each, key=case.get("key")) for each in case["write"]]
        build = workspace.storage.build(outputs, writer="crash")
        repeated = {"repeated": [each.repeated for each in build.transactions]} if "key" in case else {}
        return {"versions": [transaction.version for transaction in build.transactions], **repeated}


def command(arguments: list[str], environment: dict[str, str], faults: Faults) -> int:
    """Run a command as its entry point does, with a fault in it; what it prints goes nowhere."""
    os.environ.update(environment)
    opening.open_workspace = functools.partial(open_workspace, faults=faults)
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        return main_of_commands(arguments)


def output(
    workspace: Workspace, name: str, mode: str, first: int, rows: int, text: str, *, key: str | None = None
) -> Output:
    record = workspace.tree.dataset(name)
    taken = VERBS[mode].input_schema(record.schema)

    def row(number: int) -> dict[str, Any]:
        whole = {"id": number, "note": text, "__op": "update" if number % 3 else "delete"}
        return {column: whole[column] for column in taken.names}

    new = (row(number) for number in range(first, first + rows))
    return Output(record, mode, lambda: to_reader(new, taken, dataset=name), idempotency_key=key)


def child(case: dict[str, Any]) -> None:
    """Run a case, leave its result or its error in the case's file, and end this process."""
    result = Path(case["result"])
    try:
        answer = run(case)
        result.write_text(json.dumps(answer), encoding="utf-8")
    except errors.LakewardError as error:
        result.write_text(json.dumps(error.to_json(), default=str), encoding="utf-8")
    finally:
        if result.stat().st_size == 0:
            result.write_text(json.dumps({"error": "unexpected", "message": traceback.format_exc()}), encoding="utf-8")
        os._exit(0)


def event(pid: int, options: int) -> dict[str, Any]:
    _, status = os.waitpid(pid, options)
    if os.WIFSTOPPED(status):
        return {"pid": pid, "event": "stopped"}
    if os.WIFSIGNALED(status):
        return {"pid": pid, "event": "killed", "signal": os.WTERMSIG(status)}
    return {"pid": pid, "event": "ended", "code": os.WEXITSTATUS(status)}


def main() -> None:
    # What opening a workspace would import.
    discover(arms, StorageArm)
    for line in sys.stdin:
        command = json.loads(line)
        if "wait" in command:
            answer = event(command["wait"], 0)
        elif "preload" in command:
            answer = {"preloaded": importlib.import_module(command["preload"]).__name__}
        elif "watch" in command:
            answer = event(command["watch"], os.WUNTRACED)
        else:
            pid = os.fork()
            if pid == 0:
                child(command["start"])
            answer = {"pid": pid}
        print(json.dumps(answer), flush=True)


def endless(case: dict[str, Any]) -> None:
    """Append and replace, three rows at a time, until somebody kills this process."""
    with open_workspace(database_url=case["url"], warehouse=case["warehouse"]) as workspace:
        dataset = workspace.dataset(case["endless"])
        for number in itertools.count():
            if number == 1:
                print("writing", flush=True)
            rows = [{"id": row, "note": f"{os.getpid()} {number}"} for row in range(3)]
            dataset.write(rows, "append" if number % 3 else "replace")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        endless(json.loads(sys.argv[1]))
    else:
        main()
