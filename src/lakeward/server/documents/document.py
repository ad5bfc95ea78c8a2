"""What all documents have in common."""

from __future__ import annotations

from typing import Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field

from lakeward.errors import UsageError
from lakeward.types.plain_json import json_value


class Told(Protocol):
    """What can be told as JSON: the same that the command line prints."""

    def to_json(self) -> dict[str, object]:
        """Return it."""
        ...


class Document(BaseModel):
    """An answer, or a part of one. What it has besides is passed on, so that no fact of the command line is missing."""

    model_config = ConfigDict(extra="allow")

    @classmethod
    def of(cls, told: Told, **more: object) -> Self:
        """Return the document of something.

        Args:
            told: what.
            more: fields besides.
        """
        return cls.model_validate(json_value({**told.to_json(), **more}))

    @classmethod
    def plain(cls, **fields: object) -> Self:
        """Return the document with these fields, whose values may be any of ours."""
        return cls.model_validate(json_value(fields))


class Request(BaseModel):
    """What a request asks for. A field that it has not is refused."""

    model_config = ConfigDict(extra="forbid")


def example(**fields: Any) -> ConfigDict:
    """Return the configuration of a model that shows an example."""
    return ConfigDict(json_schema_extra={"example": fields})


class DryRun(Document):
    """What a request would do, in order. Nothing was changed."""

    model_config = example(dry_run=True, actions=["switch: let the iceberg arm serve main.sales.orders"], warnings=[])

    dry_run: Literal[True] = True
    actions: list[str]
    warnings: list[str] = []


class Explained(Request):
    """A request that can be tried."""

    dry_run: bool = Field(False, description="say what it would do, and do nothing")


class Destructive(Explained):
    """A request that removes something, and names it."""

    confirm: str | None = Field(None, description="the full name of what it is done to; needed unless dry_run")

    def check(self, name: str) -> None:
        """Refuse it unless it names what is removed.

        Raises:
            UsageError: it names nothing, or something else.
        """
        if self.confirm != name:
            raise UsageError(
                f"{name} has to be named in `confirm`, not {self.confirm!r}: something of it will be removed",
                safe="nothing was changed",
                next_step="dry_run says what it would do",
                name=name,
            )


class Waiting(Request):
    """A request for what takes its time."""

    wait: bool = Field(False, description="do it now, and answer when it is done; else it is queued as a job")
