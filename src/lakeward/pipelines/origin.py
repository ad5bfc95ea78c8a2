"""Where a pipeline was written: the file, and the line of each of its keys, for errors that point there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    """

    file: str
    keys: Mapping[Path, Place] = field(default_factory=dict)
    values: Mapping[Path, Place] = field(default_factory=dict)

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

    def error(self, message: str, path: Path = (), *, key: bool = False, next_step: str | None = None) -> SpecError:
        """Return the error for a place."""
        place = self.place(path, key=key)
        return SpecError(
            f"{self.at(path, key=key)}: {message}",
            next_step=next_step,
            file=self.file,
            line=place.line if place else None,
            column=place.column if place else None,
        )
