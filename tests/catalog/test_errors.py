"""Failures of the catalog come out under our names, and nothing that is not the catalog's is taken for one."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator

import pyarrow as pa
import pydantic
import pytest
import requests
import sqlalchemy
from pyiceberg import exceptions as iceberg
from pyiceberg.catalog import load_catalog

from lakeward.errors import CatalogError, Diverged, SettingsError, StorageFull
from lakeward.storage.arms.iceberg import trouble
from lakeward.storage.arms.iceberg.catalogs import PatientRestCatalog, open_catalog
from lakeward.storage.arms.iceberg.trouble import catalog_errors, settle
from lakeward.storage.requests import Output
from lakeward.testing.faulty_proxy import FAULTS
from support.trouble import Scene


def _garbage() -> Exception:
    try:
        pydantic.TypeAdapter(int).validate_json("<html>")
    except pydantic.ValidationError as error:
        return error
    raise AssertionError("unreachable")


OF_CATALOG = (
    iceberg.CommitStateUnknownException("x"),
    iceberg.CommitFailedException("x"),
    iceberg.ServiceUnavailableError("x"),
    iceberg.TooManyRequestsError("x"),
    iceberg.NoSuchNamespaceError("x"),
    iceberg.TableAlreadyExistsError("x"),
    iceberg.WaitingForLockException("x"),
    requests.ConnectionError("x"),
    requests.ReadTimeout("x"),
    requests.exceptions.ChunkedEncodingError("x"),
    requests.exceptions.InvalidURL("x"),
    sqlalchemy.exc.OperationalError("x", None, Exception("x")),
    ConnectionResetError("x"),
    TimeoutError("x"),
    NotImplementedError("x"),
    _garbage(),
)


@pytest.mark.parametrize("error", OF_CATALOG, ids=lambda error: type(error).__name__)
def test_c02_every_failure_of_a_catalog_is_a_catalog_error(error: Exception) -> None:
    with (
        pytest.raises(CatalogError, match=r"dataset d: the Iceberg catalog failed") as caught,
        catalog_errors("dataset d"),
    ):
        raise error
    assert caught.value.__cause__ is error


def test_failures_of_files_and_mistakes_are_not_the_catalogs() -> None:
    with pytest.raises(StorageFull), catalog_errors("d"):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(CatalogError, match="the warehouse can't be used"), catalog_errors("d"):
        raise PermissionError(errno.EACCES, "denied")
    for mistake in (AssertionError("x"), ValueError("x"), KeyError("x")):
        with pytest.raises(type(mistake)), catalog_errors("d"):
            raise mistake


@pytest.mark.parametrize("error", [*OF_CATALOG, ValueError("Cannot add snapshot with sequence number 3")], ids=str)
def test_c02_an_attempt_is_repeated_until_it_is_known_what_became_of_it(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble, "PAUSES", (0.0, 0.0, 0.0))
    tries: list[int] = []

    def attempt() -> str:
        tries.append(1)
        if len(tries) <= 3:
            # As from loading the table, which gives the failure our name, and as from a commit.
            with catalog_errors("d") if len(tries) % 2 else pytest.MonkeyPatch.context():
                raise error
        return "done"

    if isinstance(error, NotImplementedError):
        with pytest.raises(CatalogError):
            settle("d", attempt)
        assert len(tries) == 1
    else:
        assert settle("d", attempt) == "done"


@pytest.mark.parametrize("error", [Diverged("x"), CatalogError("not ours"), OSError(errno.ENOSPC, "full")], ids=str)
def test_an_attempt_that_ends_the_same_way_each_time_is_not_repeated(error: Exception) -> None:
    tries: list[int] = []

    def attempt() -> None:
        tries.append(1)
        raise error

    with pytest.raises((Diverged, CatalogError, StorageFull)):
        settle("d", attempt)
    assert len(tries) == 1


def test_c02_reads_are_asked_again_and_sent_writes_are_not(scene: Scene) -> None:
    catalog = open_catalog("mine", {"type": "rest", "uri": scene.proxy.url})
    assert isinstance(catalog, PatientRestCatalog)
    for fault in ("503-before", "closed-before", "closed-after", "504-after"):
        asked = scene.proxy.inject(FAULTS[fault], method="GET", path="/namespaces")
        catalog.list_namespaces()
        assert asked.hits == 1
    for fault in ("503-before", "504-after", "closed-before", "closed-after"):
        sent = scene.proxy.inject(FAULTS[fault], path="/namespaces$", times=None)
        with pytest.raises((iceberg.RESTError, requests.RequestException)):
            catalog.create_namespace(f"n_{fault.replace('-', '_')}")
        assert sent.hits == 1, "a POST that was sent must not be sent again behind our back"
        scene.proxy.clear()


def test_an_address_s_password_is_not_in_the_error(scene: Scene) -> None:
    uri = scene.proxy.url.replace("//", "//someone:hunter2@")
    scene.proxy.inject(FAULTS["closed-before"], method="GET", path="/config", times=None)
    with pytest.raises(CatalogError) as caught, catalog_errors("the Iceberg catalog"):
        open_catalog("mine", {"type": "rest", "uri": uri})
    assert "hunter2" not in str(caught.value)
    # PyIceberg repeats the address of a kind that it does not know.
    with pytest.raises(SettingsError, match="mysql://…") as wrong:
        open_catalog("mine", {"uri": "mysql://someone:hunter2@host/catalog"})
    assert "hunter2" not in str(wrong.value) and wrong.value.__suppress_context__


@pytest.mark.parametrize("properties", [{"type": "nonsense"}, {"type": "rest"}, {"uri": "gopher://x"}], ids=json.dumps)
def test_a_catalog_that_can_t_be_meant_is_a_wrong_setting(properties: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="catalog"):
        open_catalog("mine", properties)


def test_errors_of_the_rows_source_are_not_taken_for_the_catalogs(scene: Scene) -> None:
    subject = scene.subject(born=[1])
    record = subject.dataset.record
    schema = subject.dataset.to_arrow().schema
    mine = requests.ConnectionError("the source is away")

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist([{"id": 2, "note": "x"}], schema=schema)
        raise mine

    output = Output(record, "append", lambda: pa.RecordBatchReader.from_batches(schema, rows()))
    with pytest.raises(requests.ConnectionError, match="the source is away"):
        scene.workspace.storage.protocol.run([output], writer="test")
    assert subject.ids() == [1]


def test_another_one_s_table_in_the_place_is_not_touched_and_stops_nobody_else(scene: Scene) -> None:
    subject = scene.subject()
    other = load_catalog("other", type="rest", uri=scene.server.url)
    other.create_namespace_if_not_exists("main")
    other.create_namespace_if_not_exists(("main", "trouble"))
    other.create_table(subject.identifier, pa.schema([("x", pa.int64())])).append(pa.table({"x": [7]}))
    with pytest.raises(CatalogError, match="belongs to somebody else"):
        subject.write([1], "append")
    assert scene.workspace.transactions(status="open") == []
    assert scene.workspace.recover() == []
    assert other.load_table(subject.identifier).scan().to_arrow()["x"].to_pylist() == [7]
    other.rename_table(subject.identifier, (*subject.identifier[:-1], f"{subject.slug}_other"))
    subject.write([1], "append")
    assert subject.ids() == subject.main_ids() == [1]


def test_a_branch_of_this_version_by_another_build_is_not_taken_for_ours(scene: Scene) -> None:
    """As after the ledger was set back to a backup: versions are counted again, the catalog has gone on."""
    subject = scene.subject(born=[1])
    table = subject.table()
    assert table is not None
    version = subject.dataset.version
    for ahead in range(1, 20):  # other datasets of the scene don't count in this one's versions
        with table.manage_snapshots() as manage:
            manage.create_branch(table.current_snapshot().snapshot_id, f"lw-{version + ahead}")  # type: ignore[union-attr]
    with pytest.raises(Diverged, match="another build"):
        subject.write([2], "append")
    assert subject.ids() == [1]


def test_c02_a_build_of_two_outputs_fails_whole(scene: Scene) -> None:
    good, bad = scene.subject(born=[1]), scene.subject(born=[2])
    scene.proxy.inject(FAULTS["500-before"], path=f"/tables/{bad.slug}$", times=None)
    outputs = [
        Output(each.dataset.record, "append", lambda each=each: _one_row(each.dataset.to_arrow().schema))  # type: ignore[misc]
        for each in (good, bad)
    ]
    with pytest.raises(CatalogError):
        scene.workspace.storage.protocol.run(outputs, writer="test")
    assert (good.ids(), bad.ids()) == ([1], [2])
    scene.proxy.clear()
    scene.settle()
    scene.workspace.storage.protocol.run(outputs, writer="test")
    assert (good.ids(), bad.ids()) == (good.main_ids(), bad.main_ids()) == ([1, 50], [2, 50])
    assert good.branches() == bad.branches() == []


def _one_row(schema: pa.Schema) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(
        schema, [pa.RecordBatch.from_pylist([{"id": 50, "note": "x"}], schema=schema)]
    )
