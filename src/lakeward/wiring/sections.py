"""The sections of settings, each with its keys, what they mean and what they are if nobody says otherwise."""

from __future__ import annotations

import difflib
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator
from pydantic_core import PydanticCustomError

from lakeward.control.flags.registry import WRITERS
from lakeward.pipelines.cron import check_cron

_SIZE = r"^\d+(\.\d+)? ?([kKMGT]i?)?B$"


class Section(BaseModel):
    """Some settings; none can be changed, and none is unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LedgerSection(Section):
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


class RetentionSection(Section):
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


class StorageSection(Section):
    """How the arms read and write."""

    memory_limit: str = Field(
        "512MB", pattern=_SIZE, description="what DuckDB may use for storage work before it spills"
    )
    target_file_bytes: int = Field(
        512 << 20, gt=0, description="bytes in memory at which an Iceberg data file is closed"
    )


class IcebergSection(Section):
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


class CompactionSection(Section):
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


class ComputeSection(Section):
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


class SqlSection(Section):
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


class ModelsSection(Section):
    """How models and Python functions run."""

    time_limit_seconds: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="how long the model or Python function of one node may compute; unset: any",
    )


class BuildSection(Section):
    """How pipelines are built."""

    jobs: int = Field(
        1, ge=1, le=16, description="how many pipelines are built at a time; they share what `compute` allows one query"
    )


class SourcesSection(Section):
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


class ShadowSection(Section):
    """How readers that are set to `shadow` compare the arms."""

    share: float = Field(1.0, ge=0, le=1, description="which share of the reads of readers set to shadow is compared")
    limit_seconds: float = Field(
        30.0,
        ge=0,
        allow_inf_nan=False,
        description="how long a comparison may go on when its reader has all rows, in seconds; closing waits for it",
    )


class OidcSection(Section):
    """A provider of names that people log in to the server's pages by, with OpenID Connect."""

    issuer: str | None = Field(None, description="its address, as it calls itself; unset: no such login")
    client_id: str = Field("lakeward", description="what it knows this server by")
    client_secret: str | None = Field(None, description="a reference, `env:NAME` or `file:/path`; unset: none")
    user_claim: str = Field("email", description="what of its answer is the user's name")
    scope: str = Field("openid email profile", description="what it is asked for")
    name: str = Field("single sign-on", description="what people know it by")

    @field_validator("client_secret")
    @classmethod
    def _a_reference(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("env:", "file:")):
            raise ValueError("write a reference to it, env:NAME or file:/path, and not the secret")
        return value


class ServerSection(Section):
    """The HTTP server, `lakeward serve`."""

    host: str = Field("127.0.0.1", description="the address that it listens on; another machine's need logins")
    auth: Literal["auto", "on", "off"] = Field(
        "auto", description="whether who asks has to log in; `auto`: not on this machine alone with its own Postgres"
    )
    hosts: tuple[str, ...] = Field((), description="names by which it may be called, besides those of this machine")
    rate_limit: str | None = Field("600/minute", description="how many requests of one user are answered; unset: any")
    session_hours: float = Field(12.0, gt=0, le=720, allow_inf_nan=False, description="how long a login lasts")
    oidc: OidcSection = OidcSection()  # type: ignore[call-arg]

    @field_validator("hosts", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value

    port: int = Field(8321, ge=0, le=65535, description="its port; 0: a free one")
    page_rows: int = Field(1000, ge=1, le=100_000, description="how many rows a page has at most")
    body_limit_bytes: int = Field(1 << 30, gt=0, description="how many bytes a request may bring")
    allow_code: bool = Field(
        False, description="take Python in projects over HTTP, from those who may `code.run`: it runs as the server"
    )
    streams: int = Field(100, ge=1, description="how many streams of rows may be open at a time")
    commands: int = Field(
        20, ge=1, description="how many commands of `lakeward --server` run at a time; of one user, half as many"
    )
    stall_seconds: float = Field(
        300.0,
        gt=0,
        allow_inf_nan=False,
        description="how long a client may take for 1 MiB of rows; then it is broken off",
    )
    worker: bool | None = Field(
        None, description="run jobs in its process, too; unset: where the workspace has its own Postgres"
    )


class LogsSection(Section):
    """What is logged, to standard error."""

    format: Literal["text", "json"] = Field("text", description="`text` for people, or a line of JSON for programs")
    level: Literal["debug", "info", "warning", "error"] | None = Field(
        None, description="from where on; unset: `info` for what serves, else `warning`; -v and -q count more"
    )


class ScheduleSetting(Section):
    """A job that is queued by time."""

    cron: str = Field(description="when: minute, hour, day of the month, month, weekday")
    kind: str = Field(description="of job, as `lakeward job kinds` lists them")
    options: dict[str, Any] = Field({}, description="of the job")

    @field_validator("cron")
    @classmethod
    def _time(cls, value: str) -> str:
        try:
            return check_cron(value)
        except ValueError as error:
            raise PydanticCustomError("cron", "{why}", {"why": str(error)}) from None


class JobsSection(Section):
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
    time_zone: str = Field("UTC", description="whose clocks schedules are of, as Europe/Berlin")
    schedules: dict[str, ScheduleSetting] = Field(
        {}, description="jobs that are queued by time, by a name each: `cron`, `kind` and `options`"
    )

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ValueError, OSError, ZoneInfoNotFoundError):
            near = difflib.get_close_matches(value, available_timezones(), n=1)
            meant = f", but {near[0]}" if near else ""
            raise PydanticCustomError("zone", "{why}", {"why": f"there is no time zone {value}{meant}"}) from None
        return value


class TelemetrySection(Section):
    """Traces and events that are sent elsewhere; needs the extra `telemetry`."""

    otlp_endpoint: str | None = Field(
        None, description="the address of a collector of OpenTelemetry, as http://host:4318; unset: no traces"
    )
    service_name: str = Field("lakeward", description="what traces call this process")
    openlineage_url: str | None = Field(
        None, description="a receiver of OpenLineage, http://host:port, or a file, file:///path; unset: no events"
    )
    openlineage_namespace: str = Field("lakeward", description="the namespace of datasets and jobs in events")
    openlineage_key: SecretStr | None = Field(None, description="the key of the receiver, where it asks for one")
