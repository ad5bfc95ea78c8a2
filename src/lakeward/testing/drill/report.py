"""The drill's outcome as a table, for people, programs and the documentation."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from lakeward.storage.protocol import POINTS
from lakeward.testing.drill.matrix import ARMS, FAULTS, Outcome
from lakeward.testing.drill.run import Report


def columns(report: Report) -> list[str]:
    """Return the heads of the table: the step, the arm, and every fault that was tried."""
    tried = {outcome.case.fault for outcome in report.outcomes}
    return ["step", "arm", *(fault for fault in FAULTS if fault in tried)]


def rows(report: Report) -> list[list[str]]:
    """Return the table: for each step and arm, what became of the write under each fault."""
    faults = columns(report)[2:]
    found = []
    for step in POINTS:
        for arm in ARMS:
            here = [each for each in report.outcomes if (each.case.step, each.case.arm) == (step, arm)]
            if here:
                cells = ([each for each in here if each.case.fault == fault] for fault in faults)
                found.append([step, arm, *(_cell(cell) for cell in cells)])
    return found


def _cell(outcomes: list[Outcome]) -> str:
    broken = sum(1 for each in outcomes if each.violations)
    if broken:
        return f"VIOLATED ({broken} of {len(outcomes)})"
    return " or ".join(sorted({each.result for each in outcomes})) or "–"


def summary(report: Report) -> Iterator[str]:
    """Yield what was done and what came of it, in sentences."""
    plan = report.plan
    if report.outcomes:
        broken = sum(1 for each in report.outcomes if each.violations)
        yield f"{len(report.outcomes)} faults at steps of a write, {broken} of them with a violation"
    if report.rounds:
        killed = sum(1 for each in report.rounds if each.victim == "killed")
        broken = sum(1 for each in report.rounds if each.violations)
        writes = [sum(getattr(each, what) for each in report.rounds) for what in _TOLD]
        told = ", ".join(f"{count} {what}" for count, what in zip(writes, _TOLD, strict=True))
        yield (
            f"{len(report.rounds)} random rounds with 3 writers: {killed} kills, {len(report.rounds) - killed} stops "
            f"longer than the lease; {sum(writes)} writes ({told}); {broken} rounds with a violation; "
            f"median {statistics.median(each.seconds for each in report.rounds):.1f} s a round"
        )
    if report.flips is not None:
        yield report.flips.told()
    yield f"seed {plan.seed}"


_TOLD = ("acknowledged", "refused", "unanswered")


def to_json(report: Report) -> dict[str, object]:
    """Return the whole outcome for `--output json`."""
    return {
        "seed": report.plan.seed,
        "violations": report.violations,
        "catalog": report.catalog,
        "datasets": list(report.datasets),
        "table": {"columns": columns(report), "rows": rows(report)},
        "faults": [
            {**vars(each.case), "result": each.result, "answer": each.answer, "violations": list(each.violations)}
            for each in report.outcomes
        ],
        "rounds": [dict(vars(each)) for each in report.rounds],
        "flips": report.flips.to_json() if report.flips is not None else None,
    }


def to_markdown(report: Report) -> str:
    """Return the table and the summary as the documentation shows them."""
    heads = columns(report)
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join([f'`{row[0]}`', *row[1:]])} |" for row in rows(report)]
    lines += ["", *(f"* {line}" for line in summary(report))]
    lines += [f"* **{what}**" for what in report.violations]
    return "\n".join(lines) + "\n"
