"""Whatever is sent, as the description allows it: nothing fails on our side, and answers are as they are described.

A few requests for each operation, the same in every run; each second one is about a dataset that is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.server.app import create_app
from support.databases import WORKSPACE, drop_database, made_database

PATH = "/api/v1/openapi.json"
THERE = "main.described.orders"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 4


@schemathesis.serializer("application/x-tar")
def archive(_: Any, value: Any) -> bytes:
    """Any bytes: what is no archive has to be refused, too."""
    return value if isinstance(value, bytes) else b"no archive"


few = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def described(
    postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[schemathesis.schemas.BaseSchema]:
    """The description of an application of its own, which has a dataset with rows on both arms."""
    home, url = tmp_path_factory.mktemp("described"), made_database(postgres, WORKSPACE)
    with lakeward.open(home, database_url=url, warehouse=home / "warehouse") as workspace:
        workspace.create_dataset(THERE, {"id": "long", "note": "string"}, ["id"]).write([{"id": 1, "note": "a"}])
        workspace.flip(THERE).run(until="mirror")
        # It is called so; and a stream of events has no end.
        app = create_app(workspace, home, page_rows=100, body_limit=1 << 20, hosts={"testserver"})
        yield schemathesis.openapi.from_asgi(PATH, app).exclude(path_regex="/events$")
    drop_database(postgres.url, url)


def ask(operation: Any) -> None:
    """Ask a few requests of an operation."""
    number = count()

    @few
    @given(case=operation.as_strategy())
    def asked(case: Any) -> None:
        if next(number) % 2 and "name" in case.path_parameters:
            case.path_parameters["name"] = THERE
        case.call_and_validate(checks=CHECKS)

    asked()


def test_every_operation_keeps_its_word(described: Any) -> None:
    wrong: list[str] = []
    operations = [each.ok() for each in described.get_all_operations()]
    assert len(operations) > 50
    for operation in operations:
        try:
            ask(operation)
        except (AssertionError, BaseExceptionGroup) as error:
            wrong.append(f"{operation.label}: {error}")
    assert not wrong, "\n\n".join(wrong)
