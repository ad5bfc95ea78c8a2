"""What the next build will do to each output once a plan is applied: told from the ledger, before anything runs.

What an earlier pipeline is to write is not there yet. It is foreseen as far as its verb says what becomes of its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from lakeward.control.last_writes import LastWrites
from lakeward.control.ledger import Ledger
from lakeward.control.source_windows import SourceWindows
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.pipelines.build import Builder
from lakeward.pipelines.datasets import Datasets
from lakeward.pipelines.graph import Graph, read_graph
from lakeward.pipelines.latest import latest_models, model_key, pinned
from lakeward.pipelines.nodes import SourceNode
from lakeward.pipelines.spec import OutputSpec, strategy_classes
from lakeward.pipelines.up_to_date import UpToDate
from lakeward.pipelines.windows import BuildWindows
from lakeward.storage.job import clears
from lakeward.types.schema import name_key

FULL, DELTA, NOTHING = "rebuild", "delta", "keep"


@dataclass(frozen=True)
class OutputForecast:
    """What the next build does to one output.

    Args:
        what: `rebuild` computes everything, `delta` what is new in the sources, `keep` nothing.
        reason: why.
        verb: how its rows are written; None: not at all.
        destructive: what is lost of rows that are there, in words; None: nothing that the pipeline did not make.
    """

    what: str
    reason: str
    verb: str | None = None
    destructive: str | None = None


Written = Mapping[str, OutputForecast]
"""What becomes of the datasets that are built before, by `name_key` of their names."""


class Forecast(Protocol):
    """Foresees builds. That of a workspace asks its ledger."""

    def outputs(self, graph: Graph, fingerprint: str, before: Written) -> list[OutputForecast]:
        """Return what becomes of each output of a pipeline, with the fingerprint that it will be applied with."""
        ...


@dataclass
class LedgerForecast:
    """Foresees builds from the ledger of one workspace. It reads, and locks nothing.

    Args:
        tree, ledger: of the workspace.
        builder: knows what a build would read.
        up_to_date: says which pipelines have nothing to do.
        source_windows, last_writes: say who wrote the outputs so far.
    """

    tree: Tree
    ledger: Ledger
    builder: Builder
    up_to_date: UpToDate
    source_windows: SourceWindows
    last_writes: LastWrites

    def outputs(self, graph: Graph, fingerprint: str, before: Written) -> list[OutputForecast]:
        """See `Forecast.outputs`."""
        pipeline, known = graph.pipeline, pinned(graph.pipeline, fingerprint, self.builder.models)
        graph, fingerprint = read_graph(known.pipeline), known.fingerprint
        names = graph.pipeline.sources.values()
        found = self.tree.find_each([*names, *(output.dataset for output in graph.pipeline.spec.outputs)])
        sources = {name: found[name] for name in names if name in found and found[name].head_version}
        missing = next((name for name in names if name not in sources), None)
        specs = graph.pipeline.spec.outputs
        if missing is not None:
            coming = name_key(missing) in before
            why = f"{missing} is built before" if coming else f"when {missing} has rows"
            return [self._full(output, BuildWindows(False, False, why, {})) for output in specs]
        fitted = [each for each in latest_models(pipeline) if _writes(before.get(model_key(each)))]
        untrained = [*fitted, *known.missing]
        if untrained:
            why = f"model {untrained[0]} is fitted before"
            return [self._full(output, BuildWindows(False, bool(fitted), why, {})) for output in specs]
        changing = {name for name in names if _writes(before.get(name_key(name)))}
        written = {output.dataset: found[output.dataset] for output in specs if output.dataset in found}
        datasets = Datasets(sources, written)
        reason = self.up_to_date.standing(graph, fingerprint, datasets).reason
        if reason is None and not changing:
            return [OutputForecast(NOTHING, "up to date")] * len(specs)
        versions = self.ledger.heads([record.id for record in sources.values()])
        windows = self.builder.windows(graph, fingerprint, datasets, versions)
        return [self._output(graph, *each, sources, before) for each in zip(specs, windows, strict=True)]

    def _output(
        self,
        graph: Graph,
        output: OutputSpec,
        windows: BuildWindows,
        sources: Mapping[str, DatasetRecord],
        before: Written,
    ) -> OutputForecast:
        if not windows.delta:
            return self._full(output, windows)
        moving = {
            name: dataset
            for name, dataset in graph.sources(output).items()
            if isinstance(node := graph.node(name), SourceNode) and node.window == "delta"
        }
        built = {dataset: each for dataset in moving.values() if _writes(each := before.get(name_key(dataset)))}
        for dataset, each in built.items():
            if each is not None and each.verb == "replace" and sources[dataset].row_count:
                return self._full(output, BuildWindows(False, True, f"{dataset} is replaced before", {}))
        new = [f"{each.dataset}: {each.reason}" for name, each in windows.sources.items() if name in moving]
        new += [f"what {dataset} gets before, if rows are only added" for dataset in built]
        verb = strategy_classes()[output.strategy]().verb(rebuild=False)
        return OutputForecast(DELTA, "; ".join(new), verb)

    def _full(self, output: OutputSpec, windows: BuildWindows) -> OutputForecast:
        strategy = strategy_classes()[output.strategy]()
        verb = strategy.verb(rebuild=windows.rebuild)
        return OutputForecast(FULL, windows.reason, verb, self._lost(output, verb))

    def _lost(self, output: OutputSpec, verb: str) -> str | None:
        """Return what a build would take away that it can't make again."""
        record = self.tree.find(output.dataset)
        if record is None or not record.row_count or not clears(verb):
            return None
        rows = f"{record.row_count:,} row{'' if record.row_count == 1 else 's'}"
        if record.id not in self.source_windows.last_builds([record.id]):
            return f"takes the place of {rows} that no pipeline wrote"
        if verb != strategy_classes()[output.strategy]().verb(rebuild=False):
            return f"starts over: takes the place of {rows}, also of what the sources do not hold any more"
        last = self.last_writes.of([record.id]).get(record.id)
        if last is not None and last.fingerprint is None:
            return f"takes the place of {rows}, also of what was written by hand since the last build"
        return None


def _writes(forecast: OutputForecast | None) -> bool:
    return forecast is not None and forecast.what != NOTHING
