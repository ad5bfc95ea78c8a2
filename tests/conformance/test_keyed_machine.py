"""Any sequence of writes gives the same rows, identity, counts and digests on every arm and to other engines.

Hypothesis chooses columns and key, then writes of every verb whose batches meet each other's keys, and spoilt ones that
every arm must refuse by the same error. The plain model is the arm in memory.
"""

from __future__ import annotations

import random
from typing import Any

import sqlalchemy
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import lakeward
from conformance.conftest import ARMS
from lakeward import WriteResult
from lakeward.errors import LakewardError
from lakeward.storage.verbs import KEYED, VERBS
from lakeward.testing import InMemoryArm
from support.arms import ArmUnderTest, HeldDataset, iceberg_table
from support.keyed import COUNTS, assert_digest_kept
from support.keyed_batches import SPOILT, Row, Shape, batches, plain, shapes, spoilt
from support.outside import main_by_duckdb, main_by_pyiceberg
from support.rounds import rounds

EXAMPLES, STEPS = rounds(3), 20
"""About half a minute on two cores."""

NEWEST_NUMBER = sqlalchemy.text(
    "SELECT coalesce(max(version), 0) AS newest FROM lakeward.dataset_transactions WHERE dataset_id = :id"
)


def comparable(rows: list[Row]) -> str:
    return "\n".join(repr({name: plain(value) for name, value in row.items()}) for row in rows)


def without_moment(rows: list[Row]) -> list[Row]:
    """Return rows without the moment at which they were added, which is another one in each dataset."""
    return [{name: value for name, value in row.items() if name != "__created_at"} for row in rows]


class KeyedWrites(RuleBasedStateMachine):
    """One dataset on each arm; each step does the same to all of them."""

    workspace: lakeward.Workspace

    @initialize(shape=shapes())
    def create(self, shape: Shape) -> None:
        self.shape = shape
        self.held: dict[str, HeldDataset] = {
            name: ArmUnderTest(self.workspace, name).create(shape.columns, shape.primary_key) for name in ARMS
        }
        self.model = self.held[InMemoryArm.name]
        self.moments: dict[str, dict[int, Any]] = {name: {} for name in ARMS}
        self.history: dict[int, str] = {}
        self.changed = True

    # Steps -----------------------------------------------------------------------------------------------------------

    @rule(data=st.data(), verb=st.sampled_from(KEYED), compacted=st.booleans())
    def write_by_key(self, data: st.DataObject, verb: str, compacted: bool) -> None:
        self.write(data.draw(batches(self.shape, verb)), verb)
        if compacted:
            self.all_are_the_same()
            self.compact()

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        """Sometimes of keys that are there, which keyed writes then refuse."""
        given = data.draw(batches(self.shape, "append", most=3))
        if not self.model.record.row_count or data.draw(st.integers(0, 3)) == 0:
            self.write(given, "append")

    @rule(data=st.data())
    def replace(self, data: st.DataObject) -> None:
        self.write(data.draw(batches(self.shape, "replace")), "replace", allow_empty=data.draw(st.booleans()))

    @rule(data=st.data())
    def mirror_or_nothing(self, data: st.DataObject) -> None:
        self.write(data.draw(batches(self.shape, "mirror", most=2)), "mirror", allow_empty=True)

    @rule(data=st.data(), verb=st.sampled_from(KEYED), how=st.sampled_from(SPOILT))
    def refuse(self, data: st.DataObject, verb: str, how: str) -> None:
        given = data.draw(batches(self.shape, verb).filter(bool))
        if how != SPOILT[-1] or VERBS[verb].per_row:
            error = self.write(spoilt(given, how, self.shape), verb)
            assert isinstance(error, str), f"{how} was taken by {verb}"

    @rule()
    def verify(self) -> None:
        """From here on the digest is known, and goes along with each keyed write."""
        for held in self.held.values():
            self.workspace.storage.verify(held.record)

    def write(self, rows: list[Row], verb: str, *, allow_empty: bool = False) -> dict[str, Any] | str:
        outcomes = {name: self.outcome(held, rows, verb, allow_empty) for name, held in self.held.items()}
        expected = outcomes[InMemoryArm.name]
        for name, outcome in outcomes.items():
            assert outcome == expected, f"{verb} of {rows} on {name}"
        self.changed = True
        return expected

    def outcome(self, held: HeldDataset, rows: list[Row], verb: str, allow_empty: bool) -> dict[str, Any] | str:
        """Return the counts of a write, or its error."""
        try:
            result: WriteResult = held.write(rows, verb, allow_empty)
        except LakewardError as error:
            # The head's number is left out: only the compacted arm has moved its head.
            fields = {name: value for name, value in error.fields.items() if name not in ("dataset", "version")}
            told = f"{type(error).__name__} {error} {fields}".replace(held.created.name, "d")
            return told.replace(f"version {held.version}", "the head")
        asked = result.rows_deleted if verb in ("changes", "delete") else 0
        accounted = result.rows_added + result.rows_updated + result.rows_unchanged + result.rows_skipped + asked
        assert result.rows_in == len(rows) == accounted
        # A write that changes nothing is told the head, which only the compacted arm has moved.
        version = ("version",) if result.committed else ()
        return {name: getattr(result, name) for name in (*version, *COUNTS, "committed")}

    def compact(self) -> None:
        """Rewrite data files: a version of its own, of the same rows."""
        held = self.held["iceberg"]
        before, taken = held.record, self.numbers_taken(held)
        if self.workspace.maintain(held.created.name).compacted:
            assert held.version > before.head_version
            # The others take a number for a write without rows, so that all count on from the same one.
            for name, other in self.held.items():
                for _ in range(taken, self.numbers_taken(held)) if name != "iceberg" else ():
                    assert not other.write([], "append").committed
        assert held.record.row_count == before.row_count
        self.changed = True

    def numbers_taken(self, held: HeldDataset) -> int:
        """Return the newest number of a dataset's transactions: one that wrote nothing has one, too."""
        rows = self.workspace.database.fetch(NEWEST_NUMBER, {"id": held.created.id})
        return int(rows[0]["newest"])

    # Checks ----------------------------------------------------------------------------------------------------------

    @invariant()
    def all_are_the_same(self) -> None:
        if not self.changed:
            return
        self.changed = False
        found = {name: held.rows(identity=True) for name, held in self.held.items()}
        expected = comparable(without_moment(found[InMemoryArm.name]))
        digests = {name: held.digest() for name, held in self.held.items()}
        for name, held in self.held.items():
            assert comparable(without_moment(found[name])) == expected, name
            assert held.record.row_count == len(found[name]), name
            assert held.leftovers() == {}, name
            assert digests[name] == digests[InMemoryArm.name], name
            assert_digest_kept(held)
            self.moments_stay(name, found[name])
        self.as_others_read_it(found["iceberg"])
        self.history_stays(expected)

    def moments_stay(self, name: str, rows: list[Row]) -> None:
        """Check that a row's moment stays as long as its id is there, and that a new one is later."""
        known, now = self.moments[name], {row["__row_id"]: row["__created_at"] for row in rows}
        assert len(now) == len(rows), f"{name}: an id twice"
        new = {moment for id_, moment in now.items() if id_ not in known}
        assert all(now[id_] == known[id_] for id_ in now.keys() & known.keys()), name
        assert len(new) <= 1, name
        assert all(moment > max(known.values()) for moment in new if known), name
        known.update(now)

    def as_others_read_it(self, rows: list[Row]) -> None:
        held = self.held["iceberg"]
        table = iceberg_table(self.workspace, held.table)
        if table is None:
            assert held.version == 0
            return
        assert comparable(main_by_duckdb(table).to_pylist()) == comparable(rows)
        assert comparable(main_by_pyiceberg(table).to_pylist()) == comparable(list(map(self.as_pyiceberg, rows)))

    def as_pyiceberg(self, row: Row) -> Row:
        """Return a row as PyIceberg reads it: it takes a null list of structs for an empty one."""
        lists = {name for name, type_ in self.shape.columns.items() if type_.startswith("list<struct")}
        return {name: [] if name in lists and value is None else value for name, value in row.items()}

    def history_stays(self, now: str) -> None:
        """Check one of the earlier versions, and keep this one."""
        version = self.model.version
        if self.history:
            earlier = random.Random(version).choice(sorted(self.history))
            for name, held in self.held.items():
                past = comparable(without_moment(held.rows(identity=True, version=earlier)))
                assert past == self.history[earlier], f"version {earlier} on {name}"
        if version:
            assert self.history.setdefault(version, now) == now, "a version has changed"


def test_any_sequence_of_writes_is_the_same_everywhere(shared: lakeward.Workspace) -> None:
    """What is written by whatever verb is the same on all arms, and as PyIceberg and DuckDB read it at `main`.

    A failure prints the steps, and the blob that replays them.
    """

    class OnSharedWorkspace(KeyedWrites):
        workspace = shared

    # Not shrunk: each step makes real files and transactions on every arm, and a shrink runs thousands.
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    run_state_machine_as_test(
        OnSharedWorkspace, settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS, phases=phases)
    )
