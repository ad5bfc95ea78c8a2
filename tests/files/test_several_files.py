"""Several files are imported as one version: types are true of all of them, and each refusal names its file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lakeward
from lakeward.errors import ColumnMismatch, LakewardError, NotAllowed, SourceFileError, UsageError
from lakeward.sources.allowed import Allowed
from lakeward.sources.file_patterns import find_files
from lakeward.sources.file_set import FileSet
from lakeward.sources.object_store import ObjectStore

Write = Callable[[str, str], Path]
NAMES = ("a b.csv", "a[1].csv", "a*.csv", "día ❄.csv", "two\nlines.csv", "#1.csv", "..csv", "%2e%2e%2f.csv", "-x.csv")


def values(ws: lakeward.Workspace, name: str, column: str = "v") -> list[object]:
    table = ws.dataset(f"a.b.{name}").to_arrow(identity=True).sort_by("__row_index")
    return list(table[column].to_pylist())


@pytest.mark.parametrize(
    ("first", "odd", "proposed"),
    [("7.25", "7.2.5", "string"), ("1", "1e5", "double"), ("2024-01-31", "soon", "string"), ("7", "007", "string")],
)
def test_f02_an_odd_value_that_is_the_first_of_the_second_file(
    ws: lakeward.Workspace, write: Write, name: str, first: str, odd: str, proposed: str
) -> None:
    one = write("1.csv", "v\n" + f"{first}\n" * 30_000)
    two = write("2.csv", f"v\n{odd}\n{first}\n")
    result = ws.import_file(f"a.b.{name}", [two, one])
    assert (result.rows_read, result.rows_written, result.version) == (30_002, 30_002, 1)
    assert [str(each.type) for each in ws.dataset(f"a.b.{name}").schema.columns] == [proposed]
    assert str(values(ws, name)[30_000]) in (odd, "100000.0")
    # Of a dataset that has the type of the first file alone, the value is refused with its place.
    ws.import_file(f"a.b.{name}_known", one)
    if proposed != "double" and odd != "007":
        with pytest.raises(SourceFileError, match=r"2\.csv: line 2, column 'v': .* is not a") as caught:
            ws.import_file(f"a.b.{name}_known", [one, two])
        assert caught.value.safe == f"dataset a.b.{name}_known is unchanged at version 1"
        assert ws.dataset(f"a.b.{name}_known").record.row_count == 30_000


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(
            st.sampled_from(["", "1", "-5", "007", "1.5", "1e5", "9007199254740993", "12345678901234567890", "true"]),
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_types_are_those_of_one_file_with_all_rows(tmp_path: Path, files: list[list[str]]) -> None:
    for number, lines in enumerate(files):
        (tmp_path / f"{number}.csv").write_text("v,w\n" + "".join(f"{line},x\n" for line in lines))
    whole = tmp_path / "whole.csv"
    whole.write_text("v,w\n" + "".join(f"{line},x\n" for lines in files for line in lines))
    several = FileSet([tmp_path / f"{number}.csv" for number in range(len(files))])
    profile, one = several.scan(), FileSet([whole])
    assert (profile.columns, profile.rows) == (one.scan().columns, sum(map(len, files)))
    types = dict(profile.columns)
    assert several.read(types).read_all().to_pylist() == one.read(types).read_all().to_pylist()


def test_columns_may_stand_in_another_order_and_not_be_others(ws: lakeward.Workspace, write: Write, name: str) -> None:
    one, two, three = write("1.csv", "v,w\n1,a\n"), write("2.csv", "w,v\nb,2\n"), write("3.csv", "v,x\n3,c\n")
    assert ws.import_file(f"a.b.{name}", [one, two]).row_count == 2
    assert values(ws, name) == [1, 2] and values(ws, name, "w") == ["a", "b"]
    for into in (name, f"{name}_new"):
        with pytest.raises(ColumnMismatch, match=r"3\.csv: .* missing in the file: w; only in the file: x"):
            ws.import_file(f"a.b.{into}", [one, three])
    assert ws.tree.find(f"a.b.{name}_new") is None and ws.dataset(f"a.b.{name}").version == 1


def test_json_names_both_files_of_a_conflict_and_takes_keys_that_come_later(
    ws: lakeward.Workspace, write: Write, name: str
) -> None:
    write("1.ndjson", '{"v": 1}\n')
    write("2.ndjson", "")
    three = write("3.ndjson", '{"v": 2, "w": "late"}\n')
    assert ws.import_file(f"a.b.{name}", three.parent).row_count == 2
    assert values(ws, name, "w") == [None, "late"]
    write("4.ndjson", '{"v": "many"}\n')
    with pytest.raises(SourceFileError, match=r"4\.ndjson: line 1, column 'v'.* line 1 of .*1\.ndjson has"):
        ws.import_file(f"a.b.{name}_new", three.parent)


def test_parquet_takes_the_wider_type_and_refuses_another(ws: lakeward.Workspace, tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({"v": pa.array([1], pa.int32())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"v": pa.array([2**40], pa.int64())}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"v": pa.nulls(1)}), tmp_path / "3.parquet")
    assert ws.import_file(f"a.b.{name}", tmp_path / "*.parquet").rows_read == 3
    assert values(ws, name) == [1, 2**40, None]
    pq.write_table(pa.table({"v": ["text"]}), tmp_path / "4.parquet")
    with pytest.raises(SourceFileError, match=r"4\.parquet: column 'v' is string, and long in the files before it"):
        ws.import_file(f"a.b.{name}_new", tmp_path / "*.parquet")


def test_odd_names_folders_patterns_and_links(
    ws: lakeward.Workspace, write: Write, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, each in enumerate(NAMES):
        write(f"odd/{each}", f"v\n{number}\n")
    write("odd/_SUCCESS", "")
    write("odd/.hidden.csv", "x\n")
    write("odd/deep/er/d.csv", "v\n100\n")
    (tmp_path / "odd/again.csv").symlink_to(tmp_path / "odd/#1.csv")
    (tmp_path / "odd/deep/up").symlink_to(tmp_path / "odd")
    monkeypatch.chdir(tmp_path)
    in_order = [number for _, number in sorted(zip(NAMES, range(len(NAMES)), strict=True)) if NAMES[number] != "..csv"]
    # What is there under its own name is no pattern.
    assert ws.import_file(f"a.b.{name}_one", "odd/a[1].csv").rows_read == 1
    assert ws.import_file(f"a.b.{name}_star", "odd/a*.csv").rows_read == 1
    ws.import_file(f"a.b.{name}", ["odd/*.csv", "odd", "odd/[ad-]*.csv"])
    assert values(ws, name) == in_order
    assert ws.import_file(f"a.b.{name}_deep", "odd/**/*.csv").rows_read == len(in_order) + 1
    with pytest.raises(UsageError, match=r"gone\.csv does not exist"):
        ws.import_file(f"a.b.{name}", "odd/gone.csv")
    with pytest.raises(UsageError, match=r"no file is there for odd/\*\.tsv"):
        ws.import_file(f"a.b.{name}", "odd/*.tsv")
    with pytest.raises(UsageError, match="is not UTF-8"):
        (tmp_path / os.fsdecode(b"bad\xff.csv")).write_text("v\n1\n")
        ws.import_file(f"a.b.{name}", "bad*.csv")


def test_s01_a_link_leads_only_where_files_may_be_read(write: Write, tmp_path: Path) -> None:
    write("in/1.csv", "v\n1\n")
    secret = write("out/secret.csv", "v\n2\n")
    allowed, store = Allowed.declare(paths=[str(tmp_path / "in")]), ObjectStore()
    assert [each.place for each in find_files([f"{tmp_path}/in/*.csv"], store, allowed)] == [f"{tmp_path}/in/1.csv"]
    (tmp_path / "in/2.csv").symlink_to(secret)
    for pattern in ("in/*.csv", "in", "in/2.csv", "in/../out/*.csv", "out/*.csv", "*/secret.csv"):
        with pytest.raises(NotAllowed, match=r"is not among what sources of this workspace may reach"):
            find_files([f"{tmp_path}/{pattern}"], store, allowed)
    with pytest.raises(NotAllowed):
        find_files(["s3://bucket/*.csv"], store, allowed)


def test_two_thousand_files(ws: lakeward.Workspace, write: Write, name: str, tmp_path: Path) -> None:
    for number in range(2_000):
        write(f"{number:04}.csv", f"v\n{number}\n")
    assert ws.import_file(f"a.b.{name}", tmp_path).rows_read == 2_000
    assert values(ws, name) == list(range(2_000))


def test_a_file_that_is_written_meanwhile(ws: lakeward.Workspace, write: Write, name: str, tmp_path: Path) -> None:
    write("1.csv", "v\n1\n")
    two = write("2.csv", "v\n2\n")
    plan = ws.plan_import(f"a.b.{name}", [tmp_path])
    two.write_text("v\n2\n3\n")
    with pytest.raises(SourceFileError, match=r"2\.csv: has changed since it was scanned"):
        ws.run_import(plan)
    assert ws.tree.find(f"a.b.{name}") is None
    reader = FileSet([tmp_path / "1.csv", two]).read({"v": "long"})
    two.write_text("v\nnone\n")
    with pytest.raises(LakewardError, match=r"2\.csv: has changed since it was scanned"):
        reader.read_all()
