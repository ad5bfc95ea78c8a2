"""Settings: flag > environment (`LAKEWARD_SECTION__KEY`) > `lakeward.toml` > default; and where each came from."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, SecretStr, ValidationError, field_serializer, field_validator
from pydantic_core import PydanticCustomError

from lakeward.errors import SettingsError
from lakeward.wiring.sections import (
    BuildSection,
    CompactionSection,
    ComputeSection,
    IcebergSection,
    JobsSection,
    LedgerSection,
    LogsSection,
    ModelsSection,
    RetentionSection,
    Section,
    ServerSection,
    ShadowSection,
    SourcesSection,
    SqlSection,
    StorageSection,
    TelemetrySection,
)

ENVIRONMENT_PREFIX = "LAKEWARD_"
SETTINGS_FILE = "lakeward.toml"

TEST_PREFIX = "LAKEWARD_TEST_"
"""Variables of the product's own tests; any other that begins with `LAKEWARD_` is a setting, or a mistake."""
CLIENT = ("LAKEWARD_SERVER", "LAKEWARD_TOKEN", "LAKEWARD_TOKEN_FILE")
"""Variables that say which server commands are sent to, and as whom; no settings of a workspace."""

_STORES = ("s3", "gcs", "adls")
"""How names of catalog properties begin that are about a store, before a dot."""


class Settings(Section):
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
    logs: LogsSection = LogsSection()  # type: ignore[call-arg]
    telemetry: TelemetrySection = TelemetrySection()  # type: ignore[call-arg]

    @field_validator("home", "warehouse", mode="before")
    @classmethod
    def _not_empty(cls, value: object) -> object:
        # As a path it would be the current directory, which nobody means who passes an unset shell variable.
        if isinstance(value, str) and not value.strip():
            raise PydanticCustomError("empty", "it is empty")
        return value

    @field_validator("catalog")
    @classmethod
    def _dotted(cls, catalog: dict[str, str]) -> dict[str, str]:
        # PyIceberg ignores what it does not know: a store would be looked for at AWS, with nobody's keys.
        for name in catalog:
            store, hyphen, rest = name.partition("-")
            if hyphen and store in _STORES:
                raise PydanticCustomError(
                    "property",
                    "there is no property {name}, but {meant}: in a variable, __{upper}__… is the dot",
                    {"name": name, "meant": f"{store}.{rest}", "upper": store.upper()},
                )
        return catalog

    @field_serializer("catalog")
    def _masked(self, catalog: dict[str, str]) -> dict[str, str]:
        return dict.fromkeys(catalog, "**********")


class LoadedSettings(Section):
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
        if not name.startswith(ENVIRONMENT_PREFIX) or name.startswith(TEST_PREFIX) or name in CLIENT or not value:
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
    found = error.errors(include_input=False, include_url=False)
    # One that is misspelt is missing, too, where it is needed: that it is unknown says more.
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    key = ".".join(str(part) for part in first["loc"])
    inside = (
        known for around in (key, key.rpartition(".")[0]) for known in sources if f"{known}.".startswith(f"{around}.")
    )
    origin = next((sources[known] for known in inside), "?")
    if first["type"] == "extra_forbidden":
        return _unknown(key, origin)
    return SettingsError(
        f"setting {key} (from {origin}): {first['msg'][:1].lower()}{first['msg'][1:]}",
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
