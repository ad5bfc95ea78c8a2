"""A pipeline as text, for those who have no project folder at hand: written as YAML, and read back."""

from __future__ import annotations

import difflib
from pathlib import Path

import yaml

from lakeward.errors import SpecError
from lakeward.pipelines.document import MAX_BYTES, read_document
from lakeward.pipelines.problems import Problems
from lakeward.pipelines.project import Project
from lakeward.pipelines.registry import Applied
from lakeward.pipelines.spec import Pipeline, read_spec

WIDTH = 110


class _Writer(yaml.SafeDumper):
    """Writes texts of several lines as such."""


def _text(writer: yaml.SafeDumper, text: str) -> yaml.Node:
    lines = "\n" in text and all(line == line.rstrip() for line in text.split("\n"))
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style="|" if lines else None)


_Writer.add_representer(str, _text)


def written(pipeline: Pipeline) -> str:
    """Return a pipeline as YAML, without the code that it runs: what `read` gives the same pipeline for."""
    data = pipeline.to_json()
    data.pop("code", None)
    kept = {key: value for key, value in data.items() if value not in ([], None)}
    kept["outputs"] = [
        {key: value for key, value in output.items() if value not in ([], None, False)} for output in kept["outputs"]
    ]
    return str(yaml.dump(kept, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=WIDTH))


def read(text: str, before: Pipeline | None = None) -> Pipeline:
    """Read a pipeline from YAML.

    Args:
        text: as in a file of `pipelines/`.
        before: the pipeline as it is applied; what it has of code stays.

    Raises:
        SpecError: everything that is wrong, with its line.
    """
    if len(text.encode()) > MAX_BYTES:
        raise SpecError(f"the text is larger than {MAX_BYTES:,} bytes", next_step="keep data out of it")
    problems = Problems()
    data, origin = read_document(text.replace("\r\n", "\n"), "pipeline.yml", problems)
    found = read_spec(data, origin, problems)
    return found if before is None else found.with_code(before.spec.code)


def in_place(applied: dict[str, Applied], pipeline: Pipeline) -> Project:
    """Return a project that has all applied pipelines and this one: what its plan changes is this one alone.

    Raises:
        SpecError: an applied pipeline can't be read, and would be taken away.
    """
    others: list[Pipeline] = []
    for each in applied.values():
        if each.pipeline is None:
            raise SpecError(
                f"pipeline {each.name!r} was applied by another version of Lakeward, and can't be read",
                safe="nothing was changed",
                next_step="apply its project anew: lakeward apply",
            )
        if each.name != pipeline.name:
            others.append(each.pipeline)
    return Project(Path(), tuple(sorted([*others, pipeline], key=lambda each: each.name)))


def difference(before: str, after: str) -> list[tuple[str, str]]:
    """Return what became of each line of a text, as pairs of ` `, `+` or `-` and the line; unchanged parts are cut."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=3, lineterm="")
    return [("@" if line.startswith("@@") else line[:1], line[1:] if line[:1] in "+- " else line) for line in lines][2:]
