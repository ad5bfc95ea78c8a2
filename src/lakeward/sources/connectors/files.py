"""Files as a source: each pattern of names is a table, whose rows are those of the files that it stands for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from lakeward.errors import SettingsError, UsageError
from lakeward.sources.allowed import Allowed
from lakeward.sources.connector import Connector, ReadWindow, Snapshot, SourceColumn, SourceTable, TableRead
from lakeward.sources.connectors.files_read import FilesRead
from lakeward.sources.file_formats import checked_options, format_named
from lakeward.sources.file_patterns import FoundFile, find_files, folder_of, has_magic
from lakeward.sources.file_set import FileSet, RejectsOf
from lakeward.sources.file_types import are_all, with_declared
from lakeward.sources.object_store import ObjectStore, StoreAccess, is_location
from lakeward.sources.references import is_reference
from lakeward.sources.source_file import FileState

_NAMED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9_-]*)=(?P<pattern>.+)", re.DOTALL)
_SECRETS = ("access_key_id", "secret_access_key", "session_token")
POSITION: Mapping[str, Any] = {}
"""Up to where a table was read is said by the files that were."""


class FilesOptions(BaseModel):
    """Where files are, and how they are written down. The format's own options stand beside these."""

    model_config = ConfigDict(extra="allow", frozen=True)

    path: tuple[str, ...] = Field(
        description="A file, a folder, a pattern of names (`data/*.csv`, `**`), or `s3://bucket/key` and patterns of "
        "it; several, each a table. `NAME=PATTERN` names the table; patterns of one name are one table."
    )
    format: str | None = Field(None, description="The format; unset: by the ends of the files' names.")
    endpoint: str | None = Field(None, description="The address of a store of your own, https://host:port; unset: AWS.")
    region: str | None = Field(None, description="The store's region; unset: as the machine says, or AWS is asked.")
    access_key_id: str | None = Field(
        None, description="Who asks the store, as a reference; unset: AWS's usual variables, files and roles."
    )
    secret_access_key: str | None = Field(None, description="The secret of the key, as a reference.")
    session_token: str | None = Field(None, description="The token of a passing key, as a reference.")
    anonymous: bool = Field(False, description="`true` to ask the store without a key.")

    @field_validator("path", mode="before")
    @classmethod
    def _each(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("path")
    @classmethod
    def _whole(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        # Another directory would make another pattern of it.
        return tuple(_absolute(each) for each in value)

    @field_validator(*_SECRETS)
    @classmethod
    def _referred(cls, value: str | None) -> str | None:
        if value is not None and not is_reference(value):
            raise ValueError("it is a secret, which would be stored in clear: give env:NAME or file:/path")
        return value

    @property
    def tables(self) -> dict[str, tuple[str, ...]]:
        """The patterns of each table, by its name."""
        found: dict[str, tuple[str, ...]] = {}
        for each in self.path:
            named = _NAMED.fullmatch(each)
            pattern = named["pattern"] if named else each
            name = named["name"] if named else table_name(pattern)
            found[name] = (*found.get(name, ()), pattern)
        return found


@dataclass(frozen=True, kw_only=True)
class FilesTable(SourceTable):
    """The files of some patterns.

    Args:
        patterns: which.
        scanned: those that its columns were found in, and their states then; None: its columns were not looked for.
    """

    patterns: tuple[str, ...]
    scanned: tuple[tuple[FoundFile, FileState], ...] | None = None


class FilesSource(Connector):
    """Files of this machine or of an object store, of one format for each table; only those that are new are read."""

    name: ClassVar[str] = "files"
    options: ClassVar[type[BaseModel]] = FilesOptions
    rejects: ClassVar[bool] = True

    def __init__(self, options: FilesOptions, allowed: Allowed) -> None:
        self._options = options
        self._allowed = allowed
        self._format_options = dict(options.model_extra or {})
        self._store = ObjectStore(_access(options, allowed))

    @classmethod
    def made(cls, options: BaseModel, allowed: Allowed) -> FilesSource:
        """Return the files of some patterns; nothing is looked for before it is asked for."""
        assert isinstance(options, FilesOptions)
        made = cls(options, allowed)
        made._check_format()
        made._check_allowed()
        return made

    def discover(self) -> list[SourceTable]:
        """Return a table for each name; files are not looked for."""
        return [
            FilesTable("", name, (), (), None, followed=True, typed=False, patterns=patterns)
            for name, patterns in self._options.tables.items()
        ]

    def about(self, table: SourceTable) -> str:
        """Return how many files there are; none of them is read.

        Raises:
            UsageError: a folder does not exist, or an option is none of the files' format.
            SourceError: a store can't be asked.
        """
        assert isinstance(table, FilesTable)
        found = self._found(table.patterns)
        if found:
            self._opened(found)
        return f"{len(found):,} {'file' if len(found) == 1 else 'files'}"

    def described(
        self,
        table: SourceTable,
        columns: Mapping[str, str],
        told: Callable[[str], None],
        text: Collection[str] = (),
        rejects: RejectsOf | None = None,
    ) -> SourceTable:
        """Return a table with its columns: as they were declared, and the others as a full scan of all files finds."""
        assert isinstance(table, FilesTable)
        found = self._found(table.patterns)
        if columns and not found:
            return replace(table, columns=_columns(columns))
        if not found:
            raise UsageError(
                f"no file is there yet for {', '.join(table.patterns)}",
                safe="nothing was changed",
                next_step="sync when there is one, or declare the columns: --column NAME=TYPE",
                table=table.name,
            )
        files = self._opened(found, text)
        if are_all(columns, files):
            return replace(table, columns=_columns(columns))
        profile = files.scan(lambda file: told(f"reading {file.name} from end to end"), rejects, declared=columns)
        scanned = tuple((each, files.states[each.file]) for each in found)
        types = with_declared(profile.columns, columns, files)
        return replace(table, columns=_columns(types), rows=profile.rows, scanned=scanned)

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Hold nothing: each file is listed when its table is read, and must not change while it is."""
        yield FilesSnapshot(self)

    def read(self, window: ReadWindow) -> TableRead:
        """Stream the rows of the files of a window; see `FilesRead`."""
        table = window.table
        assert isinstance(table, FilesTable)
        scanned = dict(table.scanned) if table.scanned is not None else None
        found = list(scanned) if scanned is not None else self._found(table.patterns)
        read = FilesRead(found, partial(self._opened, text=window.text), window, scanned or {})
        follows = window.after is not None
        return TableRead(read.stream(), POSITION, follows, files=read.files, touched=read.touched, left=read.left)

    def close(self) -> None:
        """Do nothing: nothing is kept open."""

    def _found(self, patterns: tuple[str, ...]) -> list[FoundFile]:
        for pattern in patterns:
            folder = folder_of(pattern)
            if has_magic(pattern) and not is_location(pattern) and not os.path.isdir(folder):
                raise UsageError(
                    f"the folder {folder} does not exist, of {pattern}",
                    safe="nothing was changed",
                    next_step="make it, or correct the path",
                    path=pattern,
                )
        return find_files(patterns, self._store, self._allowed)

    def _opened(self, found: Sequence[FoundFile], text: Collection[str] = ()) -> FileSet:
        return FileSet([each.file for each in found], self._options.format, self._format_options, text)

    def _check_allowed(self) -> None:
        """Refuse patterns of places that may not be read, before there are files of theirs."""
        for pattern in (each for patterns in self._options.tables.values() for each in patterns):
            self._allowed.location(folder_of(pattern) or "." if has_magic(pattern) else pattern)

    def _check_format(self) -> None:
        """Refuse options that the format has not, where the format is told."""
        if self._options.format is not None:
            checked_options(format_named(self._options.format), self._format_options)


class FilesSnapshot(Snapshot):
    """What is read of files at one time.

    Args:
        source: the files.
    """

    def __init__(self, source: FilesSource) -> None:
        self._source = source

    def read(self, window: ReadWindow) -> TableRead:
        """Stream the rows of the files of a window."""
        return self._source.read(window)

    def beside(self) -> AbstractContextManager[Snapshot]:
        """Return another one, since nothing is held."""
        return self._source.snapshot()


def table_name(pattern: str) -> str:
    """Return what a table is called whose pattern has no name: the start of its files' names, or else their folder.

    Example:
        >>> [table_name(each) for each in ("/data/orders.csv.gz", "/data/orders_*.csv", "s3://shop/2024/**/*.csv")]
        ['orders', 'orders', '2024']
    """
    folder, _, last = pattern.rstrip("/").rpartition("/")
    # A folder has no suffix to be cut off.
    start = re.split(r"[*?\[]", last)[0] if has_magic(last) else last
    name = start.partition(".")[0].strip(" _-")
    while not name and folder:
        folder, _, above = folder.rpartition("/")
        name = "" if has_magic(above) else above.strip()
    return name or "files"


def _absolute(text: str) -> str:
    named = _NAMED.fullmatch(text)
    name, pattern = (f"{named['name']}=", named["pattern"]) if named else ("", text)
    try:
        place = pattern if is_location(pattern) else os.path.abspath(os.path.expanduser(pattern))
    except UsageError as error:
        raise ValueError(error.message) from None
    return f"{name}{place}"


def _access(options: FilesOptions, allowed: Allowed) -> StoreAccess:
    given = {name: getattr(options, name) for name in (*_SECRETS, "endpoint", "region")}
    access = StoreAccess(
        **{name: None if value is None else allowed.resolved(value) for name, value in given.items()},
        anonymous=options.anonymous,
    )
    if access.endpoint is not None:
        place = urlsplit(access.endpoint if "://" in access.endpoint else f"https://{access.endpoint}")
        if not place.hostname or "@" in place.netloc:
            raise SettingsError(
                "option 'endpoint' is no address of a store, or holds a secret",
                safe="nothing was changed",
                next_step="write https://host:port",
                option="endpoint",
            )
        allowed.addresses(place.hostname, place.port or (80 if place.scheme == "http" else 443))
    return access


def _columns(types: Mapping[str, str]) -> tuple[SourceColumn, ...]:
    return tuple(SourceColumn(name, type_, type_) for name, type_ in types.items())
