"""Builds of which something is expected: what is refused, told and kept, on either arm."""

from __future__ import annotations

import pytest

from lakeward.errors import ComputeError, ExpectationFailed
from support.expectations import OUT, SOURCE, Scene

EVERY = (
    "row_count: {min: 1, max: 10}",
    "primary_key",
    "not_null: [id, v]",
    'row: {check: "v > 0"}',
    'value: {sql: "sum(v)", min: 6, max: 6}',
    "accepted_values: {column: status, values: [new, sent]}",
    "relationship: {columns: [id], dataset: main.raw.orders, key: [id]}",
)


def test_rows_that_are_as_expected_become_visible_and_what_was_found_is_kept(scene: Scene) -> None:
    scene.expect(*EVERY)
    result = scene.build()
    assert (scene.ids(), result.warnings) == ([1, 2, 3], ())
    assert [(each.position, each.kind, each.outcome, each.rows_checked) for each in scene.results()] == [
        (position, each.partition(":")[0], "passed", 3) for position, each in enumerate(EVERY)
    ]


@pytest.mark.parametrize(
    ("expectation", "failed", "samples"),
    [
        ("row_count: {min: 6}", 0, []),
        ("row_count: {max: 4}", 0, []),
        ("not_null: [id, status]", 2, [(None, "4.0"), ("3", "3.0")]),
        ('row: {check: "v < 2"}', 4, [(None, "4.0"), ("2", "2.0"), ("2", "2.0"), ("3", "3.0")]),
        ("accepted_values: {column: v, values: [1, 2, 3.0], nulls: false}", 1, [(None, "4.0")]),
        ('value: {sql: "sum(v)", max: 5.5}', 0, []),
        ("relationship: {columns: [id], dataset: main.raw.known, key: [id]}", 1, [("3", "3.0")]),
        ("relationship: {columns: [id], dataset: main.raw.known, key: [id], nulls: false}", 2, None),
    ],
)
def test_rows_that_are_not_as_expected_leave_the_version_before(
    scene: Scene, expectation: str, failed: int, samples: list[tuple[str | None, str]] | None
) -> None:
    known = scene.workspace.create_dataset("main.raw.known", {"id": "long"}, arm=scene.arm)
    known.write([{"id": 1}, {"id": 2}, {"id": None}])
    scene.expect(key="[]")
    scene.build()
    scene.write((2, 2.0, "sent"), (None, 4.0, "sent"))
    scene.expect(expectation, key="[]")
    with pytest.raises(ExpectationFailed, match="was not built: 1 of its expectations failed") as caught:
        scene.build()
    assert caught.value.exit_code == 5
    assert caught.value.safe == f"dataset {OUT} is unchanged at version 1"
    assert (scene.ids(), scene.out.version) == ([1, 2, 3], 1)
    [found] = scene.results(version=2)
    assert (found.outcome, found.rows_checked, found.rows_failed, found.refused) == ("failed", 5, failed, True)
    if samples is not None:
        assert [(row["id"], row["v"]) for row in found.samples] == samples
    [judged] = scene.judged()
    assert (judged.version, judged.status) == (2, "aborted")
    assert [each.version for each in scene.out.history() if each.status == "committed"] == [1]


def test_keys_that_come_twice_or_not_at_all_are_shown_by_key(scene: Scene) -> None:
    scene.expect("primary_key", strategy="append_always", key="[id]")
    scene.build()
    scene.write((3, 3.5, "new"), (4, 4.0, "new"))
    with pytest.raises(ExpectationFailed, match=r"1 of 5 rows have a key that another one has: \(id=3\)"):
        scene.build()
    assert scene.ids() == [1, 2, 3]


def test_a_warning_is_told_and_kept_and_stops_nothing(scene: Scene) -> None:
    scene.expect('row: {check: "v < 3", on_fail: warn}', "primary_key: {on_fail: warn}")
    result = scene.build()
    assert result.warnings == (f"{OUT}: row (v < 3): 1 of 3 rows fail: (id=3)",)
    assert scene.ids() == [1, 2, 3]
    assert scene.outcomes() == {"row": ("failed", 3, 1), "primary_key": ("passed", 3, 0)}


def test_one_output_that_fails_keeps_all_of_them_as_they_were(scene: Scene) -> None:
    other = (
        "  - dataset: main.m.other\n    from: all\n    strategy: replace\n    primary_key: [id]\n"
        "    expectations:\n      - row_count: {min: 1}\n"
    )
    scene.expect('row: {check: "v < 4"}', more=other)
    scene.build()
    scene.write((4, 4.0, None))
    with pytest.raises(ExpectationFailed):
        scene.build()
    assert scene.ids() == scene.ids(scene.workspace.dataset("main.m.other")) == [1, 2, 3]
    assert scene.outcomes(2) == {"row": ("failed", 4, 1)}
    assert [each.outcome for each in scene.results("main.m.other", 2)] == ["passed"]


def test_outputs_of_one_build_know_each_others_new_rows(scene: Scene) -> None:
    other = "  - dataset: main.m.other\n    from: all\n    strategy: replace\n"
    scene.expect("relationship: {columns: [id], dataset: main.m.other, key: [id]}", more=other)
    scene.build()
    assert scene.outcomes() == {"relationship": ("passed", 3, 0)}
    scene.expect("relationship: {columns: [id], dataset: main.m.out, key: [id]}")
    scene.build()
    assert scene.outcomes() == {"relationship": ("passed", 3, 0)}


def test_shares_are_compared_by_count_and_not_rounded(scene: Scene) -> None:
    """With 0.7 as a double, 3 of 10 would be more than 10 × (1 − 0.7)."""
    scene.write(*((number, float(number), None) for number in range(4, 11)))
    scene.expect('row: {check: "id > 3", at_least: 0.7}')
    scene.build()
    assert scene.outcomes() == {"row": ("passed", 10, 3)}
    scene.expect('row: {check: "id > 3", at_least: 0.71}')
    with pytest.raises(ExpectationFailed, match=r"3 of 10 rows fail, and at least 0\.71 of them have to hold"):
        scene.build()


def test_values_are_held_to_bounds_and_to_the_version_before(scene: Scene) -> None:
    scene.expect('value: {sql: "sum(v)", within_of_previous: 0.2}', 'value: {sql: "max(v)", equals: 3, tolerance: 1}')
    scene.build()
    assert [(each.outcome, each.observed) for each in scene.results()] == [("vacuous", "6.0"), ("passed", "3.0")]
    scene.write((4, 1.2, None))
    scene.build()
    assert [each.observed for each in scene.results()] == ["7.2", "3.0"]
    scene.write((5, 3.9, None))
    with pytest.raises(ExpectationFailed, match=r"it is 11\.1, and was 7\.2 in the version before"):
        scene.build()
    # What was refused is not the version before, and what was changed by hand has no value that was recorded.
    scene.out.write([{"id": 9, "v": 2.8, "status": None}], mode="append")
    scene.build()
    assert scene.results()[0].observed == "11.1"


def test_a_nan_fails_every_value(scene: Scene) -> None:
    scene.write((4, float("nan"), None))
    scene.expect('value: {sql: "sum(v)", max: 1e300}')
    with pytest.raises(ExpectationFailed, match="it is NaN"):
        scene.build()


def test_a_null_predicate_fails_unless_it_may_pass(scene: Scene) -> None:
    scene.expect("row: {check: \"status <> 'old'\", nulls: true}")
    scene.build()
    scene.expect("row: \"status <> 'old'\"")
    with pytest.raises(ExpectationFailed, match=r"1 of 3 rows fail: \(id=3\)"):
        scene.build()


def test_a_delta_judges_only_new_rows_once_the_others_are_known_to_hold(scene: Scene) -> None:
    lasting = ('row: {check: "v > 0"}', "not_null: [id]", "row_count: {min: 1}")
    scene.expect(*lasting, strategy="append_always")
    scene.build()
    scene.write((4, 4.0, None))
    scene.build()
    assert scene.outcomes() == {"row": ("passed", 4, 0), "not_null": ("passed", 4, 0), "row_count": ("passed", 4, 0)}
    scene.expect(*lasting, "not_null: [v]", 'row: {check: "v < extract(year from now())"}', strategy="append_always")
    scene.write((5, 5.0, None))
    assert scene.build().transactions[0].rows_in == 1
    assert [(each.kind, each.rows_checked) for each in scene.results()] == [
        ("row", 5),
        ("not_null", 5),
        ("row_count", 5),
        ("not_null", 5),
        ("row", 5),
    ]
    scene.write((6, -6.0, None))
    with pytest.raises(ExpectationFailed, match=r"1 of 6 rows fail: \(id=6\)"):
        scene.build()


def test_rows_written_by_hand_are_judged_with_the_next_build(scene: Scene) -> None:
    scene.expect('row: {check: "v > 0"}', strategy="append_always")
    scene.build()
    scene.out.write([{"id": 9, "v": -9.0, "status": None}], mode="append")
    scene.write((4, 4.0, None))
    with pytest.raises(ExpectationFailed, match=r"1 of 5 rows fail: \(id=9\)"):
        scene.build()


def test_what_can_not_be_computed_leaves_everything_as_it_was(scene: Scene) -> None:
    scene.expect()
    scene.build()
    scene.write((4, 4.0, "x"))
    scene.expect('row: {check: "CAST(status AS BIGINT) > 0"}')
    with pytest.raises(ComputeError, match=f"what is expected of {OUT} can't be computed"):
        scene.build()
    assert scene.ids() == [1, 2, 3]


def test_x01_zero_rows_pass_as_vacuous_or_have_no_data_and_no_row_count(scene: Scene) -> None:
    scene.expect(
        "primary_key",
        "not_null: [id]",
        'row: {check: "v > 0", at_least: 0.95}',
        "accepted_values: {column: status, values: [new]}",
        "relationship: {columns: [id], dataset: main.raw.orders, key: [id]}",
        'value: {sql: "avg(v)", min: 0, max: 9, on_no_data: pass}',
        'value: {sql: "count(distinct status)", equals: 3, on_fail: warn}',
        'value: {sql: "min(v)", min: 0}',
        "row_count: {min: 1}",
        sql="select * from orders where v > 100",
        strategy="append_always",
    )
    with pytest.raises(ExpectationFailed, match="2 of its expectations failed"):
        scene.build()
    assert [(each.kind, each.outcome, each.refused) for each in scene.results()] == [
        ("primary_key", "vacuous", False),
        ("not_null", "vacuous", False),
        ("row", "vacuous", False),
        ("accepted_values", "vacuous", False),
        ("relationship", "vacuous", False),
        ("value", "no data", False),
        ("value", "failed", False),
        ("value", "no data", True),
        ("row_count", "failed", True),
    ]
    assert scene.results()[1].message == "vacuous, 0 rows"
    assert scene.out.version == 0


def test_x01_an_empty_delta_window_is_told_from_rows_that_hold(scene: Scene) -> None:
    """Its rows are none, and what was found in the version that stays is what the next delta goes on from."""
    expectations = (
        "primary_key",
        'row: {check: "v < 3", on_fail: warn}',
        'value: {sql: "avg(v)", min: 0}',
        "row_count: {min: 3}",
        "relationship: {columns: [id], dataset: main.raw.orders, key: [id]}",
    )
    scene.expect(*expectations, strategy="append_always", sql=_POSITIVE)
    scene.build()
    for number in (4, 5):
        scene.write((number, -4.0, None))
        assert scene.build().transactions[0].rows_in == 0
        assert scene.outcomes() == {
            "primary_key": ("vacuous", 0, 0),
            "row": ("vacuous", 0, 0),
            "value": ("passed", 3, 0),
            "row_count": ("passed", 3, 0),
            "relationship": ("vacuous", 0, 0),
        }
        assert scene.results()[0].message == "vacuous, 0 rows"
    scene.write((6, 1.0, None))
    scene.build()
    assert scene.outcomes()["primary_key"] == ("passed", 4, 0)
    assert scene.outcomes()["row"] == ("failed", 4, 1)


def test_x01_rows_that_change_nothing_are_no_empty_window(scene: Scene) -> None:
    scene.expect("not_null: [id]", strategy="snapshot_replace")
    scene.build()
    scene.build(full=True)
    assert scene.outcomes() == {"not_null": ("passed", 3, 0)}


def test_x01_a_version_that_was_emptied_by_request(scene: Scene) -> None:
    scene.expect("not_null: [id]", "row_count: {max: 9}", more="    allow_empty: true\n", sql=_NONE)
    scene.build()
    assert scene.outcomes() == {"not_null": ("vacuous", 0, 0), "row_count": ("passed", 0, 0)}


def test_x03_a_null_among_the_known_keys_hides_nothing(scene: Scene) -> None:
    known = scene.workspace.create_dataset("main.raw.known", {"id": "long"}, arm=scene.arm)
    known.write([{"id": 3}, {"id": None}])
    scene.expect("relationship: {columns: [id], dataset: main.raw.known, key: [id]}")
    with pytest.raises(ExpectationFailed, match=r"2 of 3 rows fail: \(id=1\), \(id=2\)"):
        scene.build()


def test_s03_odd_names_and_values_are_only_names_and_values(scene: Scene) -> None:
    odd = 'x"; drop table t; --'
    scene.workspace.create_dataset("main.raw.odd", {odd: "string", "a'b": "long"}, arm=scene.arm).write(
        [{odd: "'; select pg_sleep(5); --", "a'b": 1}, {odd: "1) or (1=1", "a'b": 2}]
    )
    key = odd.replace('"', '\\"')
    text = (
        "pipeline: p\nnodes:\n  odd: {source: main.raw.odd}\noutputs:\n  - dataset: main.m.out\n    from: odd\n"
        f'    strategy: replace\n    arm: {scene.arm}\n    primary_key: ["{key}"]\n    expectations:\n'
        f'      - primary_key\n      - not_null: ["{key}", "a\'b"]\n'
        f'      - accepted_values: {{column: "{key}", values: ["\'; select pg_sleep(5); --"]}}\n'
        f'      - relationship: {{columns: ["{key}"], dataset: main.raw.odd, key: ["{key}"]}}\n'
    )
    scene.workspace.pipelines.apply(scene.project(p_yml=text))
    with pytest.raises(ExpectationFailed, match=r"1 of 2 rows fail: \(x\"; drop table t; --=1\) or \(1=1\)"):
        scene.build()
    assert [each.outcome for each in scene.results()] == ["passed", "passed", "failed", "passed"]
    assert scene.workspace.dataset(SOURCE).version == 1


_POSITIVE = "select * from orders where v > 0"
_NONE = "select * from orders where v > 100"
