"""The argument that names a dataset, the same for every command that has one."""

from __future__ import annotations

from typing import Annotated

import typer

DatasetArgument = Annotated[
    str, typer.Argument(metavar="DATASET", help="Its full name, catalog.schema.dataset.", show_default=False)
]
