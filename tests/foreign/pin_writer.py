"""A process that writes one counter to several datasets at once, again and again, until its input is closed."""

from __future__ import annotations

import sys
import threading

import lakeward
from support.foreign_scene import output


def main(database_url: str, warehouse: str, home: str, *names: str) -> None:
    """Print each counter that is committed."""
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    with lakeward.open(home, database_url=database_url, warehouse=warehouse) as workspace:
        datasets = [workspace.dataset(name) for name in names]
        counter = 0
        while not ended.is_set():
            counter += 1
            mode = "append" if counter % 3 else "replace"
            outputs = [output(dataset, [{"id": counter}], mode) for dataset in datasets]
            workspace.storage.build(outputs, writer="test.pin")
            print(counter, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
