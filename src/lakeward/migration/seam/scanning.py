"""Surveys a code base: every raw access to the tables, with file, line, kind and snippet.

`SOURCES` says in one place how each sort of file is read, and what is left of it if it can't be.
"""

from __future__ import annotations

import codecs
import io
import mmap
import os
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lakeward.errors import UnknownObject, UsageError
from lakeward.migration.seam.files import COVERED, globs, sources, suffix_of
from lakeward.migration.seam.other_code import read_other
from lakeward.migration.seam.python_code import Found, read_python
from lakeward.migration.seam.sql import read_sql
from lakeward.migration.seam.tables import DEFAULT_TABLES, Mention, Tables

MAX_BYTES = 2 * 1024 * 1024
"""Larger files are only searched for the names: nobody writes them, and their syntax tree would not be small."""

_SNIPPET = 100
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, order=True)
class Access:
    """One raw access.

    Args:
        file: from the root of the survey, with `/`.
        line: counted from 1.
        kind: what the statement does (`select`, `insert`, `update`, `delete`, `merge`, `copy`, `truncate`, `create` …);
            `name` for a table's name in code; `text` where it can't be told.
        table: as it was asked for.
        snippet: the line, at most 100 characters of it.
    """

    file: str
    line: int
    kind: str
    table: str
    snippet: str

    def to_json(self) -> dict[str, object]:
        """Return the fields."""
        return asdict(self)


@dataclass(frozen=True)
class Warned:
    """A file that was not read as it should be, and what was done instead. `unread` if nothing is known of it."""

    file: str
    message: str
    unread: bool = False


@dataclass(frozen=True)
class Survey:
    """What a code base does with the tables.

    Args:
        top: what was surveyed, from the root; `.` for all of it.
        accesses: by file and line.
        warnings: by file.
    """

    top: str
    accesses: tuple[Access, ...]
    warnings: tuple[Warned, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many accesses each file has that has any."""
        return dict(sorted(Counter(access.file for access in self.accesses).items()))


def scan(
    path: str | Path,
    tables: Sequence[str] = DEFAULT_TABLES,
    *,
    allow: Sequence[str] = (),
    root: str | Path | None = None,
) -> list[Access]:
    """Return every raw access to the tables at or below a path, by file and line.

    Example:
        >>> Path("report.sql").write_text("-- By day\\nSELECT day, sum(amount) FROM order_rows GROUP BY day")
        62
        >>> scan("report.sql", ["shop.order_rows"])[0].line
        2

    See `survey` for the arguments and for what is raised.
    """
    return list(survey(path, tables, allow=allow, root=root).accesses)


def survey(
    path: str | Path,
    tables: Sequence[str] = DEFAULT_TABLES,
    *,
    allow: Sequence[str] = (),
    root: str | Path | None = None,
) -> Survey:
    """Return every raw access to the tables at or below a path, and a warning for each file that can't be read well.

    Args:
        path: a folder or a file.
        tables: `schema.table`, found without its schema, too; or `table`, found in any schema.
        allow: what may access the tables, in the syntax of `.gitignore`, from the root.
        root: the folder that files are named from; else the path itself, or the folder of a file.

    Raises:
        UnknownObject: there is no such path.
        UsageError: the path is not below the root, or a file of a sort that is not read; a name or glob is none.
    """
    top = _existing(path)
    base = Path(root).resolve() if root is not None else top if top.is_dir() else top.parent
    if not top.is_relative_to(base):
        raise UsageError(f"{top} is not below {base}, which its files are to be named from", path=str(top))
    surveyor = _Surveyor(base, Tables(tables))
    allowed = globs(allow)
    for file in sources(top, surveyor.warn_unread):
        if not allowed.match_file(file.relative_to(base).as_posix()):
            surveyor.look_at(file)
    return Survey(
        top.relative_to(base).as_posix(),
        tuple(sorted(surveyor.accesses)),
        tuple(sorted(surveyor.warnings, key=lambda warned: warned.file)),
    )


def _existing(path: str | Path) -> Path:
    top = Path(path).resolve()
    if not top.exists():
        raise UnknownObject(f"there is no file or folder {path}", path=str(path))
    if top.is_file() and suffix_of(top) not in COVERED:
        raise UsageError(f"{path} is not of a sort that is read: {', '.join(sorted(COVERED))}", path=str(path))
    return top


class _Surveyor:
    def __init__(self, base: Path, tables: Tables) -> None:
        self.accesses: list[Access] = []
        self.warnings: list[Warned] = []
        self._base = base
        self._tables = tables

    def warn_unread(self, path: Path, reason: str) -> None:
        self.warnings.append(Warned(self._name(path), f"can't be read: {reason}", unread=True))

    def look_at(self, file: Path) -> None:
        """Add the accesses of one file; read it fully only if it holds a name at all."""
        try:
            if file.stat().st_size > MAX_BYTES:
                self._search(file)
                return
            content = file.read_bytes()
        except OSError as error:
            self.warn_unread(file, error.strerror or type(error).__name__)
            return
        if self._tables.raw.search(content) or content.startswith(_UTF16):
            self._read(file, content)

    def _read(self, file: Path, content: bytes) -> None:
        suffix = suffix_of(file)
        text = self._decoded(file, content, suffix)
        if not self._tables.starts(text):
            return
        lines = text.split("\n")
        found: list[Found]
        if suffix in ("py", "pyi"):
            found = self._read_python(file, text)
        elif suffix == "sql":
            found = self._by_line(text, read_sql(text, self._tables))
        else:
            found = self._by_line(text, read_other(text, suffix, self._tables))
        for line, mention in found:
            self._add(file, line, mention, lines[line - 1])

    def _read_python(self, file: Path, text: str) -> list[Found]:
        try:
            return read_python(text, self._tables)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            what = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else type(error).__name__
            self._warn(file, f"is no Python that can be parsed ({what}): its tokens were searched")
            return self._by_line(text, read_other(text, "py", self._tables))

    def _by_line(self, text: str, mentions: Sequence[Mention]) -> list[Found]:
        starts = self._tables.starts(text)
        return [(text.count("\n", 0, starts[each.ordinal]) + 1, each) for each in mentions]

    def _search(self, file: Path) -> None:
        """Count every mention in a large file, whatever it stands in; memory does not grow with the file."""
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found = list(self._mentions_in(content))
        for line, mention, text in found:
            self._add(file, line, mention, text)
        if found:
            size = os.path.getsize(file) / 1024 / 1024
            self._warn(file, f"is too large to parse ({size:.0f} MB): every word that is a table's name counts")

    def _mentions_in(self, content: mmap.mmap) -> Iterator[tuple[int, Mention, str]]:
        line, position = 1, 0
        for match in self._tables.raw_words.finditer(content):
            while position < match.start():
                piece = content[position : min(match.start(), position + MAX_BYTES)]
                line += piece.count(b"\n")
                position += len(piece)
            before = content.rfind(b"\n", max(0, position - _SNIPPET), position) + 1
            around = content[max(before, position - _SNIPPET) : position + _SNIPPET].split(b"\n", 1)[0]
            table = self._tables.find([match.group().decode("utf-8", "replace")])
            if table is not None:
                yield line, Mention(0, "text", table), around.decode("utf-8", "replace")

    def _decoded(self, file: Path, content: bytes, suffix: str) -> str:
        """Return the text with `\\n` at the end of every line."""
        try:
            if content.startswith(_UTF16):
                encoding = "utf-16"
            elif suffix in ("py", "pyi"):
                encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
            else:
                encoding = "utf-8-sig"
            text = content.decode(encoding)
        except (SyntaxError, ValueError, LookupError):
            self._warn(file, "is not UTF-8, nor in the encoding that it names: read as Latin-1")
            text = content.decode("latin-1")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def _add(self, file: Path, line: int, mention: Mention, text: str) -> None:
        snippet = " ".join(text.split())
        shown = snippet if len(snippet) <= _SNIPPET else f"{snippet[: _SNIPPET - 1]}…"
        self.accesses.append(Access(self._name(file), line, mention.kind, mention.table, shown))

    def _warn(self, file: Path, message: str) -> None:
        self.warnings.append(Warned(self._name(file), message))

    def _name(self, path: Path) -> str:
        """Return a path from the root; of a file above it that was looked at, too. It can always be printed."""
        name = Path(os.path.relpath(path, self._base)).as_posix()
        return os.fsencode(name).decode("utf-8", "backslashreplace")
