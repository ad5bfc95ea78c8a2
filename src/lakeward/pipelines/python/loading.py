"""Runs the stored files of a project as modules, apart from everything else that is imported in this process.

An `import` in them finds the stored files first, and installed packages behind them; nobody else can import them. They
get a name of their own in `sys.modules` by what they contain, because the standard library looks there for the names
that an annotation uses.
"""

from __future__ import annotations

import builtins
import hashlib
import json
import linecache
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType, TracebackType
from typing import Any

from lakeward.pipelines.python.code import module_files, package_of


@dataclass(frozen=True)
class Raised:
    """Where the project's code raised an error.

    Args:
        file, line, function: the last place of the project on the way to it; None: it was raised before any.
        error: what was raised.
    """

    file: str | None
    line: int | None
    function: str | None
    error: BaseException

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}, in {self.function}: " if self.file is not None else ""
        text = str(self.error)
        return f"{where}{type(self.error).__name__}{f': {text}' if text else ''}"


def _print(*values: object, **options: Any) -> None:
    """Do what `print` does, to stderr unless told otherwise: stdout is for what a command answers."""
    print(*values, **{"file": sys.stderr, **options})  # noqa: T201 (the user's own)


class Code:
    """The files of one function, loaded when they are first asked for.

    Args:
        texts: by their paths in the project.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        facts = json.dumps(texts, sort_keys=True).encode("utf-8", "surrogatepass")
        self._name = f"lakeward_project_{hashlib.sha256(facts).hexdigest()[:16]}"
        self._modules: dict[tuple[str, ...], ModuleType] = {}
        self._builtins = {**vars(builtins), "__import__": self._import, "print": _print}

    def run(self, file: str) -> ModuleType:
        """Return the module of a file. What its code raises passes unchanged: see `raised`."""
        return self._module(tuple(file.removesuffix(".py").split("/")), file)

    def raised(self, error: BaseException) -> Raised:
        """Return where an error comes from."""
        found: tuple[str | None, int | None, str | None] = (None, None, None)
        trace: TracebackType | None = error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if code.co_filename in self._texts:
                found = (code.co_filename, trace.tb_lineno, code.co_name)
            trace = trace.tb_next
        return Raised(*found, error)

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Do what an `import` statement in one of the files does; the arguments are those of `__import__`."""
        module = tuple(name.split(".")) if name else ()
        if level:
            package = tuple(str((globals or {}).get("__package__", "")).split("."))[1:]
            if level - 1 > len(package):
                raise ImportError("a relative import leads out of the project")
            module = (*package[: len(package) - level + 1], *module)
        if not self._holds(module):
            if level or self._holds(module[:1]):
                raise ModuleNotFoundError(f"the project has no module {'.'.join(module)}", name=".".join(module))
            return builtins.__import__(name, globals, locals, fromlist or (), 0)
        for length in range(1, len(module) + 1):
            self._of(module[:length])
        if not fromlist:
            return self._of(module[:1])
        for each in fromlist:
            if self._holds((*module, each)) and not hasattr(self._of(module), each):
                self._of((*module, each))
        return self._of(module)

    def _holds(self, module: tuple[str, ...]) -> bool:
        folder = "/".join((*module, ""))
        return any(file in self._texts for file in module_files(module)) or any(
            file.startswith(folder) for file in self._texts
        )

    def _of(self, module: tuple[str, ...]) -> ModuleType:
        return self._module(module, next((file for file in module_files(module) if file in self._texts), None))

    def _module(self, module: tuple[str, ...], file: str | None) -> ModuleType:
        """Return a module, run if it is new; one without a file is a folder."""
        if module in self._modules:
            return self._modules[module]
        made = ModuleType(".".join((self._name, *module)))
        made.__package__ = ".".join((self._name, *(package_of(file) if file is not None else module)))
        vars(made)["__builtins__"] = self._builtins
        self._modules[module] = sys.modules[made.__name__] = made
        if file is not None:
            text = self._texts[file]
            # So that a traceback shows what ran, and not what the folder says by then.
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
            try:
                exec(compile(text, file, "exec", dont_inherit=True), vars(made))
            except BaseException:
                del self._modules[module]
                raise
        if module[:-1] in self._modules:
            setattr(self._modules[module[:-1]], module[-1], made)
        return made
