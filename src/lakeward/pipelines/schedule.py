"""When each pipeline is built: after all that write what it reads, some at a time, and not if one of those failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TypeVar

from lakeward.errors import ControlError, LakewardError, Stopped
from lakeward.stopping import Stop, check, current
from lakeward.storage.requests import BuildResult

What = TypeVar("What")


@dataclass(frozen=True)
class Builds:
    """What became of pipelines, by name, each in build order.

    Args:
        results: of those that were built, or had nothing to do.
        failures: why others could not be built; their outputs are unchanged.
        skipped: why others were not tried.
    """

    results: Mapping[str, BuildResult]
    failures: Mapping[str, LakewardError] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def failure(self) -> LakewardError | None:
        """The first failure; None if there is none.

        Its notes tell of the other ones and of what was skipped. So do its fields: `failures` (of others), `skipped`,
        and `builds`, what was built.
        """
        if not self.failures:
            return None
        (_, error), *others = self.failures.items()
        error.__notes__ = [f"pipeline {name!r} failed, too: {each}" for name, each in others]
        error.__notes__ += [f"pipeline {name!r} was skipped: {reason}" for name, reason in self.skipped.items()]
        error.fields["builds"] = [result.to_json() for result in self.results.values()]
        error.fields["failures"] = [{"pipeline": name, **each.to_json()} for name, each in others]
        error.fields["skipped"] = [{"pipeline": name, "reason": reason} for name, reason in self.skipped.items()]
        return error

    def checked(self) -> list[BuildResult]:
        """Return the results, in build order.

        Raises:
            LakewardError: `failure`, if there is one.
        """
        if self.failure is not None:
            raise self.failure
        return list(self.results.values())


class Schedule:
    """Builds pipelines, once.

    Args:
        order: their names, each after those that it waits for.
        edges: the names of those that it waits for, by name; who is not in `order` is not waited for.
        jobs: how many are built at a time. One at a time is built by the calling thread.
        fail_fast: whether no other one is started when one has failed.
    """

    def __init__(
        self, order: Sequence[str], edges: Mapping[str, Sequence[str]], *, jobs: int = 1, fail_fast: bool = False
    ) -> None:
        self._order = tuple(order)
        self._before = {name: [each for each in edges[name] if each in set(order)] for name in order}
        self._fail_fast = fail_fast
        self._waiting = list(order)
        self._results: dict[str, BuildResult] = {}
        self._failures: dict[str, LakewardError] = {}
        self._skipped: dict[str, str] = {}
        # Of those that wait for one another in a line, one is built at a time.
        self.width = max(1, min(jobs, len(order) - self._longest_line() + 1))
        """How many are built at a time, at most."""

    def run(self, build: Callable[[str], BuildResult]) -> Builds:
        """Build all that can be built.

        What interrupts it (Ctrl-C, or an error that nobody foresaw) stops what is being built, and is raised when that
        has ended.

        Args:
            build: builds one, in any thread.
        """
        if self.width == 1:
            for name in iter(self._next, None):
                check()
                self._end(name, lambda name=name: build(name))  # type: ignore[misc]
        else:
            self._run_in_threads(build)
        return Builds(
            _ordered(self._results, self._order),
            _ordered(self._failures, self._order),
            _ordered(self._skipped, self._order),
        )

    def _run_in_threads(self, build: Callable[[str], BuildResult]) -> None:
        outer = current()
        stop = Stop() if outer is None else Stop(lambda: outer.asked)

        def stoppable(name: str) -> BuildResult:
            with stop.heard():
                return build(name)

        running: dict[Future[BuildResult], str] = {}
        with ThreadPoolExecutor(self.width, thread_name_prefix="lakeward-build") as pool:
            try:
                while True:
                    for name in self._startable(self.width - len(running)):
                        # Who acts, and what goes on around it, are the same in the threads.
                        running[pool.submit(copy_context().run, stoppable, name)] = name
                    if not running:
                        return
                    for ended in wait(running, return_when=FIRST_COMPLETED).done:
                        self._end(running.pop(ended), ended.result)
            except BaseException:
                # Leaving the pool waits too, but not for a thread that it was just starting when it was interrupted.
                stop.ask()
                raise

    def _startable(self, most: int) -> Iterator[str]:
        for _ in range(most):
            name = self._next()
            if name is None:
                return
            yield name

    def _next(self) -> str | None:
        """Return the first one that can be started; None: none can be now. Those that never will be are skipped."""
        for name in list(self._waiting):
            reason = self._reason_to_skip(name)
            if reason is not None:
                self._skipped[name] = reason
            elif not all(each in self._results for each in self._before[name]):
                continue
            self._waiting.remove(name)
            if reason is None:
                return name
        return None

    def _reason_to_skip(self, name: str) -> str | None:
        for failed, error in self._failures.items():
            if failed in self._before[name]:
                return f"it reads what pipeline {failed!r} writes, which failed"
            # Without the control plane, the others can't go well.
            if self._fail_fast or isinstance(error, ControlError):
                return f"pipeline {failed!r} had failed before it was started"
        skipped = next((each for each in self._before[name] if each in self._skipped), None)
        return f"it reads what pipeline {skipped!r} writes, which was skipped" if skipped is not None else None

    def _end(self, name: str, result: Callable[[], BuildResult]) -> None:
        try:
            self._results[name] = result()
        except Stopped:
            raise
        except LakewardError as error:
            self._failures[name] = error

    def _longest_line(self) -> int:
        lengths: dict[str, int] = {}
        for name in self._order:
            lengths[name] = 1 + max((lengths[each] for each in self._before[name]), default=0)
        return max(lengths.values(), default=0)


def _ordered(by_name: Mapping[str, What], order: Sequence[str]) -> dict[str, What]:
    return {name: by_name[name] for name in order if name in by_name}
