"""TSV files: CSV whose fields are separated by tabs."""

from __future__ import annotations

from typing import ClassVar

from lakeward.sources.formats.csv import CsvFile
from lakeward.sources.formats.csv_options import CsvOptions, TsvOptions
from lakeward.sources.formats.packed_file import with_packings


class TsvFile(CsvFile):
    """CSV text with tabs between fields; whatever else is true of CSV is true of it."""

    name = "tsv"
    suffixes = with_packings(".tsv", ".tab")
    options: ClassVar[type[CsvOptions]] = TsvOptions
