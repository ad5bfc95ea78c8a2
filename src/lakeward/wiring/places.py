"""Where a workspace is: its home directory, its scratch directory, and its warehouse."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from lakeward.errors import HomeNotWritable, SettingsError
from lakeward.storage.warehouse import Warehouse, warehouse_at
from lakeward.wiring.settings import SETTINGS_FILE, LoadedSettings, Settings, load_settings


def prepared_home(settings: Settings) -> Path | None:
    """Return the workspace directory, made and tried; None: there is none, and settings name all places instead.

    Raises:
        SettingsError: no place is named.
        HomeNotWritable: it can't be used.
    """
    if settings.home is None:
        if settings.database_url is None or settings.warehouse is None:
            raise SettingsError(
                "no workspace is named",
                next_step="pass --home DIR or set LAKEWARD_HOME to a directory, which is made; or `lakeward init DIR`; "
                "or set LAKEWARD_DATABASE_URL and LAKEWARD_WAREHOUSE",
            )
        return None
    home = expanded(settings.home).absolute()
    try:
        home = home.resolve()
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, before Python 3.13
        raise _unusable(home, getattr(error, "strerror", None) or str(error)) from None
    return home


def expanded(home: Path) -> Path:
    """Return a directory with `~` resolved.

    Raises:
        HomeNotWritable: there is no such user.
    """
    try:
        return home.expanduser()
    except RuntimeError as error:
        raise _unusable(home, str(error)) from None


def scratch_below(home: Path | None, undo: ExitStack) -> Path:
    """Return the directory for spilling: in the home, or else one for all workspaces of this user that have none.

    What a process that was killed has left there, the next one removes, as in a home. Where that directory is not ours
    alone, it is a new one that goes at the end.
    """
    if home is not None:
        return home / "scratch"
    shared = Path(tempfile.gettempdir(), f"lakeward-{os.geteuid()}")
    with suppress(OSError):
        shared.mkdir(mode=0o700, exist_ok=True)
        # Anybody may make something of that name there.
        status = shared.lstat()
        if (status.st_mode & 0o170077, status.st_uid) == (stat.S_IFDIR, os.geteuid()):
            return shared
    scratch = Path(tempfile.mkdtemp(prefix="lakeward-"))
    undo.callback(shutil.rmtree, scratch, ignore_errors=True)
    return scratch


def warehouse_of(settings: Settings, home: Path | None) -> Warehouse:
    """Return where the Iceberg tables are: where the setting says, or else in the home.

    Raises:
        SettingsError: the setting names no such place.
    """
    if settings.warehouse is not None:
        return warehouse_at(settings.warehouse)
    assert home is not None, "a workspace without a home names its warehouse"
    return home.expanduser().absolute() / "warehouse"


def _unusable(home: Path, why: str) -> HomeNotWritable:
    return HomeNotWritable(
        f"the workspace directory {home} can't be used: {why}",
        safe="nothing was changed",
        next_step="choose a directory that you may write to: --home DIR or LAKEWARD_HOME",
        home=str(home),
    )


def resolve_settings(flags: Mapping[str, object], settings_file: str | Path | None = None) -> LoadedSettings:
    """Load the settings; the home's own `lakeward.toml` counts, too.

    Raises:
        SettingsError: a setting is wrong, or the named file is not there.
        HomeNotWritable: the home is below the home of a user whom there is not.
    """
    files = [Path(settings_file)] if settings_file is not None else []
    for file in files:
        if not file.exists():
            raise SettingsError(
                f"there is no settings file {file}", next_step="name one that is there, or none", file=str(file)
            )
    first = load_settings(flags, files)
    home = first.values.home
    return first if home is None else load_settings(flags, [expanded(home) / SETTINGS_FILE, *files])
