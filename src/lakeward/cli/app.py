"""The command line: its tree of commands, and what becomes of their errors."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import Annotated, NoReturn

import typer

import lakeward
from lakeward.cli import served
from lakeward.cli.commands import (
    apply,
    audit,
    backup,
    build,
    catalog,
    dataset,
    demo,
    doctor,
    flags,
    flip,
    grant,
    init,
    job,
    ledger,
    lint_seam,
    maintain,
    model,
    move,
    plan,
    run,
    schema,
    serve,
    source,
    sql,
    status,
    token,
    verify,
    worker,
)
from lakeward.cli.next_steps import given_home, with_home
from lakeward.cli.remote.dispatch import run_there
from lakeward.cli.remote.target import split, target_of
from lakeward.cli.session import PIPE_CLOSED, OutputFormat, Session, forget_stdout
from lakeward.errors import LakewardError
from lakeward.redaction import Redactor

EXIT_CODES = {
    0: "done",
    1: "failed",
    2: "usage: what was asked for can't be meant",
    3: "changes pending (`plan`, `move plan`), or values in the way of a flip (`flip check`)",
    4: "parity mismatch: the two arms differ",
    5: "an expectation failed",
    6: "lock or conflict: somebody else holds or changed the thing",
    130: "interrupted by Ctrl-C",
    PIPE_CLOSED: "the reader of standard output went away",
    143: "ended by SIGTERM",
}
"""What every exit code means."""

INTERRUPTED, TERMINATED = 130, 143
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="lakeward",
    help="SQL pipelines over datasets that live as Postgres rows or Iceberg tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _module in (
    init,
    doctor,
    status,
    catalog,
    schema,
    dataset,
    source,
    plan,
    apply,
    build,
    run,
    sql,
    verify,
    flags,
    flip,
    move,
    ledger,
    maintain,
    backup,
    model,
    serve,
    worker,
    job,
    token,
    grant,
    audit,
    lint_seam,
    demo,
):
    _module.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lakeward {lakeward.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    server: Annotated[
        str | None,
        typer.Option("--server", metavar="URL", help="Run the command on this server. Else LAKEWARD_SERVER."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="TOKEN", help="Who asks it. Else --token-file, LAKEWARD_TOKEN."),
    ] = None,
    token_file: Annotated[
        str | None,
        typer.Option("--token-file", metavar="FILE", help="Holds the token. Else LAKEWARD_TOKEN_FILE."),
    ] = None,
) -> None:
    """SQL pipelines over datasets that live as Postgres rows or Iceberg tables, and move between the two."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Everything that is printed about errors is printed here."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    before = signal.signal(signal.SIGTERM, _terminate)
    failures = Failures(given)
    try:
        code = _run(given, failures)
        sys.stdout.flush()
        return failures.interrupted() if code == INTERRUPTED else int(code or 0)
    except LakewardError as error:
        return failures.named(error)
    except _UsageError as error:
        return failures.usage(error)
    except KeyboardInterrupt:
        return failures.interrupted()
    except BrokenPipeError:
        forget_stdout()
        return PIPE_CLOSED
    except Exception as error:
        # Whatever it is, it ends here: a short line for people, the traceback on request, no secret in either.
        raise SystemExit(failures.unexpected(error)) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(given: Sequence[str], failures: Failures) -> int:
    """Run a command here, or where options before it, or the environment, say."""
    if served.now is None:
        said, given = split(given)
        target = target_of(said)
        if target is not None:
            failures.hide(target.token)
            code = run_there(typer.main.get_command(app), given, target)
            if code is not None:
                return code
    return int(app(list(given), prog_name="lakeward", standalone_mode=False) or 0)


class Failures:
    """Says what went wrong: in text on standard error; as one JSON document on standard output, if that was asked for.

    It reads the arguments itself, because they may be what is wrong.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        joined = " ".join(arguments)
        self._json = "--output json" in joined or "--output=json" in joined
        self._verbose = any(each == "--verbose" or (each[:2] == "-v" and set(each[1:]) == {"v"}) for each in arguments)
        self._home = given_home(arguments)
        self._redactor = Redactor.of_environment()

    def hide(self, secret: str | None) -> None:
        """Never report this."""
        if secret:
            self._redactor.add(secret)

    def named(self, error: LakewardError) -> int:
        """Report an error of ours."""
        if error.next_step:
            error.next_step = with_home([error.next_step], self._home)[0]
        self._report(error.to_json(), "\n".join([str(error), *getattr(error, "__notes__", ())]), error)
        return error.exit_code

    def usage(self, error: Exception) -> int:
        """Report arguments that can't be parsed."""
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "lakeward"
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        if message.startswith("Usage:"):
            # A group without a command: its help is the message.
            sys.stderr.write(f"{message}\n")
            return 2
        self._report(_document("UsageError", message, [f"{path} --help"], 2), f"{message}\nNext: {path} --help", None)
        return 2

    def interrupted(self) -> int:
        """Report Ctrl-C."""
        text = "Interrupted. Nothing that was not committed is visible."
        self._report(_document("Interrupted", text, [], INTERRUPTED), text, None)
        return INTERRUPTED

    def unexpected(self, error: Exception) -> int:
        """Report what nobody expected."""
        message = f"unexpected {type(error).__name__}: {error}"
        step = "repeat the command with -v and report the traceback as a fault of Lakeward"
        self._report(_document("Unexpected", message, [step], 1), f"{message}\nNext: {step}", error)
        return 1

    def _report(self, document: dict[str, object], text: str, error: Exception | None) -> None:
        session = Session(None, OutputFormat.json if self._json else OutputFormat.text, 0, True, self._redactor)
        if self._verbose and error is not None:
            # Frames only: the values of variables may be secrets.
            sys.stderr.write(self._redactor("".join(traceback.format_exception(error))))
        try:
            if self._json:
                session.write_json(document)
                sys.stdout.flush()
            else:
                sys.stderr.write(self._redactor(f"Error: {text}\n"))
        except BrokenPipeError:
            forget_stdout()


def _document(error: str, message: str, next_steps: list[str], exit_code: int) -> dict[str, object]:
    return {
        "error": error,
        "message": message,
        "safe": None,
        "next_steps": next_steps,
        "exit_code": exit_code,
        "fields": {},
    }


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    """End like a command that failed, so that every `finally` runs and nothing is left running."""
    raise SystemExit(TERMINATED)


if __name__ == "__main__":
    sys.exit(main())
