"""What a workbook says of all of its sheets: their names, its texts, its date system, and which formats are dates."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lakeward.sources.formats.excel_numbers import DATE, ELAPSED, INSTANT, NUMBER, TIME
from lakeward.sources.formats.excel_package import Attributes, Package
from lakeward.sources.formats.excel_texts import NoValue, unescaped

# ECMA-376, part 1, 18.8.30: the formats that have a number only. 27 to 36 and 50 to 58 are dates of East Asia, of which
# 32 to 35, and 55 and 56 in some languages, are times or dates by language.
_BUILT_IN = {
    **dict.fromkeys((14, 15, 16, 17, 27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 57, 58), DATE),
    **dict.fromkeys((18, 19, 20, 21, 32, 33, 45, 47), TIME),
    22: INSTANT,
    46: ELAPSED,
}
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.')
_ELAPSED = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
_BRACKETS = re.compile(r"\[[^\]]*\]")
_SHARED = "sharedStrings"


@dataclass(frozen=True)
class Sheet:
    """One worksheet: its name, the part that holds it, and whether it is shown."""

    name: str
    part: str
    hidden: bool


class Workbook:
    """A workbook: `sheets` in its order, `texts` that cells refer to, `kinds` of number by style, `from_1904`.

    Args:
        package: its parts.

    Raises:
        SourceFileError: it is none.
    """

    def __init__(self, package: Package) -> None:
        self.package = package
        main = package.related("").get("officeDocument", [])
        if not main:
            raise package.damaged("is a zip archive, and no Excel workbook")
        part = main[0][1]
        if part.endswith(".bin"):
            raise package.damaged("is a binary workbook (.xlsb)", "save it as .xlsx")
        self._related = package.related(part)
        self.from_1904 = False
        self.sheets: list[Sheet] = []
        self._read_sheets(part)
        self.kinds: list[int] = []
        self._read_styles()

    def sheet(self, name: str | None) -> Sheet:
        """Return a sheet by its name, in any case as in Excel; None: the only one.

        Raises:
            SourceFileError: there is none, or there are several, with their names.
        """
        shown = ", ".join(repr(sheet.name) + " (hidden)" * sheet.hidden for sheet in self.sheets)
        if name is None and len(self.sheets) == 1:
            return self.sheets[0]
        if name is None:
            what = f"has {len(self.sheets)} sheets" if self.sheets else "has no sheet with cells"
        else:
            for sheet in self.sheets:
                if sheet.name.casefold() == name.casefold():
                    return sheet
            what = f"has no sheet {name!r}"
        next_step = "name one of them: --sheet" if self.sheets else None
        raise self.package.damaged(f"{what}: {shown}" if self.sheets else what, next_step)

    def texts(self) -> list[str | NoValue]:
        """Return the texts that cells refer to by number; `NoValue` for one that no dataset can hold."""
        reader = TextReader()
        for _, part in self._related.get(_SHARED, []):
            for _ in self.package.parse(part, reader.start, reader.end, reader.text):
                pass
        return reader.found

    def _read_sheets(self, part: str) -> None:
        parts = dict(self._related.get("worksheet", []))

        def start(tag: str, attributes: Attributes) -> None:
            if tag == "workbookPr":
                self.from_1904 = attributes.get("date1904") in ("1", "true")
            elif tag == "sheet":
                # Its prefix is the writer's choice; `sheetId` and `id` without one are others.
                ids = [value for name, value in attributes.items() if name.endswith(":id")]
                if ids and ids[0] in parts:
                    hidden = attributes.get("state", "visible") != "visible"
                    self.sheets.append(Sheet(attributes.get("name", ""), parts[ids[0]], hidden))

        for _ in self.package.parse(part, start, lambda tag: None, lambda text: None):
            pass

    def _read_styles(self) -> None:
        formats = dict(_BUILT_IN)
        inside: list[str] = [""]

        def end(tag: str) -> None:
            inside.pop()

        def start(tag: str, attributes: Attributes) -> None:
            if tag == "numFmt":
                formats[int(attributes["numFmtId"])] = kind_of_format(attributes.get("formatCode", ""))
            elif tag == "xf" and inside[-1] == "cellXfs":
                self.kinds.append(formats.get(int(attributes.get("numFmtId", "0")), NUMBER))
            inside.append(tag)

        for _, part in self._related.get("styles", []):
            try:
                for _ in self.package.parse(part, start, end, lambda text: None):
                    pass
            except (KeyError, ValueError) as error:
                raise self.package.damaged(f"{part} is damaged: {error}") from error


def kind_of_format(code: str) -> int:
    """Return what numbers in a custom format are.

    Example:
        >>> [kind_of_format(code) == DATE for code in ("yyyy-mm-dd", '0.00 "days"', "[Red]d.m.yy;@", "General")]
        [True, False, True, False]
    """
    positive = _LITERAL.sub("", code).split(";")[0]
    if _ELAPSED.search(positive):
        return ELAPSED
    letters = set(_BRACKETS.sub("", positive).lower().replace("general", ""))
    day, clock = bool(letters & set("dy")), bool(letters & set("hs"))
    if day or clock:
        return INSTANT if day and clock else DATE if day else TIME
    return DATE if "m" in letters else NUMBER


class TextReader:
    """Gathers the texts of `si` elements: all runs of each, without what says how it is spoken."""

    def __init__(self) -> None:
        self.found: list[str | NoValue] = []
        self._pieces: list[str] = []
        self._in_text = False
        self._spoken = False

    def start(self, tag: str, attributes: Attributes) -> None:
        """Take the start of an element."""
        if tag == "si":
            self._pieces = []
        elif tag == "rPh":
            self._spoken = True
        elif tag == "t":
            self._in_text = not self._spoken

    def end(self, tag: str) -> None:
        """Take the end of an element."""
        if tag == "si":
            self.found.append(unescaped("".join(self._pieces)))
        elif tag == "rPh":
            self._spoken = False
        elif tag == "t":
            self._in_text = False

    def text(self, text: str) -> None:
        """Take text."""
        if self._in_text:
            self._pieces.append(text)
