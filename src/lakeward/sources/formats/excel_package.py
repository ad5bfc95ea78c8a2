"""The zip archive of a workbook and the XML in it: bounded, without document types, every fault told as the file's.

A document type can define entities that grow without end or read other files. Office Open XML (ECMA-376, part 2, 7.2)
forbids it, so that it is refused wherever it stands.
"""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO
from xml.parsers import expat

from lakeward.errors import SourceFileError
from lakeward.sources.source_file import SourceFile

_CHUNK = 1 << 16
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_OF_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
# Sheets pack 10 to 30 times, those of equal cells up to 100 times. Deflate itself ends at 1,032.
_MAX_RATIO = 250
_RATIO_FROM = 1 << 24
_MAX_KEPT = 1 << 30

Attributes = Mapping[str, str]
Start = Callable[[str, Attributes], None]
End = Callable[[str], None]
Text = Callable[[str], None]


class Package:
    """The parts of an open workbook.

    Args:
        stream: its bytes.
        file: which file it is, for errors.

    Raises:
        SourceFileError: by every method: it is no workbook, is protected by a password, is damaged or grows too much.
    """

    def __init__(self, stream: IO[bytes], file: SourceFile) -> None:
        self._file = file
        self._check_no_ole(stream)
        with self._faults():
            self._zip = zipfile.ZipFile(stream)

    def has(self, name: str) -> bool:
        """Tell whether there is a part of that name."""
        return name in self._zip.NameToInfo

    def parse(self, name: str, start: Start, end: End, text: Text, kept: bool = True) -> Iterator[None]:
        """Parse a part piece by piece, and yield after each piece.

        Args:
            name: of the part.
            start: is told each element's local name and attributes.
            end: is told each local name when the element ends.
            text: is told the text between, in pieces.
            kept: what is parsed is kept in memory, so that the part's size is bounded.
        """
        info = self._checked(name, kept)
        parser = expat.ParserCreate()
        parser.buffer_text = True
        locals_: dict[str, str] = {}

        def local(tag: str) -> str:
            found = locals_.get(tag)
            if found is None:
                found = locals_[tag] = tag.rpartition(":")[2]
            return found

        def refuse_doctype(*_: object) -> None:
            raise self.damaged(f"{name} declares a document type, which no workbook may have")

        parser.StartElementHandler = lambda tag, attributes: start(local(tag), attributes)
        parser.EndElementHandler = lambda tag: end(local(tag))
        parser.CharacterDataHandler = text
        parser.StartDoctypeDeclHandler = refuse_doctype
        with self._faults(name), self._zip.open(info) as part:
            while chunk := part.read(_CHUNK):
                parser.Parse(chunk)
                yield
            parser.Parse(b"", True)
            yield

    def related(self, name: str) -> dict[str, list[tuple[str, str]]]:
        """Return the parts that a part refers to: id and name of each, by the last word of the kind of reference.

        Args:
            name: of the part; empty: the package itself.
        """
        folder, _, last = name.rpartition("/")
        path = posixpath.join(folder, "_rels", f"{last}.rels")
        found: dict[str, list[tuple[str, str]]] = {}

        def start(tag: str, attributes: Attributes) -> None:
            if tag == "Relationship" and attributes.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, attributes.get("Target", "")))
                kind = attributes.get("Type", "").rpartition("/")[2]
                found.setdefault(kind, []).append((attributes.get("Id", ""), target.lstrip("/")))

        if self.has(path):
            for _ in self.parse(path, start, lambda tag: None, lambda text: None):
                pass
        return found

    def damaged(self, what: str, next_step: str | None = None) -> SourceFileError:
        """Return the error that says what is wrong with the file."""
        return SourceFileError(f"{self._file}: {what}", next_step=next_step, path=str(self._file))

    def _checked(self, name: str, kept: bool) -> zipfile.ZipInfo:
        if not self.has(name):
            raise self.damaged(f"has no part {name}, so it is damaged")
        info = self._zip.getinfo(name)
        if info.flag_bits & 1:
            raise self.damaged(f"{name} is encrypted", "save the workbook without a password")
        # More than the declared size is never unpacked: zipfile ends there, and compares the checksum.
        ratio = info.file_size / max(info.compress_size, 1)
        if info.file_size > _RATIO_FROM and ratio > _MAX_RATIO:
            raise self.damaged(f"{name} unpacks to {ratio:,.0f} times its size; at most {_MAX_RATIO} times is read")
        if kept and info.file_size > _MAX_KEPT:
            raise self.damaged(
                f"{name} unpacks to {info.file_size:,} bytes, which are kept in memory; at most {_MAX_KEPT:,} are read",
                "save the sheet as CSV",
            )
        return info

    def _check_no_ole(self, stream: IO[bytes]) -> None:
        with self._faults():
            head = stream.read(len(_OLE))
            if head == _OLE:
                before = b""
                while chunk := stream.read(_CHUNK):
                    if _OLE_OF_ENCRYPTED in before + chunk:
                        raise self.damaged("is protected by a password", "save it without one")
                    before = chunk[-len(_OLE_OF_ENCRYPTED) :]
                raise self.damaged("is a workbook of the old format (.xls)", "save it as .xlsx")
            stream.seek(0)
        if head[:2] != b"PK":
            raise self.damaged("is no Excel workbook", "name the format that it has: --format")

    @contextmanager
    def _faults(self, part: str = "") -> Iterator[None]:
        """Raise whatever a damaged file makes the readers of zip and XML raise as the file's error."""
        try:
            yield
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, expat.ExpatError) as error:
            raise self.damaged(f"{part or 'the archive'} is damaged: {error}") from error
        except OSError as error:
            raise self.damaged(f"can't be read: {error.strerror or error}") from error
