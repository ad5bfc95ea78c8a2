"""Settings: flag > environment (`LAKEWARD_SECTION__KEY`) > `lakeward.toml` > default; and where each came from."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_serializer, field_validator
from pydantic_core import PydanticCustomError

from lakeward.control.flags.registry import WRITERS
from lakeward.errors import SettingsError

ENVIRONMENT_PREFIX = "LAKEWARD_"
SETTINGS_FILE = "lakeward.toml"

TEST_PREFIX = "LAKEWARD_TEST_"
"""Variables of the product's own tests; any other that begins with `LAKEWARD_` is a setting, or a mistake."""

_SIZE = r"^\d+(\.\d+)? ?([kKMGT]i?)?B$"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LedgerSection(_Section):
    """The ledger's patience."""

    lease_seconds: float = Field(
        60.0, gt=0, allow_inf_nan=False, description="how long a silent owner keeps its transaction, in seconds"
    )
    lock_timeout_seconds: float = Field(
        300.0, ge=0, allow_inf_nan=False, description="how long a writer waits for a dataset, in seconds"
    )
    idempotency_days: float = Field(
        7.0, ge=0, allow_inf_nan=False, description="for how many days a request's idempotency key is remembered"
    )
    recover_at_start: bool = Field(
        True, description="whether `lakeward.open` tidies up after processes that died; the command line never does"
    )


class RetentionSection(_Section):
    """What stays readable of a dataset's past."""

    versions: int = Field(
        100, ge=1, description="how many of a dataset's newest versions are readable, at least; older ones expire"
    )
    comparisons: int = Field(
        1000,
        ge=1,
        description="how many findings of comparisons of its arms stay, of each kind, besides differences that stand",
    )
    dropped_days: float = Field(
        7.0, ge=0, allow_inf_nan=False, description="for how many days what is dropped from now on can come back"
    )


class StorageSection(_Section):
    """How the arms read and write."""

    memory_limit: str = Field(
        "512MB", pattern=_SIZE, description="what DuckDB may use for storage work before it spills"
    )
    target_file_bytes: int = Field(
        512 << 20, gt=0, description="bytes in memory at which an Iceberg data file is closed"
    )


class IcebergSection(_Section):
    """Where Iceberg tables are in their catalog."""

    born_in_place: bool = Field(
        True, description="whether a new table is made in `catalog.schema`; else in the legacy namespace `datasets`"
    )
    born_in_place_by_writer: dict[str, bool] = Field(
        {}, description="the same for single writers, by the names that `lakeward flags list` shows"
    )

    @field_validator("born_in_place_by_writer")
    @classmethod
    def _known_writers(cls, value: dict[str, bool]) -> dict[str, bool]:
        for name in value:
            if name not in WRITERS:
                near = difflib.get_close_matches(name, WRITERS, n=1)
                raise PydanticCustomError("writer", f"there is no writer {name}{', but ' + near[0] if near else ''}")
        return value


class CompactionSection(_Section):
    """When data files of Iceberg tables are rewritten."""

    mode: Literal["automatic", "manual", "off"] = Field(
        "automatic", description="`automatic`: after writes and by `lakeward maintain`; `manual`: by that alone; `off`"
    )
    delete_files: int = Field(8, ge=1, description="a data file that so many delete files apply to is rewritten")
    deleted_share: float = Field(
        0.3, gt=0, le=1, description="so is one of which more than this share of rows is deleted"
    )
    small_files: int = Field(
        32, ge=2, description="so many small data files are merged after a write; `lakeward maintain` merges any two"
    )
    small_share: float = Field(
        0.0625, ge=0, le=1, description="a data file is small below this share of `storage.target_file_bytes` on disk"
    )


class ComputeSection(_Section):
    """How pipelines compute."""

    memory_limit: str = Field("1GB", pattern=_SIZE, description="what a build's SQL may use before it spills")
    temp_limit: str | None = Field(
        None, pattern=_SIZE, description="what a query may spill to disk; unset: nine tenths of what is free"
    )
    threads: int | None = Field(None, ge=1, description="threads of a build's SQL; unset: one per core")
    time_limit_seconds: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="how long a query or filter may compute, waits for sources and writes not counted; unset: any",
    )


class SqlSection(_Section):
    """Queries that people ask: `lakeward sql`, `POST /sql`."""

    memory_limit: str = Field("512MB", pattern=_SIZE, description="what one query may use before it spills")
    time_limit_seconds: float | None = Field(
        60,
        gt=0,
        allow_inf_nan=False,
        description="how long one may compute, waits for its reader not counted",
    )
    row_limit: int = Field(1_000_000, ge=1, description="how many rows a result may have")
    at_a_time: int = Field(4, ge=1, le=64, description="how many queries run at a time; one more is refused")


class ModelsSection(_Section):
    """How models and Python functions run."""

    time_limit_seconds: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="how long the model or Python function of one node may compute; unset: any",
    )


class BuildSection(_Section):
    """How pipelines are built."""

    jobs: int = Field(
        1, ge=1, le=16, description="how many pipelines are built at a time; they share what `compute` allows one query"
    )


class SourcesSection(_Section):
    """How sources are read, and what they may reach where several people share a workspace."""

    jobs: int = Field(2, ge=1, le=16, description="how many tables of one sync are read and written at a time")

    allowed_hosts: tuple[str, ...] | None = Field(
        None, description="names, `*.suffix` and networks, each with `:port` if only that one; unset: any"
    )
    allowed_paths: tuple[str, ...] | None = Field(
        None, description="folders, and beginnings of `s3://` locations; sockets count as files; unset: any"
    )
    allowed_references: tuple[str, ...] | None = Field(
        None, description="`env:NAME`, `env:PREFIX*`, `file:/folder/`; unset: any"
    )

    follow_seconds: float = Field(
        1.0, gt=0, le=3600, allow_inf_nan=False, description="after how long changes that are followed are written"
    )
    follow_rows: int = Field(100_000, ge=1, description="after how many changes they are written, if that is sooner")
    follow_bytes: int = Field(64 << 20, ge=1, description="after how many bytes of changes, if that is sooner")
    lag_limit_bytes: int = Field(
        1 << 30, ge=0, description="warn where a followed source keeps more bytes of its log for this workspace"
    )

    @field_validator("allowed_hosts", "allowed_paths", "allowed_references", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        # A variable of the environment holds all entries, apart by commas or spaces.
        return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


class ShadowSection(_Section):
    """How readers that are set to `shadow` compare the arms."""

    share: float = Field(1.0, ge=0, le=1, description="which share of the reads of readers set to shadow is compared")
    limit_seconds: float = Field(
        30.0,
        ge=0,
        allow_inf_nan=False,
        description="how long a comparison may go on when its reader has all rows, in seconds; closing waits for it",
    )


class ServerSection(_Section):
    """The HTTP server, `lakeward serve`."""

    host: str = Field("127.0.0.1", description="the address that it listens on, one of this machine only")
    port: int = Field(8321, ge=0, le=65535, description="its port; 0: a free one")
    page_rows: int = Field(1000, ge=1, le=100_000, description="how many rows a page has at most")
    body_limit_bytes: int = Field(1 << 30, gt=0, description="how many bytes a request may bring")


class JobsSection(_Section):
    """Work that is queued, and the workers that do it."""

    width: int = Field(2, ge=1, le=16, description="how many jobs a worker runs at a time")
    attempts: int = Field(
        5, ge=1, le=100, description="how often a job is tried whose error may pass, or whose worker died"
    )
    stop_seconds: float = Field(
        30.0,
        ge=0,
        allow_inf_nan=False,
        description="how long a worker that is to end lets its jobs go on, before it gives them back",
    )
    keep_days: float = Field(
        30.0, gt=0, allow_inf_nan=False, description="for how many days a job that has ended, and its log, are kept"
    )


class Settings(_Section):
    """Every setting of a workspace."""

    home: Path | None = Field(None, description="the workspace directory; it holds the embedded Postgres")
    database_url: SecretStr | None = Field(None, description="a Postgres URL, instead of the embedded server")
    warehouse: str | None = Field(
        None, description="directory of the Iceberg tables, or s3://bucket/prefix; unset: `warehouse` in the home"
    )
    # Any of its values can be a secret: a token, a key, a URI with a password.
    catalog: dict[str, str] = Field(
        {}, repr=False, description="PyIceberg catalog properties; unset: a catalog in our Postgres"
    )
    ledger: LedgerSection = LedgerSection()  # type: ignore[call-arg]
    retention: RetentionSection = RetentionSection()  # type: ignore[call-arg]
    storage: StorageSection = StorageSection()  # type: ignore[call-arg]
    iceberg: IcebergSection = IcebergSection()  # type: ignore[call-arg]
    compaction: CompactionSection = CompactionSection()  # type: ignore[call-arg]
    compute: ComputeSection = ComputeSection()  # type: ignore[call-arg]
    sql: SqlSection = SqlSection()  # type: ignore[call-arg]
    models: ModelsSection = ModelsSection()  # type: ignore[call-arg]
    build: BuildSection = BuildSection()  # type: ignore[call-arg]
    sources: SourcesSection = SourcesSection()  # type: ignore[call-arg]
    shadow: ShadowSection = ShadowSection()  # type: ignore[call-arg]
    server: ServerSection = ServerSection()  # type: ignore[call-arg]
    jobs: JobsSection = JobsSection()  # type: ignore[call-arg]

    @field_validator("home", "warehouse", mode="before")
    @classmethod
    def _not_empty(cls, value: object) -> object:
        # As a path it would be the current directory, which nobody means who passes an unset shell variable.
        if isinstance(value, str) and not value.strip():
            raise PydanticCustomError("empty", "it is empty")
        return value

    @field_serializer("catalog")
    def _masked(self, catalog: dict[str, str]) -> dict[str, str]:
        return dict.fromkeys(catalog, "**********")


class LoadedSettings(_Section):
    """The settings, and for each dotted key the source of its value: `flag`, a variable's name, a file, `default`."""

    values: Settings
    sources: dict[str, str]


def load_settings(flags: Mapping[str, Any], files: Sequence[Path] = ()) -> LoadedSettings:
    """Merge all sources.

    Args:
        flags: values given by the caller, by top-level key; None means not given.
        files: `lakeward.toml` files that exist or not; later ones win.

    Raises:
        SettingsError: an unknown key or a value of the wrong kind, with its source.
    """
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for path in files:
        _merge(merged, sources, _read_file(path), str(path))
    for name, nested in _environment():
        _merge(merged, sources, nested, name)
    _merge(merged, sources, {key: value for key, value in flags.items() if value is not None}, "flag")
    try:
        values = Settings.model_validate(merged)
    except ValidationError as error:
        raise _wrong(error, sources) from None
    for key in _keys(Settings):
        sources.setdefault(key, "default")
    return LoadedSettings(values=values, sources=sources)


def _environment() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the variables that are settings, each as a nested document.

    Raises:
        SettingsError: one is no setting. Were it ignored, a misspelt one would leave the default in force unseen.
    """
    for name, value in sorted(os.environ.items()):
        if not name.startswith(ENVIRONMENT_PREFIX) or name.startswith(TEST_PREFIX) or not value:
            continue
        first, *others = name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
        if first not in Settings.model_fields:
            raise _unknown(".".join([first, *others]), name)
        if first == "catalog":
            # As PyIceberg reads its own variables: no name of a variable can have a dot or a hyphen.
            others = [".".join(part.replace("_", "-") for part in others)]
        nested: Any = value
        for key in reversed(others):
            nested = {key: nested}
        yield name, {first: nested}


def _wrong(error: ValidationError, sources: Mapping[str, str]) -> SettingsError:
    """Return the first complaint with the source of the value, and without the value: it may be a secret."""
    first = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    origin = next((sources[known] for known in sources if known == key or known.startswith(f"{key}.")), "?")
    if first["type"] == "extra_forbidden":
        return _unknown(key, origin)
    return SettingsError(
        f"setting {key} (from {origin}): {first['msg'].lower()}",
        next_step="`lakeward doctor` lists every setting",
        setting=key,
        source=origin,
    )


def _unknown(key: str, origin: str) -> SettingsError:
    known = [*_keys(Settings), *Settings.model_fields]
    meant = next(iter(difflib.get_close_matches(key, known, n=1)), None)
    if meant and origin.startswith(ENVIRONMENT_PREFIX):
        meant = ENVIRONMENT_PREFIX + meant.upper().replace(".", "__")
    return SettingsError(
        f"unknown setting {key} (from {origin})",
        next_step=f"did you mean {meant}?" if meant else "`lakeward doctor` lists every setting",
        setting=key,
        source=origin,
    )


def _read_file(path: Path) -> dict[str, Any]:
    try:
        # Editors on Windows begin a file with a byte order mark.
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:  # ValueError: not TOML, not UTF-8, or a NUL in the path
        raise SettingsError(f"{path} can't be read: {error}", file=str(path)) from None
    # The project's own part of the file is read where pipelines are.
    content.pop("project", None)
    # A relative path of a file means the same from wherever the command is called.
    for key in ("home", "warehouse"):
        value = content.get(key)
        if isinstance(value, str) and value.strip() and "://" not in value:
            content[key] = str(path.parent.resolve() / os.path.expanduser(value))
    return content


def _merge(target: dict[str, Any], sources: dict[str, str], values: Mapping[str, Any], source: str) -> None:
    for key, value in values.items():
        if isinstance(value, Mapping):
            inner: dict[str, str] = {}
            nested = target.setdefault(key, {})
            if not isinstance(nested, dict):
                nested = target[key] = {}
            _merge(nested, inner, value, source)
            sources.update({f"{key}.{name}": origin for name, origin in inner.items()})
        else:
            target[key] = value
            sources[key] = source


def _keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    keys: list[str] = []
    for name, field in model.model_fields.items():
        nested = field.annotation
        if isinstance(nested, type) and issubclass(nested, BaseModel):
            keys += _keys(nested, f"{prefix}{name}.")
        else:
            keys.append(f"{prefix}{name}")
    return keys
