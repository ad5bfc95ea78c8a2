"""Connectors are found by the suffix of a file's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeward.errors import UnknownObject
from lakeward.sources.connectors.arrow import ArrowFile
from lakeward.sources.connectors.csv import CsvFile
from lakeward.sources.connectors.json import JsonFile
from lakeward.sources.connectors.parquet import ParquetFile
from lakeward.sources.connectors.tsv import TsvFile
from lakeward.sources.file_formats import connector_for, file_connectors


def test_every_connector_has_a_name_of_its_own() -> None:
    assert file_connectors() == {
        "arrow": ArrowFile,
        "csv": CsvFile,
        "json": JsonFile,
        "parquet": ParquetFile,
        "tsv": TsvFile,
    }


@pytest.mark.parametrize(
    ("name", "connector"),
    [
        ("a.csv", CsvFile),
        ("A.CSV", CsvFile),
        ("a.csv.gz", CsvFile),
        ("a.b.parquet", ParquetFile),
        ("a.jsonl.gz", JsonFile),
        ("a.tsv.bz2", TsvFile),
        ("a.arrow", ArrowFile),
        ("a.feather", ArrowFile),
    ],
)
def test_the_suffix_decides(name: str, connector: type) -> None:
    assert connector_for(Path("x", name)) is connector


def test_an_unknown_suffix_lists_the_known_ones() -> None:
    with pytest.raises(UnknownObject, match=r"\.csv.*\.parquet"):
        connector_for(Path("a.xlsx"))
