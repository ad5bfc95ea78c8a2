"""Flips: the stages of one dataset's way to the other arm, as `lakeward flip` runs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from lakeward.access.principal import Place
from lakeward.errors import UsageError
from lakeward.jobs.kind import JobKind, JobOptions, Tell
from lakeward.migration.flip import Flip as FlipOfDataset
from lakeward.migration.options import Limits, Options
from lakeward.wiring.workspace import Workspace

_ENDS = {"complete": "completed", "cancel": "cancelled"}
"""How a flip has ended when the last word was carried out."""


class FlipOptions(JobOptions):
    """Which dataset, and what is to be done of its flip."""

    dataset: str = Field(description="its full name")
    do: Literal["run", "stage", "check", "canary", "revert", "cancel", "complete"] = Field(
        "run", description="`run`: every stage up to the switch; `stage`: one of them; `complete` only by this word"
    )
    to: str | None = Field(None, description="the arm to flip to; unset: the one that does not serve")
    until: str | None = Field(None, description="the last stage that `run` runs; unset: the switch")
    stage: str | None = Field(None, description="which stage, with `stage`")
    confirm: str | None = Field(None, description="the dataset's name, with `complete`: its old rows are removed")
    rows_per_second: int | None = Field(None, ge=1, description="a backfill reads no faster; unset: as fast as it can")
    max_lag: int = Field(100, ge=0, description="so many versions may a switch catch up by itself")
    seconds: float = Field(60.0, gt=0, le=86400 * 7, allow_inf_nan=False, description="how long a canary watches")
    max_mismatch: int = Field(0, ge=0, description="so many of its comparisons may differ")
    max_latency_ratio: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="the new arm's median read takes so many times the old one's at most",
    )
    min_reads: int = Field(1, ge=1, description="so many reads a canary has to compare")
    promote: bool = Field(True, description="let a canary that went well switch")


class Flip(JobKind[FlipOptions]):
    """Bring a dataset to the other arm, or one stage of that; complete only where it is asked for by name."""

    name = "flip"
    queue = "flip"
    action = "flip.run"
    options = FlipOptions

    def lock(self, options: FlipOptions) -> str | None:
        """One job works on a dataset's flip at a time."""
        return f"flip {options.dataset}"

    def place(self, workspace: Workspace, options: FlipOptions) -> Place:
        """Return the dataset's, and refuse what lacks a word."""
        if options.do == "complete" and options.confirm != options.dataset:
            raise UsageError(
                f"to complete the flip of {options.dataset} removes its old rows: its name has to be confirmed",
                safe="nothing was queued",
                next_step="confirm the dataset's name",
                dataset=options.dataset,
            )
        if (options.do == "stage") != (options.stage is not None):
            raise UsageError("a stage is named with `do: stage`, and only then", safe="nothing was queued")
        return workspace.tree.dataset(options.dataset).slugs

    def run(self, workspace: Workspace, options: FlipOptions, tell: Tell) -> Mapping[str, Any]:
        """Do it. Stages read their state from the ledger, so that a repeated job goes on from where things are."""

        def told(stage: str, rows: int, total: int | None) -> None:
            tell.progress(stage, rows, total, "reads" if stage == "canary" else "rows")

        flip = workspace.flip(options.dataset, told)
        if len(tell.tries("flip")) > 1 and flip.status().outcome == _ENDS.get(options.do, ""):
            tell.line("it was done by a try before this one")
            return {"status": flip.status().to_json()}
        done = self._done(flip, options)
        for each in done.get("steps", []):
            tell.line(f"{each['stage']}: done in {each['seconds']} s")
        for action in done.get("undone", []):
            tell.line(action)
        return {**done, "status": flip.status().to_json()}

    def _done(self, flip: FlipOfDataset, options: FlipOptions) -> dict[str, Any]:
        how = Options(options.rows_per_second, options.max_lag)
        match options.do:
            case "run":
                steps = flip.run(options.to, until=options.until, options=how)
            case "stage":
                steps = [flip.stage(str(options.stage), how)]
            case "canary":
                limits = Limits(
                    options.seconds, options.max_mismatch, options.max_latency_ratio, min_reads=options.min_reads
                )
                steps = flip.canary(limits, promote=options.promote)
            case "complete":
                steps = [flip.complete(how, confirm=options.confirm)]
            case "check":
                return {"check": flip.check(options.to).to_json()}
            case "revert":
                return {"undone": flip.revert()}
            case "cancel":
                return {"undone": flip.cancel()}
        return {"steps": [step.to_json() for step in steps]}
