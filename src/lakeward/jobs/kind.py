"""What a kind of job is: its options, who may queue it, what it must not run beside, and what it does.

A kind is one class in one file of `kinds/`; queue, worker, command line and server find it there. It has

- a `name`, a one-line docstring that is its help, and an `Options` model whose fields are described;
- an `action` of `lakeward.access`: who may do it;
- `run`, which a worker calls. It may be called again for the same job, when a worker died or was stopped: what it does
  has to be safe to repeat, which whatever goes through the ledger is.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from lakeward.access.principal import Place
from lakeward.errors import UnknownObject, UsageError
from lakeward.wiring.workspace import Workspace

LONGEST_KEY = 200
"""A longer key is kept as its hash: an index takes no text of any length."""


class JobOptions(BaseModel):
    """What a job is asked to do. The fields of a kind's own model are its options on the command line, too."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Tell(Protocol):
    """Is told how far a job is; it is shown wherever somebody looks, and costs next to nothing."""

    job_id: int
    """The job's number."""

    def progress(self, what: str, done: int, total: int | None = None, unit: str = "rows") -> None:
        """Tell that `done` of `total` (None: nobody knows) are done of one thing that the job does."""
        ...

    def line(self, text: str) -> None:
        """Write a line to the job's log."""
        ...

    def tries(self, what: str) -> list[uuid.UUID]:
        """Return what tells this try from all others of the same job, and those before it, the first one first."""
        ...


Options = TypeVar("Options", bound=JobOptions)


class JobKind(ABC, Generic[Options]):
    """A kind of job."""

    name: ClassVar[str]
    queue: ClassVar[str]
    """Which workers take it: those that serve this queue, or all."""
    action: ClassVar[str]
    options: type[Options]

    @classmethod
    def about(cls) -> str:
        """Return the one line of help."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    def lock(self, options: Options) -> str | None:
        """Return what one such job at a time may work on; None: any number run side by side."""
        return None

    def key(self, options: Options) -> str | None:
        """Return what is equal for jobs of which one that waits is enough; None: each is queued."""
        return self.name + " " + options.model_dump_json()

    def place(self, workspace: Workspace, options: Options) -> Place:
        """Return where whoever queues it needs the right to do `action`; `()`: in the whole workspace.

        Raises:
            UnknownObject: what it is to work on is not there.
        """
        return ()

    @abstractmethod
    def run(self, workspace: Workspace, options: Options, tell: Tell) -> Mapping[str, Any]:
        """Do it, and return what is kept as its result.

        Raises:
            LakewardError: it failed; kept as the job's error. Of some it is tried again: see `transient`.
            Stopped: it was cancelled, or its worker is to end.
        """


def checked_options(kind: JobKind[Any], given: Mapping[str, Any]) -> JobOptions:
    """Return options as a kind's model has them.

    Raises:
        UnknownObject: there is no such option, with the nearest.
        UsageError: a value is not what the option takes.
    """
    known = list(kind.options.model_fields)
    for name in given:
        if name not in known:
            raise UnknownObject.among(f"option of job {kind.name}", name, known, kind=kind.name, option=name)
    try:
        checked: JobOptions = kind.options.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            f"job {kind.name}, option {where or '?'}: {first['msg'].lower()}",
            safe="nothing was queued",
            next_step=f"lakeward job add {kind.name} --help",
            kind=kind.name,
            option=where,
        ) from None
    return checked


def short_key(key: str | None) -> str | None:
    """Return a key that an index takes, whatever its length."""
    if key is None or len(key.encode()) <= LONGEST_KEY:
        return key
    return f"{key[:40]}… {sha256(key.encode()).hexdigest()}"
