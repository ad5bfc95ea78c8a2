"""docs/operations.md: its commands run, its addresses answer, its metrics are there; and deploy/ is sound."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from itertools import count
from pathlib import Path

import pyiceberg.io
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

import lakeward
from lakeward.server.app import create_app
from lakeward.wiring.settings import load_settings
from support.commands import Run
from support.pages import Page, Reader

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
PAGE = Page("operations.md")
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
_numbers = count(1)


def variables(name: str) -> dict[str, str]:
    lines = (DEPLOY / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_its_commands_run_and_its_addresses_answer(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, short_root: Path
) -> None:
    home = short_root / f"ops{next(_numbers)}"
    monkeypatch.chdir(short_root)
    monkeypatch.setenv("LAKEWARD_HOME", str(home))
    # The embedded server of each: a backup is restored into another one.
    monkeypatch.delenv("LAKEWARD_DATABASE_URL")
    shutil.rmtree("restored", ignore_errors=True)
    reader = Reader(run, monkeypatch)
    for language, text in PAGE.blocks():
        reader.follow(language, text)
    paths = re.findall(r"curl http://127\.0\.0\.1:8321(\S+)", PAGE.text)
    assert len(paths) == 3
    with lakeward.open(home) as workspace:
        app = create_app(workspace, tmp_path, page_rows=10, body_limit=10)
        with TestClient(app, base_url="http://127.0.0.1") as client:
            texts = {path: client.get(path).raise_for_status().text for path in paths}
    there = {family.name for family in text_string_to_metric_families(texts["/metrics"])}
    told = {name.removesuffix("_total") for name in re.findall(r"`(lakeward_\w+)`", PAGE.text)}
    assert told - there == {"lakeward_followed_lag_bytes", "lakeward_followed_up"}
    assert there <= told | {"lakeward_jobs"}


def test_its_links_lead_somewhere() -> None:
    assert all((ROOT / "docs" / link).exists() for link in PAGE.links())


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_is_taken_by_systemd_and_runs_a_command_that_there_is(unit: Path, run: Run, tmp_path: Path) -> None:
    text = unit.read_text()
    (program, command) = re.findall(r"^ExecStart=(\S+) (\w+)$", text, re.MULTILINE)[0]
    assert program == "/opt/lakeward/bin/lakeward" and run(command, "--help").code == 0
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "UMask=0077"):
        assert line in text
    if (analyze := shutil.which("systemd-analyze")) is not None:
        # What it names is not on this machine.
        here = text.replace(program, "/bin/true").replace("=lakeward\n", "=root\n").replace("File=", "File=-")
        (tmp_path / unit.name).write_text(here)
        done = subprocess.run([analyze, "verify", tmp_path / unit.name], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "Unknown" not in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["systemd/lakeward.env", "compose/lakeward.env.example"])
def test_settings_of_the_examples_are_settings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = variables(name)
    assert all("CHANGE-ME" in value for key, value in found.items() if "PASSWORD" in key or "SECRET" in key)
    for key, value in found.items():
        if key.startswith("LAKEWARD_"):
            monkeypatch.setenv(key, value)
    settings = load_settings({}).values
    assert settings.logs.format == "json" and settings.warehouse == "s3://lakeward/warehouse"
    # PyIceberg takes any property, and ignores what it does not know.
    assert set(settings.catalog) <= {value for name, value in vars(pyiceberg.io).items() if name.startswith("S3_")}


def test_the_compose_file_pins_checks_and_waits(run: Run) -> None:
    document = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
    services = document["services"]
    assert set(services) == {"postgres", "store", "bucket", "proxy", "server", "worker"}
    for name, service in services.items():
        assert re.search(r":\d+\.\d+", service["image"]), name
        assert service["restart"] == ("on-failure" if name == "bucket" else "unless-stopped")
        for source in (each.partition(":")[0] for each in service.get("volumes", [])):
            assert source in document["volumes"] or (DEPLOY / "compose" / source).exists()
        for other, how in service.get("depends_on", {}).items():
            ends = how["condition"] == "service_completed_successfully"
            assert ends == (other == "bucket")
            assert ends or how["condition"] == "service_started" or "healthcheck" in services[other]
    for name in ("server", "worker"):
        assert services[name]["security_opt"] == ["no-new-privileges:true"] and services[name]["read_only"] is True
        assert run(*services[name]["command"], "--help").code == 0
        assert services[name]["image"] == f"lakeward:{lakeward.__version__}"
    assert "/readyz" in services["server"]["healthcheck"]["test"][-1]


def test_the_examples_of_the_compose_file_are_about_the_same() -> None:
    """Database, bucket and keys have the same names wherever they stand."""
    examples = {path.name.removesuffix(".example") for path in (DEPLOY / "compose").glob("*.example")}
    assert examples == {"lakeward.env", "store.json"}
    given = variables("compose/lakeward.env.example")
    assert given["LAKEWARD_DATABASE_URL"].partition("@")[2] == f"postgres:5432/{given['POSTGRES_DB']}"
    (identity,) = json.loads((DEPLOY / "compose" / "store.json.example").read_text())["identities"]
    assert identity["credentials"] == [
        {
            "accessKey": given["LAKEWARD_CATALOG__S3__ACCESS_KEY_ID"],
            "secretKey": given["LAKEWARD_CATALOG__S3__SECRET_ACCESS_KEY"],
        }
    ]
    bucket = given["LAKEWARD_WAREHOUSE"].removeprefix("s3://").partition("/")[0]
    made = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]["bucket"]["command"][0]
    assert f"s3.bucket.create -name {bucket}" in made and f"grep -qw {bucket}" in made


def test_the_image_is_made_of_what_is_there_and_pinned(run: Run) -> None:
    text = (DEPLOY / "compose" / "Containerfile").read_text()
    copied = [each for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE) for each in line.split()]
    assert all((ROOT / each).exists() for each in copied)
    for line in re.findall(r"pip install (.+)", text):
        # pip takes neither a folder nor a constraint where it asks for hashes.
        assert "--no-deps --no-index dist/" in line or "--require-hashes --only-binary :all: -r" in line
    assert set(re.findall(r"-r (\S+)", text)) <= set(copied)
    assert run(*json.loads(re.findall(r"^CMD (.+)$", text, re.MULTILINE)[0]), "--help").code == 0


def test_the_lock_of_the_image_is_a_part_of_the_lock() -> None:
    """Of the same versions, by the same hashes; and all that the product needs with the extras of a server."""

    def locked(name: str) -> dict[str, set[str]]:
        parts = re.split(r"^(?=\S+==)", (ROOT / name).read_text(), flags=re.MULTILINE)[1:]
        return {each.split()[0]: set(re.findall(r"sha256:\w+", each)) for each in parts}

    whole, part = locked("requirements.lock"), locked("requirements-server.lock")
    assert part.items() <= whole.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = {
        re.split(r"[\[<>=]", each)[0] for each in (*project["dependencies"], *extras["server"], *extras["telemetry"])
    }
    assert wanted <= {re.split(r"[\[=]", each)[0] for each in part}
