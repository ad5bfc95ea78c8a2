"""Declares what datasets themselves are expected to be, whoever writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakeward.access.guard import require
from lakeward.control.dataset_expectations import DatasetExpectations
from lakeward.control.tree import DatasetRecord
from lakeward.errors import SpecError, UsageError
from lakeward.pipelines.dataset_judging import KEY, DatasetJudging
from lakeward.pipelines.document import read_document
from lakeward.pipelines.expectation_check import Declared, check_declared
from lakeward.pipelines.origin import Origin


@dataclass(frozen=True)
class Declaration:
    """What a dataset is expected to be from now on.

    Args:
        expectations: the list, as it is kept.
        changed: whether it was another one before.
        warnings: what is likely to be meant otherwise.
    """

    expectations: list[Any]
    changed: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expecting:
    """The declarations of one workspace.

    Args:
        declared: where they are kept.
        judging: what judges by them.
    """

    declared: DatasetExpectations
    judging: DatasetJudging

    def declare(
        self, record: DatasetRecord, what: Sequence[Any] | str | Path, actor: str, *, dry_run: bool = False
    ) -> Declaration:
        """Declare what a dataset is expected to be, in place of what was.

        Args:
            record: the dataset.
            what: a list, or a YAML file that has it under `expectations`, or alone; empty: nothing any more.
            actor: who says so, for the audit log.
            dry_run: check it, and change nothing.

        Raises:
            SpecError, SqlError: with file and line; nothing was changed.
            UsageError: the file can't be read.
        """
        require("dataset.expect", record.slugs, record.name)
        declared = _of_file(record.name, Path(what)) if isinstance(what, str | Path) else _of_list(record.name, what)
        expected = check_declared(declared, record.schema, self.judging.schema_of, self.judging.engine)
        kept = list(declared.expectations)
        if dry_run:
            changed = kept != self.declared.of(record.id)
        else:
            changed = self.declared.put(record.id, record.name, kept, actor=actor, place=record.slugs)
        return Declaration(kept, changed, expected.warnings)


def _of_list(dataset: str, what: Sequence[Any]) -> Declared:
    return Declared(dataset, list(what), (KEY,), Origin(f"what is expected of {dataset}"))


def _of_file(dataset: str, path: Path) -> Declared:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {error}", safe="nothing was changed", path=str(path)) from None
    example = "write `expectations:` and below it a list, as in a pipeline's output"
    if not text.strip():
        raise SpecError(f"{path}:1: the file is empty", next_step=f"{example}; --clear expects nothing any more")
    data, origin = read_document(text, str(path), listed=KEY)
    others = [key for key in data if key != KEY]
    if others or not isinstance(data.get(KEY), list):
        reason = f"{others[0]!r} is not read here" if others else f"there is no list under {KEY!r}"
        raise origin.error(reason, (others[0],) if others else (KEY,), key=True, next_step=example)
    return Declared(dataset, data[KEY], (KEY,), origin)
