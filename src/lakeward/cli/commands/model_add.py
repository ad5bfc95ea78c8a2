"""`lakeward model add`: register a model as the next version of its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lakeward.cli.columns import split_list
from lakeward.cli.command import command
from lakeward.cli.commands.plan import ProjectOption
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session

WhatArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|MODULE:FUNCTION",
        help="An ONNX file; or a function in a file of the project's folder models/, as in scoring:predict.",
    ),
]
NameOption = Annotated[str, typer.Option("--name", metavar="NAME", help="The model's name.")]
FeaturesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        metavar="NAME[:TYPE],…",
        help="The features in the model's order; with types for a function. Repeat it, or use commas.",
    ),
]
OutputsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--outputs",
        metavar="NAME[:TYPE][=OUTPUT[COLUMN]],…",
        help="The outputs that are wanted: risk=probabilities[1] of a file, risk:double of a function.",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help="pickle, with the two options below; others are told by content."),
]
AllowPickleOption = Annotated[
    bool,
    typer.Option("--allow-pickle", help="Take a pickle, which runs whatever it says when a build loads it."),
]
HashOption = Annotated[
    str | None, typer.Option("--sha256", metavar="HEX", help="What the file's hash has to be; needed for a pickle.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "add")(add)


def add(
    session: Session,
    what: WhatArgument,
    name: NameOption,
    features: FeaturesOption = None,
    outputs: OutputsOption = None,
    project: ProjectOption = Path("."),
    format_: FormatOption = None,
    allow_pickle: AllowPickleOption = False,
    sha256: HashOption = None,
) -> None:
    """Register a model as the next version of its name, as churn@3. The very same again adds nothing.

    What a file is is told by its content, not by its name, and nothing of it is run. Pickles are refused: save the
    model as ONNX. One that you would run as a program is taken with --format pickle --allow-pickle --sha256 HEX.
    The file is kept in the workspace, so that every machine has it.
    """
    session.project = project
    with session.workspace(make=True) as workspace:
        added = workspace.add_model(
            what,
            name,
            _parts(features),
            _parts(outputs),
            project,
            format=format_,
            allow_pickle=allow_pickle,
            sha256=sha256,
        )
    version = added.version
    lines = [
        f"added {version.reference}: {version.format}, {version.size:,} bytes, sha256 {version.sha256}"
        if added.new
        else f"{version.reference} is this very model: nothing to add",
        f"takes {', '.join(f'{each.name}: {each.type}' for each in version.signature.features)}",
        f"gives {', '.join(f'{each.name}: {each.type}' for each in version.signature.outputs)}",
    ]
    session.show({**version.to_json(), "new": added.new}, lines, [lakeward("model", "show", version.reference)])


def _parts(listed: list[str] | None) -> list[str]:
    return [part.strip() for text in listed or [] for part in split_list(text) if part.strip()]
