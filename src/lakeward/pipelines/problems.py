"""Collects what is wrong with parts that don't depend on each other, so that one look at a project shows all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lakeward.errors import LakewardError, SchemaError, SpecError, SqlError


class Problems:
    """The errors of one look. `found` has each once, in the order in which they were met."""

    def __init__(self) -> None:
        self.found: list[LakewardError] = []

    def add(self, error: LakewardError) -> None:
        """Note an error, or the several that it lists."""
        known = {str(each) for each in self.found}
        self.found += [each for each in error.parts or (error,) if str(each) not in known]

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Note what is wrong as written in the block, and go on behind it. Other errors end the look."""
        try:
            yield
        except (SpecError, SqlError, SchemaError) as error:
            self.add(error)

    def raise_all(self) -> None:
        """Raise what was found: one error as it is, several as one of the first one's class that lists all of them."""
        if self.found:
            raise _joined(sorted(self.found, key=_place))


def _joined(errors: Sequence[LakewardError]) -> LakewardError:
    first = errors[0]
    if len(errors) == 1:
        return first
    files = {str(each.fields["file"]) for each in errors if each.fields.get("file")}
    where = f" in {len(files)} files" if len(files) > 1 else ""
    place: dict[str, object] = {name: first.fields[name] for name in ("file", "line", "column") if name in first.fields}
    joined = type(first)(
        "\n".join([*map(_listed, errors), f"{len(errors)} errors{where}."]),
        next_step="mend all of these places, and run the command again",
        errors=[each.to_json() for each in errors],
    )
    joined.fields.update(place)
    joined.parts = tuple(errors)
    return joined


def _listed(error: LakewardError) -> str:
    """Return the error as one of several: what to do about it is set in."""
    return "\n  ".join([error.message, *([f"→ {error.next_step}"] if error.next_step else [])])


def _place(error: LakewardError) -> tuple[str, int]:
    line = error.fields.get("line")
    return str(error.fields.get("file") or ""), line if isinstance(line, int) else 0
