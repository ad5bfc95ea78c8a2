"""How a dataset is opened elsewhere: code that can be copied as it stands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True)
class Snippet:
    """Code for one tool.

    Args:
        title: the tool.
        code: what is typed there.
        language: of the code.
    """

    title: str
    code: str
    language: str


def snippets(
    name: str, places: Mapping[str, Mapping[str, str]], url: str, home: str | None, *, login: bool
) -> list[Snippet]:
    """Return what opens a dataset at its newest version.

    Args:
        name: its full name.
        places: for each arm that holds the newest version, what `Dataset.locate` says.
        url: of this server, without a path.
        home: of the workspace; None: it has none.
        login: whether the server asks who asks: they show their token, and open nothing on its machine.
    """
    rows = f"{url}/api/v1/datasets/{quote(name, safe='')}/rows"
    iceberg = places.get("iceberg")
    return [
        *(_by_token(name, url, rows) if login else _on_this_machine(name, rows, home)),
        *(_of_iceberg(iceberg) if iceberg is not None else []),
    ]


def _on_this_machine(name: str, rows: str, home: str | None) -> list[Snippet]:
    opened, elsewhere = (repr(home), f" --home {shlex.quote(home)}") if home else ("", "")
    return [
        Snippet(
            "Python, with Lakeward",
            f"import lakeward\n\nwith lakeward.open({opened}) as ws:\n    table = ws.dataset({name!r}).to_arrow()",
            "python",
        ),
        Snippet("Command line", f"lakeward dataset export {shlex.quote(name)} rows.parquet{elsewhere}", "shell"),
        Snippet("curl, as CSV", f"curl --fail -o rows.csv {shlex.quote(f'{rows}?format=csv')}", "shell"),
        Snippet(
            "Python, over HTTP as Arrow",
            "import httpx, pyarrow as pa\n\n"
            f"answer = httpx.get({f'{rows}?format=arrow'!r}, timeout=None)\n"
            "table = pa.ipc.open_stream(answer.raise_for_status().content).read_all()",
            "python",
        ),
    ]


def _by_token(name: str, url: str, rows: str) -> list[Snippet]:
    return [
        Snippet(
            "Command line, with your token in LAKEWARD_TOKEN",
            f"lakeward --server {shlex.quote(url)} dataset export {shlex.quote(name)} rows.parquet",
            "shell",
        ),
        Snippet(
            "curl, as CSV",
            f'curl --fail -H "Authorization: Bearer $LAKEWARD_TOKEN" -o rows.csv {shlex.quote(f"{rows}?format=csv")}',
            "shell",
        ),
        Snippet(
            "Python, over HTTP as Arrow",
            "import os, httpx, pyarrow as pa\n\n"
            "who = {'Authorization': f\"Bearer {os.environ['LAKEWARD_TOKEN']}\"}\n"
            f"answer = httpx.get({f'{rows}?format=arrow'!r}, headers=who, timeout=None)\n"
            "table = pa.ipc.open_stream(answer.raise_for_status().content).read_all()",
            "python",
        ),
    ]


def _of_iceberg(place: Mapping[str, str]) -> list[Snippet]:
    metadata, snapshot = place["metadata"], place["snapshot"]
    sql_text = metadata.replace("'", "''")
    return [
        Snippet(
            "PyIceberg",
            "from pyiceberg.table import StaticTable\n\n"
            f"table = StaticTable.from_metadata({metadata!r})\nrows = table.scan(snapshot_id={snapshot}).to_arrow()",
            "python",
        ),
        Snippet(
            "DuckDB",
            "INSTALL iceberg; LOAD iceberg;\n"
            f"SELECT * FROM iceberg_scan('{sql_text}', snapshot_from_id => {snapshot});",
            "sql",
        ),
        Snippet(
            "Spark",
            f'rows = spark.read.format("iceberg").option("snapshot-id", {snapshot}).load({metadata!r})',
            "python",
        ),
    ]
