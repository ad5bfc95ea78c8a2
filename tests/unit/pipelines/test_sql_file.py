"""Pipelines that are one `.sql` file."""

from __future__ import annotations

import pytest

from lakeward.errors import SpecError, SqlError
from lakeward.pipelines.document import read_document
from lakeward.pipelines.graph import read_graph
from lakeward.pipelines.spec import Pipeline, read_spec
from lakeward.pipelines.sql_file import read_sql_file

GOOD = """\
-- pipeline: delays
-- sources:
--   flights: nyc.raw.flights
--   query: nyc.raw.queries
-- output: nyc.analytics.delays
-- strategy: replace
-- primary_key: [carrier]
-- arm: postgres

select carrier, avg(delay) as delay
from flights  -- all of them
group by carrier
"""


def read(text: str) -> Pipeline:
    return read_spec(*read_sql_file(text, "pipelines/delays.sql"))


def test_it_means_the_same_as_yaml() -> None:
    yaml = """
pipeline: delays
nodes:
  flights: {source: nyc.raw.flights}
  query: {source: nyc.raw.queries}
  query_: {transform: "select carrier"}
outputs:
  - {dataset: nyc.analytics.delays, from: query_, strategy: replace, primary_key: [carrier], arm: postgres}
"""
    mine, other = read(GOOD).spec, read_spec(*read_document(yaml, "a.yml")).spec
    assert mine.outputs == other.outputs
    assert list(mine.nodes) == list(other.nodes)
    assert read(GOOD).sources == read_spec(*read_document(yaml, "a.yml")).sources


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("-- pipeline: delays\n", "", 1, "the header has no 'pipeline'"),
        ("-- strategy: replace\n", "", 1, "the header has no 'strategy'"),
        ("-- strategy: replace", "-- stratgy: replace", 6, "unknown key 'stratgy'"),
        ("-- strategy: replace", "-- strategy: append", 6, "unknown strategy 'append'; there are append_always"),
        ("nyc.raw.flights", "flights", 3, "'flights' is not a dataset's full name"),
        ("-- output: nyc.analytics.delays", "-- output: delays", 5, "'delays' is not a dataset's full name"),
        ("-- output: nyc.analytics.delays", "-- output: nyc.raw.flights", 5, "also the source 'flights'"),
        ("-- arm: postgres", "-- arm: postgres\n-- arm: iceberg", 9, "the key 'arm' stands twice"),
        ("-- arm: postgres", "-- arm: [", 8, "not valid YAML"),
        ("-- sources:", "-- sources: x", 3, "not valid YAML"),
    ],
)
def test_header_errors_have_the_files_line(old: str, new: str, line: int, says: str) -> None:
    assert old in GOOD
    with pytest.raises(SpecError, match=r"delays\.sql") as raised:
        read(GOOD.replace(old, new, 1))
    assert says in raised.value.message
    assert raised.value.fields["line"] == line


@pytest.mark.parametrize(
    ("text", "says"), [("select 1", "no header"), ("", "the file is empty"), ("-- pipeline: a\n", "no 'sources'")]
)
def test_a_file_without_its_parts_is_refused(text: str, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        read(text)


def test_a_header_without_query_is_refused() -> None:
    with pytest.raises(SpecError, match="has no SQL"):
        read(GOOD[: GOOD.index("select")])


def test_sql_errors_have_the_files_line_and_its_excerpt() -> None:
    with pytest.raises(SqlError) as raised:
        read_graph(read(GOOD.replace("from flights ", "from flihgts ")))
    assert str(raised.value) == (
        "pipelines/delays.sql:11: node query_: unknown name 'flihgts'; "
        "declared are: flights, query, query_ (line 11, column 6)\n"
        "  11 | from flihgts  -- all of them\n"
        "     |      ^\n"
        "Next: did you mean flights?"
    )
    assert (raised.value.fields["file"], raised.value.fields["line"]) == ("pipelines/delays.sql", 11)
