"""A workbook is imported as a version, and one with a refused cell leaves the dataset as it was."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import openpyxl
import pytest

import lakeward
from lakeward.errors import SourceFileError


def test_a_sheet_becomes_a_version_or_nothing(ws: lakeward.Workspace, tmp_path: Path, name: str) -> None:
    rows = [[7.25, "007", date(2024, 2, 29)]] * 9_000
    path = tmp_path / "in.xlsx"

    def save(last: object) -> None:
        made = openpyxl.Workbook(write_only=True)
        made.create_sheet("Notes").append(["not this one"])
        sheet = made.create_sheet("Data")
        for cells in (["v", "code", "day"], *rows, [last, None, None]):
            sheet.append(cells)
        made.save(path)

    save(0.1)
    with pytest.raises(SourceFileError, match="'Notes', 'Data'"):
        ws.import_file(f"a.b.{name}", path)
    options = {"sheet": "Data"}
    assert ws.import_file(f"a.b.{name}", path, arm="iceberg", options=options).rows_written == 9_001
    read = ws.dataset(f"a.b.{name}").to_arrow(identity=True).sort_by("__row_index").select(["v", "code", "day"])
    assert read.slice(8_999).to_pylist() == [
        {"v": 7.25, "code": "007", "day": date(2024, 2, 29)},
        {"v": 0.1, "code": None, "day": None},
    ]
    save("7.2.5")
    with pytest.raises(SourceFileError, match=r"Data!A9002, column 'v': '7\.2\.5' is not a double") as refused:
        ws.import_file(f"a.b.{name}", path, options=options)
    assert refused.value.safe is not None
    with pytest.raises(SourceFileError, match=r"Data!A9002.*is a text, and Data!A2 has a number"):
        ws.import_file(f"a.b.{name}_new", path, options=options)
    assert ws.dataset(f"a.b.{name}").row_count == 9_001
