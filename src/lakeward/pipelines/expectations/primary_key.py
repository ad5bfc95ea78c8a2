"""The expectation `primary_key`: every row has a key, and no two rows the same."""

from __future__ import annotations

from lakeward.pipelines.expectation import (
    FAILED,
    PASSED,
    QUARANTINE,
    ROWS,
    VACUOUS,
    Expectation,
    Found,
    Scope,
    Verdict,
)
from lakeward.pipelines.origin import Origin, Path
from lakeward.types.quoting import duckdb_name


class PrimaryKey(Expectation):
    """The columns of the output's `primary_key` are not null, and together unique."""

    name = "primary_key"
    alone = True

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

    def judge(self, found: Found) -> Verdict:
        """See `Expectation.judge`."""
        nulls, repeated = int(found.values["nulls"]), int(found.values["repeated"])
        if not found.rows:
            return Verdict(VACUOUS, "vacuous, 0 rows")
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
