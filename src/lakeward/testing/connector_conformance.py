"""What every connector keeps to, as tests: yours inherits them, and says how its source is written to.

    class TestSqlite(ConnectorConformance):
        @pytest.fixture
        def scene(self, tmp_path):
            return SqliteScene(tmp_path)

Nothing of a workspace is needed: the suite reads windows as a sync does, keeps positions as JSON, and compares what it
has with what was written. See `docs/connectors.md`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from lakeward.control.records import FileRead
from lakeward.errors import LakewardError, NotAllowed, UsageError
from lakeward.sources.allowed import Allowed
from lakeward.sources.connector import CHANGED, FULL, NEW, Connector, ReadWindow, Snapshot, SourceTable, TableRead
from lakeward.types.logical import parse_type
from lakeward.types.table import arrow_type

Row = tuple[int, str]

LARGEST_BATCH = 32 << 20
"""Bytes that one batch may take, about: memory of a sync does not grow with the table."""

_LOOKS = 400
"""So many windows are read until all rows have come: some may wait for a transaction that still runs."""

_NOTHING = Allowed(hosts=(), paths=(), references=())


class ConnectorScene(ABC):
    """A source to test with, which has one table of columns `id` (a whole number) and `note` (text)."""

    connector: ClassVar[type[Connector]]

    one_moment: ClassVar[bool] = True
    """Whether a snapshot does not see what is written while it is held. Say why in the connector, if it does."""

    secrets: tuple[str, ...] = ()
    """What must be in no error: passwords of the options, in whatever form."""

    @abstractmethod
    def options(self) -> Mapping[str, Any]:
        """Return the options by which the source is reached, as they are stored."""

    @abstractmethod
    def unreachable(self) -> Mapping[str, Any]:
        """Return options that lead to no such source."""

    @property
    @abstractmethod
    def table(self) -> str:
        """The full name of the table."""

    @abstractmethod
    def write(self, rows: Sequence[Row]) -> None:
        """Add rows to the table; the first call has some before anything is read."""


class ConnectorConformance:
    """The tests. A subclass has a fixture `scene`, which returns a fresh `ConnectorScene`."""

    def test_it_can_be_found_and_its_options_are_documented(self, scene: ConnectorScene) -> None:
        """It has a name and a docstring, and each option a description; options come back the same from JSON."""
        kind = scene.connector
        _check(bool(kind.name) and bool(kind.__doc__), "a connector has a `name`, and a docstring that lists show")
        for name, field in kind.options.model_fields.items():
            _check(bool(field.description), f"option {name} has no description, which `docs/sources.md` shows")
        options = kind.options.model_validate(dict(scene.options()))
        stored = json.loads(json.dumps(options.model_dump(mode="json")))
        _check(kind.options.model_validate(stored) == options, "options are stored as JSON, and come back the same")

    def test_tables_are_told_in_order_and_the_same_each_time(self, scene: ConnectorScene) -> None:
        """Tables come once, by name, and each column has a type, or a reason why it has none."""
        scene.write([(1, "a")])
        with made(scene) as connector:
            tables = connector.discover()
            _check(tables == connector.discover(), "the same tables are told each time")
        names = [table.full_name for table in tables]
        _check(names == sorted(names) and len(set(names)) == len(names), f"tables are told once, by name: {names}")
        _check(scene.table in names, f"{scene.table} is among {names}")
        for column in (column for table in tables for column in table.columns):
            if column.type is None:
                _check(bool(column.refused), f"column {column.name} has no type, and nothing says why")
            else:
                parse_type(column.type)

    def test_a_full_read_has_every_row_in_the_types_that_are_asked_for(self, scene: ConnectorScene) -> None:
        """`FULL`: every row once, columns in the order and types of the window."""
        written = [(number, f"note {number}") for number in range(100)]
        scene.write(written)
        with made(scene) as connector:
            table = _described(connector, scene)
            types = dict(reversed([(column.name, str(column.type)) for column in table.columns]))
            with connector.snapshot() as snapshot:
                read = snapshot.read(ReadWindow(table, types)).rows
                fields = [(field.name, field.type) for field in read.schema]
                rows = read.read_all().select(["id", "note"]).to_pylist()
        wanted = [(name, arrow_type(parse_type(type_))) for name, type_ in types.items()]
        _check(fields == wanted, f"columns come in the order and types of the window: {fields}, not {wanted}")
        _check(Counter(map(_row, rows)) == Counter(written), "a full read has every row, once")

    def test_of_what_was_written_between_two_windows_nothing_is_skipped_or_it_is_refused(
        self, scene: ConnectorScene
    ) -> None:
        """`CHANGED`, matched by the key: what was read may come again, and is the same."""
        self._windows(scene, CHANGED, matched=True)

    def test_new_rows_come_once_with_a_key_if_the_table_is_followed(self, scene: ConnectorScene) -> None:
        """`NEW`, matched by the key."""
        self._windows(scene, NEW, matched=True)

    def test_new_rows_come_once_without_a_key_or_are_refused(self, scene: ConnectorScene) -> None:
        """`NEW`, where a row that came twice would be there twice."""
        self._windows(scene, NEW, matched=False)

    def _windows(self, scene: ConnectorScene, what: str, *, matched: bool) -> None:
        written = [(number, f"note {number}") for number in range(5)]
        scene.write(written)
        with made(scene) as connector:
            reader = _Reader(connector, _described(connector, scene), what, matched)
            if reader.refused():
                told = reader.table.followed and what == NEW and matched
                _check(not told, "of a table that is `followed`, new rows can be told where they are known by a key")
                return
            for first in (5, 10, 15):
                reader.until(written)
                # Also while a snapshot is held: what it does not see comes with the next window.
                with connector.snapshot() as snapshot:
                    new = [(number, f"note {number}") for number in range(first, first + 5)]
                    reader.take(snapshot)
                    scene.write(new)
                written += new
            reader.until(written)
            before = reader.rows.copy()
            reader.window()
            extra = reader.rows - before
            _check(matched or not extra, f"rows that were read came again: {extra}")
            _check(reader.follows, "the position is that of the same table")

    def test_a_snapshot_is_one_moment_for_each_of_its_readers(self, scene: ConnectorScene) -> None:
        """What is written later is not seen, by readers beside it neither; unless the scene says otherwise."""
        written = [(1, "a"), (2, "b")]
        scene.write(written)
        with made(scene) as connector:
            table = _described(connector, scene)
            with connector.snapshot() as snapshot:
                _check(_all(snapshot, table) == Counter(written), "a snapshot sees what was written before it")
                beside = snapshot.beside()
                scene.write([(3, "c")])
                if scene.one_moment:
                    _check(_all(snapshot, table) == Counter(written), "a snapshot sees nothing that is written later")
                if beside is not None:
                    with beside as other:
                        seen = _all(other, table)
                    _check(not scene.one_moment or seen == Counter(written), "another reader sees the same moment")

    def test_batches_are_bounded(self, scene: ConnectorScene) -> None:
        """A table of 50 MB comes in batches of at most `LARGEST_BATCH`."""
        text = "x" * 1_000
        scene.write([(number, text) for number in range(50_000)])
        rows = 0
        with made(scene) as connector:
            table = _described(connector, scene)
            with connector.snapshot() as snapshot:
                for batch in snapshot.read(ReadWindow(table, _types(table))).rows:
                    rows += batch.num_rows
                    _check(batch.nbytes <= LARGEST_BATCH, f"a batch of {batch.nbytes:,} bytes")
        _check(rows == 50_000, f"{rows} rows of 50,000")

    def test_what_is_given_up_in_the_middle_leaves_the_source_usable(self, scene: ConnectorScene) -> None:
        """A stream that nobody reads to its end is no harm to the next one."""
        written = [(number, "x" * 100) for number in range(20_000)]
        scene.write(written)
        with made(scene) as connector:
            table = _described(connector, scene)
            with connector.snapshot() as snapshot:
                next(iter(snapshot.read(ReadWindow(table, _types(table))).rows))
                snapshot.give_up()
            with connector.snapshot() as snapshot:
                _check(_all(snapshot, table) == Counter(written), "the next snapshot reads all rows")

    def test_errors_are_named_and_hold_no_secret(self, scene: ConnectorScene) -> None:
        """A source that is not there is an error of Lakeward's, without any of the scene's secrets."""

        def ask() -> None:
            with made(scene, scene.unreachable()) as connector:
                _read(connector, scene)

        error = raised(ask, LakewardError)
        told = f"{error} {error.to_json()} {error.__cause__!r}"
        _check(not any(secret in told for secret in scene.secrets), "an error repeats a secret")

    def test_nothing_is_opened_that_is_not_allowed(self, scene: ConnectorScene) -> None:
        """Where nothing may be reached, nothing is."""
        scene.write([(1, "a")])

        def ask() -> None:
            with made(scene, allowed=_NOTHING) as connector:
                _read(connector, scene)

        raised(ask, NotAllowed)

    def test_closing_is_repeated_without_harm(self, scene: ConnectorScene) -> None:
        """Before anything was asked for, after it, and twice."""
        scene.write([(1, "a")])
        with made(scene) as unused:
            unused.close()
        with made(scene) as connector:
            _read(connector, scene)
            connector.close()
            connector.close()


@contextmanager
def made(
    scene: ConnectorScene, options: Mapping[str, Any] | None = None, allowed: Allowed | None = None
) -> Iterator[Connector]:
    """Hold the connector of a scene."""
    kind = scene.connector
    given = kind.options.model_validate(dict(scene.options() if options is None else options))
    connector = kind.made(given, allowed or Allowed())
    try:
        yield connector
    finally:
        connector.close()


def raised(run: Callable[[], object], kind: type[LakewardError]) -> LakewardError:
    """Return the error of that kind that a call raises; AssertionError: it raises none."""
    try:
        run()
    except kind as error:
        return error
    raise AssertionError(f"it raises no {kind.__name__}")


class _Reader:
    """Reads window after window, as a sync does: what it knows of the last one is what a sync has stored."""

    def __init__(self, connector: Connector, table: SourceTable, what: str, matched: bool) -> None:
        self.table = table
        self.rows: Counter[Row] = Counter()
        self.follows = False
        self._connector = connector
        self._window = ReadWindow(table, _types(table), what, matched=matched)
        self._seen: dict[str, FileRead] = {}

    def read(self, snapshot: Snapshot) -> TableRead:
        """Begin to read the next window."""
        return snapshot.read(replace(self._window, seen=lambda: self._seen))

    def refused(self) -> bool:
        """Say whether the first window can't be promised, which is to be said by a UsageError before any row."""
        try:
            with self._connector.snapshot() as snapshot:
                self.read(snapshot)
        except UsageError:
            return True
        return False

    def take(self, snapshot: Snapshot) -> None:
        """Read the next window."""
        read = self.read(snapshot)
        rows = Counter(map(_row, read.rows.read_all().select(["id", "note"]).to_pylist()))
        if self._window.matched:
            # Known again by their keys.
            rows = Counter({row: count for row, count in rows.items() if row not in self.rows})
        self.rows += rows
        self.follows = read.follows
        self._seen |= {file.path: file for file in read.files()}
        # A table is described for the first sync alone: later ones have the types of the dataset that it made.
        table = next(each for each in self._connector.discover() if each.full_name == self.table.full_name)
        self._window = replace(self._window, table=table, after=json.loads(json.dumps(read.position)))

    def window(self) -> None:
        """Read the next window in a snapshot of its own."""
        with self._connector.snapshot() as snapshot:
            self.take(snapshot)

    def until(self, written: Sequence[Row]) -> None:
        """Read windows until all that was written is there; each row once."""
        for _ in range(_LOOKS):
            self.window()
            if sum(self.rows.values()) >= len(written):
                break
        twice, missing = self.rows - Counter(written), Counter(written) - self.rows
        _check(not twice and not missing, f"read but not written, or twice: {twice}; not read: {missing}")


def _described(connector: Connector, scene: ConnectorScene) -> SourceTable:
    table = next(each for each in connector.discover() if each.full_name == scene.table)
    return connector.described(table, {}, lambda what: None)


def _read(connector: Connector, scene: ConnectorScene) -> Counter[Row]:
    table = _described(connector, scene)
    with connector.snapshot() as snapshot:
        return _all(snapshot, table)


def _all(snapshot: Snapshot, table: SourceTable) -> Counter[Row]:
    rows = snapshot.read(ReadWindow(table, _types(table), FULL)).rows.read_all()
    return Counter(map(_row, rows.select(["id", "note"]).to_pylist()))


def _types(table: SourceTable) -> dict[str, str]:
    return {column.name: str(column.type) for column in table.columns}


def _row(values: Mapping[str, Any]) -> Row:
    return int(values["id"]), str(values["note"])


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)
