"""`lakeward build --watch`: build, and again whenever something changes."""

from __future__ import annotations

import sys
from typing import Any

from lakeward.cli.build_progress import build_progress
from lakeward.cli.session import OutputFormat, Session
from lakeward.errors import LakewardError


def watch(
    session: Session,
    names: list[str] | None,
    select: list[str] | None,
    seconds: float,
    jobs: int | None,
    fail_fast: bool,
) -> None:
    """Build until Ctrl-C, and tell of each build; with JSON, by one document for each."""
    last: str | None = None
    with session.workspace() as workspace:
        outcomes = workspace.pipelines.watch(
            names or None,
            select=select or (),
            jobs=jobs,
            fail_fast=fail_fast,
            seconds=seconds,
            progress=build_progress(session),
        )
        try:
            # Whoever has read this may press it.
            session.say("watching; Ctrl-C ends it")
            for outcome in outcomes:
                if not isinstance(outcome, LakewardError):
                    _built(session, outcome)
                elif _text(outcome) != last:
                    # The same trouble again is no news.
                    _failed(session, outcome)
                last = _text(outcome) if isinstance(outcome, LakewardError) else last
                # Whoever reads a pipe or file learns of a build when it is done, not when a buffer is full.
                sys.stdout.flush()
        except KeyboardInterrupt:
            session.say("stopped; a build that was under way changed nothing")


def _built(session: Session, results: Any) -> None:
    if session.output is OutputFormat.json:
        session.write_json({"builds": [result.to_json() for result in results]})
    for result in results:
        for each in result.transactions:
            session.say(
                f"{each.dataset}: {each.verb}, {each.rows_in:,} written, {each.row_count:,} rows at version "
                f"{each.version} (pipeline {result.pipeline})"
            )
        for warning in result.warnings:
            session.say(f"warning: {warning}")


def _failed(session: Session, error: LakewardError) -> None:
    if session.output is OutputFormat.json:
        session.write_json(error.to_json())
    session.say(f"failed: {_text(error)}")
    session.say("it is tried again when something changes")


def _text(error: LakewardError) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ())])
