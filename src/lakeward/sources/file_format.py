"""What a file format must offer to be imported: a full scan that proposes types, and a typed stream of batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from lakeward.errors import ColumnMismatch, SourceFileError
from lakeward.sources.kept_rows import KeptRows
from lakeward.sources.rejects import Rejects
from lakeward.sources.source_file import SourceFile, source_file
from lakeward.types.schema import name_key


@dataclass(frozen=True)
class FileProfile:
    """What a scan of the whole file found, and of those before it.

    Args:
        columns: the logical type text of each column, in file order.
        rows: how many there are.
        found: the format's own, by which the scan of another file goes on.
    """

    columns: Mapping[str, str]
    rows: int
    found: Any = field(default=None, compare=False, repr=False)


class FormatOptions(BaseModel):
    """How files of a format are written down, each field with its description; of most nothing has to be told."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FileFormat(ABC):
    """One file of rows in one format. The file is opened by each call, and never changed.

    Args:
        file: a path is a file of this machine.
        options: an instance of the class's `options`; None: their defaults.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    options: ClassVar[type[FormatOptions]] = FormatOptions
    names_first: ClassVar[bool] = True
    """Whether a file says which columns it has before its rows, and `read` refuses others at once."""

    def __init__(self, file: Path | SourceFile, options: Any = None) -> None:
        self.file = source_file(file)
        self.text: Collection[str] = ()
        """Columns that are text by choice, whatever their values are: a scan refuses none, and proposes `string`."""
        self.required: Collection[str] = ()
        """Columns in which a record must have a value. Only a read with `rejects` looks at that."""
        self.kept: KeptRows | None = None
        """Is given the rows by a scan that converts them anyway; other scans leave it alone."""

    @abstractmethod
    def scan(self, before: FileProfile | None = None, rejects: Rejects | None = None) -> FileProfile:
        """Read the file from end to end in bounded memory, and propose a type for each column.

        Args:
            before: what was found in files of the same format and options; what is found now is true of them, too. One
                without columns: several files are scanned, and this is the first with any.
            rejects: is told the records that can't be read, which are left out; None: the first one ends the scan.

        Raises:
            SourceFileError: the file is not what it claims to be.
            ColumnMismatch: it has not the columns of those before it.
        """

    @abstractmethod
    def read(self, types: Mapping[str, str], rejects: Rejects | None = None) -> pa.RecordBatchReader:
        """Stream the file's rows.

        Args:
            types: the logical type text of every column, in the order that the batches shall have.
            rejects: is told the records that can't be taken, which are left out; None: the first one ends the read.

        Raises:
            ColumnMismatch: `types` does not name exactly the file's columns.
            SchemaError: a type text is wrong, or the format can't hold the type.
            SourceFileError: the file is not what it claims to be, or a value can't be converted without loss; the
                latter is raised while the batches are read.
        """


OTHERS = "those of the files before it"
"""Whose columns a file has to have that is scanned after others."""


def check_names(names: Sequence[str], file: Path | SourceFile) -> None:
    """Refuse column names that could not stand side by side: empty ones, and twins by case or Unicode form.

    Numbering the twins (`kg`, `kg_1`) was refused: the number can hit a real column, and depends on the order.

    Raises:
        SourceFileError: with the positions (from 1) and the original names.
    """
    empty = [position for position, name in enumerate(names, start=1) if not name.strip()]
    if empty:
        raise SourceFileError(
            f"{file}: column {', '.join(map(str, empty))} has an empty name in the header",
            next_step="name the column in the file",
            path=str(file),
            line=1,
            columns=empty,
        )
    groups: dict[str, list[str]] = {}
    for position, name in enumerate(names, start=1):
        groups.setdefault(name_key(name), []).append(f"{name!r} (column {position})")
    twins = [entry for group in groups.values() if len(group) > 1 for entry in group]
    if twins:
        raise SourceFileError(
            f"{file}: column names are equal, or differ only in case or Unicode form: {', '.join(twins)}",
            next_step="rename all but one of them in the file",
            path=str(file),
            line=1,
            columns=twins,
        )


def check_columns(
    names: Sequence[str], types: Mapping[str, str], file: Path | SourceFile, whose: str = "the declared ones"
) -> None:
    """Refuse `types` that do not name exactly the file's columns, in whatever order.

    Raises:
        ColumnMismatch: with what is missing from the file and what it has too much.
    """
    missing = [name for name in types if name not in names]
    unexpected = [name for name in names if name not in types]
    if missing or unexpected:
        raise ColumnMismatch(
            f"{file}: the file's columns are not {whose}; "
            f"missing in the file: {', '.join(missing) or 'none'}; "
            f"only in the file: {', '.join(unexpected) or 'none'}",
            next_step="give the file these columns, or bring it into a dataset of its own",
            path=str(file),
            missing=missing,
            unexpected=unexpected,
        )
