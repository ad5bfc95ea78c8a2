"""Which types of sources tell their changes."""

from __future__ import annotations

import pytest

from lakeward.errors import UnknownObject
from lakeward.sources.known_change_logs import change_log_of, known_change_logs
from lakeward.sources.known_connectors import known_connectors


def test_a_log_has_the_name_of_its_connector() -> None:
    assert known_change_logs() and set(known_change_logs()) <= set(known_connectors())
    assert change_log_of("postgres").name == "postgres"


def test_a_source_without_a_log_is_told_which_have_one() -> None:
    with pytest.raises(UnknownObject, match="'files' does not tell its changes; these do: postgres"):
        change_log_of("files")
