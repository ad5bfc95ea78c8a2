"""The door to pipelines: load a project, plan it, apply it, build what is applied."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from lakeward.access.guard import require
from lakeward.clock import Clock, SystemClock
from lakeward.compute.engine import Engine
from lakeward.control.db import Database
from lakeward.control.expectation_results import ExpectationResults
from lakeward.control.last_writes import LastWrites
from lakeward.control.ledger import Ledger
from lakeward.control.routes import ARMS_OF
from lakeward.control.source_windows import SourceWindows
from lakeward.control.tree import Tree
from lakeward.errors import UnknownObject, UsageError
from lakeward.pipelines.build import WRITER, Builder
from lakeward.pipelines.datasets import datasets_of
from lakeward.pipelines.forecast import LedgerForecast
from lakeward.pipelines.graph import order_pipelines, pipeline_edges, read_graph
from lakeward.pipelines.guard import Guard
from lakeward.pipelines.latest import fitted_models, latest_models, model_key, pinned
from lakeward.pipelines.lineage import Lineage
from lakeward.pipelines.models.registry import Models
from lakeward.pipelines.one_off import OneOff, RunPlan, RunRequest
from lakeward.pipelines.plan import ADDED, CHANGED, REMOVED, Plan
from lakeward.pipelines.planner import make_plan
from lakeward.pipelines.progress import Progress, SharedProgress
from lakeward.pipelines.project import Project, load_project
from lakeward.pipelines.registry import Applied, Registry, applied_one, readable_one
from lakeward.pipelines.schedule import Builds, Schedule
from lakeward.pipelines.selection import select_pipelines
from lakeward.pipelines.spec import OutputSpec, Pipeline
from lakeward.pipelines.stage_runner import Stages
from lakeward.pipelines.up_to_date import UpToDate
from lakeward.pipelines.watch import SECONDS, Outcome, Watch
from lakeward.pipelines.windows import BuildWindows
from lakeward.storage.facade import Storage
from lakeward.storage.recovery import Recovery
from lakeward.storage.requests import BuildResult
from lakeward.types.schema import name_key

Tries = Callable[[str], Sequence[uuid.UUID]]
"""Returns the ids of all tries to build a pipeline, this one's last, by the pipeline's name."""

MOST_JOBS = 16
"""So many pipelines can be built at a time, at most: each of them needs a few connections of the pool."""


class Pipelines:
    """The pipelines of one workspace.

    Args:
        tree, ledger, storage, recovery, database: of the workspace.
        engine: describes and runs the queries.
        models: the registered ones.
        stages: makes what runs the queries and models of one build, with an engine.
        jobs: how many pipelines are built at a time, where nothing else is asked for.
    """

    def __init__(
        self,
        tree: Tree,
        ledger: Ledger,
        storage: Storage,
        recovery: Recovery,
        engine: Engine,
        database: Database,
        models: Models,
        stages: Callable[[Engine], Stages],
        jobs: int = 1,
    ) -> None:
        self._tree = tree
        self._ledger = ledger
        self._storage = storage
        self._recovery = recovery
        self.engine = engine
        self._database = database
        self.models = models
        self._stages = stages
        self._jobs = jobs
        self.registry = Registry(database)
        self._last_writes = LastWrites(database)
        self._up_to_date = UpToDate(self._last_writes)

    def load(self, path: str | Path) -> Project:
        """Read the project that `path` is, or lies in.

        Raises:
            SpecError: no project, or a file is wrong, with file and line.
        """
        return load_project(Path(path))

    def applied(self) -> dict[str, Applied]:
        """Return the applied pipelines by name.

        Raises:
            Forbidden: whoever acts may not see them: they tell of all datasets.
        """
        require("pipeline.read")
        return self.registry.applied()

    def plan(self, project: Project) -> Plan:
        """Return what `apply` would change. Changes nothing.

        Raises:
            SpecError, SqlError, SchemaError: the project is wrong, with file and line.
        """
        require("pipeline.read")
        applied = self.registry.applied()
        forecast = LedgerForecast(
            self._tree,
            self._ledger,
            self._builder([], None),
            self._up_to_date,
            SourceWindows(self._database),
            self._last_writes,
        )
        arm, _ = ARMS_OF[self._storage.flags.mode_of_new(WRITER)]
        return make_plan(project, applied, self._tree, self.engine, self.models, forecast, arm)

    def found(self, name: str) -> Applied:
        """Return the applied pipeline of that name; raises UnknownObject if there is none."""
        require("pipeline.read")
        return applied_one(self.registry.applied(), name)

    def remove(self, name: str, actor: str = "api") -> None:
        """Take an applied pipeline away. Its datasets stay.

        Raises:
            UnknownObject: there is none of that name.
        """
        self.registry.change((), [self.found(name).name], actor=actor)

    def apply(
        self, project: Project, actor: str = "api", expected: Callable[[Plan], None] = lambda _plan: None
    ) -> Plan:
        """Store the project's pipelines, and remove those that it no longer has; their datasets stay.

        Returns what was changed. Nothing is built, and nothing happens if nothing is pending.

        Args:
            project: with all of its pipelines.
            actor: who does it, for the audit log.
            expected: is told the plan before anything is stored, and raises if it is not the one that is meant.

        Raises:
            Forbidden: whoever acts may not do it, or it has Python code, which runs as this process, and they may not
                do that.
            SpecError, SqlError, SchemaError: the project is wrong; nothing was stored.
        """
        require("pipeline.apply")
        plan = self.plan(project)
        expected(plan)
        change = {pipeline.name: pipeline.change for pipeline in plan.pipelines}
        store = [pipeline for pipeline in project.pipelines if change[pipeline.name] in (ADDED, CHANGED)]
        remove = [name for name, what in change.items() if what == REMOVED]
        if any(pipeline.spec.code for pipeline in store):
            require("code.run")
        if store or remove:
            self.registry.change(store, remove, actor=actor)
        return plan

    def build(
        self,
        names: Sequence[str] | None = None,
        *,
        select: Sequence[str] = (),
        full: bool = False,
        jobs: int | None = None,
        fail_fast: bool = False,
        progress: Progress | None = None,
    ) -> list[BuildResult]:
        """Run applied pipelines as `build_all` does, which says what the arguments are.

        Returns:
            One result per pipeline, in build order.

        Raises:
            UnknownObject: a pipeline is not applied.
            LakewardError: a pipeline failed, see `Builds.failure`; its outputs are unchanged.
        """
        return self.build_all(
            names, select=select, full=full, jobs=jobs, fail_fast=fail_fast, progress=progress
        ).checked()

    def build_all(
        self,
        names: Sequence[str] | None = None,
        *,
        select: Sequence[str] = (),
        full: bool = False,
        jobs: int | None = None,
        fail_fast: bool = False,
        progress: Progress | None = None,
        tries: Tries | None = None,
    ) -> Builds:
        """Run applied pipelines, each after those that write what it reads. Those that are up to date are left alone.

        One that fails keeps those from being built that read what it writes, and no others.

        Args:
            names: which ones; None: all of them, unless some are selected.
            select: more of them, as `+name`, `name+` or `tag:x`: see `select_pipelines`.
            full: run also those that are up to date.
            jobs: how many are built at a time, where they don't wait for one another; None: the setting. They divide
                among them what the engine may use.
            fail_fast: start no other one when one has failed.
            progress: called for every batch of rows that was computed, by one thread at a time.
            tries: tells the ids of builds by which they are found again, where this may be the second try of the same:
                what one before it has decided is not built once more.

        Returns:
            What became of each of them, in build order.

        Raises:
            UnknownObject: a pipeline is not applied.
        """
        require("pipeline.build")
        readable, chosen = self._ordered(names, select)
        fingerprints = {pipeline.name: (pipeline, fingerprint) for pipeline, fingerprint in readable}
        order = [name for name in fingerprints if name in chosen]
        edges = pipeline_edges([pipeline for pipeline, _ in readable])
        schedule = Schedule(order, edges, jobs=_checked(jobs or self._jobs), fail_fast=fail_fast)
        told = SharedProgress(progress) if progress is not None else None
        ids = {name: tries(name) for name in order} if tries is not None else {}
        builder = self._builder(readable, told, schedule.width)
        builder.ids = {name: each[-1] for name, each in ids.items()}

        def build(name: str) -> BuildResult:
            try:
                decided = self._last_writes.decided(ids[name][:-1]) if name in ids else None
                if decided is not None:
                    return BuildResult(decided, name, (), ("it was decided by a try before this one",))
                return builder.build(*fingerprints[name], full=full)
            finally:
                if told is not None:
                    told.end(name)

        return schedule.run(build)

    def watch(
        self,
        names: Sequence[str] | None = None,
        *,
        select: Sequence[str] = (),
        jobs: int | None = None,
        fail_fast: bool = False,
        seconds: float = SECONDS,
        clock: Clock | None = None,
        progress: Progress | None = None,
    ) -> Iterator[Outcome]:
        """Build now, and again whenever something changes; yields what each build did, and its error, without end.

        Args:
            names, select, jobs, fail_fast, progress: see `build_all`.
            seconds: between two looks at the ledger.
            clock: injected by tests.

        Raises:
            UnknownObject: a pipeline is not applied. Later errors are yielded.
        """
        self._ordered(names, select)
        build = partial(self.build_all, names, select=select, jobs=jobs, fail_fast=fail_fast, progress=progress)
        return Watch(self.registry.state, build, clock or SystemClock(), seconds).outcomes()

    def lineage(self) -> Lineage:
        """Return what follows columns through the pipelines that are applied now, as far as whoever acts may see."""
        applied = self.registry.applied().values()
        pipelines = [each.pipeline for each in applied if each.pipeline is not None]
        return Lineage(pipelines, self.engine, self.models, self._tree.find)

    def run(self, request: RunRequest, progress: Progress | None = None) -> BuildResult:
        """Run one query once, without a project.

        Raises:
            LakewardError: see `OneOff.run`.
        """
        return self._one_off(request, progress).run()

    def plan_run(self, request: RunRequest) -> RunPlan:
        """Return what `run` would do. Changes nothing.

        Raises:
            LakewardError: see `OneOff.run`.
        """
        return self._one_off(request, None).plan()

    def _one_off(self, request: RunRequest, progress: Progress | None) -> OneOff:
        there = self.registry.applied()
        applied = [(each.pipeline, each.fingerprint) for each in there.values() if each.pipeline is not None]
        return OneOff(request, self._tree, self._builder(applied, progress), [pipeline for pipeline, _ in applied])

    def explain(
        self, names: Sequence[str] | None = None, *, select: Sequence[str] = (), full: bool = False
    ) -> list[tuple[Pipeline, OutputSpec, BuildWindows]]:
        """Return what a build of each output would read now, which versions of which source, and why. Changes nothing.

        What another pipeline is to write before is not known yet, and so not counted.

        Raises:
            UnknownObject: a pipeline is not applied, or a source does not exist.
            UnknownVersion: a source was never written.
        """
        readable, chosen = self._ordered(names, select)
        builder = self._builder(readable, None)
        found: list[tuple[Pipeline, OutputSpec, BuildWindows]] = []
        for pipeline, fingerprint in readable:
            if pipeline.name in chosen:
                windows = builder.explain(pipeline, fingerprint, full=full)
                found += [(pipeline, *each) for each in zip(pipeline.spec.outputs, windows, strict=True)]
        return found

    def _builder(self, readable: Sequence[tuple[Pipeline, str]], progress: Progress | None, parts: int = 1) -> Builder:
        """Return what builds pipelines, so many of them at a time."""
        engine = self.engine.share(parts) if parts > 1 else self.engine
        return Builder(
            self._tree,
            self._ledger,
            self._storage,
            self._recovery,
            engine,
            self._up_to_date,
            SourceWindows(self._database),
            Guard(self._tree, self._ledger, self._storage, engine, ExpectationResults(self._database)),
            self.models,
            partial(self._stages, engine),
            progress,
            {output.dataset: each.name for each, _ in readable for output in each.spec.outputs},
        )

    def pending(
        self, names: Sequence[str] | None = None, *, select: Sequence[str] = (), full: bool = False
    ) -> list[tuple[Pipeline, str]]:
        """Return the applied pipelines that `build` would run, in its order, and why. Changes nothing.

        Raises:
            UnknownObject: a pipeline is not applied, or a source does not exist.
        """
        readable, chosen = self._ordered(names, select)
        found: list[tuple[Pipeline, str]] = []
        to_be_written: dict[str, str] = {}
        for pipeline, fingerprint in readable:
            if pipeline.name not in chosen:
                continue
            reason: str | None = "asked for in full"
            if not full:
                keys = [name_key(name) for name in pipeline.sources.values()]
                before = [to_be_written.get(key) for key in (*keys, *map(model_key, latest_models(pipeline)))]
                reason = next((f"{name} is built before" for name in before if name is not None), None)
                reason = reason or self._reason(pipeline, fingerprint)
            if reason is not None:
                found.append((pipeline, reason))
                to_be_written |= {name_key(output.dataset): output.dataset for output in pipeline.spec.outputs}
                to_be_written |= {model_key(name): f"model {name}" for name in fitted_models(pipeline).values()}
        return found

    def _reason(self, pipeline: Pipeline, fingerprint: str) -> str | None:
        found = pinned(pipeline, fingerprint, self.models)
        datasets = datasets_of(self._tree, pipeline)
        return self._up_to_date.standing(read_graph(found.pipeline), found.fingerprint, datasets).reason

    def _ordered(
        self, names: Sequence[str] | None, select: Sequence[str]
    ) -> tuple[list[tuple[Pipeline, str]], set[str]]:
        """Return every applied pipeline and its fingerprint, in build order, and the names of those that are meant."""
        require("pipeline.read")
        applied = self.registry.applied()
        readable = [each.pipeline for each in applied.values() if each.pipeline is not None]
        if select and applied:
            names = [*(names or ()), *select_pipelines(select, readable)]
        chosen = self._chosen(applied, names)
        ordered = order_pipelines(readable)
        return [(pipeline, applied[pipeline.name].fingerprint) for pipeline in ordered], chosen

    def _chosen(self, applied: Mapping[str, Applied], names: Sequence[str] | None) -> set[str]:
        if not applied:
            raise UnknownObject("no pipeline is applied", next_step="lakeward apply")
        for name in applied if names is None else names:
            readable_one(applied, name)
        return set(applied if names is None else names)


def _checked(jobs: int) -> int:
    if not 1 <= jobs <= MOST_JOBS:
        raise UsageError(
            f"{jobs} jobs are asked for; there can be 1 to {MOST_JOBS}", safe="nothing was built", jobs=jobs
        )
    return jobs
