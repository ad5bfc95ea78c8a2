"""Queries: read-only, sealed, within limits, as a page and as streams."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import lakeward
from api.conftest import Make
from lakeward.errors import Busy, ResultTooLarge, UsageError


def test_a_query_joins_datasets_of_both_arms_at_one_instant(
    make: Make, api: TestClient, served_workspace: lakeward.Workspace
) -> None:
    rows, files = make(), make("iceberg")
    sql = f"select count(*), sum(l.amount * r.id) as total from {rows.name} l join {files.name} r using (id)"
    answer = api.post("/sql", json={"sql": sql})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "columns": {"count_star()": "long", "total": "decimal(38,4)"},
        "versions": {rows.name: 1, files.name: 1},
        "rows": [{"count_star()": 3, "total": 14.0}],
        "truncated": False,
    }
    assert '"total":14.0000' in answer.text.replace(" ", "")
    page = api.post("/sql", json={"sql": f"from {rows.name} order by id", "limit": 2}).json()
    assert [row["id"] for row in page["rows"]] == [1, 2] and page["truncated"]
    never = make(rows=0)
    assert served_workspace.sql(f"select * from {never.name}").to_arrow().num_rows == 0


def test_the_same_query_as_streams(make: Make, api: TestClient) -> None:
    sql = {"sql": f"select id, note from {make().name} order by id"}
    arrow = api.post("/sql", params={"format": "arrow"}, json=sql)
    assert pa.ipc.open_stream(io.BytesIO(arrow.content)).read_all()["id"].to_pylist() == [1, 2, 3]
    assert list(json.loads(arrow.headers["lakeward-versions"]).values()) == [1]
    assert api.post("/sql", headers={"Accept": "text/csv"}, json=sql).text == "id,note\n1,n1\n2,n2\n3,n3\n"
    lines = api.post("/sql", params={"format": "ndjson"}, json={**sql, "limit": 1}).text
    assert lines == '{"id":1,"note":"n1"}\n' or json.loads(lines) == {"id": 1, "note": "n1"}


@pytest.mark.parametrize(
    ("status", "told", "sql"),
    [
        (400, "DELETE does not begin", "delete from main.api.d1"),
        (400, "second statement", "select 1; select 2"),
        (400, "read_csv", "select * from read_csv('/etc/passwd')"),
        (400, "getenv", "select getenv('HOME') as x"),
        (400, "line 2, column 3", "select 1 as a,\n  nope as b"),
        (400, "two columns", "select 1 as a, 2 as a"),
        (404, "main.api.nope", "select * from main.api.nope"),
        (400, "empty", ""),
    ],
)
def test_what_a_query_may_not_do(api: TestClient, status: int, told: str, sql: str) -> None:
    for format in ("json", "arrow"):
        answer = api.post("/sql", params={"format": format}, json={"sql": sql})
        assert answer.status_code == status and told in answer.json()["detail"], answer.text


def test_limits_are_told_by_the_setting_that_sets_them(
    make: Make, limited: Callable[..., lakeward.Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEWARD_SQL__ROW_LIMIT", "2")
    monkeypatch.setenv("LAKEWARD_SQL__AT_A_TIME", "1")
    name = make().name
    with limited() as workspace:
        with pytest.raises(ResultTooLarge, match=r"sql\.row_limit"):
            workspace.sql(f"from {name}").to_arrow()
        with pytest.raises(UsageError, match=r"sql\.row_limit"):
            workspace.sql(f"from {name}", limit=3)
        assert workspace.sql(f"from {name}", limit=2).to_arrow().num_rows == 2
        with workspace.sql(f"from {name}", limit=1), pytest.raises(Busy, match=r"sql\.at_a_time"):
            workspace.sql("select 1 as a")
        # Whatever became of one, its place is free again.
        with pytest.raises(lakeward.errors.SqlError):
            workspace.sql(f"select 1 / nope as a from {name}")
        assert workspace.sql("select 1 as a").to_arrow()["a"].to_pylist() == [1]
