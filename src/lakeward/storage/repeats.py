"""Requests that carry an idempotency key: one that is repeated changes nothing, and gets the result of the first.

A request is told by its key, within its dataset. What comes with a key again has to be the same request: the same mode,
the same writer and the same rows, in any order. Rows are compared by their number and digest, which is computed while
the first request's rows stream by, and once more for those of the repeated one: they are read, and not written. A key
that comes with anything else is refused: were it taken for the same request, rows would be lost that nobody wrote.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakeward.control.idempotency import FirstRequest, IdempotencyKeys, check_key
from lakeward.errors import KeyReused, UsageError
from lakeward.storage.duck import Duck
from lakeward.storage.requests import BuildResult, Output, WriteResult
from lakeward.storage.running_digest import RunningDigest
from lakeward.storage.verbs import VERBS
from lakeward.types.digest import digest_batches


class Repeats:
    """Finds what came of requests that are repeated.

    Args:
        keys: what the ledger remembers.
        duck: computes digests of rows.
    """

    def __init__(self, keys: IdempotencyKeys, duck: Duck) -> None:
        self._keys = keys
        self._duck = duck

    def check(self, outputs: Sequence[Output]) -> None:
        """Raise UsageError if a key can't be one, or if some outputs of a build have one and others have none."""
        keyed = [output for output in outputs if output.idempotency_key is not None]
        for output in keyed:
            check_key(output.idempotency_key or "", output.dataset.name)
        if keyed and len(keyed) < len(outputs):
            without = next(output.dataset.name for output in outputs if output.idempotency_key is None)
            raise UsageError(
                f"{keyed[0].dataset.name} has an idempotency key in this build, and {without} has none",
                safe="nothing was written",
                next_step="give a key to every output of a build, or to none: it is repeated as a whole",
            )

    def of(self, outputs: Sequence[Output], writer: str, pipeline: str | None) -> BuildResult | None:
        """Return the result of the first request with these keys; None: they are new, or there are none.

        Raises:
            KeyReused: a key stands for another request.
        """
        asked = [(each.dataset.id, each.idempotency_key) for each in outputs if each.idempotency_key is not None]
        if not asked:
            return None
        found = {first.dataset_id: first for first in self._keys.of(asked)}
        if not found:
            return None
        first = next(iter(found.values()))
        results = tuple(self._result(output, found.get(output.dataset.id), first, writer) for output in outputs)
        return BuildResult(first.build_id, pipeline, results)

    def over(self, output: Output, rows: pa.RecordBatchReader) -> tuple[pa.RecordBatchReader, RunningDigest | None]:
        """Return the rows of an output, and what is their digest once they are read; none if it has no key."""
        if output.idempotency_key is None:
            return rows, None
        digest = RunningDigest(self._duck, VERBS[output.verb].input_schema(output.dataset.schema))
        return digest.over(rows), digest

    def _result(self, output: Output, found: FirstRequest | None, any_first: FirstRequest, writer: str) -> WriteResult:
        if found is None or found.build_id != any_first.build_id:
            raise _reused(output, "another request, which did not write the same datasets", found or any_first)
        first = found.remembered
        if (first.verb, first.writer) != (output.verb, writer):
            what = (
                f"a request of {first.writer} in mode {first.verb}, and this is one of {writer} in mode {output.verb}"
            )
            raise _reused(output, what, found)
        schema = VERBS[output.verb].input_schema(output.dataset.schema)
        with self._duck.session() as connection:
            rows = digest_batches(schema, output.rows(), connection=connection)
        if (rows.count, rows.high, rows.low) != first.rows:
            many = f"{first.rows[0]:,}, not {rows.count:,}" if first.rows[0] != rows.count else "as many, other values"
            raise _reused(output, f"a request with other rows: {many}", found)
        return WriteResult.recalled(first.result, output.dataset.name)


def _reused(output: Output, stands_for: str, found: FirstRequest) -> KeyReused:
    version = found.remembered.result["version"]
    return KeyReused(
        f"idempotency key {output.idempotency_key!r} of dataset {output.dataset.name} stands for {stands_for}",
        safe=f"nothing was written; the first request with this key left its dataset at version {version}",
        next_step="give another request a key of its own",
        dataset=output.dataset.name,
        idempotency_key=output.idempotency_key,
    )
