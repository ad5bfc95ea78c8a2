"""Finds a project folder and reads its pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lakeward.errors import SpecError
from lakeward.pipelines.document import MAX_BYTES, read_document
from lakeward.pipelines.graph import order_pipelines, read_graph
from lakeward.pipelines.problems import Problems
from lakeward.pipelines.project_code import read_python_pipelines, with_code
from lakeward.pipelines.python.code import SUFFIX
from lakeward.pipelines.spec import Pipeline, read_spec
from lakeward.pipelines.sql_file import read_sql_file
from lakeward.types.schema import name_key

PROJECT_FILE = "lakeward.toml"
PIPELINES_FOLDER = "pipelines"
SUFFIXES = (".yml", ".yaml", ".sql", ".py")


@dataclass(frozen=True)
class Project:
    """A project folder and its pipelines, ordered by name."""

    root: Path
    pipelines: tuple[Pipeline, ...]

    def pipeline(self, name: str) -> Pipeline | None:
        """Return the pipeline of that name, or None."""
        return next((pipeline for pipeline in self.pipelines if pipeline.name == name), None)


def find_project(path: Path) -> Path:
    """Return the project folder that `path` is, or lies in: the nearest one upwards with a `lakeward.toml`.

    Raises:
        SpecError: there is none.
    """
    start = path.resolve()
    for folder in (start, *start.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
    raise SpecError(
        f"{path} is no project: neither it nor a folder above it has a {PROJECT_FILE}",
        next_step=f"lakeward init DIR makes one; or create a {PROJECT_FILE} (it may be empty) beside the folder "
        f"{PIPELINES_FOLDER}/",
        file=str(path),
    )


def load_project(path: Path) -> Project:
    """Read every pipeline of a project.

    Raises:
        SpecError, SqlError: no project, or files that can't be read or are wrong: everything that is wrong in any of
            them, with file and line.
    """
    root = find_project(path)
    folder = root / PIPELINES_FOLDER
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
    pipelines: dict[str, Pipeline] = {}
    problems = Problems()
    for file in files:
        with problems.collect():
            for pipeline in _read(root, file.relative_to(root).as_posix()):
                other = pipelines.setdefault(name_key(pipeline.name), pipeline)
                if other is not pipeline:
                    raise pipeline.origin.error(
                        f"pipeline {pipeline.name!r} is also in {other.origin.at(('pipeline',))}",
                        ("pipeline",),
                        next_step="rename one of them; names that differ only in case count as one",
                    )
    if problems.found:
        check_queries(list(pipelines.values()), problems)
    problems.raise_all()
    return Project(root, tuple(sorted(pipelines.values(), key=lambda pipeline: pipeline.name)))


def check_queries(pipelines: Sequence[Pipeline], problems: Problems) -> None:
    """Note what is wrong with queries, and between pipelines: what can be told without any dataset.

    Args:
        pipelines: those that could be read.
        problems: where it is noted.
    """
    for pipeline in pipelines:
        with problems.collect():
            read_graph(pipeline)
    with problems.collect():
        order_pipelines(pipelines)


def _read(root: Path, file: str) -> list[Pipeline]:
    """Return the pipelines of a file, with the code of their Python nodes."""
    if file.lower().endswith(SUFFIX):
        return read_python_pipelines(root, file)
    return [with_code(read_pipeline(root / file, file), root)]


def read_pipeline(path: Path, file: str) -> Pipeline:
    """Read one pipeline file.

    Args:
        path: where it is.
        file: what it is called in errors.

    Raises:
        SpecError: with file and line.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SpecError(
                f"{file}: the file is larger than {MAX_BYTES:,} bytes",
                next_step="keep data out of it: import it into a dataset, and read that",
                file=file,
            )
        data = path.read_bytes()
    except OSError as error:
        raise SpecError(
            f"{file}: can't be read: {error.strerror or error}",
            next_step="look at its permissions, and those of its folder",
            file=file,
        ) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SpecError(
            f"{file}:{line}: the file is not UTF-8", next_step="save it as UTF-8", file=file, line=line
        ) from None
    text = text.replace("\r\n", "\n")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise SpecError(
            f"{file}:{line}: the file has a NUL character",
            next_step="take it out, or save the file as UTF-8",
            file=file,
            line=line,
        )
    problems = Problems()
    read = read_sql_file if path.suffix.lower() == ".sql" else read_document
    try:
        return read_spec(*read(text, file, problems), problems)
    except SpecError as error:
        problems.add(error)
        problems.raise_all()
        raise
