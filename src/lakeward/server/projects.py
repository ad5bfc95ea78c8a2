"""A project that a request brings as texts by their paths: it has a folder of its own as long as it is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from lakeward.access.guard import require
from lakeward.errors import LakewardError, NotAllowed, UsageError
from lakeward.pipelines.project import PROJECT_FILE
from lakeward.pipelines.python.code import SUFFIX as PYTHON
from lakeward.server.hiding import hide
from lakeward.server.rooms import Rooms

MOST_FILES = 2000
LONGEST_PATH = 500


@contextmanager
def unpacked(rooms: Rooms, files: Mapping[str, str]) -> Iterator[Path]:
    """Hold the files of a project in a folder, and return it.

    Python in it runs as this process, when it is planned already: so whoever sends it needs the right to do that, and
    the server has to be told to take it.

    Args:
        rooms: of the server.
        files: texts by their paths in the project; without a `lakeward.toml`, there is an empty one.

    Raises:
        UsageError: a path leads out of the project, or can't be one of a file.
        NotAllowed, Forbidden: there is Python in it, and the server does not take it, or not from who asks.
    """
    _check(files)
    if any(path.lower().endswith(PYTHON) for path in files):
        if not rooms.workspace.settings.values.server.allow_code:
            raise NotAllowed(
                "the project has Python, which would run as the server, and the server takes none",
                safe="nothing was changed",
                next_step="apply it where the workspace is, or set server.allow_code",
            )
        require("code.run")
    with TemporaryDirectory(dir=rooms.scratch, prefix="project-") as folder:
        root = Path(folder)
        (root / PROJECT_FILE).touch()
        try:
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_bytes(text.encode("utf-8", "surrogatepass"))
            yield root
        except LakewardError as error:
            hide(error, root)
            raise
        except OSError as error:
            raise UsageError(
                f"the files can't lie in one folder: {error.strerror}", safe="nothing was changed"
            ) from None


def _check(files: Mapping[str, str]) -> None:
    if len(files) > MOST_FILES:
        raise UsageError(f"the project has {len(files):,} files; there can be {MOST_FILES:,}")
    for path in files:
        parts = PurePosixPath(path).parts
        wrong = (
            not parts or path.startswith("/") or ".." in parts or len(path.encode("utf-8", "replace")) > LONGEST_PATH
        )
        if wrong or any(character in path for character in "\0\\") or not path.isprintable():
            raise UsageError(
                f"{path!r} is no path of a file in a project",
                safe="nothing was changed",
                next_step="as in pipelines/orders.yml",
                path=path,
            )
