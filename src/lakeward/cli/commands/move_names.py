"""The arguments that say whose tables are meant, the same for every command of `lakeward move`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from lakeward.errors import UsageError

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", show_default=False, help="Datasets, or schemas: catalog.schema."),
]
AllOption = Annotated[bool, typer.Option("--all", help="Every dataset.")]
LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=1, show_default=False, help="Take up so many at most.")
]


def check_names(names: Sequence[str] | None, *, all_: bool, needed: bool = True) -> None:
    """Refuse names beside `--all`, and neither of them where one is needed.

    Raises:
        UsageError: it is so.
    """
    if names and all_:
        raise UsageError("names and --all exclude each other", safe="nothing was changed", next_step="give one of them")
    if needed and not names and not all_:
        raise UsageError(
            "no dataset and no schema is named",
            safe="nothing was changed",
            next_step="name some, or give --all",
        )
