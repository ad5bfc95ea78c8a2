"""The one error tree: everything that Lakeward raises on purpose, with fields, what is safe, and the next command.

    LakewardError                          exit 1
    ├── UsageError                         exit 2   what was asked for can't be meant
    │   ├── SettingsError                           a setting is missing, unknown or contradictory
    │   ├── NotAllowed                              a source may not reach it, by the workspace's settings
    │   ├── InvalidName                             a human name that can't be stored
    │   ├── NameTaken                               the name, or a twin of it, is in use under its parent
    │   ├── KeyReused                               an idempotency key stands for another request
    │   ├── UnknownObject                           no such catalog, schema, dataset, pipeline, arm …
    │   │   ├── DroppedObject                       it was dropped, and may come back
    │   │   └── UnknownVersion                      the dataset has no such committed version
    │   └── SchemaError                             a column, type or key declaration is refused
    ├── DataError                          exit 1   the data is refused; nothing was written
    │   ├── ValueRefused                            one value can't be stored without loss
    │   ├── ColumnMismatch                          the input's columns are not the dataset's
    │   ├── DuplicateKey                            a primary key comes twice where each must come once
    │   ├── EmptyReplace                            a write that would empty the dataset was not asked for
    │   └── SourceFileError                         a file is not what it claims to be
    ├── PipelineError                      exit 1
    │   ├── SpecError                      exit 2   the project or a pipeline file is wrong
    │   ├── SqlError                       exit 2   user SQL is wrong, or reaches for what it may not
    │   ├── ModelRefused                   exit 2   a model file is not what may be loaded, or not as declared
    │   ├── ComputeError                            the query failed while it ran
    │   │   └── TimeLimitExceeded                   it computed for longer than it may, and was ended
    │   ├── ResultTooLarge                          it has more rows than may be asked for
    │   ├── NotIncremental                          a delta was required, and everything would be computed
    │   └── ExpectationFailed              exit 5   the audit refused the prepared version
    ├── SourceError                        exit 1   a source outside the workspace can't be read
    │   └── SourceRefused                           it has answered: a wrong password, a missing right, no such thing
    ├── ConflictError                      exit 6   somebody else holds or changed the thing
    │   ├── Contended                               somebody else works on it now; it can be repeated as it is
    │   │   └── LockTimeout                         the dataset's open slot stayed taken
    │   ├── LeaseLost                               our lease or fence is gone: the write was aborted
    │   ├── RouteChanged                            the dataset's route moved on while we wrote
    │   ├── MoveRefused                             a table can't be given its new name, and kept its old one
    │   └── Diverged                                another engine moved the table's main branch
    ├── StorageError                       exit 1
    │   ├── ArmNotCurrent                           the arm does not hold the version that was asked for
    │   ├── ParityMismatch                 exit 4   the two arms differ
    │   ├── CatalogError                            the Iceberg catalog refused or did not answer
    │   └── StorageFull                             no space left where data or metadata goes
    ├── ServerError                                 the server that commands go to can't be reached, or went away
    ├── Busy                                        as much runs as may at a time: ask again
    ├── Forbidden                                   who asks for it may not have it
    ├── Stopped                                     the work was stopped from outside
    └── ControlError                       exit 1
        ├── DatabaseUnavailable                     Postgres can't be reached
        ├── EmbeddedPostgresError                   the embedded server can't be started or stopped
        │   └── UnsupportedPlatform                 no embedded binaries for this machine
        ├── OutcomeUnknown                          the answer of a decide was lost; the ledger knows it
        └── HomeNotWritable                         the workspace directory can't be used

An error's text has up to three parts: what is wrong (naming the thing), what is safe, and the next command to run.
Its fields carry the same facts for programs; `to_json` is what `--output json` prints.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar


class LakewardError(Exception):
    """Base of every error that Lakeward raises on purpose.

    Args:
        message: what is wrong, naming the thing.
        safe: what has not been harmed ("the dataset is unchanged at version 3").
        next_step: the command or action that leads out.
        fields: the facts of the message for programs; values are plain JSON types.

    `parts` are the errors that it lists, if it stands for several.
    """

    exit_code: ClassVar[int] = 1
    parts: tuple[LakewardError, ...] = ()

    def __init__(
        self,
        message: str,
        *,
        safe: str | None = None,
        next_step: str | None = None,
        **fields: object,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.safe = safe
        self.next_step = next_step
        self.fields = fields

    def __str__(self) -> str:
        parts = [self.message]
        if self.safe:
            parts.append(f"Safe: {self.safe}")
        if self.next_step:
            parts.append(f"Next: {self.next_step}")
        return "\n".join(parts)

    def to_json(self) -> dict[str, object]:
        """Return the error as the JSON object that `--output json` prints."""
        return {
            "error": type(self).__name__,
            "message": self.message,
            "safe": self.safe,
            "next_steps": [self.next_step] if self.next_step else [],
            "exit_code": self.exit_code,
            "fields": {
                name: value if isinstance(value, str | int | float | bool | list | dict | type(None)) else str(value)
                for name, value in self.fields.items()
            },
        }


class UsageError(LakewardError):
    """What was asked for can't be meant."""

    exit_code = 2


class SettingsError(UsageError):
    """A setting is missing, unknown or contradictory."""


class NotAllowed(UsageError):
    """A source may not reach it, by the workspace's settings."""


class InvalidName(UsageError):
    """A human name that can't be stored."""


class NameTaken(UsageError):
    """The name, or a twin of it that differs only in case or Unicode form, is in use under its parent."""


class KeyReused(UsageError):
    """An idempotency key stands for another request than the one that it was first given with."""


class UnknownObject(UsageError):
    """No such catalog, schema, dataset, pipeline, arm …"""

    @classmethod
    def among(cls, what: str, name: str, known: Iterable[str], **fields: object) -> UnknownObject:
        """Return the error for a name that is none of those that there are, with the one that may be meant.

        Args:
            what: kind of thing has the name: `arm`, `write mode` …
            name: that was given.
            known: those that there are.
            fields: the facts for programs.

        Example:
            >>> UnknownObject.among("write mode", "upsrt", ["append", "upsert"]).next_step
            'did you mean upsert?'
        """
        names = list(known)
        near = get_close_matches(name, names, n=1)
        return cls(
            f"unknown {what} {name!r}; there are {', '.join(names) or 'none'}",
            safe="nothing was changed",
            next_step=f"did you mean {near[0]}?" if near else "name one of them",
            **fields,
        )


class DroppedObject(UnknownObject):
    """A catalog, schema or dataset that was dropped: nobody reads or writes it until it comes back."""


class UnknownVersion(UnknownObject):
    """The dataset has no such committed version."""


class SchemaError(UsageError):
    """A column, type or key declaration is refused."""


class DataError(LakewardError):
    """The data is refused; nothing was written."""


class ValueRefused(DataError):
    """One value can't be stored without loss. Fields: `dataset`, `column`, `row` (1-based), `key`, `value`."""


class ColumnMismatch(DataError):
    """The input's columns are not the dataset's. Fields: `dataset`, `missing`, `unexpected`."""


class DuplicateKey(DataError):
    """A primary key comes twice, in the input of a keyed write or in the dataset.

    Fields: `dataset`, `where` (`input` or `dataset`), `keys` (the first few, by column), `count` (how many there are).
    """


class EmptyReplace(DataError):
    """A replace or mirror by zero rows that was not asked for with `allow_empty`."""


class SourceFileError(DataError):
    """A file is not what it claims to be. Fields: `path`, `line` (1-based), `column`."""


class PipelineError(LakewardError):
    """A pipeline can't be read, planned or run."""


class SpecError(PipelineError):
    """The project or a pipeline file is wrong. Fields: `file`, `line` (1-based).

    Several things that are wrong are one error of the first one's class. Its field `errors` has each as JSON, its
    `file` and `line` are those of the first.
    """

    exit_code = 2


class SqlError(PipelineError):
    """User SQL is wrong, or reaches for what it may not. The message shows the place with a caret."""

    exit_code = 2


class ModelRefused(PipelineError):
    """A model file is not what may be loaded, or not as it was declared; nothing of it was run."""

    exit_code = 2


class ComputeError(PipelineError):
    """The query failed while it ran."""


class TimeLimitExceeded(ComputeError):
    """A query, filter or model computed for longer than it may, and was ended. Fields: `limit_seconds`, `setting`."""


class ResultTooLarge(PipelineError):
    """A query's result has more rows than may be asked for at once. Fields: `limit`."""


class NotIncremental(PipelineError):
    """A delta build was required, and is not possible. Fields: `pipeline`, `dataset`, `reason`."""


class ExpectationFailed(PipelineError):
    """The audit refused the prepared version; the previous version stays in place."""

    exit_code = 5


class SourceError(LakewardError):
    """A source outside the workspace can't be reached or read. Never carries the connection's password."""


class SourceRefused(SourceError):
    """It has answered, and would answer the same again: a wrong password, a missing right, what is not there."""


class ConflictError(LakewardError):
    """Somebody else holds or changed the thing."""

    exit_code = 6


class Contended(ConflictError):
    """Somebody else works on it now, or was quicker; the very same can be asked for again."""


class LockTimeout(Contended):
    """The dataset's open slot stayed taken. Fields: `dataset`, `holder`, `host`, `pid`, `age_seconds`, `build`."""


class LeaseLost(ConflictError):
    """Our lease or fence is gone: the write was aborted and another may go on."""


class RouteChanged(ConflictError):
    """The dataset's route moved on while we wrote; the write was aborted and can be repeated."""


class MoveRefused(ConflictError):
    """An Iceberg table can't be given its new name; nothing was done to it."""


class Diverged(ConflictError):
    """Another engine moved the table's `main`; reads stay at the last committed version."""


class StorageError(LakewardError):
    """An arm, or the facade over the arms, can't do what was asked."""


class ArmNotCurrent(StorageError):
    """The arm does not hold the version that was asked for."""


class ParityMismatch(StorageError):
    """The two arms differ."""

    exit_code = 4


class CatalogError(StorageError):
    """The Iceberg catalog refused or did not answer."""


class StorageFull(StorageError):
    """No space left where data or metadata goes."""


class ServerError(LakewardError):
    """The server that commands are sent to can't be reached, or went away."""


class Busy(LakewardError):
    """As much is under way as may be at a time; the same may be asked again in a moment."""


class Forbidden(LakewardError):
    """Who asks for it has not the role that it takes."""


class Stopped(LakewardError):
    """The work was stopped from outside, as by Ctrl-C while several threads build; nothing of it is visible."""


class ControlError(LakewardError):
    """The control plane can't be used."""


class DatabaseUnavailable(ControlError):
    """Postgres can't be reached. Never carries the connection's password."""


class EmbeddedPostgresError(ControlError):
    """The embedded server can't be started or stopped."""


class UnsupportedPlatform(EmbeddedPostgresError):
    """There are no embedded binaries for this machine."""


class OutcomeUnknown(ControlError):
    """Postgres went away while a build was decided: it is committed as a whole or not at all; the ledger knows."""


class HomeNotWritable(ControlError):
    """The workspace directory can't be created or written."""
