"""`lakeward lint-seam`: which code reaches around the storage layer, and does it become more?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import counted, printable
from lakeward.errors import UsageError

if TYPE_CHECKING:
    from lakeward.migration.seam import Baseline, Survey, Verdict


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "lint-seam")(lint_seam)


def lint_seam(
    session: Session,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A folder of sources, or one file.")],
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="A table to look for, `schema.table` or `table`; several times for several. Else those of the "
            "baseline, else Lakeward's own row table.",
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="GLOB",
            help="Files that may access it, as in .gitignore, from the baseline's folder; several times for several. "
            "Else those of the baseline.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="FILE",
            help="The counts that are allowed. Else lint-seam.json: of the current folder if PATH is in it, else of "
            "PATH.",
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write the baseline: lower counts, and none higher.")
    ] = False,
    allow_increase: Annotated[
        bool, typer.Option("--allow-increase", help="With --update, write higher counts, too.")
    ] = False,
) -> None:
    """Find code that accesses the row table directly. Exit code 1 if it is more, or less, than the baseline says.

    SQL files are read, and Python: the SQL in its strings and the names in its code. A scan of tokens covers C, C++,
    C#, Elixir, Go, Groovy, Java, JavaScript, Kotlin, Perl, PHP, R, Ruby, Rust, Scala, shell, Swift, TypeScript and
    YAML. Comments and docstrings don't count. The row table is lakeward.dataset_rows. No workspace is needed.
    """
    if allow_increase and not update:
        raise UsageError("--allow-increase does nothing without --update", next_step="add --update")
    seam = heavy("lakeward.migration.seam")
    file = baseline or _default_baseline(path, seam.FILE_NAME)
    known = seam.Baseline.read(file)
    judged = seam.settled(known, table or (), allow or (), update, file)
    survey: Survey = seam.survey(path, judged.tables, allow=judged.allow, root=file.parent)
    verdict: Verdict = seam.judge(survey, judged, file.parent)
    refused = bool(update and known is not None and verdict.rises and not allow_increase)
    written = update and not refused and (known is None or known != judged.after(survey))
    if written:
        judged.after(survey).write(file)
    ok = not refused and (update or not verdict.changes)
    again = lakeward("lint-seam", path, *_options(table, allow, baseline))
    session.show(
        _document(survey, verdict, judged, file, ok, written),
        [
            *(() if update and known is None else _changes(survey, verdict)),
            *(f"warning: {printable(each.file)}: {printable(each.message)}" for each in survey.warnings),
            f"{_found(survey, judged)}; "
            + (_outcome(refused, written, file) if update else _summary(verdict, file, known is None)),
        ],
        [] if ok else _next_steps(verdict, known is None, again),
    )
    if not ok:
        raise typer.Exit(1)


def _default_baseline(path: Path, name: str) -> Path:
    here, top = Path().resolve(), path.resolve()
    if top.is_relative_to(here):
        return Path(name)
    return (path if path.is_dir() else path.parent) / name


def _options(table: Sequence[str] | None, allow: Sequence[str] | None, baseline: Path | None) -> Iterator[str]:
    for name in table or ():
        yield from ("--table", name)
    for glob in allow or ():
        yield from ("--allow", glob)
    if baseline is not None:
        yield from ("--baseline", str(baseline))


def _document(
    survey: Survey, verdict: Verdict, baseline: Baseline, file: Path, ok: bool, written: bool
) -> dict[str, object]:
    return {
        "ok": ok,
        "baseline": str(file),
        "written": written,
        "tables": list(baseline.tables),
        "allow": list(baseline.allow),
        "files": survey.counts,
        "changes": [change.to_json() for change in verdict.changes],
        "accesses": [access.to_json() for access in survey.accesses],
        "warnings": [{"file": each.file, "message": each.message} for each in survey.warnings],
    }


def _changes(survey: Survey, verdict: Verdict) -> Iterator[str]:
    for change in verdict.rises:
        yield f"{printable(change.file)}: {_accesses(change.count)}, {change.allowed} allowed"
        for access in survey.accesses:
            if access.file == change.file:
                yield f"  {printable(access.file)}:{access.line}  {access.kind}  {printable(access.snippet)}"
    for change in verdict.falls:
        now = "no longer there" if change.gone else _accesses(change.count)
        yield f"{printable(change.file)}: {now}, {change.allowed} allowed"


def _found(survey: Survey, baseline: Baseline) -> str:
    tables = ", ".join(baseline.tables)
    return f"{_accesses(len(survey.accesses))} to {tables} in {counted(len(survey.counts), 'file')}"


def _accesses(number: int) -> str:
    return f"{number:,} raw access{'' if number == 1 else 'es'}"


def _outcome(refused: bool, written: bool, file: Path) -> str:
    if refused:
        return f"{file} is unchanged, since counts would rise"
    return f"{file} is written" if written else f"{file} says so already"


def _summary(verdict: Verdict, file: Path, first: bool) -> str:
    if first:
        return f"there is no baseline {file} yet"
    if not verdict.changes:
        return f"as {file} says"
    parts = [
        f"{counted(len(changes), 'file')} with {word} than {file} says"
        for word, changes in (("more", verdict.rises), ("less", verdict.falls))
        if changes
    ]
    return ", ".join(parts)


def _next_steps(verdict: Verdict, first: bool, again: str) -> list[str]:
    if first or not verdict.rises:
        return [f"{again} --update"]
    return ["go through the storage layer", f"if that can't be: {again} --update --allow-increase"]
