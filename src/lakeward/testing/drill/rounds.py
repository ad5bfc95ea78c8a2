"""Random rounds: three processes write to the same two datasets, and one of them is killed or stopped at some moment.

A reader watches meanwhile: what it saw at the heads of one instant must be what the model says of those versions, and
of a build with two outputs it must have seen both or none.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lakeward.storage.requests import ReadRequest
from lakeward.testing.drill.model import Model, Rooms
from lakeward.testing.drill.processes import Gone, Nursery, Stuck, Writer
from lakeward.testing.drill.writes import Chooser, Write

WRITERS = 3
WRITES_PER_ROUND = 2
MODES = {"append": 4, "replace": 1, "append_new": 2, "upsert": 4, "mirror": 1, "changes": 3, "delete": 2}
"""How often each mode is chosen."""

ALONE = ("delete",)
"""Not for builds of two outputs: it may have nothing to do, and then one of the two is rightly not committed."""

STOPPED_IN = 0.15
"""The share of rounds whose victim is stopped for longer than its lease, not killed."""

LOOK_SECONDS = 0.02
FIRST_ROUND_SECONDS = 0.8
ROUND_PATIENCE_SECONDS = 90.0


@dataclass
class Round:
    """What happened in a round."""

    number: int
    victim: str
    acknowledged: int = 0
    refused: int = 0
    unanswered: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)


@dataclass
class _Seen:
    """What a reader saw: the heads of one instant, and the rows at them."""

    heads: dict[int, int]
    rows: dict[str, list[tuple[int, str]]]


class Rounds:
    """Runs rounds and compares with the model after each.

    Args:
        rooms: the workspace, seen by the process that survives.
        nursery: makes the processes that don't.
        model: has the two datasets.
        names: the two datasets.
        numbers: numbers writes and rows.
        lease_seconds: of the processes.
        seed: what is written, who is the victim and when; not how the processes interleave.
    """

    def __init__(
        self,
        rooms: Rooms,
        nursery: Nursery,
        model: Model,
        names: tuple[str, str],
        numbers: Iterator[int],
        *,
        lease_seconds: float,
        seed: int,
    ) -> None:
        self._rooms = rooms
        self._nursery = nursery
        self._model = model
        self._names = names
        self._chooser = Chooser(numbers)
        self._lease_seconds = lease_seconds
        self._seed = seed
        self._writers = [nursery.writer() for _ in range(WRITERS)]
        self._expected_seconds = FIRST_ROUND_SECONDS

    def run(self, count: int, tell: Callable[[int], None]) -> Iterator[Round]:
        """Run so many rounds; `tell` is told how many are done."""
        for number in range(1, count + 1):
            yield self._round(number)
            tell(number)

    def _round(self, number: int) -> Round:
        generator = random.Random(f"{self._seed} {number}")
        victim = generator.randrange(WRITERS)
        stops = generator.random() < STOPPED_IN
        made = Round(number, "stopped" if stops else "killed")
        self._chooser.settled()
        work = [[self._write(generator) for _ in range(WRITES_PER_ROUND)] for _ in self._writers]
        labels = [write.label for writes in work for write in writes]
        started = time.monotonic()
        seen = self._together(work, victim, stops, started + generator.random() * self._expected_seconds)
        self._expected_seconds = 0.8 * self._expected_seconds + 0.2 * min(time.monotonic() - started, 3.0)
        if not self._writers[victim].alive:
            self._writers[victim] = self._nursery.replace(self._writers[victim])
        for name in self._names:
            self._rooms.recovery.recover(self._model.datasets[name].id)
        for name in self._names:
            again = self._rooms.recovery.recover(self._model.datasets[name].id)
            made.violations += [f"a second recovery still {each.outcome} {each.dataset}" for each in again]
        made.violations += self._model.check(generator, self._names)
        asked = [label for label in labels if label in self._model.log.writes]
        if not made.violations:
            made.violations += [what for each in seen for what in self._misread(each, asked)]
        answers = [self._model.log.answers.get(label) for label in asked]
        made.acknowledged = answers.count("acknowledged")
        made.refused = answers.count("refused")
        made.unanswered = answers.count(None)
        made.seconds = time.monotonic() - started
        made.violations = [f"round {number}: {what}" for what in made.violations]
        return made

    def _write(self, generator: random.Random) -> Write:
        names = generator.choice([(self._names[0],), (self._names[1],), self._names])
        weights = [weight for mode, weight in MODES.items() if len(names) == 1 or mode not in ALONE]
        modes = [mode for mode in MODES if len(names) == 1 or mode not in ALONE]
        return self._chooser.write(generator, [(name, generator.choices(modes, weights)[0]) for name in names])

    def _together(self, work: list[list[Write]], victim: int, stops: bool, instant: float) -> list[_Seen]:
        """Let everybody write, do what is to be done to the victim at the instant, and watch."""
        busy: set[int] = set()
        deadline = time.monotonic() + ROUND_PATIENCE_SECONDS
        struck, wake_at = False, None
        seen: list[_Seen] = []
        while True:
            for position, writer in enumerate(self._writers):
                if writer.alive and position not in busy and work[position]:
                    writer.start(work[position].pop(0))
                    busy.add(position)
            busy -= {position for position in busy if self._answered(self._writers[position])}
            now = time.monotonic()
            if not struck and now >= instant:
                struck = True
                if stops:
                    self._writers[victim].stop()
                    wake_at = now + self._lease_seconds + 0.2
                else:
                    self._writers[victim].kill()
                    work[victim].clear()
                    busy.discard(victim)
            if wake_at is not None and now >= wake_at:
                self._writers[victim].wake()
                wake_at = None
            if struck and wake_at is None and not busy and not any(work):
                return seen
            if now > deadline:
                raise Stuck(f"writers {sorted(busy)} have not come to an end in {ROUND_PATIENCE_SECONDS:.0f} s")
            seen.append(self._look(read=len(seen) % 8 == 2))

    def _answered(self, writer: Writer) -> bool:
        try:
            return writer.answer(LOOK_SECONDS / WRITERS) is not None
        except Gone:
            raise Stuck(f"process {writer.pid} ended without having been killed") from None

    def _look(self, *, read: bool) -> _Seen:
        ids = {self._model.datasets[name].id: name for name in self._names}
        heads = self._rooms.ledger.heads(list(ids))
        rows = {}
        for id_, name in ids.items():
            if read and heads[id_]:
                request = ReadRequest(version=heads[id_])
                table = self._rooms.storage.read(self._rooms.tree.by_id(id_), request).read_all()
                rows[name] = list(zip(table["id"].to_pylist(), table["note"].to_pylist(), strict=True))
        return _Seen(heads, rows)

    def _misread(self, seen: _Seen, labels: list[str]) -> Iterator[str]:
        yield from self._model.together(seen.heads, labels)
        for name, rows in seen.rows.items():
            dataset = self._model.datasets[name]
            version = seen.heads[dataset.id]
            if sorted(rows) != sorted(dataset.content[version].rows):
                yield f"a reader of {name} at version {version} saw {len(rows)} rows that are not that version's"
