"""Excel: no digit changes, dates follow the cell's format and the date system, and every refusal names its cell."""

from __future__ import annotations

import zipfile
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeward.errors import ColumnMismatch, SettingsError, SourceFileError
from lakeward.sources.file_formats import open_file
from lakeward.sources.formats.excel import ExcelFile
from lakeward.sources.formats.excel_numbers import dated, number
from lakeward.sources.formats.excel_rows import column_letters, column_of
from lakeward.sources.formats.excel_table import ExcelOptions
from lakeward.sources.formats.excel_texts import NoValue
from lakeward.sources.rejects import Rejected

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
REFERENCES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STYLES = (
    '<numFmts><numFmt numFmtId="164" formatCode="[h]:mm"/><numFmt numFmtId="165" formatCode="0.0&quot; days&quot;"/>'
    '</numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="21"/>'
    '<xf numFmtId="164"/><xf numFmtId="165"/></cellXfs>'
)
DATE, INSTANT, TIME, ELAPSED, DAYS = range(1, 6)


def book(folder: Path, *rows: list[Any], name: str = "in.xlsx", **sheets: list[list[Any]]) -> Path:
    """Write a workbook by openpyxl; `rows` are of its only sheet, unless sheets are named."""
    made = openpyxl.Workbook()
    made.remove(made.active)
    for title, content in (sheets or {"Data": list(rows)}).items():
        sheet = made.create_sheet(title)
        for cells in content:
            sheet.append(cells)
    made.save(folder / name)
    return folder / name


def by_hand(folder: Path, data: str, texts: str = "", book_properties: str = "", **parts: str) -> Path:
    """Write a workbook of one sheet from the XML of its rows."""
    path = folder / "hand.xlsx"
    relation = '<Relationship Id="{0}" Type="http://x/{1}" Target="{2}"/>'
    xml = {
        "_rels/.rels": "<Relationships>"
        + relation.format("a", "officeDocument", "xl/workbook.xml")
        + "</Relationships>",
        "xl/_rels/workbook.xml.rels": "<Relationships>"
        + relation.format("s1", "worksheet", "sheets/one.xml")
        + relation.format("s2", "styles", "styles.xml")
        + relation.format("s3", "sharedStrings", "/xl/texts.xml")
        + "</Relationships>",
        "xl/workbook.xml": f'<w:workbook xmlns:w="{MAIN}" xmlns:r="{REFERENCES}">{book_properties}'
        '<w:sheets><w:sheet name="Data" sheetId="7" r:id="s1"/></w:sheets></w:workbook>',
        "xl/styles.xml": f"<styleSheet>{STYLES}</styleSheet>",
        "xl/texts.xml": f"<sst>{texts}</sst>",
        "xl/sheets/one.xml": f"<worksheet><sheetData>{data}</sheetData></worksheet>",
    } | {name.replace("__", "/") + ".xml": text for name, text in parts.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in xml.items():
            packed.writestr(name, text)
    return path


def column(folder: Path, *cells: str, **more: str) -> Path:
    """Write a sheet of one column `v` from the XML of its cells, without their places."""
    head = '<row><c t="inlineStr"><is><t>v</t></is></c></row>'
    return by_hand(folder, head + "".join(f"<row>{cell}</row>" for cell in cells), **more)


def scanned(path: Path, **options: Any) -> tuple[dict[str, str], list[dict[str, Any]]]:
    file = ExcelFile(path, ExcelOptions(**options))
    profile = file.scan()
    rows = file.read(profile.columns).read_all().to_pylist()
    assert profile.rows == len(rows)
    return dict(profile.columns), rows


def refusal(path: Path, types: dict[str, str] | None = None, **options: Any) -> SourceFileError:
    file = ExcelFile(path, ExcelOptions(**options))
    with pytest.raises(SourceFileError) as caught:
        file.read(types).read_all() if types else file.scan()
    assert str(path) in str(caught.value)
    return caught.value


def test_types_and_values_come_in_equal(tmp_path: Path) -> None:
    at, on, clock = datetime(2024, 2, 29, 10, 11, 12, 250_000), date(2024, 2, 29), time(23, 59, 59)
    path = book(
        tmp_path,
        ["id", "big", "share", "code", "at", "on", "clock", "ok", "gap", "long text"],
        [1, 2**53 - 1, 0.1, "007", at, on, clock, True, None, "ä\r\n_x000D_ ☃𝄞"],
        [2, 2**53, 3, "", at + timedelta(days=1), on, time(0), False, None, " spaces "],
    )
    types, rows = scanned(path)
    assert list(types.values()) == [
        "long", "long", "double", "string", "timestamp", "date", "time", "boolean", "string", "string"
    ]  # fmt: skip
    assert list(rows[0].values()) == [1, 2**53 - 1, 0.1, "007", at, on, clock, True, None, rows[0]["long text"]]
    assert (rows[1]["share"], rows[1]["long text"]) == (3.0, " spaces ")
    assert rows[0]["long text"].startswith("ä") and rows[0]["long text"].endswith("☃𝄞")


@pytest.mark.parametrize(
    ("cells", "type_", "values"),
    [
        (["<c><v>5.0</v></c>", "<c><v>9007199254740992</v></c>"], "long", [5, 2**53]),
        (["<c><v>12345678901234567890</v></c>"], "decimal(38,0)", [Decimal("12345678901234567890")]),
        (["<c><v>1E+22</v></c>", "<c><v>1</v></c>"], "double", [1e22, 1.0]),
        (["<c><v>0.1000000000000000055511151231257827</v></c>"], "double", [0.1]),
        (["<c><v>1.5</v></c>", "<c/>", '<c s="5"><v>2</v></c>'], "double", [1.5, None, 2.0]),
        (['<c t="b"><v>1</v></c>', '<c t="b"><v>0</v></c>'], "boolean", [True, False]),
        (['<c s="1"><v>59</v></c>', '<c s="1"><v>61</v></c>'], "date", [date(1900, 2, 28), date(1900, 3, 1)]),
        (['<c s="1"><v>45351.25</v></c>', '<c s="1"><v>45351</v></c>'], "timestamp",
         [datetime(2024, 2, 29, 6), datetime(2024, 2, 29)]),
        (['<c s="2"><v>45351</v></c>'], "timestamp", [datetime(2024, 2, 29)]),
        (['<c s="3"><v>0.5</v></c>', '<c s="3"><v>0</v></c>'], "time", [time(12), time(0)]),
        (['<c s="3"><v>45351.5</v></c>'], "timestamp", [datetime(2024, 2, 29, 12)]),
        (['<c s="4"><v>1.3125</v></c>', '<c s="4"><v>-0.5</v></c>'], "string", ["31:30:00", "-12:00:00"]),
        (['<c t="d"><v>2024-02-29</v></c>', '<c t="d"><v>2024-02-29T06:00:00</v></c>'], "timestamp",
         [datetime(2024, 2, 29), datetime(2024, 2, 29, 6)]),
        (["<c><f>1+1</f><v>2</v></c>", '<c t="str"><f>""</f><v></v></c>'][:1], "long", [2]),
        (['<c t="str"><f>""</f><v></v></c>', '<c t="str"><f>"a"</f><v>a</v></c>'], "string", ["", "a"]),
        (['<c t="inlineStr"><is><t/></is></c>', "<c/>", '<c t="inlineStr"><is><t>12</t></is></c>'], "string",
         ["", None, "12"]),
        (['<c t="inlineStr"><is><r><t>a</t></r><r><t>b</t></r><rPh><t>x</t></rPh></is></c>'], "string", ["ab"]),
    ],
)  # fmt: skip
def test_what_cells_hold(tmp_path: Path, cells: list[str], type_: str, values: list[Any]) -> None:
    types, rows = scanned(column(tmp_path, *cells), blank_rows="skip") if "<c/>" not in cells else ({}, [])
    if "<c/>" in cells:
        # Beside another column, so that the row is not blank.
        numbered = [f'{cell}<c r="B1"><v>1</v></c>' for cell in cells]
        head = '<row><c t="inlineStr"><is><t>v</t></is></c><c t="inlineStr"><is><t>n</t></is></c></row>'
        types, rows = scanned(by_hand(tmp_path, head + "".join(f"<row>{cell}</row>" for cell in numbered)))
    assert types["v"] == type_
    assert [row["v"] for row in rows] == values


def test_the_1904_system_begins_later(tmp_path: Path) -> None:
    path = column(tmp_path, '<c s="1"><v>0</v></c>', '<c s="1"><v>60</v></c>',
                  book_properties='<workbookPr date1904="1"/>')  # fmt: skip
    assert [row["v"] for row in scanned(path)[1]] == [date(1904, 1, 1), date(1904, 3, 1)]


def test_shared_texts_are_told_apart_and_unescaped(tmp_path: Path) -> None:
    cells = [f'<c t="s"><v>{index}</v></c>' for index in range(4)]
    texts = "<si><t>a_x000D_\nb_x005F_x000D_</t></si><si><t/></si><si><r><t>x</t></r><r><t>y</t></r></si>"
    path = column(tmp_path, *cells, texts=texts + "<si><t>_xD83D__xDE00_</t></si>")
    assert [row["v"] for row in scanned(path)[1]] == ["a\r\nb_x000D_", "", "xy", "😀"]
    assert "text 4" in str(refusal(column(tmp_path, *cells, '<c t="s"><v>4</v></c>', texts=texts + "<si/>")))


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ('<c t="e"><v>#N/A</v></c>', "Data!A3, column 'v': '#N/A' is an error of Excel"),
        ("<c><f>A1</f></c>", "Data!A3, column 'v': is a formula whose value is not stored"),
        ('<c><f t="shared" si="0"/><v/></c>', "is a formula whose value is not stored"),
        ('<c t="inlineStr"><is><t>many</t></is></c>', "'many' is a text, and Data!A2 has a number"),
        ('<c t="b"><v>1</v></c>', "'true' is a boolean, and Data!A2 has a number"),
        ('<c s="1"><v>45351</v></c>', "'2024-02-29' is a date, and Data!A2 has a number"),
        ('<c s="1"><v>60</v></c>', "'60' is the 29 February 1900"),
        ('<c s="1"><v>0</v></c>', "'0' has a format of dates, and is no day"),
        ('<c s="1"><v>-1</v></c>', "is no day"),
        ('<c s="2"><v>2958466</v></c>', "is no day"),
        ('<c s="4"><v>1E+300</v></c>', "is longer than Excel knows"),
        ("<c><v>1E400</v></c>", "is out of the range of a double"),
        ("<c><v>nan</v></c>", "'nan' is no number"),
        ("<c><v>1_0</v></c>", "'1_0' is no number"),
        ('<c t="b"><v>2</v></c>', "'2' is no boolean"),
        ('<c t="d"><v>2024-02-30</v></c>', "'2024-02-30' is no date"),
        ('<c t="d"><v>2024-02-29T00:00:00Z</v></c>', "has a time zone"),
        ('<c t="q"><v>1</v></c>', "is of a kind 'q'"),
        ('<c t="inlineStr"><is><t>a_x0000_</t></is></c>', "has a NUL"),
        ('<c t="inlineStr"><is><t>a_xD800_</t></is></c>', "has half a surrogate pair"),
        ('<c s="9"><v>1</v></c>', "Data!A3 refers to style 9, which the workbook has not"),
        ('<c><v>0.5</v></c></row><row><c><v>9007199254740993</v></c>', "'9007199254740993' has more digits"),
        ('<c><v>9007199254740993</v></c></row><row><c><v>0.5</v></c>', "'0.5' needs a double, and Data!A3"),
    ],
)  # fmt: skip
def test_what_is_no_value_is_refused_with_its_cell(tmp_path: Path, cell: str, said: str) -> None:
    assert said in str(refusal(column(tmp_path, "<c><v>1</v></c>", cell)))


def test_errors_can_be_nulls_and_texts_mean_null(tmp_path: Path) -> None:
    cells = ['<c t="e"><v>#DIV/0!</v></c>', "<c><v>1</v></c>", '<c t="inlineStr"><is><t>n/a</t></is></c>']
    types, rows = scanned(column(tmp_path, *cells), cell_errors="null", null_markers=("n/a",))
    assert (types, [row["v"] for row in rows]) == ({"v": "long"}, [None, 1, None])
    # A formula without a value is no error of Excel: what it is is not known.
    assert "not stored" in str(refusal(column(tmp_path, "<c><f>A1</f></c>"), cell_errors="null"))


@pytest.mark.parametrize(
    ("value", "type_", "read"),
    [
        (0.1, "decimal(3,1)", Decimal("0.1")),
        (1e-7, "decimal(10,7)", Decimal("0.0000001")),
        (5, "decimal(3,2)", Decimal("5.00")),
        (0.1, "string", "0.1"),
        ("007", "string", "007"),
        ("12", "long", 12),
        (12, "string", "12"),
        ("2024-02-29", "date", date(2024, 2, 29)),
        (datetime(2024, 2, 29), "date", date(2024, 2, 29)),
        (date(2024, 2, 29), "timestamp", datetime(2024, 2, 29)),
        (3, "double", 3.0),
        (True, "string", "true"),
        ('{"a":1}', "json", '{"a": 1}'),
    ],
)
def test_declared_types_hold_the_shortest_text(tmp_path: Path, value: Any, type_: str, read: Any) -> None:
    file = ExcelFile(book(tmp_path, ["v"], [value]))
    assert file.read({"v": type_}).read_all().to_pylist() == [{"v": read}]


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (0.15, "decimal(3,1)"),
        (0.125, "decimal(3,2)"),
        (2.5, "long"),
        (2**31, "int"),
        ("9007199254740993", "double"),
        (1, "boolean"),
        (45351, "date"),
        (datetime(2024, 2, 29, 1), "date"),
        ("many", "long"),
    ],
)
def test_declared_types_that_would_change_a_value_are_refused(tmp_path: Path, value: Any, type_: str) -> None:
    error = refusal(book(tmp_path, ["a", "v"], ["x", value]), {"a": "string", "v": type_})
    assert (error.fields["cell"], error.fields["column"]) == ("Data!B2", "v")


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_come_in_bit_for_bit(value: float) -> None:
    read = number(repr(value))
    assert not isinstance(read, NoValue) and float(read).hex() == value.hex()


@given(at=st.datetimes(min_value=datetime(1900, 3, 1), max_value=datetime(9999, 12, 31, 23, 59, 59)))
def test_instants_of_whole_milliseconds_come_back(at: datetime) -> None:
    at = at.replace(microsecond=at.microsecond // 1000 * 1000)
    serial = (at - datetime(1899, 12, 30)) / timedelta(days=1)
    read = dated(repr(serial), 2, from_1904=False)
    assert isinstance(read, datetime)
    assert read == at
    # LibreOffice writes 15 digits.
    assert dated(f"{serial:.15g}", 2, from_1904=False) == at or serial >= 10**6


def test_header_faults_name_the_cells(tmp_path: Path) -> None:
    assert "'kg' (Data!A1), 'KG' (Data!C1)" in str(refusal(book(tmp_path, ["kg", "x", "KG"], [1, 2, 3])))
    error = refusal(book(tmp_path, ["kg", None, "x"], [1, None, 2], [1, 5, 2]))
    assert "Data!B3 has a value in a column without a name" in str(error) and error.next_step is not None
    assert "row 2 names no column" not in str(refusal(book(tmp_path, [" "], [1])))
    types, rows = scanned(book(tmp_path, ["kg", None, "x", None], [1, None, 2]))
    assert (types, rows) == ({"kg": "long", "x": "long"}, [{"kg": 1, "x": 2}])
    assert "is empty" in str(refusal(book(tmp_path)))
    assert scanned(book(tmp_path, [2024, "x"])) == ({"2024": "string", "x": "string"}, [])


def test_where_the_table_begins(tmp_path: Path) -> None:
    path = book(tmp_path, ["Report of May"], [], ["id"], [1], [2])
    assert scanned(path, skip_rows=2)[1] == [{"id": 1}, {"id": 2}]
    assert "row 2 is blank, the table begins in row 3" in str(refusal(path, skip_rows=1))
    path = book(tmp_path, ["a", 1], ["b", None], ["c", 3])
    assert scanned(path, header=False)[0] == {"column1": "string", "column2": "long"}
    assert "Data!C2 has a value" in str(refusal(book(tmp_path, ["a", 1], ["b", 2, 3]), header=False))


def test_blank_rows_are_refused_or_left_out_and_the_last_ones_do_not_count(tmp_path: Path) -> None:
    path = book(tmp_path, ["id"], [1], [], [], [2], [], [None])
    error = refusal(path)
    assert "row 3 is blank, and row 5 is not" in str(error) and "--blank-rows skip" in str(error.next_step)
    assert scanned(path, blank_rows="skip")[1] == [{"id": 1}, {"id": 2}]
    formatted = "".join(f'<row r="{row}"><c r="A{row}" s="1"/></row>' for row in range(3, 200))
    head = '<row r="1"><c t="inlineStr"><is><t>v</t></is></c></row><row r="2" hidden="1"><c><v>1</v></c></row>'
    assert scanned(by_hand(tmp_path, head + formatted))[1] == [{"v": 1}]


def test_sheets_are_named_unless_there_is_one(tmp_path: Path) -> None:
    path = book(tmp_path, North=[["id"], [1]], South=[["id"], [2]])
    assert "has 2 sheets: 'North', 'South'" in str(refusal(path))
    assert "has no sheet 'West': 'North', 'South'" in str(refusal(path, sheet="West"))
    assert scanned(path, sheet="south")[1] == [{"id": 2}]


def test_merged_cells_have_a_value_at_their_first(tmp_path: Path) -> None:
    made = openpyxl.Workbook()
    for cells in (["a", "b"], ["x", 1], [None, 2]):
        made.active.append(cells)
    made.active.merge_cells("A2:A3")
    made.save(tmp_path / "in.xlsx")
    assert scanned(tmp_path / "in.xlsx")[1] == [{"a": "x", "b": 1}, {"a": None, "b": 2}]


def test_rejected_rows_are_told_and_left_out(tmp_path: Path) -> None:
    path = book(tmp_path, ["id", "n"], [1, 10], [2, "many"], [3, "#N/A"], [4, 40, "beside"], [], [6, 60])
    told: list[Rejected] = []
    rows = ExcelFile(path).read({"id": "long", "n": "long"}, told.append).read_all().to_pylist()
    assert rows == [{"id": 1, "n": 10}, {"id": 6, "n": 60}]
    assert sorted((each.line, each.column) for each in told) == [(3, "n"), (4, "n"), (5, None), (6, None)]
    assert next(each for each in told if each.line == 3).record == '["2", "many"]'
    told.clear()
    assert ExcelFile(book(tmp_path, ["n"], [1], ["#N/A"])).scan(rejects=told.append).rows == 1
    assert [(each.line, each.column) for each in told] == [(3, "n")]


def test_files_after_others_have_the_same_columns_and_kinds(tmp_path: Path) -> None:
    first = ExcelFile(book(tmp_path, ["id", "v"], [1, 1], name="a.xlsx")).scan()
    second = ExcelFile(book(tmp_path, ["v", "id"], [2.5, 2], name="b.xlsx")).scan(first)
    assert (dict(second.columns), second.rows) == ({"id": "long", "v": "double"}, 2)
    with pytest.raises(SourceFileError, match=r"Data!A2.*'x' is a text, and Data!B2 has a number"):
        ExcelFile(book(tmp_path, ["v", "id"], ["x", 2], name="c.xlsx")).scan(second)
    with pytest.raises(ColumnMismatch):
        ExcelFile(book(tmp_path, ["v"], [1], name="d.xlsx")).scan(second)


DOCTYPE = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;">]>'


@pytest.mark.parametrize("part", ["xl__workbook", "xl__styles", "xl__texts", "xl__sheets__one"])
def test_a_document_type_is_refused_wherever_it_stands(tmp_path: Path, part: str) -> None:
    assert "declares a document type" in str(refusal(by_hand(tmp_path, "", **{part: DOCTYPE + "<x>&b;</x>"})))


def test_what_is_no_workbook_is_told(tmp_path: Path) -> None:
    path = tmp_path / "in.xlsx"
    for content, said in (
        (b"id\n1\n", "is no Excel workbook"),
        (b"", "is no Excel workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "old format (.xls)"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(70_000) + "EncryptedPackage".encode("utf-16-le"), "password"),
    ):
        path.write_bytes(content)
        assert said in str(refusal(path))
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.txt", "x")
    assert "is a zip archive, and no Excel workbook" in str(refusal(path))
    assert "can't be read" in str(refusal(tmp_path / "none.xlsx"))


def test_no_cut_is_taken_for_the_end(tmp_path: Path) -> None:
    whole = book(tmp_path, ["id"], *([row] for row in range(50))).read_bytes()
    path = tmp_path / "cut.xlsx"
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        refusal(path)
    path = by_hand(tmp_path, "", xl__sheets__one="<worksheet><sheetData><row>")
    assert "xl/sheets/one.xml is damaged" in str(refusal(path))
    assert "ends too early" in str(refusal(by_hand(tmp_path, "", xl__sheets__one="<worksheet/>")))
    assert "behind row 5" in str(refusal(by_hand(tmp_path, '<row r="5"/><row r="4"/>')))


def test_what_grows_too_much_is_refused(tmp_path: Path) -> None:
    texts = "<sst>" + " " * 30_000_000 + "</sst>"
    assert "times its size" in str(refusal(column(tmp_path, "<c/>", '<c t="s"><v>0</v></c>', xl__texts=texts)))


def test_a_file_that_changed_since_its_scan_is_refused(tmp_path: Path) -> None:
    path = book(tmp_path, ["id"], [1])
    file = ExcelFile(path)
    types = file.scan().columns
    book(tmp_path, ["id"], [1], [2])
    with pytest.raises(SourceFileError, match="has changed"):
        file.read(types)


def test_options_are_those_of_excel(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="sheet can be given for excel only"):
        open_file(tmp_path / "a.csv", options={"sheet": "x"})
    with pytest.raises(SettingsError, match="skip_rows"):
        open_file(tmp_path / "a.xlsm", options={"skip_rows": -1})
    assert isinstance(open_file(tmp_path / "A.XLSX"), ExcelFile)


def test_names_of_columns() -> None:
    assert [column_letters(each) for each in (0, 25, 26, 701, 702, 16_383)] == ["A", "Z", "AA", "ZZ", "AAA", "XFD"]
    assert all(column_of(column_letters(each)) == each for each in range(0, 16_384, 7))
    assert column_of("XFE") is None and column_of("") is None and column_of("a1") is None
    assert number("-0.0") == 0 and str(number("-0.0")) == "-0.0"
