"""A pipeline reads deltas while its source, or its output, is flipped there and back: every window is what it would be.

Two chains of pipelines get the same writes; of one of them datasets are flipped, between builds and in the middle of
one. Each build of either reads as many rows, and everything that is written in the end is the same. A row that is
written to the source while a build runs is read by the next one, whatever becomes of the source meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from support.databases import made_database

TWINS = ("flipped", "still")

CHAIN = {
    "near_{}": "pipeline: near_{0}\nnodes:\n  s: {{source: main.fd.src_{0}, window: delta}}\noutputs:\n"
    "  - {{dataset: main.fd.out_{0}, from: s, strategy: append_always, primary_key: []}}\n",
    "far_{}": "pipeline: far_{0}\nnodes:\n  s: {{source: main.fd.out_{0}, window: delta}}\noutputs:\n"
    "  - {{dataset: main.fd.end_{0}, from: s, strategy: append_always, primary_key: []}}\n",
}

Act = Callable[[lakeward.Workspace, str], object]


class Once:
    """Faults that do one thing, the next time that a step is reached."""

    def __init__(self) -> None:
        self.step, self.action = "", lambda: None

    def at(self, step: str) -> None:
        if step == self.step:
            self.step = ""
            self.action()


def run(to: str) -> Act:
    return lambda workspace, name: workspace.flip(name).run(to)


def revert(workspace: lakeward.Workspace, name: str) -> object:
    return workspace.flip(name).revert()


def complete(workspace: lakeward.Workspace, name: str) -> object:
    return workspace.flip(name).complete(confirm=name)


STEPS: tuple[tuple[str, str | None, Act | None], ...] = (
    # Which dataset, at which step of the build of the one that reads or writes it (None: before it), and what is done.
    ("src", None, run("iceberg")),
    ("src", "compute", revert),
    ("out", "intent", run("iceberg")),
    ("src", "decide", run("iceberg")),
    ("out", None, revert),
    ("src", "prepare", complete),
    ("src", None, None),
)


def test_no_row_is_skipped_or_read_twice_over_flips(postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    url, warehouse, once = made_database(postgres), tmp_path / "warehouse", Once()
    with (
        lakeward.open(database_url=url, warehouse=warehouse) as ws,
        lakeward.open(database_url=url, warehouse=warehouse, faults=once) as builder,
    ):
        sources = {
            twin: ws.create_dataset(f"main.fd.src_{twin}", {"id": "long", "n": "long"}, ["id"]) for twin in TWINS
        }
        (tmp_path / "project" / "pipelines").mkdir(parents=True)
        (tmp_path / "project" / "lakeward.toml").touch()
        for twin in TWINS:
            for name, text in CHAIN.items():
                (tmp_path / "project" / "pipelines" / f"{name.format(twin)}.yml").write_text(text.format(twin))
        ws.apply(tmp_path / "project")
        for number, (which, step, act) in enumerate(STEPS):
            counts = {}
            for twin in TWINS:

                def meanwhile(
                    source: lakeward.Dataset = sources[twin],
                    act: Act | None = act if twin == "flipped" else None,
                    name: str = f"main.fd.{which}_{twin}",
                    number: int = number,
                ) -> None:
                    source.write([{"id": 1000 + number, "n": number}], mode="upsert")
                    if act is not None:
                        act(ws, name)
                    source.write([{"id": 2000 + number, "n": number}], mode="upsert")

                sources[twin].write([{"id": each, "n": number} for each in (number, number + 1)], mode="upsert")
                if step is None:
                    meanwhile()
                else:
                    once.step, once.action = step, meanwhile
                builds = [builder.build(f"{name}_{twin}") for name in ("near", "far")]
                assert once.step == "", "the step was reached"
                counts[twin] = [[each.rows_in for each in build.transactions] for [build] in builds]
            assert counts["flipped"] == counts["still"], STEPS[number]
            ends = {
                twin: [
                    sorted(map(str, ws.dataset(f"main.fd.{each}_{twin}").to_arrow().to_pylist()))
                    for each in ("out", "end")
                ]
                for twin in TWINS
            }
            assert ends["flipped"] == ends["still"], STEPS[number]
        out, end = ends["flipped"]
        assert out == end and len(set(out)) == len(out)
        assert set(map(str, sources["flipped"].to_arrow().to_pylist())) <= set(out)
