"""Settings: which source wins, and that nothing misspelt, wrong or secret goes unseen or is shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakeward.errors import SettingsError
from lakeward.wiring.settings import LoadedSettings, load_settings

SECRET = "p@ss/w:rd%20"


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting comes from the environment of whoever runs the tests."""
    for name in os.environ:
        if name.startswith("LAKEWARD_"):
            monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A settings file that is not there yet."""
    return tmp_path / "lakeward.toml"


def refused(*files: Path, **flags: object) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load_settings(flags, files)
    return caught.value


# Which source wins ----------------------------------------------------------------------------------------------------


def test_defaults_need_nothing(file: Path) -> None:
    loaded = load_settings({}, [file])
    assert loaded.values.home is None
    assert loaded.values.ledger.lease_seconds == 60.0
    assert set(loaded.sources.values()) == {"default"}
    assert {"home", "database_url", "catalog", "ledger.lease_seconds", "compute.threads"} <= loaded.sources.keys()


def test_flag_beats_environment_beats_file_beats_default(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('warehouse = "/file"\nhome = "/file"\n[ledger]\nlease_seconds = 5\nlock_timeout_seconds = 6\n')
    monkeypatch.setenv("LAKEWARD_WAREHOUSE", "/environment")
    monkeypatch.setenv("LAKEWARD_HOME", "/environment")
    monkeypatch.setenv("LAKEWARD_LEDGER__LEASE_SECONDS", "7.5")
    loaded = load_settings({"home": "/flag", "warehouse": None, "database_url": None}, [file])
    values, sources = loaded.values, loaded.sources
    assert (str(values.home), sources["home"]) == ("/flag", "flag")
    assert (values.warehouse, sources["warehouse"]) == ("/environment", "LAKEWARD_WAREHOUSE")
    assert (values.ledger.lease_seconds, sources["ledger.lease_seconds"]) == (7.5, "LAKEWARD_LEDGER__LEASE_SECONDS")
    assert (values.ledger.lock_timeout_seconds, sources["ledger.lock_timeout_seconds"]) == (6.0, str(file))
    assert (values.compute.threads, sources["compute.threads"]) == (None, "default")


def test_later_file_wins_key_by_key(file: Path, tmp_path: Path) -> None:
    second = tmp_path / "second.toml"
    file.write_text("[ledger]\nlease_seconds = 5\nlock_timeout_seconds = 6\n")
    second.write_text("[ledger]\nlease_seconds = 50\n")
    loaded = load_settings({}, [file, second])
    assert (loaded.values.ledger.lease_seconds, loaded.values.ledger.lock_timeout_seconds) == (50.0, 6.0)
    assert loaded.sources["ledger.lease_seconds"] == str(second)
    assert loaded.sources["ledger.lock_timeout_seconds"] == str(file)


def test_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEWARD_HOME", "")
    assert load_settings({}).sources["home"] == "default"


def test_paths_of_a_file_are_relative_to_it(file: Path) -> None:
    file.write_text('home = "here"\nwarehouse = "../there"\n')
    values = load_settings({}, [file]).values
    assert values.home == file.parent / "here"
    assert values.warehouse == str(file.parent / "../there")


def test_projects_own_part_of_the_file_is_left_alone(file: Path) -> None:
    file.write_text('[project]\nname = "shop"\n')
    assert set(load_settings({}, [file]).sources.values()) == {"default"}


def test_catalog_properties_come_from_any_source(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text('[catalog]\ntype = "rest"\n"s3.access-key-id" = "a"\n')
    monkeypatch.setenv("LAKEWARD_CATALOG__URI", "http://127.0.0.1:8181")
    loaded = load_settings({"catalog": {"type": "sql"}}, [file])
    assert loaded.values.catalog == {"type": "sql", "s3.access-key-id": "a", "uri": "http://127.0.0.1:8181"}
    assert [loaded.sources[f"catalog.{key}"] for key in ("type", "s3.access-key-id", "uri")] == [
        "flag",
        str(file),
        "LAKEWARD_CATALOG__URI",
    ]


def test_a_catalog_property_without_its_dot_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyIceberg would ignore it, and look for the store at AWS."""
    monkeypatch.setenv("LAKEWARD_CATALOG__S3_ENDPOINT", "http://store:8333")
    with pytest.raises(SettingsError, match=r"LAKEWARD_CATALOG__S3_ENDPOINT.*s3-endpoint, but s3\.endpoint.*__S3__"):
        load_settings({})


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ('hom = "x"', "hom", "home"),
        ("[ledger]\nlease_second = 5", "ledger.lease_second", "ledger.lease_seconds"),
        ("[ledgr]\nlease_seconds = 5", "ledgr", "ledger"),
        ("[storage]\ntarget_file_byte = 5", "storage.target_file_byte", "storage.target_file_bytes"),
    ],
)
def test_unknown_key_of_a_file_is_named_with_the_file_and_the_nearest(
    file: Path, text: str, key: str, meant: str
) -> None:
    file.write_text(text)
    error = refused(file)
    assert error.message == f"unknown setting {key} (from {file})"
    assert error.next_step == f"did you mean {meant}?"
    assert error.fields == {"setting": key, "source": str(file)}


def test_unknown_key_that_is_near_to_nothing_leads_to_the_list(file: Path) -> None:
    file.write_text("colour = 1")
    assert "lakeward doctor" in str(refused(file).next_step)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LAKEWARD_LEDGER__LEASE_SECOND", "LAKEWARD_LEDGER__LEASE_SECONDS"),
        ("LAKEWARD_LEDGR__LEASE_SECONDS", "LAKEWARD_LEDGER__LEASE_SECONDS"),
        ("LAKEWARD_LEDGER_LEASE_SECONDS", "LAKEWARD_LEDGER__LEASE_SECONDS"),
        ("LAKEWARD_DATABASEURL", "LAKEWARD_DATABASE_URL"),
        ("LAKEWARD_DATABASE_URL_", "LAKEWARD_DATABASE_URL"),
    ],
)
def test_misspelt_variable_is_refused_with_the_right_one(
    name: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, SECRET)
    error = refused()
    assert f"(from {name})" in error.message
    assert error.next_step == f"did you mean {meant}?"
    assert SECRET not in str(error) + str(error.to_json())


@pytest.mark.parametrize("name", ["LAKEWARD_", "LAKEWARD___", "LAKEWARD_HOME__X", "LAKEWARD_LEDGER__LEASE_SECONDS__X"])
def test_variable_that_leads_nowhere_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert f"(from {name})" in refused().message


def test_variables_of_our_tests_and_of_others_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LAKEWARD_TEST_SEED", "LAKEWARDEN_HOME", "lakeward_home", "PGHOST"):
        monkeypatch.setenv(name, "1")
    assert load_settings({}).values.home is None


@pytest.mark.parametrize(
    ("text", "key", "why"),
    [
        ("[ledger]\nlease_seconds = 'soon'", "ledger.lease_seconds", "valid number"),
        ("[ledger]\nlease_seconds = 0", "ledger.lease_seconds", "greater than 0"),
        ("[ledger]\nlease_seconds = inf", "ledger.lease_seconds", "finite"),
        ("[ledger]\nlock_timeout_seconds = -1", "ledger.lock_timeout_seconds", "greater than or equal to 0"),
        ("ledger = 5", "ledger", "valid dictionary"),
        ("[storage]\ntarget_file_bytes = 1.5", "storage.target_file_bytes", "valid integer"),
        ("[storage]\nmemory_limit = 'lots'", "storage.memory_limit", "match pattern"),
        ("[compute]\nthreads = 0", "compute.threads", "greater than or equal to 1"),
        ("database_url = 5", "database_url", "valid string"),
        ("[home]\nx = 1", "home", "path"),
        ("home = ''", "home", "empty"),
        ("warehouse = ' '", "warehouse", "empty"),
        ("[catalog]\nport = 5", "catalog.port", "valid string"),
    ],
)
def test_wrong_value_is_refused_by_its_key_and_file(file: Path, text: str, key: str, why: str) -> None:
    file.write_text(text)
    error = refused(file)
    assert error.message.startswith(f"setting {key} (from {file}): ")
    assert why in error.message
    assert error.exit_code == 2


def test_empty_flag_is_refused_and_does_not_mean_the_current_directory() -> None:
    assert refused(home="").message == "setting home (from flag): it is empty"
    assert refused(warehouse="").message == "setting warehouse (from flag): it is empty"


@pytest.mark.parametrize("size", ["512MB", "1GB", "1.5GiB", "100 KB", "2TiB"])
def test_usual_sizes_are_taken(size: str, file: Path) -> None:
    file.write_text(f"[compute]\nmemory_limit = '{size}'\n")
    assert load_settings({}, [file]).values.compute.memory_limit == size


def test_byte_order_mark_and_windows_line_ends_are_no_matter(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf[ledger]\r\nlease_seconds = 5\r\n")
    assert load_settings({}, [file]).values.ledger.lease_seconds == 5


@pytest.mark.parametrize("content", [b"[ledger", b"home = x", b"a = 1\na = 2", b"home = '\xff'", b"\xff\xfeh\x00o\x00"])
def test_file_that_is_not_toml_is_refused_by_its_path(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    error = refused(file)
    assert str(file) in error.message
    assert error.fields["file"] == str(file)


def test_settings_file_that_is_a_directory_is_refused(file: Path) -> None:
    file.mkdir()
    assert str(file) in refused(file).message


# Secrets --------------------------------------------------------------------------------------------------------------


def every_form(loaded: LoadedSettings) -> str:
    return "\n".join(
        [
            repr(loaded),
            str(loaded),
            str(loaded.model_dump()),
            loaded.model_dump_json(),
            f"{loaded.values!r:}",
            str(loaded.values.model_dump(mode="json")),
            str(vars(loaded)),
        ]
    )


def test_s02_secrets_are_in_no_printed_form(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(f'[catalog]\ntype = "rest"\n"s3.secret-access-key" = "{SECRET}"\n')
    monkeypatch.setenv("LAKEWARD_DATABASE_URL", f"postgresql://ann:{SECRET}@127.0.0.1/orders")
    monkeypatch.setenv("LAKEWARD_CATALOG__TOKEN", SECRET)
    loaded = load_settings({}, [file])
    assert loaded.values.catalog["token"] == SECRET
    assert loaded.values.database_url is not None
    assert SECRET in loaded.values.database_url.get_secret_value()
    assert SECRET not in every_form(loaded)
    assert "rd%20" not in every_form(loaded)


@pytest.mark.parametrize(
    "text", [f'database_url = ["{SECRET}"]', f'[catalog.inner]\nkey = "{SECRET}"', f'ledger = "{SECRET}"']
)
def test_s02_refused_value_is_not_repeated(file: Path, text: str) -> None:
    file.write_text(text)
    error = refused(file)
    assert SECRET not in str(error) + repr(error) + str(error.to_json())
    assert error.__suppress_context__


def test_s02_broken_file_is_not_quoted(file: Path) -> None:
    file.write_text(f'database_url = "postgresql://ann:{SECRET}@127.0.0.1/orders\n')
    assert SECRET not in str(refused(file).to_json())


def test_variables_can_name_every_property_of_a_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of PyIceberg do: two underscores are a dot, one is a hyphen."""
    monkeypatch.setenv("LAKEWARD_CATALOG__S3__SECRET_ACCESS_KEY", "canary")
    monkeypatch.setenv("LAKEWARD_CATALOG__OAUTH2_SERVER_URI", "https://catalog.example.com")
    loaded = load_settings({"catalog": {"uri": "https://catalog.example.com"}})
    assert loaded.values.catalog == {
        "s3.secret-access-key": "canary",
        "oauth2-server-uri": "https://catalog.example.com",
        "uri": "https://catalog.example.com",
    }
    assert loaded.sources["catalog.s3.secret-access-key"] == "LAKEWARD_CATALOG__S3__SECRET_ACCESS_KEY"
    assert "canary" not in repr(loaded)
