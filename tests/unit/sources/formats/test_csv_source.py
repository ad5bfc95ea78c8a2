"""A text file is unpacked and decoded as declared, or refused by line and byte."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

from lakeward.errors import SourceFileError
from lakeward.sources.formats.csv import CsvFile, CsvOptions

BOM = b"\xef\xbb\xbf"


def csv_file(folder: Path, data: bytes, options: CsvOptions | None = None, block_bytes: int = 1 << 20) -> CsvFile:
    path = folder / "in.csv"
    path.write_bytes(data)
    return CsvFile(path, options, block_bytes)


def rows(file: CsvFile, types: dict[str, str] | None = None) -> list[tuple[object, ...]]:
    profile = file.scan()
    table = file.read(types or profile.columns).read_all()
    assert table.num_rows == profile.rows
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table.num_columns else []


def refusal(file: CsvFile, types: dict[str, str] | None = None) -> SourceFileError:
    with pytest.raises(SourceFileError) as caught:
        if types is None:
            file.scan()
        else:
            file.read(types).read_all()
    assert str(file.file) in str(caught.value)
    return caught.value


@pytest.fixture(params=[1, 7, 1 << 20], ids=["1-byte blocks", "7-byte blocks", "one block"])
def block_bytes(request: pytest.FixtureRequest) -> int:
    """Every record crosses a block's border in every way."""
    return int(request.param)


def test_f01_bom_before_a_quoted_header_with_a_comma(tmp_path: Path, block_bytes: int) -> None:
    file = csv_file(tmp_path, BOM + b'"size, mm",qty\n"12, flat",30\n', block_bytes=block_bytes)
    assert file.scan().columns == {"size, mm": "string", "qty": "long"}
    assert rows(file) == [("12, flat", 30)]


def test_f01_bom_does_not_stick_to_the_first_header(tmp_path: Path) -> None:
    assert list(csv_file(tmp_path, BOM + b"id,name\n1,x\n").scan().columns) == ["id", "name"]


def test_f01_bom_inside_a_value_is_kept_also_where_a_block_starts(tmp_path: Path, block_bytes: int) -> None:
    text = "id\n\ufeffx\n\ufeff\ny\ufeff\n"
    file = csv_file(tmp_path, text.encode(), block_bytes=block_bytes)
    assert rows(file) == [("\ufeffx",), ("\ufeff",), ("y\ufeff",)]


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_f01_utf16_is_decoded_when_declared(tmp_path: Path, block_bytes: int, codec: str) -> None:
    data = '\ufeffid,"naïve, 日本 😀"\n1,"a\nb"\n'.encode(codec)
    file = csv_file(tmp_path, data, CsvOptions(encoding="UTF16"), block_bytes)
    assert file.scan().columns == {"id": "long", "naïve, 日本 😀": "string"}
    assert rows(file) == [(1, "a\nb")]


def test_f01_utf16_that_is_not_declared_is_refused_with_the_option(tmp_path: Path) -> None:
    assert "encoding utf-16" in str(refusal(csv_file(tmp_path, "id\n1\n".encode("utf-16"))))
    assert "UTF-16 byte-order mark" in str(refusal(csv_file(tmp_path, b"id\n1\n", CsvOptions(encoding="utf-16"))))


def test_utf16_that_breaks_off_names_the_line(tmp_path: Path) -> None:
    data = "\ufeffid\n1\n2\n".encode("utf-16-le") + b"\x00\xd8x\x00"
    assert refusal(csv_file(tmp_path, data, CsvOptions(encoding="utf-16"))).fields["line"] == 4


def test_latin1_bytes_in_utf8_name_line_byte_and_option(tmp_path: Path, block_bytes: int) -> None:
    data = "id,name\n1,Zoë\n2,".encode() + b"caf\xe9\n3,x\n"
    error = refusal(csv_file(tmp_path, data, block_bytes=block_bytes))
    assert error.fields["line"] == 3
    assert error.fields["byte"] == "0xe9"
    assert "encoding latin-1" in str(error)
    assert rows(csv_file(tmp_path, b"id,name\n2,caf\xe9\n", CsvOptions(encoding="latin-1"))) == [(2, "café")]


def test_an_encoding_that_contradicts_the_mark_is_refused(tmp_path: Path) -> None:
    assert "encoding utf-8" in str(refusal(csv_file(tmp_path, BOM + b"id\n1\n", CsvOptions(encoding="latin-1"))))


def test_a_nul_byte_is_refused_with_its_line(tmp_path: Path, block_bytes: int) -> None:
    assert refusal(csv_file(tmp_path, b"id,n\n1,a\n2,b\0c\n", block_bytes=block_bytes)).fields["line"] == 3


def test_packed_files(tmp_path: Path) -> None:
    data = b"a\n1\n2\n"
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(data))
    assert rows(CsvFile(packed)) == [(1,), (2,)]
    with zipfile.ZipFile(tmp_path / "a.csv.zip", "w") as archive:
        archive.writestr("inner/a.csv", data)
        archive.writestr("__MACOSX/inner/._a.csv", b"\0")
    assert rows(CsvFile(tmp_path / "a.csv.zip")) == [(1,), (2,)]
    packed.write_bytes(gzip.compress(data * 9_999)[:-9])
    assert "can't be read" in str(refusal(CsvFile(packed)))
    with zipfile.ZipFile(tmp_path / "a.csv.zip", "w") as archive:
        archive.writestr("a.csv", data)
        archive.writestr("b.csv", data)
    assert "holds 2 files" in str(refusal(CsvFile(tmp_path / "a.csv.zip")))


def test_a_file_of_another_kind_or_none_is_refused(tmp_path: Path) -> None:
    assert "Parquet" in str(refusal(csv_file(tmp_path, b"PAR1....PAR1")))
    assert "No such file" in str(refusal(CsvFile(tmp_path / "none.csv")))
    assert "directory" in str(refusal(CsvFile(tmp_path)))
