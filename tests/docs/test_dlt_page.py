"""docs/dlt.md: its example and its command run as they are written, and its tables are those of the code."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import lakeward
from lakeward.dlt import lakeward as destination
from lakeward.dlt.column_types import logical_type

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "dlt.md").read_text(encoding="utf-8")


def test_the_example_and_the_command_run(short_tmp: Path) -> None:
    [example] = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    [command] = re.findall(r"^lakeward (source load .*)$", PAGE, re.MULTILINE)
    resource, _, _ = example.partition("\npipeline = ")
    (short_tmp / "github.py").write_text(resource, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAKEWARD_")}
    environment |= {"DLT_DATA_DIR": str(short_tmp / "data"), "LAKEWARD_HOME": str(short_tmp / "home")}
    quiet = {**environment, "RUNTIME__DLTHUB_TELEMETRY": "false"}
    subprocess.run([sys.executable, "-c", example], cwd=short_tmp, env=quiet, check=True, capture_output=True)
    entry = [sys.executable, "-m", "lakeward.cli.app", *command.replace("main.github", "main.again").split()]
    done = subprocess.run(entry, cwd=short_tmp, env=environment, check=True, capture_output=True, text=True)
    assert "4 rows in 1 package" in done.stdout
    with lakeward.open(short_tmp / "home") as ws:
        for schema in ("github", "again"):
            assert sorted(ws.dataset(f"main.{schema}.issues").to_arrow()["id"].to_pylist()) == [1, 2]
            labels = ws.dataset(f"main.{schema}.issues__labels").to_arrow(identity=True).sort_by("__row_index")
            assert labels["name"].to_pylist() == ["bug", "hot"]


def test_the_tables_are_those_of_the_code() -> None:
    options = inspect.signature(destination.__init__).parameters.keys() - {"self", "kwargs"}
    parameters = PAGE[PAGE.index("| parameter |") :].split("\n\n")[0]
    for name in options - {"destination_name", "environment"}:
        assert f"`{name}`" in parameters
    types = PAGE[PAGE.index("## Columns") :]
    for kind in ("text", "bigint", "double", "bool", "binary", "json", "date", "time", "timestamp"):
        here = logical_type({"name": "c", "data_type": kind}, "t")  # type: ignore[typeddict-item]
        assert re.search(rf"^\| .*`{kind}`.* \|.*`{here}`", types, re.MULTILINE), kind
