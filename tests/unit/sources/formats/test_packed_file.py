"""Packed text files: each packing is read to its end, and one that is damaged or misnamed is refused."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lakeward.errors import SourceFileError
from lakeward.sources.file_formats import format_for
from lakeward.sources.formats.csv import CsvFile
from lakeward.sources.formats.json import JsonFile
from lakeward.sources.formats.packed_file import PACKINGS
from lakeward.sources.formats.tsv import TsvFile

ROWS = 5_000


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def zipped(data: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in", data)
    return held.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstd,
    ".bz2": bz2.compress,
    ".zip": zipped,
}


def test_every_packing_is_tested() -> None:
    assert set(PACKERS) == set(PACKINGS)


@pytest.mark.parametrize("packing", PACKERS)
def test_every_packing_of_every_text_format(tmp_path: Path, packing: str) -> None:
    texts = {
        ("in.csv", CsvFile): "n,t\n" + "".join(f"{n},ä{n}\n" for n in range(ROWS)),
        ("in.TSV", TsvFile): "n\tt\n" + "".join(f"{n}\tä{n}\n" for n in range(ROWS)),
        ("in.ndjson", JsonFile): "".join(f'{{"n": {n}, "t": "ä{n}"}}\n' for n in range(ROWS)),
    }
    for (name, connector), text in texts.items():
        path = tmp_path / f"{name}{packing}"
        path.write_bytes(PACKERS[packing](text.encode()))
        assert format_for(path) is connector
        file = connector(path, block_bytes=1 << 12)
        profile = file.scan()
        assert (dict(profile.columns), profile.rows) == ({"n": "long", "t": "string"}, ROWS)
        assert file.read(profile.columns).read_all()["t"].to_pylist() == [f"ä{n}" for n in range(ROWS)]


@pytest.mark.parametrize("packing", [".gz", ".zst", ".bz2"])
def test_two_parts_are_read_and_damage_is_refused(tmp_path: Path, packing: str) -> None:
    packed = PACKERS[packing](b"n\n" + b"1\n" * ROWS)
    more = PACKERS[packing](b"2\n")
    path = tmp_path / f"in.csv{packing}"
    path.write_bytes(packed + more)
    assert CsvFile(path).scan().rows == ROWS + 1
    for damaged in (packed[:-1], packed[: len(packed) // 2], packed + more[:-3], packed + b"2\n"):
        path.write_bytes(damaged)
        with pytest.raises(SourceFileError, match="can't be read"):
            CsvFile(path).scan()


@pytest.mark.parametrize("packing", PACKERS)
def test_a_text_that_is_named_as_packed_is_refused(tmp_path: Path, packing: str) -> None:
    path = tmp_path / f"in.csv{packing}"
    for data in (b"n\n1\n", b""):
        path.write_bytes(data)
        with pytest.raises(SourceFileError, match=f"is named {packing}, and is not packed"):
            CsvFile(path).scan()


def test_a_text_that_starts_like_a_packing_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b"BZh91AY\n1\n")
    assert dict(CsvFile(path).scan().columns) == {"BZh91AY": "long"}


def test_tabs_separate_unless_the_options_say_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "in.tsv"
    path.write_text('id\tsize, mm\tnote\n1\t"12\t""flat"""\t\n')
    file = TsvFile(path)
    types = file.scan().columns
    assert file.read(types).read_all().to_pylist() == [{"id": 1, "size, mm": '12\t"flat"', "note": None}]
