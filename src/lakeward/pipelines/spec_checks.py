"""What every part of a spec is checked with: known keys, values of the right kind, names that exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from lakeward.control.names import DatasetName
from lakeward.errors import InvalidName
from lakeward.pipelines.nodes import SpecModel
from lakeward.pipelines.origin import Origin, Path


def checked_model(model: type[SpecModel], data: dict[str, Any], path: Path, origin: Origin) -> SpecModel:
    """Return the data as a model, or say what is wrong with the first key that is."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        below = (*path, *first["loc"])
        key = str(first["loc"][-1]) if first["loc"] else ""
        if first["type"] == "missing":
            raise origin.error(f"{key!r} is missing", below[:-1], next_step=f"add `{key}: …`") from None
        value = first["input"]
        meant = _MEANT.get(first["type"], str(first["msg"]))
        hint = f'put it in quotes: {key}: "{value}"' if first["type"] == "string_type" and value is not None else None
        raise origin.error(f"{key!r} is {shown(value)}, and should be {meant}", below, next_step=hint) from None


_MEANT = {
    "string_type": "text",
    "list_type": "a list, as in [id]",
    "bool_type": "true or false",
    "dict_type": "a mapping",
}


def shown(value: object) -> str:
    """Return a value as an error shows it."""
    if value is None:
        return "empty"
    text = "true" if value is True else "false" if value is False else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def known_keys(data: dict[str, Any], known: Sequence[str], path: Path, origin: Origin) -> None:
    """Refuse a key that is not known, with the nearest one that is."""
    for key in data:
        if key not in known:
            raise origin.error(
                f"unknown key {key!r}; there are {listed(known)}",
                (*path, key),
                key=True,
                next_step=nearest(key, known),
            )


def mapping(data: Any, path: Path, origin: Origin, what: str) -> dict[str, Any]:
    """Return the value if it is a mapping. `what` says of what."""
    if not isinstance(data, dict):
        raise origin.error(f"{path[-1]!r} is {shown(data)}, and should be a mapping: {what}", path)
    return data


def one_of(value: str, there: Iterable[str], what: str, path: Path, origin: Origin) -> None:
    """Refuse a value that is not there, with the nearest one that is."""
    names = list(there)
    if value not in names:
        raise origin.error(
            f"unknown {what} {value!r}; there are {listed(names)}", path, next_step=nearest(value, names)
        )


def dataset_name(value: str, path: Path, origin: Origin) -> str:
    """Return a dataset's full name in its one form."""
    try:
        return str(DatasetName.parse(value))
    except InvalidName as error:
        raise origin.error(error.message, path, next_step=error.next_step) from None


def nearest(value: str | None, names: Sequence[str]) -> str | None:
    """Return the hint at the name that was meant, if one is near."""
    near = difflib.get_close_matches(value or "", names, n=1)
    return f"did you mean {near[0]}?" if near else None


def listed(names: Iterable[str]) -> str:
    """Return names as an error lists them."""
    return ", ".join(names)
