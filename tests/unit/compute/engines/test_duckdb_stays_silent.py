"""DuckDB draws no progress bar where Python is interactive: it would stand among what the user prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lakeward

CODE = """
import duckdb
from pathlib import Path
from lakeward.compute.engines.duckdb import DuckDBEngine

for connection in (duckdb.connect(), DuckDBEngine(temp_directory=Path(SCRATCH))._connect(None)):
    print(connection.execute("SELECT value FROM duckdb_settings() WHERE name = 'enable_progress_bar'").fetchone()[0])
"""


def test_no_progress_bar_in_an_interactive_python(tmp_path: Path) -> None:
    """Code from the command line counts as interactive, as a notebook does; a file like this one does not."""
    environment = {**os.environ, "PYTHONPATH": str(Path(lakeward.__file__).parents[1])}
    code = CODE.replace("SCRATCH", repr(str(tmp_path)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == ["true", "false"]
