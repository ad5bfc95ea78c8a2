"""What `apply` would change, and what the build after it does: which pipelines are added, changed, indirectly changed,
removed or unchanged, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

ADDED, CHANGED, INDIRECT, REMOVED, UNCHANGED = "added", "changed", "indirect", "removed", "unchanged"
_GROUPS = {
    ADDED: ("Added", "+ "),
    CHANGED: ("Changed", "~ "),
    INDIRECT: ("Indirectly changed", "~ "),
    REMOVED: ("Removed", "- "),
    UNCHANGED: ("Unchanged", ""),
}


@dataclass(frozen=True)
class OutputPlan:
    """What becomes of one output.

    Args:
        dataset: its name.
        action: `create` its dataset and build it, `rebuild` it from all rows, build a `delta`, `keep` it as it is, or
            `leave` it without a pipeline.
        reason: why.
        strategy, arm: how and where it is written.
        columns: their types.
        destructive: what is lost of rows that are there, in words; None: nothing.
    """

    dataset: str
    action: str
    reason: str
    strategy: str
    arm: str
    columns: Mapping[str, str]
    destructive: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "columns": dict(self.columns)}

    def lines(self) -> Iterator[str]:
        """Yield it as text; a line with `!` says what is lost."""
        yield f"{self.dataset}: {self.action}, {self.strategy} on {self.arm} ({self.reason})"
        if self.destructive is not None:
            yield f"! {self.destructive}"


@dataclass(frozen=True)
class PipelinePlan:
    """What becomes of one pipeline."""

    name: str
    change: str
    reason: str
    file: str | None
    outputs: tuple[OutputPlan, ...]
    warnings: tuple[str, ...] = ()
    schedule: str | None = None

    @property
    def title(self) -> str:
        """Its name, and when it is to be built."""
        return self.name if self.schedule is None else f"{self.name}, schedule {self.schedule}"

    @property
    def pending(self) -> bool:
        """Whether `apply` would store or remove it; one that changes indirectly stays as it is applied."""
        return self.change in (ADDED, CHANGED, REMOVED)

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            **vars(self),
            "outputs": [output.to_json() for output in self.outputs],
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class Plan:
    """The plan of a project: its pipelines in the order in which they would be built, then the removed ones."""

    pipelines: tuple[PipelinePlan, ...]

    @property
    def pending(self) -> bool:
        """Whether `apply` would change anything."""
        return any(pipeline.pending for pipeline in self.pipelines)

    @property
    def destructive(self) -> tuple[OutputPlan, ...]:
        """The outputs of which something is lost."""
        return tuple(each for pipeline in self.pipelines for each in pipeline.outputs if each.destructive is not None)

    def with_arms(self, arm_of: Callable[[str], str | None]) -> Plan:
        """Return the plan with the arm of every dataset: a removed pipeline may have named none.

        Args:
            arm_of: says on which arm a dataset is; None: there is none of that name.
        """

        def told(output: OutputPlan) -> OutputPlan:
            return output if output.arm else replace(output, arm=arm_of(output.dataset) or "no arm")

        return Plan(tuple(replace(each, outputs=tuple(map(told, each.outputs))) for each in self.pipelines))

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            "pending": self.pending,
            "destructive": [output.dataset for output in self.destructive],
            "pipelines": [pipeline.to_json() for pipeline in self.pipelines],
            "next_steps": ["lakeward apply"] if self.pending else [],
        }

    def lines(self) -> Iterator[str]:
        """Yield the tree as text: `+` added, `~` changed, `-` removed, `!` something is lost."""
        for change, (title, sign) in _GROUPS.items():
            group = [pipeline for pipeline in self.pipelines if pipeline.change == change]
            if group:
                yield title
            for pipeline in group:
                last = pipeline is group[-1]
                yield f"{'└──' if last else '├──'} {sign}{pipeline.title} ({pipeline.reason})"
                below = "    " if last else "│   "
                for position, output in enumerate(pipeline.outputs, start=1):
                    end = position == len(pipeline.outputs) and not pipeline.warnings
                    first, *more = output.lines()
                    yield f"{below}{'└──' if end else '├──'} {first}"
                    yield from (f"{below}{'    ' if end else '│   '}{line}" for line in more)
                for position, warning in enumerate(pipeline.warnings, start=1):
                    yield f"{below}{'└──' if position == len(pipeline.warnings) else '├──'} warning: {warning}"
