"""What every part of a spec is checked with: known keys, values of the right kind, names that exist."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lakeward.control.names import DatasetName
from lakeward.errors import InvalidName, SpecError
from lakeward.pipelines.nodes import SpecModel
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.problems import Problems

MAX_NAME_BYTES = 255


def checked_model(model: type[SpecModel], data: dict[str, Any], path: Path, origin: Origin) -> SpecModel:
    """Return the data as a model.

    Raises:
        SpecError: with everything that is wrong with its keys and values.
    """
    problems = Problems()
    data, origin = corrected(data, keys_of(model), path, origin, problems)
    made = None
    try:
        made = model.model_validate(data)
    except ValidationError as error:
        for below, detail in _details(error, data).items():
            problems.add(_wrong(model, detail, below, path, origin))
    problems.raise_all()
    assert made is not None
    return made


def _details(error: ValidationError, data: dict[str, Any]) -> dict[Path, ErrorDetails]:
    """Return what is wrong with each key, by its place in the data.

    Of a union, each of its types says why it is none of them: the first one speaks for all. A key that is missing
    because it is misspelt is told once, where it is written.
    """
    first: dict[Path, ErrorDetails] = {}
    for each in error.errors(include_url=False):
        first.setdefault(_within(data, each["loc"]), each)
    unknown = [path for path, each in first.items() if each["type"] == "extra_forbidden"]
    return {
        path: each
        for path, each in first.items()
        if each["type"] != "missing"
        or not any(other[:-1] == path[:-1] and nearest(str(other[-1]), [str(path[-1])]) for other in unknown)
    }


def keys_of(model: type[SpecModel]) -> list[str]:
    """Return the keys of a model as they are written."""
    return [field.alias or name for name, field in model.model_fields.items()]


def corrected(
    data: dict[str, Any], known: Sequence[str], path: Path, origin: Origin, problems: Problems
) -> tuple[dict[str, Any], Origin]:
    """Note the keys that are not known, and go on as if the nearest one had been written, or none where none is near.

    Returns:
        The data with known keys alone, and the places of those.
    """
    kept = {key: value for key, value in data.items() if key in known}
    for key in data:
        if key in known:
            continue
        problems.add(_unknown_key(key, known, (*path, key), origin))
        for near in difflib.get_close_matches(key, known, n=1):
            if near not in kept:
                kept[near], origin = data[key], origin.renamed(path, key, near)
    return kept, origin


def known_keys(data: dict[str, Any], known: Sequence[str], path: Path, origin: Origin) -> None:
    """Refuse keys that are not known, each with the nearest one that is."""
    problems = Problems()
    corrected(data, known, path, origin, problems)
    problems.raise_all()


def _unknown_key(key: str, known: Sequence[str], path: Path, origin: Origin) -> SpecError:
    hint = nearest(key, known) or "take it out, or write one of these"
    if origin.header_lines and len(path) == 1 and not nearest(key, known):
        hint = "the comment lines at the top are the header: move other comments below the first line of the query"
    return origin.error(f"unknown key {key!r}; there are {listed(known)}", path, key=True, next_step=hint)


def _within(data: Any, place: Sequence[str | int]) -> Path:
    """Return as much of a place as are keys and positions of the data; pydantic adds which type of a union it tried."""
    path: list[str | int] = []
    for step in place:
        path.append(step)
        if (isinstance(data, dict) and step in data) or (isinstance(data, list) and isinstance(step, int)):
            data = data[step]  # type: ignore[index]
        else:
            return tuple(path) if isinstance(data, dict) else tuple(path[:-1])
    return tuple(path)


def _wrong(model: type[SpecModel], error: ErrorDetails, below: Path, path: Path, origin: Origin) -> SpecError:
    kind, value, place = error["type"], error["input"], (*path, *below)
    key = origin.name(place) if below else ""
    if kind == "missing":
        return origin.missing(place)
    if kind == "extra_forbidden":
        return _unknown_key(key, _keys_at(model, below[:-1]), place, origin)
    if kind == "literal_error":
        there = re.findall(r"'([^']*)'", str(error["ctx"]["expected"]))
        hint = nearest(str(value), there) or f"write one of these, as in {origin.written(place, there[0])}"
        return origin.error(f"{key!r} is {shown(value)}, and should be one of {listed(there)}", place, next_step=hint)
    meant = _MEANT.get(kind, str(error["msg"]).removeprefix("Input should be "))
    hint = _instead(kind, value, place, origin) or f"write {meant}: {origin.written(place)}"
    return origin.error(f"{key!r} is {shown(value)}, and should be {meant}", place, next_step=hint)


def _keys_at(model: type[SpecModel], path: Path) -> list[str]:
    """Return the keys of the model at a place within another."""
    for step in path:
        annotation = model.model_fields[str(step)].annotation
        inner = [each for each in (annotation, *get_args(annotation)) if isinstance(each, type)]
        model = next(each for each in inner if issubclass(each, SpecModel))
    return keys_of(model)


_MEANT = {
    "string_type": "text",
    "list_type": "a list, as in [id]",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "int_type": "a whole number",
}


def _instead(kind: str, value: object, path: Path, origin: Origin) -> str | None:
    """Return what to write in the place of a value of another type, where that can be guessed."""
    if kind == "string_type" and isinstance(value, int | float):
        return "put it in quotes: " + origin.written(path, f'"{value}"').strip("`")
    if kind == "list_type" and isinstance(value, str):
        return f"write {origin.written(path, f'[{value}]')}"
    if kind == "bool_type":
        return f"write {origin.written(path, 'true')} or {origin.written(path, 'false')}"
    return None


def shown(value: object) -> str:
    """Return a value as an error shows it."""
    if value is None:
        return "empty"
    text = "true" if value is True else "false" if value is False else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def mapping(data: Any, path: Path, origin: Origin, what: str) -> dict[str, Any]:
    """Return the value if it is a mapping. `what` says of what."""
    if not isinstance(data, dict):
        raise origin.error(
            f"{path[-1]!r} is {shown(data)}, and should be a mapping: {what}",
            path,
            next_step="write its keys below it, two spaces further in",
        )
    return data


def one_of(value: str, there: Iterable[str], what: str, path: Path, origin: Origin) -> None:
    """Refuse a value that is not there, with the nearest one that is."""
    names = list(there)
    if value not in names:
        hint = nearest(value, names) or "write one of these"
        raise origin.error(f"unknown {what} {value!r}; there are {listed(names)}", path, next_step=hint)


def check_name(value: Any, what: str, path: Path, origin: Origin, *, key: bool = False) -> None:
    """Refuse what can't be a name, and say why."""
    if not isinstance(value, str) or not value.strip():
        reason, hint = f"the name of a {what} is {shown(value)}, and should be text", "write a name; a number in quotes"
    elif any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
        reason = f"the name {value!r} of a {what} has a control character or a lone surrogate"
        hint = "take that character out"
    elif len(value.encode()) > MAX_NAME_BYTES:
        reason = f"the name {value[:40]!r}… of a {what} is longer than {MAX_NAME_BYTES} bytes"
        hint = "write a shorter one"
    else:
        return
    raise origin.error(reason, path, key=key, next_step=hint)


def dataset_name(value: str, path: Path, origin: Origin) -> str:
    """Return a dataset's full name in its one form."""
    try:
        return str(DatasetName.parse(value))
    except InvalidName as error:
        hint = error.next_step or "write catalog.schema.dataset"
        raise origin.error(error.message, path, next_step=hint) from None


def nearest(value: str | None, names: Sequence[str]) -> str | None:
    """Return the hint at the name that was meant, if one is near."""
    near = difflib.get_close_matches(value or "", names, n=1)
    return f"did you mean {near[0]}?" if near else None


def listed(names: Iterable[str]) -> str:
    """Return names as an error lists them."""
    return ", ".join(names)
