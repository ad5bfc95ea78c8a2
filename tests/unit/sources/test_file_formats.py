"""Connectors are found by the suffix of a file's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeward.errors import UnknownObject
from lakeward.sources.file_formats import file_formats, format_for
from lakeward.sources.formats.arrow import ArrowFile
from lakeward.sources.formats.csv import CsvFile
from lakeward.sources.formats.excel import ExcelFile
from lakeward.sources.formats.json import JsonFile
from lakeward.sources.formats.parquet import ParquetFile
from lakeward.sources.formats.tsv import TsvFile


def test_every_format_has_a_name_of_its_own() -> None:
    assert file_formats() == {
        "arrow": ArrowFile,
        "csv": CsvFile,
        "excel": ExcelFile,
        "json": JsonFile,
        "parquet": ParquetFile,
        "tsv": TsvFile,
    }


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("a.csv", CsvFile),
        ("A.CSV", CsvFile),
        ("a.csv.gz", CsvFile),
        ("a.b.parquet", ParquetFile),
        ("a.jsonl.gz", JsonFile),
        ("a.tsv.bz2", TsvFile),
        ("a.arrow", ArrowFile),
        ("a.feather", ArrowFile),
        ("a.XLSM", ExcelFile),
    ],
)
def test_the_suffix_decides(name: str, format_: type) -> None:
    assert format_for(Path("x", name)) is format_


def test_an_unknown_suffix_lists_the_known_ones() -> None:
    with pytest.raises(UnknownObject, match=r"\.csv.*\.parquet"):
        format_for(Path("a.xls"))
