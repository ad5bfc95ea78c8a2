"""A column is text by choice, whatever kinds of values it has."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import openpyxl
import pytest

import lakeward
from lakeward.errors import SourceFileError

_MIXED = """{"id": 1, "v": 1.50}
{"id": 2, "v": "1.50"}
{"id": 3, "v": {"b": [true, 1e2], "a": "x"}}
{"id": 4, "v": null}
{"id": 5, "v": false}
{"id": 6, "v": "\\u00e9\\n"}
{"id": 7}
"""


def _values(ws: lakeward.Workspace, name: str) -> list[object]:
    return ws.dataset(name).to_arrow().sort_by("id")["v"].to_pylist()


def test_of_json_a_text_stands_as_it_is_and_others_in_their_canonical_text(
    ws: lakeward.Workspace, write: Callable[[str, str], Path], name: str
) -> None:
    dataset, file = f"a.b.{name}", write("in.ndjson", _MIXED)
    with pytest.raises(SourceFileError, match=r"line 2, column 'v'.*is a text, and line 1 has a number"):
        ws.import_file(dataset, file)
    assert ws.import_file(dataset, file, text=["v"], arm="iceberg").columns == {"id": "long", "v": "string"}
    texts = ["1.5", "1.50", '{"a": "x", "b": [true, 100]}', None, "false", "é\n", None]
    assert _values(ws, dataset) == texts
    with pytest.raises(SourceFileError, match=r"line 1, column 'v'.*is a number, and no string"):
        ws.import_file(dataset, file)
    assert ws.import_file(dataset, file, text=["v"], mode="replace").row_count == 7
    assert _values(ws, dataset) == texts


def test_of_several_json_files_only_what_has_no_text_is_rejected(
    ws: lakeward.Workspace, write: Callable[[str, str], Path], name: str
) -> None:
    write("in/a.ndjson", '{"id": 1, "v": 1}\n')
    write("in/b.ndjson", '{"id": 2, "v": "x"}\n{"id": 3, "v": 1e5000}\n{"id": 4, "v": []}\n')
    done = ws.import_file(f"a.b.{name}", str(Path(write("in/_c", "")).parent), text=["v"], on_error="quarantine")
    assert (done.rows_written, done.rows_rejected) == (3, 1)
    assert _values(ws, f"a.b.{name}") == ["1", "x", "[]"]
    (rejected,) = ws.dataset(f"a.b.{name}__rejected").to_arrow().to_pylist()
    assert (rejected["line"], rejected["column"]) == (2, "v")


def test_of_a_sheet_a_cell_stands_as_in_a_declared_column(ws: lakeward.Workspace, tmp_path: Path, name: str) -> None:
    made = openpyxl.Workbook()
    for cells in (["id", "v"], [1, 7], [2, "007"], [3, 0.1], [4, True], [5, date(2024, 2, 29)], [6, None]):
        made.active.append(cells)
    path = tmp_path / "in.xlsx"
    made.save(path)
    with pytest.raises(SourceFileError, match="is a text, and Sheet!B2 has a number"):
        ws.import_file(f"a.b.{name}", path)
    assert ws.import_file(f"a.b.{name}", path, text=["v"]).columns == {"id": "long", "v": "string"}
    ws.import_file(f"a.b.{name}_declared", path, columns={"id": "long", "v": "string"})
    assert _values(ws, f"a.b.{name}") == _values(ws, f"a.b.{name}_declared")
    assert _values(ws, f"a.b.{name}")[:3] == ["7", "007", "0.1"]
