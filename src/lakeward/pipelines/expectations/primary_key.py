"""The expectation `primary_key`: every row has a key, and no two rows the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakeward.pipelines.expectation import (
    FAILED,
    MET,
    PASSED,
    QUARANTINE,
    ROWS,
    VACUOUS,
    Expectation,
    Found,
    Scope,
    Verdict,
)
from lakeward.pipelines.known import Extent, Known
from lakeward.pipelines.origin import Origin, Path
from lakeward.types.quoting import duckdb_name


class PrimaryKey(Expectation):
    """The columns of the output's `primary_key` are not null, and together unique."""

    name = "primary_key"
    alone = True
    meets = True
    of_rows = True

    def checked(self, path: Path, origin: Origin) -> Expectation:
        """See `Expectation.checked`. Of two rows with one key, nothing says which is the bad one."""
        if self.on_fail == QUARANTINE:
            raise origin.error(
                "'primary_key' can't have `on_fail: quarantine`: nothing says which of two rows with one key stays",
                (*path, "on_fail"),
                next_step="decide it in the query (as in `qualify row_number() over (partition by …) = 1`), and `fail`",
            )
        return self

    def describe(self) -> str:
        """See `Expectation.describe`."""
        return "the primary key is unique and not null"

    def query(self, scope: Scope) -> str:
        """See `Expectation.query`: one row for each key, which spills where memory does not hold them."""
        keys = [duckdb_name(name) for name in scope.schema.primary_key]
        null = " OR ".join(f"{key} IS NULL" for key in keys)
        keyed = f"SELECT count(*) AS n, bool_or({null}) AS empty FROM {ROWS} GROUP BY {', '.join(keys)}"
        return (
            "SELECT coalesce(CAST(sum(n) AS BIGINT), 0) AS n, "
            "coalesce(CAST(sum(n) FILTER (WHERE empty) AS BIGINT), 0) AS nulls, "
            "coalesce(CAST(sum(n - 1) FILTER (WHERE NOT empty) AS BIGINT), 0) AS repeated "
            f"FROM ({keyed}) AS keys"
        )

    def extent(self, known: Known, scope: Scope) -> Extent:
        """See `Expectation.extent`.

        A keyed write refuses a key that comes twice, in its rows or in those that they match, and a row without one. So
        it leaves keys unique that were, and those of a version that goes on from no row.
        """
        found = known.found
        unique = not known.before or (found is not None and found.outcome in (PASSED, VACUOUS))
        if unique and known.keyed:
            return Extent.NONE
        return Extent.NEW if unique and known.before and known.only_adds else Extent.ALL

    def new_measures(self, known: Known, scope: Scope) -> dict[str, str]:
        """See `Expectation.new_measures`. Of each key one row is none too many, unless the version before has it."""
        keys = [duckdb_name(name) for name in scope.schema.primary_key]
        null = " OR ".join(f"{key} IS NULL" for key in keys)
        key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
        keyed = f"FILTER (WHERE NOT ({null}))"
        return {
            "nulls": f"count(*) FILTER (WHERE {null})",
            "repeated": f"count(*) {keyed} - count(DISTINCT {key}) {keyed}"
            f" + count(DISTINCT {key}) FILTER (WHERE {MET})",
        }

    def whole(self, known: Known, values: Mapping[str, Any]) -> dict[str, Any]:
        """See `Expectation.whole`."""
        return {name: values.get(name, 0) for name in ("nulls", "repeated")}

    def judge(self, found: Found) -> Verdict:
        """See `Expectation.judge`."""
        if not found.rows:
            return Verdict(VACUOUS, "vacuous, 0 rows")
        nulls, repeated = int(found.values["nulls"]), int(found.values["repeated"])
        if nulls or repeated:
            what = [f"{repeated:,} of {found.rows:,} rows have a key that another one has"] if repeated else []
            what += [f"{nulls:,} of {found.rows:,} rows have no key"] if nulls else []
            return Verdict(FAILED, " and ".join(what), nulls + repeated)
        return Verdict(PASSED, "every row has a key of its own")

    def failing(self, scope: Scope) -> str:
        """See `Expectation.failing`."""
        keys = [duckdb_name(name) for name in scope.schema.primary_key]
        null = " OR ".join(f"{key} IS NULL" for key in keys)
        return f"SELECT {', '.join(keys)} FROM {ROWS} GROUP BY {', '.join(keys)} HAVING count(*) > 1 OR bool_or({null})"
