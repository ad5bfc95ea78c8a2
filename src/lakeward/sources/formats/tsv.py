"""TSV files: CSV whose fields are separated by tabs."""

from __future__ import annotations

from pathlib import Path

from lakeward.sources.formats.csv import CsvFile
from lakeward.sources.formats.csv_options import CsvOptions
from lakeward.sources.formats.csv_records import BLOCK_BYTES
from lakeward.sources.formats.packed_file import with_packings


class TsvFile(CsvFile):
    """CSV text with tabs between fields; whatever else is true of CSV is true of it.

    Args:
        path: the file.
        options: its dialect; none: tabs, and CSV's other defaults.
        block_bytes: as of `CsvFile`.
    """

    name = "tsv"
    suffixes = with_packings(".tsv", ".tab")
    delimiter = "\t"

    def __init__(self, path: Path, options: CsvOptions | None = None, block_bytes: int = BLOCK_BYTES) -> None:
        super().__init__(path, options or CsvOptions(delimiter=self.delimiter), block_bytes)
