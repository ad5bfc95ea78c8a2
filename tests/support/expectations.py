"""A workspace with one source, and a pipeline of which something is expected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lakeward
from lakeward.control.expectation_results import ExpectationResult, ExpectationResults, JudgedVersion
from lakeward.pipelines.project import Project

SOURCE = "main.raw.orders"
OUT = "main.m.out"


@dataclass
class Scene:
    """One pipeline `p` from `main.raw.orders (id, v, status)` to `main.m.out`."""

    workspace: lakeward.Workspace
    project: Callable[..., Project]
    arm: str

    @property
    def source(self) -> lakeward.Dataset:
        return self.workspace.dataset(SOURCE)

    @property
    def out(self) -> lakeward.Dataset:
        return self.workspace.dataset(OUT)

    @property
    def quarantine(self) -> lakeward.Dataset:
        return self.workspace.dataset(f"{OUT}__quarantine")

    def write(self, *rows: tuple[int | None, float | None, str | None], mode: str = "append") -> None:
        self.source.write([dict(zip(("id", "v", "status"), row, strict=True)) for row in rows], mode=mode)

    def expect(
        self,
        *expectations: str,
        strategy: str = "replace",
        key: str = "[id]",
        sql: str = "select * from orders",
        more: str = "",
    ) -> None:
        lines = "".join(f"      - {each}\n" for each in expectations)
        text = (
            "pipeline: p\nnodes:\n  orders: {source: main.raw.orders}\n"
            f'  all: {{transform: "{sql}"}}\n'
            f"outputs:\n  - dataset: {OUT}\n    from: all\n    strategy: {strategy}\n    arm: {self.arm}\n"
            f"    primary_key: {key}\n" + (f"    expectations:\n{lines}" if lines else "") + more
        )
        self.workspace.pipelines.apply(self.project(p_yml=text))

    def build(self, **how: Any) -> Any:
        [result] = self.workspace.build("p", **how)
        return result

    def judged(self) -> list[JudgedVersion]:
        return ExpectationResults(self.workspace.database).judged(self.out.record.id)

    def results(self, dataset: str = OUT, version: int | None = None) -> list[ExpectationResult]:
        """Return what was found in the newest version that was judged, or in that one."""
        store = ExpectationResults(self.workspace.database)
        judged = store.judged(self.workspace.dataset(dataset).record.id, version=version)
        return judged[0].results if judged else []

    def outcomes(self, version: int | None = None) -> dict[str, tuple[str, int, int]]:
        return {each.kind: (each.outcome, each.rows_checked, each.rows_failed) for each in self.results(OUT, version)}

    def ids(self, dataset: lakeward.Dataset | None = None) -> list[int]:
        return sorted(row["id"] for row in (dataset or self.out).to_arrow().to_pylist())
