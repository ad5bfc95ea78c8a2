"""Whether a build may be a delta: decided here and nowhere else, for each output and from the ledger.

A delta build reads of each source only the rows that were written in its window `(low, high]`, the versions since the
output's last build. It is allowed if that gives the same rows as computing everything:

1. the output was built before, by the very pipeline that it has now, from the same sources, and not in full by request;
2. its strategy takes deltas;
3. every node on the way is linear in the new rows (see `linear`);
4. in the window, rows of each source were only added. Where the strategy matches rows by their key, they may have been
   updated, too. A replaced source, or one with deleted or adopted rows, has no delta.

A source with `window: full` is read whole in any case, and asks for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeward.control.records import Window
from lakeward.control.source_windows import Happened, LastBuild
from lakeward.pipelines.fingerprint import other_models, same_rows
from lakeward.pipelines.graph import Graph
from lakeward.pipelines.linear import LINEAR, linearity
from lakeward.pipelines.nodes import SourceNode, StageNode
from lakeward.pipelines.spec import OutputSpec
from lakeward.pipelines.strategy import Strategy


@dataclass(frozen=True)
class SourceWindow:
    """What a build reads of one source.

    Args:
        dataset: the source.
        window: its versions; `low` is 0 where everything is read.
        reason: why that is read.
    """

    dataset: str
    window: Window
    reason: str


@dataclass(frozen=True)
class BuildWindows:
    """What a build of one output reads.

    Args:
        delta: whether it is a delta.
        rebuild: whether everything is computed although there is a last build, and its rows have to go.
        reason: why it is no delta; empty if it is one.
        sources: by the names of their nodes.
    """

    delta: bool
    rebuild: bool
    reason: str
    sources: Mapping[str, SourceWindow]

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            "delta": self.delta,
            "reason": self.reason,
            "sources": {
                name: {"dataset": each.dataset, "low": each.window.low, "high": each.window.high, "reason": each.reason}
                for name, each in self.sources.items()
            },
        }


@dataclass(frozen=True)
class Asked:
    """What the ledger says for one output, and what the caller wants.

    Args:
        last: its last build; None: there was none.
        fingerprint: of the pipeline that is to be built.
        ids: of the sources, by dataset name.
        heads: the versions up to which they are read, by dataset id.
        happened: what happened to each source since the last build, by dataset id.
        full: whether everything is to be computed.
    """

    last: LastBuild | None
    fingerprint: str
    ids: Mapping[str, int]
    heads: Mapping[int, int]
    happened: Mapping[int, Happened]
    full: bool = False


def decide(graph: Graph, output: OutputSpec, strategy: Strategy, asked: Asked) -> BuildWindows:
    """Return what a build of an output reads, and why."""
    sources = graph.sources(output)
    reason = _against(graph, output, strategy, asked)
    windows: dict[str, SourceWindow] = {}
    for name, dataset in sources.items():
        source_id = asked.ids[dataset]
        high, node = asked.heads[source_id], graph.node(name)
        if isinstance(node, SourceNode) and node.window == "full":
            happened = asked.happened.get(source_id)
            changed = reason is None and happened is not None and happened.versions > 0
            said = "; it changed, and rows that were built before keep what it said then: --full" if changed else ""
            windows[name] = SourceWindow(dataset, Window(0, high), f"declared `window: full`{said}")
        elif reason is None and asked.last is not None:
            low = asked.last.watermarks[source_id]
            new = asked.happened[source_id].versions
            what = f"{new} new version{'s' if new != 1 else ''} since the last build" if new else "nothing new"
            windows[name] = SourceWindow(dataset, Window(low, high), what)
        else:
            windows[name] = SourceWindow(dataset, Window(0, high), reason or "")
    rebuild = reason is not None and asked.last is not None and not _logs(graph, output)
    return BuildWindows(reason is None, rebuild, reason or "", windows)


def everything(graph: Graph, output: OutputSpec, ids: Mapping[str, int], heads: Mapping[int, int]) -> BuildWindows:
    """Return what a one-off run reads for an output: all rows. It has no last build, and is none for a later one."""
    reason = "it runs once"
    sources = graph.sources(output)
    windows = {name: SourceWindow(each, Window(0, heads[ids[each]]), reason) for name, each in sources.items()}
    return BuildWindows(False, False, reason, windows)


def _logs(graph: Graph, output: OutputSpec) -> bool:
    """Say whether rows of earlier builds stay in any case: each build says something about itself."""
    nodes = (graph.node(name) for name in graph.needed(output.from_))
    return any(isinstance(node, StageNode) and node.logs for node in nodes)


def _against(graph: Graph, output: OutputSpec, strategy: Strategy, asked: Asked) -> str | None:
    """Return why a build may not be a delta; None: it may."""
    last, sources = asked.last, graph.sources(output)
    if not strategy.takes_delta:
        return f"{strategy.name} needs every row"
    if last is None:
        return "the first build"
    if asked.full:
        return "asked for in full"
    now, then = other_models(asked.fingerprint, last.fingerprint), other_models(last.fingerprint, asked.fingerprint)
    if now is not None:
        return f"the last build used {then or 'another model'}, and {now} is there now"
    if not same_rows(last.fingerprint, asked.fingerprint):
        return "the pipeline is not the one of the last build"
    if set(last.watermarks) != {asked.ids[dataset] for dataset in sources.values()}:
        return "the last build read other datasets"
    found = linearity(graph, output.from_)
    if found.kind != LINEAR:
        return found.reason or "every source is read in full"
    for name, dataset in sources.items():
        node = graph.node(name)
        if isinstance(node, SourceNode) and node.window == "delta":
            reason = _source(dataset, asked.happened[asked.ids[dataset]], strategy)
            if reason is not None:
                return reason
    return None


def _source(dataset: str, happened: Happened, strategy: Strategy) -> str | None:
    if happened.replaced:
        return f"{dataset} was replaced"
    if happened.deleted:
        return f"rows of {dataset} were deleted"
    if happened.adopted:
        return f"{dataset} took in rows of another engine"
    if happened.updated and not strategy.takes_updates:
        return f"rows of {dataset} were updated, and {strategy.name} does not match rows by their key"
    return None
