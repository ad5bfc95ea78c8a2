"""One look at a project shows all that is wrong with it, each with its place and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lakeward.compute.engine import Engine
from lakeward.errors import LakewardError, SpecError, SqlError
from lakeward.pipelines.planner import make_plan
from lakeward.pipelines.project import Project, load_project

YAML = """\
pipelne: a
nodes:
  orders: {sorce: main.raw.orders}
  clean:
    transform: select * from orders
  both: {join: {lefft: orders, right: clean, on: id, how: iner}}
  clean:
    transform: again
outputs:
  - dataset: analytics.orders
    from: cleen
    strategy: replase
    allow_empty: yes
    expectations:
      - row_cuont: {min: 1}
      - not_null: []
      - row
  - {from: clean, strategy: snapshot_replace}
"""
HEADER = """\
-- pipelines: b
-- sources: [main.raw.orders]
-- output: orders
-- primary_key: id
-- a word: of mine
select * from orders
"""
ROUND = """\
pipeline: {0}
nodes: {{o: {{source: main.m.{1}}}}}
outputs: [{{dataset: main.m.{0}, from: o, strategy: replace}}]
"""
NAMES = ("a.yml", "b.yml", "c.sql", "d.yml", "e.sql", "f.sql")
OF_NAMES = 'write catalog.schema.dataset, with double quotes around a level that holds a dot: a."b.c".d'
OF_TWO_PARTS = "write main.analytics.orders; a name is catalog.schema.dataset"
OF_KEYS = "add `primary_key: [column]`, the columns that identify a row"


@pytest.fixture
def wrong(tmp_path: Path) -> Callable[..., LakewardError]:
    """Returns the error of a project with these files."""

    def load(**files: str | bytes) -> LakewardError:
        (tmp_path / "lakeward.toml").touch()
        (tmp_path / "pipelines").mkdir()
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            (tmp_path / "pipelines" / name.replace("_", ".")).write_bytes(data)
        with pytest.raises(LakewardError) as raised:
            load_project(tmp_path)
        return raised.value

    return load


def told(error: LakewardError) -> list[tuple[object, str, str | None]]:
    """Line, reason and hint of each error, with the reason cut where it lists what there is."""
    return [
        (each.fields["line"], each.message.partition(": ")[2].partition("; there are")[0], each.next_step)
        for each in error.parts
    ]


def test_everything_that_is_wrong_with_a_yaml_file(wrong: Callable[..., LakewardError]) -> None:
    assert told(wrong(a_yml=YAML)) == [
        (1, "unknown key 'pipelne'", "did you mean pipeline?"),
        (3, "node 'orders' is of unknown kind 'sorce'", "did you mean source?"),
        (6, "'on' is 'id', and should be a list, as in [id]", "write `on: [id]`"),
        (6, "'how' is 'iner', and should be one of inner, left, right, full, semi, anti, cross", "did you mean inner?"),
        (6, "unknown key 'lefft'", "did you mean left?"),
        (7, "the key 'clean' stands twice (first in line 4)", "keep one of them"),
        (10, "'analytics.orders' is not a dataset's full name", OF_TWO_PARTS),
        (11, "unknown node 'cleen'", "did you mean clean?"),
        (12, "unknown strategy 'replase'", "did you mean replace?"),
        (
            13,
            "'allow_empty' is 'yes', and should be true or false",
            "write `allow_empty: true` or `allow_empty: false`",
        ),
        (15, "unknown expectation 'row_cuont'", "did you mean row_count?"),
        (16, "'columns' is empty", "write `not_null: [column]`"),
        (
            17,
            "expectation 'row' needs keys: check, nulls, on_fail, at_least",
            "write them with it, as in `- row: {check: …}`",
        ),
        (18, "'dataset' is missing", "add `dataset: …`"),
        (18, "strategy 'snapshot_replace' needs a 'primary_key'", OF_KEYS),
    ]


def test_hints_for_a_sql_file_speak_of_its_header(wrong: Callable[..., LakewardError]) -> None:
    assert told(wrong(b_sql=HEADER)) == [
        (1, "unknown key 'pipelines'", "did you mean pipeline?"),
        (
            1,
            "the header has no 'strategy'",
            "add `-- strategy: …` to the comment lines at the top, which end with line 5",
        ),
        (
            2,
            "'sources' is ['main.raw.orders'], and should be a mapping of names to datasets",
            "write `-- sources: {orders: main.raw.orders}`, or `-- sources: {}` if there are none",
        ),
        (3, "'orders' is not a dataset's full name", OF_NAMES),
        (4, "'primary_key' is 'id', and should be a list, as in [id]", "write `-- primary_key: [id]`"),
        (
            5,
            "unknown key 'a word'",
            "the comment lines at the top are the header: move other comments below the first line of the query",
        ),
    ]


def test_the_error_of_several_files_is_one_with_all_of_them(wrong: Callable[..., LakewardError]) -> None:
    query = HEADER.replace("pipelines", "pipeline").replace("[main.raw.orders]", "{o: main.raw.o}")
    query = query.replace("output: orders", "output: main.a.b").replace("key: id", "key: [id]")
    query = query.replace("-- a word: of mine", "-- strategy: replace")
    error = wrong(
        a_yml="pipeline: a\nnodes:\n\to: {source: a.b.c}\n",
        b_yml="",
        c_sql="\n",
        d_yml=b"pipeline: \xff",
        e_sql=query,
        f_sql=query.replace("pipeline: b", "pipeline: f").replace("from orders", "from o"),
    )
    lines = str(error).splitlines()
    assert lines[:2] == [
        "pipelines/a.yml:3: not valid YAML: indented by tabs, in line 3",
        "  → indent by spaces: two for each level",
    ]
    assert lines[-2:] == ["6 errors in 6 files.", "Next: mend all of these places, and run the command again"]
    assert [type(each) for each in error.parts] == [SpecError] * 4 + [SqlError, SpecError]
    assert [each.fields["file"] for each in error.parts] == [f"pipelines/{name}" for name in NAMES]
    assert "also written by pipeline 'b'" in error.parts[5].message and all(each.next_step for each in error.parts)
    assert isinstance(error, SpecError) and error.exit_code == 2
    document = json.loads(json.dumps(error.to_json()))
    assert (document["fields"]["file"], document["fields"]["line"]) == ("pipelines/a.yml", 3)
    assert [each["error"] for each in document["fields"]["errors"]] == ["SpecError"] * 4 + ["SqlError", "SpecError"]


def test_a_plan_tells_all_sources_columns_and_circles_at_once(
    project: Callable[..., Project], shelf: object, engine: Engine
) -> None:
    base = "-- pipeline: {0}\n-- sources: {{o: {1}}}\n-- output: main.m.{0}\n-- strategy: replace\nselect {2} from o\n"
    loaded = project(
        a_sql=base.format("a", "main.raw.ordres", "id"),
        b_sql=base.format("b", "main.m.a", "id"),
        c_sql=base.format("c", "main.raw.orders", "idd"),
        d_sql=base.format("d", "main.raw.orders", "id, 1").replace(
            "replace", "replace\n-- expectations: [{not_null: [x]}]"
        ),
    )
    with pytest.raises(SpecError) as raised:
        make_plan(loaded, {}, shelf, engine)  # type: ignore[arg-type]
    told = [each.message.partition("\n")[0] for each in raised.value.parts]
    assert [text.partition(":")[0] for text in told] == ["pipelines/a.sql", "pipelines/c.sql", "pipelines/d.sql"], told
    circle = project(
        a_yml=ROUND.format("a", "b"), b_yml=ROUND.format("b", "a"), c_sql=base.format("c", "main.raw.orders", "((")
    )
    with pytest.raises(LakewardError) as raised:
        make_plan(circle, {}, shelf, engine)  # type: ignore[arg-type]
    assert "read each other in a circle: a → b → a" in raised.value.message and "c.sql:5" in raised.value.message
