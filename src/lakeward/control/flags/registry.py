"""The places in the product that write and read, by name: what flags can be set for, and how far each may go.

A name that is missing here is a fault of the code: `tests/unit/control/flags/test_registry.py` finds it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from lakeward.control.routes import MODES
from lakeward.errors import UnknownObject, UsageError

WRITER, READER = "writer", "reader"
"""The kinds of flags."""

PRIMARY, SHADOW = "primary", "shadow"

PREFERENCES = (PRIMARY, "postgres", "iceberg", SHADOW)
"""What a reader may prefer: the arm that serves, one by its name, or both, compared, with the primary's answer."""


@dataclass(frozen=True)
class Writer:
    """A place that writes.

    Args:
        name: what its transactions are recorded under.
        about: what it is.
        default: the mode of the datasets that it makes, unless a flag or whoever makes them says another.
        ceiling: the highest mode of a dataset that it may write to.
    """

    name: str
    about: str
    default: str = "pg"
    ceiling: str = "iceberg_native"

    def allows(self, mode: str) -> bool:
        """Say whether it may write to a dataset of this mode."""
        return MODES.index(mode) <= MODES.index(self.ceiling)


@dataclass(frozen=True)
class Reader:
    """A place that reads.

    Args:
        name: what its reads are logged and counted under.
        about: what it is.
        default: what it prefers, unless a flag says otherwise.
    """

    name: str
    about: str
    default: str = PRIMARY


Named = TypeVar("Named", Writer, Reader)


def _by_name(entries: Iterable[Named]) -> dict[str, Named]:
    return {entry.name: entry for entry in entries}


WRITERS: Mapping[str, Writer] = _by_name(
    (
        Writer("pipeline.output", "outputs of pipelines"),
        Writer("run.output", "`lakeward run`"),
        Writer("dataset.import", "`lakeward dataset import`"),
        Writer("ingest.api", "`Dataset.write`, `create_dataset`"),
        Writer("sync.full", "`lakeward source sync`"),
        Writer("sync.incremental", "`lakeward source sync --mode incremental`"),
        Writer("sync.append", "`lakeward source sync --mode append`"),
        Writer("dlt.load", "`lakeward source load`, and pipelines of dlt"),
        Writer("manual.table", "`lakeward dataset edit`, `undo-edit`"),
        Writer("cdc.changes", "`lakeward source follow`"),
        Writer("cdc.append", "`lakeward source follow --mode append`"),
    )
)

READERS: Mapping[str, Reader] = _by_name(
    (
        Reader("pipelines.source", "sources of pipelines and of runs"),
        Reader("pipeline.expectations", "rows that expectations look at"),
        Reader("model.source", "rows to fit models on (to come)"),
        Reader("api.read", "`Dataset.read` and `to_arrow`"),
        Reader("api.preview", "`Dataset.preview`"),
        Reader("api.changes", "`Dataset.changes`"),
        Reader("api.pin", "`Pin.read`"),
        Reader("sql.editor", "`lakeward sql`, `Workspace.sql`"),
        Reader("dashboards.query", "queries of dashboards (to come)"),
        Reader("dlt.load", "rows that a load of dlt merges with, and its state"),
        Reader("export", "`lakeward dataset export`"),
        Reader("manual.table", "rows that people edit"),
        Reader("cdc.changes", "rows whose large values a log of changes leaves out"),
    )
)

KEEPERS = frozenset(
    {
        "dataset.adopt",
        "dataset.copy",
        "flip.backfill",
        "flip.cancel",
        "flip.complete",
        "flip.mirror",
        "flip.revert",
        "flip.switch",
        "move.apply",
        "move.undo",
        "flags.set",
        "ledger.adopt",
        "maintain",
        "mirror.catch_up",
        "storage.compaction",
        "tree.drop",
    }
)
"""What moves rows from arm to arm or rewrites them. They make no datasets, and go where they must."""

COMPARERS = frozenset({"flip.canary"})
"""What reads to compare the arms. Each of its reads names one, and no flag changes that."""


def writer_named(name: str) -> Writer:
    """Return the writer of that name.

    Raises:
        UnknownObject: there is none, with the nearest name.
    """
    return _named(WRITER, name, WRITERS)


def reader_named(name: str) -> Reader:
    """Return the reader of that name.

    Raises:
        UnknownObject: there is none, with the nearest name.
    """
    return _named(READER, name, READERS)


def check_mode(writer: Writer, mode: str) -> None:
    """Refuse a mode that a writer can't have.

    Raises:
        UsageError: there is no such mode, or it is above the ceiling.
    """
    if mode not in MODES:
        raise UnknownObject.among("mode", mode, MODES, mode=mode)
    if not writer.allows(mode):
        raise above_ceiling(writer, mode)


def above_ceiling(writer: Writer, mode: str, dataset: str | None = None) -> UsageError:
    """Return the error of a writer whose ceiling is below a mode.

    Args:
        writer: which one.
        mode: the one that is too high.
        dataset: the dataset that has it; None: it was asked for.
    """
    what = f"dataset {dataset} is in mode {mode}" if dataset else f"mode {mode} can't be set"
    down = f"another writer, or `lakeward flip start {dataset} --to postgres`" if dataset else None
    return UsageError(
        f"{what}: the ceiling of writer {writer.name} is {writer.ceiling}",
        safe="nothing was written" if dataset else "nothing was changed",
        next_step=down or f"choose {' or '.join(mode for mode in MODES if writer.allows(mode))}",
        writer=writer.name,
        mode=mode,
        ceiling=writer.ceiling,
        **({"dataset": dataset} if dataset else {}),
    )


def check_preference(prefer: str) -> None:
    """Refuse what no reader can prefer.

    Raises:
        UsageError: it is none of `PREFERENCES`.
    """
    if prefer not in PREFERENCES:
        raise UsageError(f"a reader can't prefer {prefer!r}; it can {', '.join(PREFERENCES)}", prefer=prefer)


def _named(kind: str, name: str, known: Mapping[str, Named]) -> Named:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise UnknownObject(
            f"unknown {kind} {name!r}; there are {', '.join(known)}",
            safe="nothing was changed",
            next_step=f"did you mean {near[0]}?" if near else "`lakeward flags list` shows them",
            **{kind: name},
        )
    return known[name]
