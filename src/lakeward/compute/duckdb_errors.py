"""DuckDB's errors under our names: where in the text, what ran out, and the way out."""

from __future__ import annotations

import json
import re

import duckdb

from lakeward.compute.duckdb_gate import byte_to_character
from lakeward.compute.place import sql_error
from lakeward.errors import ComputeError, LakewardError, StorageFull
from lakeward.time_limit import TimeLimit

_JSON = re.compile(r"\{.*\}", re.DOTALL)
_DISK_FULL = re.compile(r"no space left|max_temp_directory_size|disk quota", re.IGNORECASE)


_WAYS_OUT = {
    "Conversion": "use TRY_CAST, which gives null for what can't be converted, or filter those rows first",
    "Out of Range": "cast to a wider type before the operation, such as DOUBLE or DECIMAL(38,0)",
}


_OF_TEXTS = frozenset({"Binder", "Catalog", "Parser", "Syntax"})
_OF_VALUES = frozenset({"Conversion", "Out of Range", "Out of Memory", "INTERRUPT", "Interrupt"})


def may_be_of_files(error: Exception) -> bool:
    """Say whether a failure may be that of a missing or damaged file; DuckDB has no kind of its own for those."""
    return _facts(error).get("exception_type") not in _OF_TEXTS | _OF_VALUES


def planning_error(
    error: duckdb.Error, sql: str, offset: int, step: str | None, time_limit: TimeLimit
) -> LakewardError:
    """Return what a failure to parse or bind becomes.

    Args:
        error: DuckDB's, raised with `errors_as_json`.
        sql: the user's text.
        offset: bytes that were put in front of it in the statement that failed.
        step: the name of the step that it is, for the error's fields.
        time_limit: of the query.
    """
    facts = _facts(error)
    if isinstance(error, duckdb.OutOfMemoryException | duckdb.InterruptException):
        return running_error(error, "", time_limit)
    reason, hint = _split_hint(facts["exception_message"])
    position = None
    if facts.get("position", "").isdigit():
        position = byte_to_character(sql, int(facts["position"]) - offset)
    return sql_error(reason, sql, position, next_step=hint, step=step)


def running_error(error: Exception, memory_limit: str, time_limit: TimeLimit) -> LakewardError:
    """Return what a failure while the query ran becomes.

    A failure that comes through an Arrow stream has only its text left, so the kind is read from there.
    """
    facts = _facts(error)
    kind, message = facts.get("exception_type", ""), facts["exception_message"].strip()
    first = message.split("\n")[0]
    if _DISK_FULL.search(message):
        return StorageFull(
            f"no space left for the temporary files of a query: {first}",
            safe="nothing was written",
            next_step="free space on the disk of the workspace's temporary files, raise compute.temp_limit if that is "
            "what ended it, or let the query need less",
        )
    if kind == "Out of Memory" or isinstance(error, duckdb.OutOfMemoryException):
        return ComputeError(
            f"the query needs more memory than its limit of {memory_limit}, also after spilling to disk: {first}",
            safe="nothing was written",
            next_step="raise the memory limit of compute, or split the query into smaller groups or joins",
            memory_limit=memory_limit,
        )
    if kind == "INTERRUPT" or isinstance(error, duckdb.InterruptException):
        if time_limit.expired:
            return time_limit.exceeded("the query")
        return ComputeError("the query was interrupted", safe="nothing was written")
    return ComputeError(f"the query failed: {first}", safe="nothing was written", next_step=_WAYS_OUT.get(kind))


def _facts(error: Exception) -> dict[str, str]:
    text = str(error)
    match = _JSON.search(text)
    if match is not None:
        try:
            facts = json.loads(match.group())
        except ValueError:
            facts = None
        if isinstance(facts, dict) and "exception_message" in facts:
            return {str(key): str(value) for key, value in facts.items()}
    return {"exception_message": text}


def _split_hint(message: str) -> tuple[str, str | None]:
    """Return DuckDB's message in one line, and its suggestion."""
    lines = [line.strip() for line in message.strip().split("\n") if line.strip()]
    reason, rest = lines[0].rstrip("!"), lines[1:]
    for line in rest:
        if line.startswith("Did you mean"):
            return reason, "did you mean" + line.removeprefix("Did you mean")
        if line.startswith("Candidate bindings:"):
            return reason, "did you mean " + line.removeprefix("Candidate bindings:").strip() + "?"
        if line.startswith("Either add it"):
            return reason, line[0].lower() + line[1:]
    return reason, None
