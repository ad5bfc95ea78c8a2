"""The code of a function of a project: its file, and those of the project that it imports, as texts.

They are stored with the pipeline that is applied, and a build runs these texts, whatever the folder says by then. So
what is found here is what counts: import statements are followed wherever they stand in a file. The project's folder is
where imports begin: `lib/clean.py` is `lib.clean`. What is not there is an installed package, and not stored.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lakeward.errors import SpecError

MAX_BYTES = 4_000_000
"""Of all files of one function together: they are stored as a part of its pipeline."""

SUFFIX = ".py"


@dataclass(frozen=True)
class Call:
    """A function in a file of the project, as in `lib/clean.py:features`."""

    file: str
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.function}"


def parse_call(text: str) -> Call | None:
    """Return what `FILE.py:FUNCTION` names; None: it has another form, or leads out of the project.

    Example:
        >>> parse_call("lib/clean.py:features")
        Call(file='lib/clean.py', function='features')
        >>> parse_call("../clean.py:features") is None
        True
    """
    file, _, function = text.rpartition(":")
    path = PurePosixPath(file)
    inside = not path.is_absolute() and ".." not in path.parts and "\\" not in file and str(path) == file
    return Call(file, function) if inside and path.suffix == SUFFIX and function.isidentifier() else None


def read_code(root: Path, file: str) -> dict[str, str]:
    """Return the text of a file and of all project files that it imports, by their paths in the project.

    Args:
        root: the project's folder.
        file: its path in the project.

    Raises:
        SpecError: one of them can't be read, is no Python, or is a link out of the project, with file and line.
    """
    found: dict[str, str] = {}
    waiting = [file]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = _read(root, name)
        if sum(map(len, found.values())) > MAX_BYTES:
            raise SpecError(
                f"{file}: with what it imports of the project it is larger than {MAX_BYTES:,} bytes",
                next_step="keep data out of it: import it into a dataset, and read that",
                file=file,
            )
        tree = parse_code(found[name], name)
        waiting += [
            each for module in _imported(tree, name) for each in module_files(module) if (root / each).is_file()
        ]
    return dict(sorted(found.items()))


def module_files(module: Sequence[str]) -> tuple[str, str]:
    """Return the two files that a module may be: `lib/clean.py`, or `lib/clean/__init__.py`."""
    path = "/".join(module)
    return f"{path}{SUFFIX}", f"{path}/__init__{SUFFIX}"


def package_of(file: str) -> tuple[str, ...]:
    """Return the package in which a file's relative imports begin."""
    return PurePosixPath(file).parts[:-1]


def parse_code(text: str, file: str) -> ast.Module:
    """Return a file's syntax tree. Nothing is run.

    Raises:
        SpecError: it is no Python, with file and line.
    """
    try:
        tree = ast.parse(text, file)
        compile(tree, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = error.lineno or 1
        raise SpecError(
            f"{file}:{line}: not valid Python: {error.msg}", next_step="mend it", file=file, line=line
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise SpecError(
            f"{file}: not valid Python: {str(error) or type(error).__name__}", next_step="mend it", file=file
        ) from None
    return tree


def meaning(text: str, file: str) -> str:
    """Return what counts of a file: two that differ only in comments and layout have the same.

    It is made of the syntax tree's parts and not of Python's own dump of it, which differs between Python's versions.
    """
    return _part(parse_code(text, file))


def function_in(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """Return the function of that name at the top level of a file; the last one counts, as when it is run."""
    found = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name]
    return found[-1] if found else None


def _part(value: object) -> str:
    if isinstance(value, ast.AST):
        fields = [(name, each) for name, each in ast.iter_fields(value) if each is not None and each != []]
        return f"{type(value).__name__}({', '.join(f'{name}={_part(each)}' for name, each in fields)})"
    if isinstance(value, list):
        return f"[{', '.join(map(_part, value))}]"
    return repr(value)


def _imported(tree: ast.Module, file: str) -> Iterator[tuple[str, ...]]:
    """Yield every module that a file's import statements may mean, with the packages that it lies in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _and_above(tuple(alias.name.split(".")))
        elif isinstance(node, ast.ImportFrom):
            package = package_of(file)
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = (*above, *(node.module.split(".") if node.module else ()))
            yield from _and_above(module)
            yield from ((*module, alias.name) for alias in node.names)


def _and_above(module: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield from (module[:length] for length in range(1, len(module) + 1))


def _read(root: Path, file: str) -> str:
    path = root / file
    if not path.resolve().is_relative_to(root.resolve()):
        raise SpecError(f"{file} is a link out of the project", next_step="put the file into the project", file=file)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SpecError(
            f"{file}: can't be read: {error.strerror or error}",
            next_step="name a file by its path in the project, as in lib/clean.py:features",
            file=file,
        ) from None
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SpecError(
            f"{file}:{line}: the file is not UTF-8", next_step="save it as UTF-8", file=file, line=line
        ) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise SpecError(f"{file}:{line}: the file has a NUL character", next_step="take it out", file=file, line=line)
    return text


def code_parts(code: Mapping[str, str]) -> dict[str, str]:
    """Return what counts of each file, by the name that a plan shows for it when it differs."""
    return {f"code {file}": meaning(text, file) for file, text in code.items()}
