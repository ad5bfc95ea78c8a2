"""The characters of a text file as a stream of valid UTF-8: unpacked, decoded as declared, without byte-order mark."""

from __future__ import annotations

import codecs
import zipfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack, closing
from types import TracebackType
from typing import IO

from lakeward.errors import SourceFileError
from lakeward.sources.formats.escaped_text import ERRORS, encoded
from lakeward.sources.formats.packed_file import is_zip, unpacked
from lakeward.sources.source_file import SourceFile

_UTF8_BOM = codecs.BOM_UTF8
_UTF16_DECODERS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_OTHER_FORMATS = {b"PAR1": "a Parquet file", b"%PDF": "a PDF file"}
_READ_ERRORS = (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError)


class TextSource:
    """A text file, plain, in gzip, zstd or bzip2, or alone in a zip archive; which one is told by its first bytes.

    Args:
        file: the file.
        encoding: `utf-8`, `utf-16` or `latin-1`.
        kind: what the text is, for errors; only CSV may be declared to have another encoding.
        lines_read: tells how many lines were read, for errors; None: they are counted here.
        escape: marks bytes that are not in the encoding, and NULs, as `escaped_text` does; else they are refused.

    Raises:
        SourceFileError: by the constructor and by `read`: the file can't be opened or unpacked, its bytes are not in
            the declared encoding (with line and byte), or it holds a NUL.
    """

    def __init__(
        self,
        file: SourceFile,
        encoding: str,
        kind: str = "CSV",
        escape: bool = False,
        lines_read: Callable[[], int] | None = None,
    ) -> None:
        self.file = file
        self.encoding = encoding
        self._kind = kind
        self._escape = escape
        self._told_lines = lines_read
        self._counted_lines = 0
        self._ended = False
        self._opened = ExitStack()
        try:
            self._text = self._open()
            self._head = self._read_raw(4)
            self._refuse_other_formats()
            self._decoder = self._start_decoder()
        except SourceFileError:
            self.close()
            raise
        except _READ_ERRORS as error:
            self.close()
            raise self._unreadable(error) from error

    def __enter__(self) -> TextSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def read(self, size: int) -> bytes:
        """Return the UTF-8 form of the next `size` bytes or a little more, `b""` only at the end of the file."""
        while not self._ended:
            raw = self._head + self._read_raw(size)
            self._head = b""
            self._ended = not raw
            data = self._decoded(raw)
            if b"\0" in data and not self._escape:
                raise SourceFileError(
                    f"{self.file}: line {self._line_after(data[: data.index(0)])} holds a NUL byte; "
                    "is it a text file in the declared encoding?",
                    next_step=self._encoding_step("if the file is UTF-16, declare encoding utf-16"),
                    path=str(self.file),
                    line=self._line_after(data[: data.index(0)]),
                )
            if self._told_lines is None:
                self._counted_lines += data.count(b"\n")
            if data:
                return data
        return b""

    def _decoded(self, raw: bytes) -> bytes:
        if self.encoding != "utf-16" and raw.isascii() and b"\0" not in raw and not self._decoder.getstate()[0]:
            return raw
        try:
            text = self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError as error:
            raise self._undecodable(error) from error
        return encoded(text) if self._escape else text.encode()

    def _open(self) -> IO[bytes]:
        packed = self._opened.enter_context(closing(self.file.open()))
        if is_zip(packed):
            return self._open_zip(packed)
        return self._opened.enter_context(closing(unpacked(packed, self.file)))

    def _open_zip(self, packed: IO[bytes]) -> IO[bytes]:
        archive = self._opened.enter_context(zipfile.ZipFile(packed))
        # macOS adds a shadow entry for each file.
        members = [
            info for info in archive.infolist() if not info.is_dir() and not info.filename.startswith("__MACOSX/")
        ]
        if len(members) != 1 or members[0].flag_bits & 1:
            what = f"holds {len(members)} files" if len(members) != 1 else "is encrypted"
            raise SourceFileError(
                f"{self.file}: is a zip archive (or an Office document) that {what}; one plain file is needed",
                next_step="unpack it, or save the sheet as CSV",
                path=str(self.file),
            )
        return self._opened.enter_context(archive.open(members[0]))

    def _refuse_other_formats(self) -> None:
        if self._head in _OTHER_FORMATS:
            raise SourceFileError(
                f"{self.file}: is {_OTHER_FORMATS[self._head]}, not {self._kind} text",
                next_step="name the right format",
                path=str(self.file),
            )

    def _read_raw(self, size: int) -> bytes:
        try:
            return self._text.read(size)
        except _READ_ERRORS as error:
            raise self._unreadable(error) from error

    def _start_decoder(self) -> codecs.IncrementalDecoder:
        bom16 = self._head[:2] if self._head[:2] in _UTF16_DECODERS else None
        if self.encoding == "utf-16":
            if bom16 is None:
                raise self._wrong_encoding("has no UTF-16 byte-order mark", "declare the encoding that it has")
            self._head = self._head[2:]
            return codecs.getincrementaldecoder(_UTF16_DECODERS[bom16])(self._errors)
        if bom16 is not None:
            raise self._wrong_encoding(
                f"starts with the mark of UTF-16, not {self.encoding}", "declare encoding utf-16"
            )
        if self._head.startswith(_UTF8_BOM):
            if self.encoding != "utf-8":
                raise self._wrong_encoding("starts with the mark of UTF-8, not latin-1", "declare encoding utf-8")
            self._head = self._head[len(_UTF8_BOM) :]
        return codecs.getincrementaldecoder(self.encoding)(self._errors)

    @property
    def _errors(self) -> str:
        return ERRORS if self._escape else "strict"

    def _line_after(self, data: bytes) -> int:
        read = self._counted_lines if self._told_lines is None else self._told_lines()
        return read + data.count(b"\n") + 1

    def _wrong_encoding(self, what: str, next_step: str) -> SourceFileError:
        step = self._encoding_step(next_step)
        return SourceFileError(f"{self.file}: {what}", next_step=step, path=str(self.file), line=1)

    def _encoding_step(self, for_csv: str) -> str:
        return for_csv if self._kind == "CSV" else "save the file as UTF-8"

    def _undecodable(self, error: UnicodeDecodeError) -> SourceFileError:
        codec = self.encoding if self.encoding != "utf-16" else error.encoding
        good = error.object[: error.start].decode(codec).encode()
        line = self._line_after(good)
        step = "declare encoding latin-1, if that is what the file is" if self.encoding == "utf-8" else None
        wrong = error.object[error.start : max(error.end, error.start + 1)].hex(" ")
        return SourceFileError(
            f"{self.file}: line {line} is not {self.encoding}: byte 0x{wrong} after "
            f"{good.decode()[-20:].rpartition(chr(10))[2]!r}",
            next_step=self._encoding_step(step) if step else None,
            path=str(self.file),
            line=line,
            byte=f"0x{wrong}",
        )

    def _unreadable(self, error: BaseException) -> SourceFileError:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return SourceFileError(f"{self.file}: can't be read: {reason}", path=str(self.file))
