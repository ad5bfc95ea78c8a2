"""Files into datasets: what an import will do, and the import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa

from lakeward.access.guard import may
from lakeward.control.history import History
from lakeward.control.routes import in_words
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import DataError, LakewardError, StorageError, UsageError
from lakeward.sources.allowed import Allowed
from lakeward.sources.file_patterns import find_files
from lakeward.sources.file_set import FileSet
from lakeward.sources.file_types import are_all, as_text, with_declared
from lakeward.sources.object_store import ObjectStore
from lakeward.sources.source_file import SourceFile
from lakeward.storage.facade import Storage
from lakeward.storage.requests import Output, WriteResult
from lakeward.storage.verbs import verb_named
from lakeward.types.conform import to_reader
from lakeward.types.schema import OP, Schema
from lakeward.wiring.counted_batches import CountedBatches, Progress
from lakeward.wiring.declaring import Declaration, declare
from lakeward.wiring.rejected import (
    COLUMNS,
    QUARANTINE,
    REFUSE,
    Apart,
    Limit,
    Tally,
    check_on_error,
    rejected_name,
)
from lakeward.wiring.repeated_rows import same_rows

WRITER = "dataset.import"
Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class ImportRequest:
    """What to import, and how.

    Args:
        dataset: the full name.
        paths: one or several: files of one format, folders, patterns of names, or `s3://bucket/key` and patterns of
            it. Rows stand in the order of the files' names, whatever that of the paths; one that comes twice is read
            once.
        columns: type texts by column; of those that are not named the dataset's, or those that a scan of all files
            proposes.
        primary_key: of a dataset that is made.
        arm: of a dataset that is made; None: `postgres`.
        mode: the name of a write verb; see `lakeward.storage.verbs`. For `changes` the file has a column `__op`, for
            `delete` it has the key columns alone.
        create: make the dataset if it does not exist.
        format: its name; None: by the ends of the files' names.
        options: how the files are written, by the names of its format's own options. For CSV: `CsvOptions`.
        allow_empty: lets `replace` and `mirror` take zero rows.
        idempotency_key: names the request: an import that is repeated with its key writes nothing.
        on_error: what becomes of records that can't be taken: `refuse` the import at the first, or `quarantine`: they
            go to the dataset `<dataset>__rejected`, visible together with the rows of the others.
        max_rejected: how many may: a number, or a part as `0.5%`; more refuse the import. None: any number.
        text: columns of a new dataset that are `string`, whatever their values look like.
    """

    dataset: str
    paths: Paths
    columns: Mapping[str, str] = field(default_factory=dict)
    primary_key: Sequence[str] = ()
    arm: str | None = None
    mode: str = "append"
    create: bool = True
    format: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    allow_empty: bool = False
    idempotency_key: str | None = None
    on_error: str = REFUSE
    max_rejected: str | int | None = None
    text: Sequence[str] = ()

    @property
    def patterns(self) -> list[str]:
        """The paths, each as text."""
        return [str(self.paths)] if isinstance(self.paths, str | Path) else list(map(str, self.paths))


class ImportHow(TypedDict, total=False):
    """The parts of an `ImportRequest` that may be left out, as keywords."""

    columns: Mapping[str, str]
    primary_key: Sequence[str]
    arm: str | None
    mode: str
    create: bool
    format: str | None
    options: Mapping[str, Any]
    allow_empty: bool
    idempotency_key: str | None
    on_error: str
    max_rejected: str | int | None
    text: Sequence[str]


@dataclass(frozen=True)
class ImportPlan:
    """A checked import: all files were read once if the dataset is new. Nothing was changed."""

    request: ImportRequest
    declaration: Declaration
    files: FileSet
    rows: int | None
    rejected: Declaration | None = None
    limit: Limit = field(default_factory=Limit)

    def actions(self) -> list[str]:
        """Return what the import does, in order."""
        request, existing = self.request, self.declaration.existing
        several = self.files.files if len(self.files.files) > 1 else []
        rows = f"{self.rows:,} rows" if self.rows is not None else "the rows"
        target = f"{self.declaration.name} on {in_words(self.declaration.mode)}"
        if existing is not None and request.mode == "replace":
            target += f", instead of its {existing.row_count:,} rows"
        elif existing is not None and verb_named(request.mode).clears:
            have = "the files do" if several else "the file does"
            target += f", and delete those of its {existing.row_count:,} rows that {have} not have"
        return [
            *self.declaration.actions(),
            *(f"read {file}" for file in several),
            f"{request.mode} {rows} of {self.files} to {target}, as one new version",
            *self._quarantine(),
        ]

    def _quarantine(self) -> list[str]:
        if self.rejected is None:
            return []
        return [
            *self.rejected.actions(),
            f"append records that can't be taken to {self.rejected.name}, visible with it",
        ]


@dataclass(frozen=True)
class ImportResult:
    """What an import did; `rows_read = rows_written + rows_rejected`: no record of a file is lost on the way.

    What became of them: `rows_written = rows_added + rows_updated + rows_unchanged + rows_skipped`, for `changes` and
    `delete` `+ rows_deleted`. `repeated` says that an earlier import with the same idempotency key wrote them, and
    `warnings` what is not as the dataset is expected to be, where that stops nothing.
    """

    dataset: str
    path: str
    files: tuple[str, ...]
    created: bool
    columns: Mapping[str, str]
    mode: str
    rows_read: int
    rows_written: int
    rows_rejected: int
    rejected_to: str | None
    rows_added: int
    rows_updated: int
    rows_unchanged: int
    rows_deleted: int
    rows_skipped: int
    version: int
    row_count: int
    committed: bool
    repeated: bool = False
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "warnings": list(self.warnings)}


class Importing:
    """Brings rows of files into the datasets of one workspace.

    Args:
        tree: of the workspace.
        storage: reads and writes.
        allowed: what may be imported from.
        scratch: where records wait that are rejected.
        history: of datasets.
    """

    def __init__(self, tree: Tree, storage: Storage, allowed: Allowed, scratch: Path, history: History) -> None:
        self._tree = tree
        self._history = history
        self._allowed = allowed
        self._storage = storage
        self._scratch = scratch

    def plan_import(self, request: ImportRequest, progress: Progress | None = None) -> ImportPlan:
        """Check an import, and read the files from end to end if their dataset is new. Changes nothing.

        Raises:
            NotAllowed: a file lies where nothing may be read.
            UsageError: a path leads to nothing, or the files are of several formats.
            SourceFileError: a file is not what it claims to be.
            SourceError: a store can't be asked for its objects.
            UnknownObject: the dataset does not exist and may not be made, or nothing reads a file.
            NameTaken: the dataset exists, and was declared otherwise.
        """
        verb = verb_named(request.mode)
        limit = check_on_error(request.on_error, request.max_rejected, verb.name, verb.keyed and verb.clears)
        files = _found(request, self._allowed if may("code.run") else self._allowed.strict())
        existing = self._tree.find(request.dataset)
        if existing is None and (verb.removes or not request.create):
            self._tree.dataset(request.dataset)
        if existing is None:
            self._tree.check_unused(request.dataset)
        if existing is not None:
            verb.check(existing.schema, existing.name)
            declaration = self._existing(request, existing)
            return ImportPlan(request, declaration, files, None, self._rejected(request, declaration), limit)
        if verb.keyed and not request.primary_key:
            raise UsageError(
                f"{verb.name} matches rows by a primary key, and the new dataset {request.dataset} has none",
                safe="nothing was changed",
                next_step="name the key columns: --key",
            )
        rows, columns = self._scan(files, request, limit, progress)
        if verb.per_row:
            columns = {name: type_ for name, type_ in columns.items() if name != OP}
        declaration = declare(self._tree, request.dataset, columns, request.primary_key, request.arm, mode=self._mode())
        return ImportPlan(request, declaration, files, rows, self._rejected(request, declaration), limit)

    def run_import(self, plan: ImportPlan, actor: str, progress: Progress | None = None) -> ImportResult:
        """Import; the rows become visible at once, or none does.

        Raises:
            SourceFileError, DataError: a value is refused; the dataset is unchanged.
            ConflictError: somebody else holds the dataset.
        """
        with closing(plan.files):
            return self._imported(plan, actor, progress)

    def _imported(self, plan: ImportPlan, actor: str, progress: Progress | None) -> ImportResult:
        request = plan.request
        taken = verb_named(request.mode).input_schema(plan.declaration.schema)
        types = {column.name: str(column.type) for column in taken.columns}
        apart = None
        if plan.rejected is not None:
            plan.files.required = plan.declaration.schema.primary_key
            read = partial(plan.files.read, types, None)
            apart = Apart(read, plan.declaration.name, plan.limit, self._scratch)
        try:
            reader = plan.files.read(types) if apart is None else apart.good_rows()
        except DataError as error:
            error.safe = error.safe or "nothing was changed"
            raise
        record = plan.declaration.carry_out(self._tree, actor)
        counted = CountedBatches(reader, f"importing {record.name}", plan.rows, progress)
        stream = pa.RecordBatchReader.from_batches(reader.schema, counted)
        rows, key = partial(to_reader, stream, taken, dataset=record.name), request.idempotency_key
        outputs = [Output(record, request.mode, rows, request.allow_empty, idempotency_key=key)]
        if plan.rejected is not None and apart is not None:
            rejected = plan.rejected.carry_out(self._tree, actor)
            outputs.append(Output(rejected, "append", apart.rejected_rows, idempotency_key=key))
        try:
            build = self._storage.build(outputs, writer=WRITER)
        except Exception as error:
            # On its way through other libraries an error of the file may have kept only its text.
            if counted.raised is not None and counted.raised is not error:
                raise _unchanged(counted.raised, record) from error
            if isinstance(error, LakewardError):
                _unchanged(error, record)
            raise
        written = next(each for each in build.transactions if each.dataset == record.name)
        if written.rows_in != counted.rows:
            raise StorageError(
                f"dataset {record.name}: {counted.rows} rows were read and {written.rows_in} written",
                dataset=record.name,
                rows_read=counted.rows,
                rows_written=written.rows_in,
            )
        if request.mode == "append" and key is None and written.committed:
            written = replace(
                written, warnings=(*written.warnings, *same_rows(self._history, self._storage, record, written))
            )
        return _result(plan, written, apart.rejected if apart is not None else 0)

    def _mode(self) -> str:
        """Return the mode of a dataset that an import makes, if no arm is declared."""
        return self._storage.flags.mode_of_new(WRITER)

    def _rejected(self, request: ImportRequest, declaration: Declaration) -> Declaration | None:
        """Return the dataset that rejected records go to, where the other one is; None: nothing is rejected."""
        if request.on_error != QUARANTINE:
            return None
        return declare(self._tree, rejected_name(declaration.name), COLUMNS, mode=declaration.mode)

    def _scan(
        self, files: FileSet, request: ImportRequest, limit: Limit, progress: Progress | None
    ) -> tuple[int, Mapping[str, str]]:
        """Read all files, so that a dataset is made for files that can be imported only."""

        def told(file: SourceFile) -> None:
            if progress is not None:
                progress(f"reading {file.name} from end to end", 0, None)

        quarantine = request.on_error == QUARANTINE
        columns = Schema.declare(request.columns).columns if request.columns else ()
        declared = {column.name: str(column.type) for column in columns}
        if are_all(declared, files):
            types = as_text(declared, request.text, files)
        else:
            found = Tally(request.dataset, limit)
            rejects = found.rejects_of if quarantine else None
            profile = files.scan(told, rejects, None if declared else self._scratch, declared)
            found.check(profile.rows)
            types = as_text(with_declared(profile.columns, declared, files), request.text, files)
            if not declared and (not quarantine or limit == Limit() or not request.primary_key):
                return profile.rows, types
        if quarantine:
            files.required = request.primary_key
            apart = Apart(partial(files.read, types, None), request.dataset, limit, self._scratch)
            batches: Iterable[pa.RecordBatch] = apart.good_rows()
        else:
            batches = files.check(types, self._scratch)
        counted = CountedBatches(batches, f"checking {files}", None, progress)
        for _ in counted:
            pass
        return counted.rows, types

    def _existing(self, request: ImportRequest, existing: DatasetRecord) -> Declaration:
        types = {column.name: str(column.type) for column in existing.schema.columns}
        # The order of columns is the dataset's; a declaration may have the file's, or be of some alone.
        columns = as_text({**types, **request.columns}, request.text, existing.name)
        key = list(request.primary_key) or existing.schema.primary_key
        declare(self._tree, existing.name, columns, key, request.arm, mode=self._mode())
        return Declaration(existing.name, existing.schema, existing.route.mode, existing)


def _found(request: ImportRequest, allowed: Allowed) -> FileSet:
    found = find_files(request.patterns, ObjectStore(), allowed)
    if not found:
        raise UsageError(
            f"no file is there for {', '.join(request.patterns) or 'an empty list of paths'}",
            safe="nothing was changed",
            next_step="correct the path or pattern; --dry-run shows what it stands for",
        )
    return FileSet([each.file for each in found], request.format, request.options, request.text)


def _result(plan: ImportPlan, written: WriteResult, rejected: int) -> ImportResult:
    return ImportResult(
        dataset=written.dataset,
        path=", ".join(plan.request.patterns),
        files=tuple(map(str, plan.files.files)),
        created=plan.declaration.existing is None,
        columns={column.name: str(column.type) for column in plan.declaration.schema.columns},
        mode=plan.request.mode,
        rows_read=written.rows_in + rejected,
        rows_written=written.rows_in,
        rows_rejected=rejected,
        rejected_to=plan.rejected.name if plan.rejected is not None and rejected else None,
        rows_added=written.rows_added,
        rows_updated=written.rows_updated,
        rows_unchanged=written.rows_unchanged,
        rows_deleted=written.rows_deleted,
        rows_skipped=written.rows_skipped,
        version=written.version,
        row_count=written.row_count,
        committed=written.committed,
        repeated=written.repeated,
        warnings=written.warnings,
    )


def _unchanged(error: LakewardError, record: DatasetRecord) -> LakewardError:
    if error.safe is None:
        error.safe = f"dataset {record.name} is unchanged at version {record.head_version}"
    error.fields.setdefault("dataset", record.name)
    return error
