"""Reads what a spec expects of an output: a list of kinds with their keys. Nothing is looked up here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from lakeward.control.names import DatasetName
from lakeward.discovery import discover
from lakeward.pipelines import expectations
from lakeward.pipelines.expectation import QUARANTINE, Expectation, RowExpectation
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.problems import Problems
from lakeward.pipelines.spec_checks import checked_model, keys_of, listed, nearest, shown

SUFFIX = "__quarantine"


@cache
def expectation_classes() -> dict[str, type[Expectation]]:
    """Return the kinds of expectation that exist, by name."""
    return discover(expectations, Expectation)


def read_expectations(data: Sequence[Any], path: Path, origin: Origin) -> list[Expectation]:
    """Check a list of expectations and return them.

    Raises:
        SpecError: with file and line, naming the key or value and the nearest right one.
    """
    problems = Problems()
    read: list[Expectation] = []
    for position, each in enumerate(data):
        with problems.collect():
            read.append(_read(each, (*path, position), origin))
    problems.raise_all()
    return read


def place_of(expectation: Expectation, position: int, path: Path) -> Path:
    """Return where an expectation's keys are.

    Args:
        expectation: which one.
        position: its place in its list.
        path: where that is.
    """
    return (*path, position, expectation.name)


def quarantine_name(dataset: str) -> str:
    """Return the full name of the dataset that an output's bad rows go to."""
    path = DatasetName.parse(dataset)
    return str(DatasetName(path.catalog, path.schema, path.dataset + SUFFIX))


def quarantine_of(dataset: str, data: Sequence[Any], origin: Origin) -> str | None:
    """Return that name if what is expected of the output takes rows out; None: it does not."""
    parted = any(each.on_fail == QUARANTINE for each in read_expectations(data, (), origin))
    return quarantine_name(dataset) if parted else None


def _read(data: Any, path: Path, origin: Origin) -> Expectation:
    kinds = expectation_classes()
    if isinstance(data, str):
        kind, body = data, None
    elif isinstance(data, dict) and len(data) == 1:
        [(kind, body)] = data.items()
        path = (*path, kind)
    else:
        raise origin.error(
            f"an expectation is {shown(data)}, and should be one of {listed(kinds)} with its keys",
            path,
            next_step="write each as an item of its own, as in `- not_null: [id]`",
        )
    if kind not in kinds:
        raise origin.error(
            f"unknown expectation {kind!r}; there are {listed(kinds)}",
            path,
            key=isinstance(data, dict),
            next_step=nearest(kind, list(kinds)) or "write one of these",
        )
    made = kinds[kind]
    if isinstance(data, str) and not made.alone:
        raise origin.error(
            f"expectation {kind!r} needs keys: {listed(_keys(made))}",
            path,
            next_step=f"write them with it, as in `- {kind}: {{{_keys(made)[0]}: …}}`",
        )
    if not isinstance(body, dict):
        if body is not None and made.bare is None:
            raise origin.error(
                f"{kind!r} is {shown(body)}, and should be a mapping of {listed(_keys(made))}",
                path,
                next_step=f"write `{kind}: {{{_keys(made)[0]}: …}}`",
            )
        body = {} if body is None else {made.bare: body}
    found = checked_model(made, body, path, origin)
    assert isinstance(found, Expectation)
    if found.on_fail == QUARANTINE and not (found.judges_rows or found.name == "primary_key"):
        judging = listed(name for name, each in kinds.items() if each.judges_rows)
        raise origin.error(
            f"{kind!r} can't have `on_fail: quarantine`: it judges no single row",
            (*path, "on_fail"),
            next_step=f"write `fail` or `warn`; those that judge rows are {judging}",
        )
    return found.checked(path, origin)


def _keys(kind: type[Expectation]) -> list[str]:
    """Return the keys of a kind, its own before those of all."""
    common = keys_of(RowExpectation)
    return sorted(keys_of(kind), key=lambda key: key in common)
