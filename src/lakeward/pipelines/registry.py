"""The applied pipelines, kept in Postgres: what a build runs, whatever the project folder says by then."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from lakeward.control.audit import audit, by
from lakeward.control.db import Database, Queries
from lakeward.errors import SpecError, UnknownObject
from lakeward.pipelines.fingerprint import fingerprint
from lakeward.pipelines.spec import Pipeline

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class Applied:
    """A stored pipeline. `pipeline` is None if another version of Lakeward stored it in a form that we can't read."""

    name: str
    pipeline: Pipeline | None
    fingerprint: str
    applied_at: datetime
    applied_by: str


class Registry:
    """The table `lakeward.pipelines` of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def applied(self) -> dict[str, Applied]:
        """Return every applied pipeline by its name, ordered by name."""
        return {
            row["name"]: Applied(
                row["name"],
                _pipeline(row["name"], json.dumps(row["spec"])),
                row["fingerprint"],
                row["applied_at"],
                row["applied_by"],
            )
            for row in self._database.fetch(QUERIES["applied"])
        }

    def schedules(self) -> dict[str, str]:
        """Return when applied pipelines are to be built, by name, of those that say so."""
        return {row["name"]: row["schedule"] for row in self._database.fetch(QUERIES["schedules"])}

    def state(self) -> tuple[str, str]:
        """Return the state of all heads and models, and of all applied pipelines, to be compared with another one."""
        (row,) = self._database.fetch(QUERIES["state"])
        return row["heads"], row["applied"]

    def change(self, store: Iterable[Pipeline], remove: Iterable[str], *, actor: str) -> None:
        """Store and remove pipelines in one transaction, with a line in the audit log for each."""
        with self._database.transaction() as connection:
            for pipeline in store:
                spec, print_ = json.dumps(pipeline.to_json(), ensure_ascii=False), fingerprint(pipeline)
                before = connection.execute(QUERIES["before"], {"name": pipeline.name}).scalar()
                stored = {"name": pipeline.name, "spec": spec, "fingerprint": print_, "actor": by(actor)}
                connection.execute(QUERIES["store"], stored)
                audit(connection, actor, "pipeline.apply", pipeline.name, before, pipeline.to_json())
            for name in remove:
                before = connection.execute(QUERIES["before"], {"name": name}).scalar()
                connection.execute(QUERIES["remove"], {"name": name})
                audit(connection, actor, "pipeline.remove", name, before, None)


# Every build asks for all pipelines, which rarely change, and to check one takes a millisecond.
@lru_cache(maxsize=512)
def _pipeline(name: str, spec: str) -> Pipeline | None:
    try:
        return Pipeline.from_json(json.loads(spec), f"pipeline {name} as applied")
    except SpecError:
        return None


def applied_one(applied: Mapping[str, Applied], name: str) -> Applied:
    """Return the applied pipeline of a name.

    Raises:
        UnknownObject: there is none.
    """
    if name not in applied:
        near = difflib.get_close_matches(name, applied, n=1)
        raise UnknownObject(
            f"pipeline {name!r} is not applied; applied are {', '.join(applied) or 'none'}",
            next_step=f"did you mean {near[0]}? If it is new: lakeward apply" if near else "lakeward apply",
            pipeline=name,
        )
    return applied[name]


def readable_one(applied: Mapping[str, Applied], name: str) -> Pipeline:
    """Return the pipeline of a name, to be built.

    Raises:
        UnknownObject: none of that name is applied.
        SpecError: another version of Lakeward stored it.
    """
    pipeline = applied_one(applied, name).pipeline
    if pipeline is None:
        raise SpecError(
            f"pipeline {name!r} was stored by another version of Lakeward and can't be read",
            next_step="lakeward apply, from the project folder that has it",
            pipeline=name,
        )
    return pipeline
