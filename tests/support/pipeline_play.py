"""Plays one history of writes and builds on four pairs of arms; each build is compared with the plain oracle."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path

import psycopg

import lakeward
from lakeward.control.routes import ARM_MODES
from lakeward.types.digest import Digest
from support.pipeline_oracle import COLUMNS, COUNTS, STRATEGIES, NodeCase, Row, Source, Target

ARMS = ("postgres", "iceberg")
OTHER = dict(zip(ARMS, reversed(ARMS), strict=True))
PAIRS = [(source, output) for source in ARMS for output in ARMS]
BREAKS = (("compute", 1), ("compute", 4), ("prepare", 1), ("prepare", 4), ("audit", 1), ("decide", 1))
"""At which step, and which output there, a build can fail: none of its outputs has changed then. Outputs that have
nothing to write prepare nothing; `replace` and `mirror` always do, on either arm, which makes four."""

TWICE = """
import pyarrow as pa
import pyarrow.compute as pc

def twice(rows):
    for batch in rows:
        yield pa.record_batch({"twice": pc.multiply(batch["v"], 2), "id": batch["id"]})
"""
"""What the Python node of a case calls."""

_numbers = itertools.count(1)


class BrokenOnPurpose(Exception):
    """What a switch raises."""


class Switch:
    """Faults that a test turns on for one build: it fails when a step is reached so often."""

    def __init__(self) -> None:
        self.step: str | None = None
        self.left = 0

    def at(self, step: str) -> None:
        """Fail, if this is the one."""
        if step == self.step:
            self.left -= 1
            if self.left == 0:
                self.step = None
                raise BrokenOnPurpose(step)


class Play:
    """One case on four pairs of arms: two pipelines, one for each arm of the sources, write outputs on both arms.

    Args:
        workspace: where; its faults are `switch`.
        switch: makes builds fail.
        folder: an empty one, for the project.
        case: which nodes.
        strategies: one output of each, on each arm, for each name that the case gives.
    """

    def __init__(
        self,
        workspace: lakeward.Workspace,
        switch: Switch,
        folder: Path,
        case: NodeCase,
        strategies: tuple[str, ...] = STRATEGIES,
    ) -> None:
        self.workspace, self.switch, self.case = workspace, switch, case
        self.schema = f"main.play{next(_numbers)}"
        self.step = 0
        self.sources = {name: Source() for name in COLUMNS}
        self.targets = {(output, each): Target(each) for output in case.oracle for each in strategies}
        self.held = {
            (arm, name): workspace.create_dataset(
                f"{self.schema}.{name}_{arm}", columns, [next(iter(columns))], arm=arm
            )
            for arm in ARMS
            for name, columns in COLUMNS.items()
        }
        files = folder / "pipelines"
        files.mkdir(parents=True)
        (folder / "lakeward.toml").touch()
        (folder / "twice.py").write_text(TWICE)
        self.read_up_to: dict[tuple[str, str], tuple[int, int]] = {}
        self.pipelines = {arm: f"from_{arm}" for arm in ARMS}
        for arm, name in self.pipelines.items():
            (files / f"{name}.yml").write_text(self._text(arm, name), encoding="utf-8")
        workspace.apply(folder)

    def _text(self, arm: str, name: str) -> str:
        windows = {each: "full" if each in self.case.lookups else "delta" for each in self.case.sources}
        sources = "".join(
            f"  {each}: {{source: {self.schema}.{each}_{arm}, window: {window}}}\n" for each, window in windows.items()
        )
        outputs = "".join(
            f"  - {{dataset: {self.output(arm, to, given, strategy)}, from: {given}, strategy: {strategy}, "
            f"primary_key: [{', '.join(self.case.key)}], arm: {to}, allow_empty: true}}\n"
            for to in ARMS
            for given, strategy in self.targets
        )
        return f"pipeline: {name}\nnodes:\n{sources}{self.case.nodes}\noutputs:\n{outputs}"

    def output(self, source: str, to: str, given: str, strategy: str) -> str:
        """Return the name of an output's dataset."""
        return f"{self.schema}.{source}_{to}_{given}_{strategy}"

    # Steps -----------------------------------------------------------------------------------------------------------

    def write(self, name: str, verb: str, rows: list[Row]) -> None:
        """Write the same rows to a source on both arms."""
        self.step += 1
        columns = list(COLUMNS[name])[: 1 if verb == "delete" else None]
        given = [dict(zip(columns, row, strict=False)) for row in rows]
        for arm in ARMS:
            self.held[arm, name].write(given, mode=verb)
        self.sources[name].write(self.step, verb, rows)

    def copy(self, name: str) -> None:
        """Copy a source to its other arm, a version that changes no row; both tell the same of what is new."""
        expected = self.sources[name]
        for arm in ARMS:
            dataset = self.held[arm, name]
            dataset.copy_to(OTHER[dataset.arm])
            version, step = self.read_up_to.get((arm, name), (0, -1))
            for each in ARMS:
                rows = [tuple(row.values()) for row in dataset.to_arrow(since=version, arm=each).to_pylist()]
                assert Counter(rows) == Counter(expected.since(step)), f"{name} of {arm}, copied, read from {each}"

    def flip(self, name: str) -> None:
        """Let the other arm of each source serve it from now on."""
        self.copy(name)
        with psycopg.connect(self.workspace.database.libpq_url) as connection:
            for arm in ARMS:
                dataset = self.held[arm, name]
                to = OTHER[dataset.arm]
                connection.execute(
                    "UPDATE lakeward.routes SET mode = %s, primary_arm = %s, epoch = epoch + 1 WHERE dataset_id = %s",
                    (ARM_MODES[to], to, dataset.record.id),
                )

    def fail(self, step: str, occurrence: int) -> None:
        """Let a build fail; nothing has changed then. One that has nothing to do does not get there."""
        if self._pending():
            for name in self.pipelines.values():
                self.switch.step, self.switch.left = step, occurrence
                try:
                    self.workspace.build(name)
                except BrokenOnPurpose:
                    pass  # as asked for
                else:
                    raise AssertionError(f"the build did not fail at {step} {occurrence}")
                finally:
                    self.switch.step = None
        self._check()

    def build(self, full: bool = False) -> None:
        """Build, and compare counts, rows and digests of all outputs."""
        if not full and not self._pending():
            for arm, name in self.pipelines.items():
                [result] = self.workspace.build(name)
                # An output that never had a row has no version, so its pipeline is asked again.
                assert result.up_to_date or not all(self._versions(arm))
            self._check()
            return
        expected = {
            (given, strategy): target.build(self.case, given, self.sources, self.step, full)
            for (given, strategy), target in self.targets.items()
        }
        for arm, name in self.pipelines.items():
            [result] = self.workspace.build(name, full=full)
            found = {each.dataset: {count: getattr(each, count) for count in COUNTS} for each in result.transactions}
            for (given, strategy), counts in expected.items():
                for to in ARMS:
                    output = self.output(arm, to, given, strategy)
                    assert found[output] == counts, f"{self.case.name}: {strategy} of {given}, {arm} to {to}"
        self.read_up_to = {held: (dataset.version, self.step) for held, dataset in self.held.items()}
        self._check()

    def _versions(self, arm: str) -> list[int]:
        return [
            self.workspace.dataset(self.output(arm, to, given, strategy)).version
            for to in ARMS
            for given, strategy in self.targets
        ]

    def _pending(self) -> bool:
        built = next(iter(self.targets.values())).built
        return built is None or any(self.sources[name].happened(built) for name in self.case.sources)

    def _check(self) -> None:
        for (given, strategy), target in self.targets.items():
            if target.built is None:
                continue
            digests: dict[tuple[str, str], Digest] = {}
            for pair in PAIRS:
                dataset = self.workspace.dataset(self.output(*pair, given, strategy))
                assert dataset.arm == pair[1]
                rows = [tuple(row.values()) for row in dataset.to_arrow().to_pylist()]
                where = f"{self.case.name}: {strategy} of {given}, {' to '.join(pair)}"
                assert Counter(rows) == Counter(target.rows), where
                digests[pair] = dataset.digest()
            assert len(set(digests.values())) == 1, f"{self.case.name}: {strategy} of {given}: {digests}"


def row_of(name: str, key: int, chance: random.Random) -> Row:
    """Return a row of a source with a key."""
    text = chance.choice([None, "", "x", "é", "long " * 20])
    return (key, text) if name == "b" else (key, chance.randrange(4), chance.choice([None, 0, 1, 2, 3, -5]), text)


def random_write(play: Play, name: str, chance: random.Random) -> None:
    """Write something that fits what is there."""
    there = sorted(play.sources[name].rows)
    keys = range(6 if name == "b" else 12)
    verb = chance.choice(["append", "append", "append", "upsert", "upsert", "delete", "replace", "mirror"])
    free = [key for key in keys if key not in there] if verb == "append" else list(keys)
    chosen = chance.sample(free, min(len(free), chance.randint(1, 4)))
    if not chosen:
        verb, chosen = "delete", there[:2]
    play.write(name, verb, [(key,) if verb == "delete" else row_of(name, key, chance) for key in chosen])
