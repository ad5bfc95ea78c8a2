"""JSON files: objects and types exact, the same however the file is cut, and every refusal with its line."""

from __future__ import annotations

import decimal
import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from lakeward.errors import ColumnMismatch, SourceFileError
from lakeward.sources.formats.json import JsonFile

T07 = '{"id":9007199254740993,"n":4611686018427387905,"big":12345678901234567890123,"d":0.1,"m":1.10}'


def json_file(folder: Path, data: str | bytes, block_bytes: int = 1 << 20) -> JsonFile:
    path = folder / "in.json"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return JsonFile(path, block_bytes=block_bytes)


def refused(folder: Path, data: str | bytes, types: dict[str, str] | None = None) -> SourceFileError:
    """Return the one error that a file gives, however it is cut, when it is scanned or read as `types`."""
    errors = []
    for block_bytes in (1, 3, 1 << 20):
        file = json_file(folder, data, block_bytes)
        with pytest.raises(SourceFileError) as caught:
            if types is None:
                file.scan()
            else:
                file.read(types).read_all()
        errors.append(caught.value)
    assert all(error.fields == errors[0].fields for error in errors)
    return errors[0]


@pytest.mark.parametrize("block_bytes", [1, 2, 7, 64, 1 << 20])
def test_every_way_to_write_rows_and_to_cut_them(tmp_path: Path, block_bytes: int) -> None:
    rows = [{"a": 1, "s": 'x"},{\\"\u2028ä😀'}, {"s": "", "a": -10, "l": [1, {"b": None}]}, {"a": None}]
    compact = [json.dumps(row) for row in rows]
    texts = [
        "\n".join(compact),
        "\ufeff" + "\r\n\r\n".join(compact) + "\r\n",
        json.dumps(rows, ensure_ascii=False),
        "\n" + json.dumps(rows, indent=3) + "\n",
        "\n".join(json.dumps(row, indent=1) for row in rows),
    ]
    for text in texts:
        file = json_file(tmp_path, text, block_bytes)
        profile = file.scan()
        assert (dict(profile.columns), profile.rows) == ({"a": "long", "s": "string", "l": "json"}, 3)
        assert file.read(profile.columns).read_all().to_pylist() == [
            {"a": 1, "s": rows[0]["s"], "l": None},
            {"a": -10, "s": "", "l": '[1, {"b": null}]'},
            {"a": None, "s": None, "l": None},
        ]


def test_t07_numbers_keep_their_digits(tmp_path: Path) -> None:
    file = json_file(tmp_path, T07)
    types = {**file.scan().columns, "m": "decimal(9,2)"}
    assert list(types.values())[:3] == ["long", "long", "decimal(38,0)"]
    row = file.read(types).read_all().to_pylist()[0]
    assert [str(value) for value in row.values()] == [
        "9007199254740993",
        "4611686018427387905",
        "12345678901234567890123",
        "0.1",
        "1.10",
    ]
    nested = json_file(tmp_path, f'{{"v": {T07}}}').read({"v": "json"}).read_all().to_pylist()[0]["v"]
    assert '"id": 9007199254740993' in nested and '"big": 12345678901234567890123' in nested
    error = refused(tmp_path, '{"n": 1}\n{"n": 9007199254740993}', {"n": "double"})
    assert (error.fields["line"], error.fields["column"]) == (2, "n")
    assert "out of range" in str(refused(tmp_path, '{"n": 1e400}', {"n": "double"}))


def test_types_come_from_every_value(tmp_path: Path) -> None:
    values = {
        "string": ["007", "12"],
        "boolean": [True, False],
        "date": ["2024-02-29", "0001-01-01"],
        "timestamptz": ["2024-02-29T10:00:00Z", "2024-02-29T10:00:00+01:00"],
        "json": [{"a": 1}, []],
        "double": [1, 1.5e300],
    }
    rows = [{name: column[index] for name, column in values.items()} for index in (0, 1)]
    file = json_file(tmp_path, json.dumps([*[rows[0]] * 1_000, rows[1], dict.fromkeys(values)]))
    assert dict(file.scan().columns) == {name: name for name in values}
    text = "\n".join(['{"v": "2024-01-01"}'] * 1_000 + ['{"v": "later"}'])
    assert dict(json_file(tmp_path, text, 100).scan().columns) == {"v": "string"}
    # More digits than a double, and no whole number: only json keeps them without a declaration.
    number = "0.1234567890123456789012345678901234567890123"
    assert json_file(tmp_path, f'{{"v": {number}}}').scan().columns == {"v": "json"}


def test_structs_and_lists_by_declaration(tmp_path: Path) -> None:
    types = {"o": "struct<a: long, l: list<struct<d: decimal(4,2), t: date>>>"}
    text = '{"o": {"l": [{"d": 1.10}, null]}}\n{"o": null}\n{"o": {"a": 2, "l": []}}'
    assert json_file(tmp_path, text).read(types).read_all()["o"].to_pylist() == [
        {"a": None, "l": [{"d": decimal.Decimal("1.10"), "t": None}, None]},
        None,
        {"a": 2, "l": []},
    ]
    error = refused(tmp_path, text + '\n{"o": {"l": [null, {"t": "2024-02-30"}]}}', types)
    assert (error.fields["line"], error.fields["column"]) == (4, "o.l[1].t")
    assert "'x'" in str(refused(tmp_path, '{"o": {"a": 1, "x": 2}}', types))


@pytest.mark.parametrize("odd", ['"many"', "true", '{"a": 4}', "[1]"])
def test_e04_values_of_two_kinds_are_refused(tmp_path: Path, odd: str) -> None:
    text = f'{{"qty": 1}}\n{{}}\n{{"qty": null}}\n{{"qty": {odd}}}'
    for types in (None, {"qty": "long"}):
        error = refused(tmp_path, text, types)
        assert (error.fields["line"], error.fields["column"]) == (4, "qty")
    kept = json_file(tmp_path, text).read({"qty": "json"}).read_all()["qty"].to_pylist()
    assert kept == ["1", None, None, odd]


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ('{"a": 1}\n{"a": 1, "a": 2}', 2, "key 'a' more than once"),
        ('{"a": 1}\n{"b": {"a": 1, "a": 2}}', 2, "key 'a' more than once"),
        (b'{"a": 1}\n{"a": "caf\xe9"}', 2, "not utf-8"),
        ('{"a": "x"}\n{"a": "\\ud800"}', 2, "half a surrogate pair"),
        ('{"a": "x"}\n{"a": ["\\udc00"]}', 2, "half a surrogate pair"),
        ('{"a": "x"}\n{"a": "\\u0000"}', 2, "NUL"),
        ('{"a": 1}\n{"a": NaN}', 2, "NaN"),
        ('{"a": 1}\n\n{"a": 1', 3, "character 8"),
        ('{"a": 1}\n{"a": "open\n{"a": 2}', 2, "Invalid control character"),
        ('{"a": 1}\n{"a": 01}', 2, "character 8"),
        ('{"a": 1}\n{"a": 1} {"a": 2}', 2, "character 10: a line break is expected"),
        ('{"a": 1}\n7', 2, "an object is expected"),
        ('[{"a": 1},\n  {"a": 2},]', 2, "an object is expected"),
        ('[{"a": 1}\n {"a": 2}]', 2, "a comma"),
        ('[{"a": 1},\n{"a": 2}', 2, "ends inside its array"),
        ('[{"a": 1}]\n]', 2, "behind the array"),
        ('{"kg": 1}\n{"KG": 2}', 2, "'KG' and 'kg' of line 1"),
        ('{"kg": 1}\n{" ": 2}', 2, "a key is empty"),
        ('{"a": ' + "[" * 100_000 + "\n", 1, "nested too deep"),
    ],
)
def test_what_is_no_row_is_refused_with_its_line(tmp_path: Path, text: str | bytes, line: int, part: str) -> None:
    error = refused(tmp_path, text)
    assert error.fields["line"] == line and part in error.message


def test_a_long_object_without_line_breaks_is_found_in_its_place(tmp_path: Path) -> None:
    text = "[" + ",".join(['{"a": 1}'] * 100) + ",{'a': 1}]"
    assert refused(tmp_path, text).fields["character"] == 1 + 100 * len('{"a": 1},') + 2


def test_no_column_is_known_without_a_key(tmp_path: Path) -> None:
    for text in ("", "[]", "{}\n{}"):
        with pytest.raises(SourceFileError, match="no column is known"):
            json_file(tmp_path, text).scan()
    assert json_file(tmp_path, "[]").read({"a": "long"}).read_all().num_rows == 0


def test_a_key_that_is_not_declared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ColumnMismatch, match="line 2 has 'b'") as caught:
        json_file(tmp_path, '{"a": 1}\n{"b": 2}').read({"a": "long"}).read_all()
    assert caught.value.fields["unexpected"] == ["b"]


def test_packed_changed_and_missing_files(tmp_path: Path) -> None:
    file = json_file(tmp_path, gzip.compress(b'{"a": 1}\n'))
    types = file.scan().columns
    assert file.read(types).read_all().to_pylist() == [{"a": 1}]
    Path(str(file.file)).write_text('{"a": 1}\n{"a": 2}\n')
    with pytest.raises(SourceFileError, match="has changed"):
        file.read(types)
    Path(str(file.file)).unlink()
    with pytest.raises(SourceFileError, match="can't be read"):
        file.read(types)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    peaks = []
    for rows in (1_500, 6_000):
        file = json_file(tmp_path, '{"a": 123456, "s": "some text"}\n' * rows, 1 << 13)
        tracemalloc.start()
        assert file.scan().rows == rows
        for _ in file.read({"a": "long", "s": "string"}):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
