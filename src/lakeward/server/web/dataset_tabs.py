"""The tabs of a dataset's page: what each asks of the dataset, and what its template is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lakeward.access.guard import principal
from lakeward.access.principal import OWNER
from lakeward.control.expectation_results import ExpectationResult, JudgedVersion
from lakeward.control.records import Transaction
from lakeward.server.web.change_rows import changes_of
from lakeward.server.web.grid import grid
from lakeward.server.web.lineage_graph import lineage_graph
from lakeward.server.web.snippets import snippets
from lakeward.types.schema import IDENTITY_COLUMNS, ROW_INDEX
from lakeward.wiring.dataset import Dataset
from lakeward.wiring.workspace import Workspace

ROWS = 50
"""Of a preview."""

TRAIL = 30
"""So many pages back can be gone to, one by one."""

FIRST = "-"
"""Stands for the first page in the trail."""

JUDGED = 40
"""So many versions are in the charts of quality."""


@dataclass(frozen=True)
class Asked:
    """What the address of the page asks for.

    Args:
        where: a predicate over columns.
        version: of the rows; None: the newest.
        after: the `__row_index` of the row before the first one of the page.
        trail: those of the pages before, oldest first, with commas.
        identity: show the identity columns.
        since: the older of two versions.
        column: one column.
        most: so many versions are listed.
    """

    where: str
    version: int | None
    after: int | None
    trail: str
    identity: bool
    since: int | None
    column: str
    most: int

    @property
    def trodden(self) -> list[str]:
        """The positions of the pages before."""
        return [each for each in self.trail.split(",") if each]


Values = dict[str, object]


def rows(workspace: Workspace, dataset: Dataset, asked: Asked, url: str) -> Values:
    """Return a page of rows, as they were at a version."""
    version = asked.version or dataset.version
    # One more than is shown tells whether a page follows. Of version 0 there are no rows, but columns.
    wanted = ROWS + 1 if version else 0
    table = dataset.preview(wanted, asked.where or None, version or None, True, after=asked.after)
    following = table.num_rows > ROWS
    table = table.slice(0, ROWS)
    indices = table[ROW_INDEX].to_pylist()
    if not asked.identity:
        table = table.drop_columns([name for name in table.column_names if name in IDENTITY_COLUMNS])
    types = {column.name: column.type for column in dataset.schema.columns}
    # Pages go on in the version that the first of them was of, whatever is written meanwhile.
    keep = {"where": asked.where, "version": version, "identity": "true" if asked.identity else None}
    trail = asked.trodden[-TRAIL:]
    onward = [*trail, str(asked.after)] if asked.after is not None else [FIRST]
    before = None
    if asked.after is not None and trail:
        before = {**keep, "after": None if trail[-1] == FIRST else trail[-1], "trail": ",".join(trail[:-1])}
    readable = _readable(dataset)
    return {
        "grid": grid(table, types, dataset.schema.primary_key),
        "version": version,
        "before": before,
        "following": {**keep, "after": indices[-1], "trail": ",".join(onward)} if following else None,
        "versions": readable,
        "seen": next((each for each in readable if each.version == version), None),
    }


def schema(workspace: Workspace, dataset: Dataset, asked: Asked, url: str) -> Values:
    """Return columns, key, partitions, and what rows are expected to be."""
    return {"schema": dataset.schema, "expected": dataset.expected()}


def versions(workspace: Workspace, dataset: Dataset, asked: Asked, url: str) -> Values:
    """Return the transactions, newest first."""
    found = dataset.history(asked.most + 1, idle=False)
    committed = [each for each in reversed(found) if each.status == "committed" and each.readable]
    return {
        "transactions": found[: asked.most],
        "more": len(found) > asked.most,
        "chart": {
            "kind": "line",
            "labels": [f"v{each.version}" for each in committed],
            "series": [{"name": "rows", "values": [each.row_count for each in committed]}],
        },
        "kept": dataset.kept(),
    }


def changes(workspace: Workspace, dataset: Dataset, asked: Asked, url: str) -> Values:
    """Return what changed between two versions: by default in the newest."""
    readable = _readable(dataset)
    numbers = [each.version for each in readable]
    version = asked.version or (numbers[0] if numbers else 0)
    older = [each for each in numbers if each < version]
    since = asked.since if asked.since is not None else (older[0] if older else 0)
    found = changes_of(dataset, since, version) if version else None
    return {"changes": found, "since": since, "version": version, "versions": readable}


def quality(workspace: Workspace, dataset: Dataset, asked: Asked, url: str) -> Values:
    """Return what expectations found, in the newest version and over time."""
    judged = dataset.expectations(most=JUDGED)
    return {"judged": judged, "charts": _charts(judged), "expected": dataset.expected()}


def lineage(workspace: Workspace, dataset: Dataset, asked: Asked, url: str) -> Values:
    """Return what the dataset's columns are made from, and what is made from them."""
    names = dataset.schema.names
    column = asked.column if asked.column in names else None
    graph = lineage_graph(workspace.pipelines.lineage(), dataset.name, column)
    return {"graph": graph, "column": column, "names": names}


def places(workspace: Workspace, dataset: Dataset, asked: Asked, url: str) -> Values:
    """Return where the rows are, and how they are opened elsewhere."""
    located = dataset.locate() if dataset.version else {}
    home = workspace.settings.values.home
    code = snippets(dataset.name, located, url, str(home) if home else None, login=principal() != OWNER)
    return {"places": located, "snippets": code}


@dataclass(frozen=True)
class Tab:
    """One tab.

    Args:
        name, title: what it is called in addresses, and by people.
        values: asks what its template is given.
        part: the element that changes while one looks at it.
        of_version: it shows the dataset at a version.
    """

    name: str
    title: str
    values: Callable[[Workspace, Dataset, Asked, str], Values]
    part: str | None = None
    of_version: bool = False


TABS: Mapping[str, Tab] = {
    each.name: each
    for each in (
        Tab("rows", "Rows", rows, "rows", of_version=True),
        Tab("schema", "Schema", schema),
        Tab("versions", "Versions", versions),
        Tab("changes", "Changes", changes, "changes", of_version=True),
        Tab("quality", "Quality", quality),
        Tab("lineage", "Lineage", lineage),
        Tab("open", "Open elsewhere", places),
    )
}


def _readable(dataset: Dataset) -> list[Transaction]:
    """Return the newest versions that can be read."""
    found = dataset.history(200, idle=False)
    return [each for each in found if each.readable and each.status == "committed"]


def _charts(judged: list[JudgedVersion]) -> list[tuple[ExpectationResult, Values]]:
    """Return a chart for each expectation of the newest version: what was observed, or how many rows failed."""
    if not judged:
        return []
    oldest_first = list(reversed(judged))
    charts: list[tuple[ExpectationResult, Values]] = []
    for newest in judged[0].results:
        points = [
            (f"v{each.version}", result)
            for each in oldest_first
            for result in each.results
            if result.definition == newest.definition
        ]
        values = [_observed(result) for _, result in points]
        by_rows = all(value is None for value in values)
        series: list[object] = [result.rows_failed for _, result in points] if by_rows else [*values]
        name = "rows that failed" if by_rows else "observed"
        failed = [index for index, (_, result) in enumerate(points) if not result.good]
        charts.append(
            (
                replace(newest, samples=newest.samples[:5]),
                {
                    "kind": "line",
                    "labels": [label for label, _ in points],
                    "series": [{"name": name, "values": series}],
                    "marked": failed,
                    # That no row ever failed is said in fewer words.
                    "tells": any(series),
                },
            )
        )
    return sorted(charts, key=lambda each: each[0].good)


def _observed(result: ExpectationResult) -> float | None:
    try:
        return float(result.observed) if result.observed is not None else None
    except ValueError:
        return None
