"""`lakeward model show`: one version of a model, and how a node names it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import RenderableType

from lakeward.cli.command import command
from lakeward.cli.session import Session
from lakeward.cli.text import table

ModelArgument = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="A version, as churn@3; or a name, or churn@latest, for its newest version."),
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "show")(show)


def show(session: Session, model: ModelArgument) -> None:
    """Show what a model takes and gives.

    And where it came from, and its node as a pipeline writes it.
    """
    with session.workspace() as workspace:
        version = workspace.model(model)
    signature = version.signature
    features = ", ".join(each.name for each in signature.features)
    outputs = ", ".join(f"{each.name}: {each.type}" for each in signature.outputs)
    node = f"{{model: {{input: NODE, model: {version.reference}, features: [{features}], outputs: {{{outputs}}}}}}}"
    rows = [("feature", each.name, str(each.type)) for each in signature.features]
    rows += [("output", each.name, str(each.type)) for each in signature.outputs]
    lines: list[RenderableType] = [
        f"{version.reference}: {version.format}, {version.size:,} bytes, from {version.origin}",
        f"sha256 {version.sha256}",
        f"added {version.added_at:%Y-%m-%d %H:%M} by {version.added_by}",
        *([f"by build {version.build_id}, with {', '.join(version.datasets)}"] if version.build_id is not None else []),
        table(("", "name", "type"), rows),
        f"in a pipeline: {node}",
    ]
    session.show({**version.to_json(), "node": node}, lines)
