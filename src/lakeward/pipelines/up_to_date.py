"""Whether a pipeline has anything to do: decided here and nowhere else, from the ledger, without looking at rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakeward.control.last_writes import LastWrite, LastWrites
from lakeward.pipelines.datasets import Datasets
from lakeward.pipelines.fingerprint import other_models
from lakeward.pipelines.graph import Graph


@dataclass(frozen=True)
class Standing:
    """How a pipeline's outputs stand to its sources.

    Args:
        reason: why it has to be built, in words; None: its outputs are up to date.
        unpublished: ids of outputs that have a committed version which is yet to be published.
    """

    reason: str | None
    unpublished: tuple[int, ...] = ()


class UpToDate:
    """Compares pipelines with what the ledger says of their outputs' last writes."""

    def __init__(self, last_writes: LastWrites) -> None:
        self._last_writes = last_writes

    def standing(self, graph: Graph, fingerprint: str, datasets: Datasets) -> Standing:
        """Return how a pipeline stands.

        It is up to date if the last write of each output was one of this very pipeline, and read exactly its sources as
        they are now. Copies between arms change no row, so they are left out on both sides. What a query says of now or
        of chance (`now()`, `random()`) is not known here: such a pipeline is up to date until a source changes.

        Args:
            graph: the pipeline's.
            fingerprint: the pipeline's, as it was applied.
            datasets: the pipeline's.
        """
        outputs = graph.pipeline.spec.outputs
        ids = {name: record.id for name, record in {**datasets.outputs, **datasets.sources}.items()}
        last = self._last_writes.of(list(ids.values()))
        for output in outputs:
            read = {ids[name]: name for name in graph.sources(output).values()}
            write = last.get(ids[output.dataset]) if output.dataset in ids else None
            reason = _reason(output.dataset, write, fingerprint, read, last)
            if reason is not None:
                return Standing(reason)
        return Standing(None, tuple(id_ for id_ in (ids[each.dataset] for each in outputs) if last[id_].unpublished))


def _reason(
    output: str, write: LastWrite | None, fingerprint: str, read: Mapping[int, str], last: Mapping[int, LastWrite]
) -> str | None:
    """Return why an output has to be built, or None. `read` names the datasets that it is made from, by id."""
    if write is None:
        return f"{output} was never written"
    if write.fingerprint is None:
        return f"{output} was last written by hand"
    now, then = other_models(fingerprint, write.fingerprint), other_models(write.fingerprint, fingerprint)
    if now is not None:
        return f"{output} was built with {then or 'another model'}, and {now} is there now"
    if write.fingerprint != fingerprint:
        return f"the pipeline is not the one that wrote {output}"
    if set(write.watermarks) != set(read):
        return f"{output} was made from other datasets"
    new = [name for id_, name in read.items() if id_ in last and last[id_].version > write.watermarks[id_]]
    return f"{' and '.join(new)} changed since {output} was built" if new else None
