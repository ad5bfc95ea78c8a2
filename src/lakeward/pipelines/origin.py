"""Where a pipeline was written: the file, and the line of each of its keys, for errors that point there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lakeward.errors import SpecError

Path = tuple[str | int, ...]
"""A place in a spec: keys and list positions from the top, as in `("outputs", 0, "dataset")`."""


@dataclass(frozen=True)
class Place:
    """A 1-based line and column. `text_line` is where the text of a value begins, which for a block is a line later."""

    line: int
    column: int
    text_line: int


@dataclass(frozen=True)
class Origin:
    """A file, and the places of its keys and values.

    `file` is as people see it: relative to the project, or a description for a spec that is not from a file.
    `header_lines` is how many lines the header of a `.sql` file takes; 0: it is YAML.
    """

    file: str
    keys: Mapping[Path, Place] = field(default_factory=dict)
    values: Mapping[Path, Place] = field(default_factory=dict)
    header_lines: int = 0

    def place(self, path: Path, *, key: bool = False) -> Place | None:
        """Return the place of a value (or of its key); of what encloses it, if the path itself is not in the file."""
        places = self.keys if key else self.values
        while path not in places and path:
            places, path = self.values, path[:-1]
        return places.get(path)

    def at(self, path: Path = (), *, key: bool = False) -> str:
        """Return `file:line` of a place, or the file alone."""
        place = self.place(path, key=key)
        return f"{self.file}:{place.line}" if place else self.file

    def name(self, path: Path) -> str:
        """Return what a key is called where it was written."""
        return "output" if self._in_header(path) and path[-1] == "dataset" else str(path[-1])

    def written(self, path: Path, value: str = "…") -> str:
        """Return how a key is written, for hints: in a header it is a comment line."""
        return f"`{'-- ' if self._in_header(path) else ''}{self.name(path)}: {value}`"

    def _in_header(self, path: Path) -> bool:
        return self.header_lines > 0 and (len(path) == 1 or (len(path) == 3 and path[0] == "outputs"))

    def renamed(self, path: Path, old: str, new: str) -> Origin:
        """Return an origin in which what stands under one key of a mapping is found under another, too."""
        keys, values = (
            {
                (*path, new, *at[len(path) + 1 :]): place
                for at, place in places.items()
                if at[: len(path) + 1] == (*path, old)
            }
            for places in (self.keys, self.values)
        )
        return replace(self, keys={**self.keys, **keys}, values={**self.values, **values})

    def missing(self, path: Path) -> SpecError:
        """Return the error for a key that is not there."""
        if self._in_header(path):
            return self.error(
                f"the header has no {self.name(path)!r}",
                next_step=f"add {self.written(path)} to the comment lines at the top, which end with line "
                f"{self.header_lines}",
            )
        return self.error(f"{path[-1]!r} is missing", path[:-1], next_step=f"add {self.written(path)}")

    def error(self, message: str, path: Path = (), *, key: bool = False, next_step: str) -> SpecError:
        """Return the error for a place. Each says what to do about it."""
        place = self.place(path, key=key)
        return SpecError(
            f"{self.at(path, key=key)}: {message}",
            next_step=next_step,
            file=self.file,
            line=place.line if place else None,
            column=place.column if place else None,
        )
