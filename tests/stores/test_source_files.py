"""Files of a real object store: imported, synced as they arrive, refused by the store, and changed meanwhile."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeward
from lakeward.errors import LakewardError, SettingsError, SourceFileError
from lakeward.wiring.sync_plan import SyncRequest
from support.lakes import Lake
from support.seaweedfs import BUCKET, READER_SECRET, SECRET, SeaweedFS

Put = Callable[[str, str], None]
KEYS = ("a b.csv", "a#1.csv", "%2e%2e%2f.csv", "día ❄.csv", "x?y.csv")
_numbers = itertools.count(1)


@pytest.fixture
def ws(sql_lake: Lake) -> lakeward.Workspace:
    return sql_lake.workspace


@pytest.fixture
def name() -> str:
    """The name of a dataset, of a source, and of a folder of the bucket, that no other test has."""
    return f"files{next(_numbers)}"


@pytest.fixture
def put(seaweed: SeaweedFS, name: str) -> Put:
    """Puts an object of that text into the test's folder."""

    def to(key: str, text: str) -> None:
        with seaweed.files().open_output_stream(f"{BUCKET}/{name}/{key}") as stream:
            stream.write(text.encode())

    return to


@pytest.fixture
def asked(seaweed: SeaweedFS, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine says who asks."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", seaweed.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "reader")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", READER_SECRET)


def options(seaweed: SeaweedFS, path: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("LAKE_SECRET", SECRET)
    monkeypatch.setenv("LAKE_KEY", "admin")
    keys = {"access_key_id": "env:LAKE_KEY", "secret_access_key": "env:LAKE_SECRET"}
    return {"path": path, "endpoint": seaweed.endpoint, **keys}


@pytest.mark.usefixtures("asked")
def test_objects_are_imported_by_pattern_folder_and_name(
    ws: lakeward.Workspace, seaweed: SeaweedFS, put: Put, name: str
) -> None:
    for number, key in enumerate(KEYS):
        put(f"in/{key}", f"v\n{number}\n")
    put("in/_SUCCESS", "")
    put("in/deep/er.csv", "v\n100\n")
    pq.write_table(pa.table({"v": list(range(100_000))}), f"{BUCKET}/{name}/p.parquet", filesystem=seaweed.files())
    place = f"s3://{BUCKET}/{name}"
    for number, (pattern, rows) in enumerate(
        {
            f"{place}/in/*.csv": len(KEYS),
            f"{place}/in": len(KEYS),
            f"{place}/**/*.csv": len(KEYS) + 1,
            f"{place}/in/a#1.csv": 1,
            f"{place}/in/x?y.csv": 1,
            f"{place}/p.parquet": 100_000,
        }.items()
    ):
        result = ws.import_file(f"main.{name}.t{number}", pattern)
        assert (result.rows_read, result.rows_written) == (rows, rows), pattern
    assert sorted(ws.dataset(f"main.{name}.t2").to_arrow()["v"].to_pylist()) == [*range(len(KEYS)), 100]


def test_what_arrives_is_read_once(
    ws: lakeward.Workspace, seaweed: SeaweedFS, put: Put, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = options(seaweed, f"in=s3://{BUCKET}/{name}/*.csv", monkeypatch)
    with pytest.raises(SettingsError, match="it is a secret") as caught:
        ws.sources.add(name, "files", {**given, "secret_access_key": SECRET})
    assert SECRET not in str(caught.value) and SECRET not in str(caught.value.to_json())
    put("1.csv", "v\n1\n")
    assert SECRET not in str(ws.sources.add(name, "files", given))

    def sync(mode: str = "append") -> int:
        [synced] = ws.sources.sync(SyncRequest(name, mode=mode))
        return synced.rows_read

    assert (sync(), sync()) == (1, 0)
    put("2.csv", "v\n2\n3\n")
    put("1.csv", "v\n1\n")
    assert (sync(), sync()) == (2, 0)
    put("1.csv", "v\n9\n")
    with pytest.raises(SourceFileError, match=r"1\.csv: was changed after its rows were read"):
        sync()
    assert sync("full") == 3 and sync() == 0


@pytest.mark.usefixtures("asked")
def test_an_object_that_is_replaced_between_scan_and_read(ws: lakeward.Workspace, put: Put, name: str) -> None:
    put("1.csv", "v\n1\n")
    plan = ws.plan_import(f"main.{name}.t", f"s3://{BUCKET}/{name}/*.csv")
    put("1.csv", "v\n2\n")
    with pytest.raises(SourceFileError, match=r"1\.csv: has changed since it was scanned"):
        ws.run_import(plan)
    assert ws.tree.find(f"main.{name}.t") is None


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("other", "location", "says"),
    [
        ({}, "{place}/gone.csv", "gone.csv does not exist"),
        ({}, "s3://nowhere/x.csv", "the store"),
        ({}, "{place}/*.tsv", "no file is there"),
        ({"AWS_SECRET_ACCESS_KEY": "wrong-canary"}, "{place}/1.csv", "the store refuses"),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, "{place}/*.csv", "the store refuses"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "{place}/1.csv", "can't be reached"),
        ({}, "gs://bucket/1.csv", "gs:// is not read"),
        ({}, "s3://key:canary@bucket/1.csv", "holds a key"),
    ],
)
def test_what_a_store_refuses(
    ws: lakeward.Workspace,
    put: Put,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    other: dict[str, str],
    location: str,
    says: str,
) -> None:
    put("1.csv", "v\n1\n")
    for variable, value in other.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(LakewardError) as caught:
        ws.import_file(f"main.{name}.t", location.format(place=f"s3://{BUCKET}/{name}"))
    assert says in caught.value.message and "canary" not in str(caught.value.to_json())
    assert ws.tree.find(f"main.{name}.t") is None


class Cutter:
    """Passes bytes on to a store, and hangs up once so many of an answer have come."""

    def __init__(self, target: str) -> None:
        host, _, port = target.removeprefix("http://").partition(":")
        self._target = (host, int(port))
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.most: int | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                server = socket.create_connection(self._target)
                threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        passed = 0
        with suppress(OSError), closing(target):
            while data := source.recv(65_536):
                passed += len(data)
                if answers and self.most is not None and passed > self.most:
                    for each in (source, target):
                        # Closing alone would wait for the thread that receives from it.
                        each.shutdown(socket.SHUT_RDWR)
                    return
                target.sendall(data)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def cutter(seaweed: SeaweedFS) -> Iterator[Cutter]:
    made = Cutter(seaweed.endpoint)
    yield made
    made.close()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_connection_that_is_cut_costs_nothing(
    ws: lakeward.Workspace, seaweed: SeaweedFS, name: str, cutter: Cutter, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    rows = pa.table({"v": [f"{number * 7919 % 1_000_003:020}" for number in range(100_000)]})
    files = seaweed.files()
    if kind == "csv":
        with files.open_output_stream(f"{BUCKET}/{name}/big.csv") as stream:
            stream.write(("v\n" + "\n".join(rows["v"].to_pylist()) + "\n").encode())
    else:
        pq.write_table(rows, f"{BUCKET}/{name}/big.parquet", filesystem=files, compression="none", use_dictionary=False)
    given = {**options(seaweed, f"in=s3://{BUCKET}/{name}/big.{kind}", monkeypatch), "endpoint": cutter.endpoint}
    ws.sources.add(name, "files", given)
    cutter.most = 300_000
    with pytest.raises(LakewardError, match=rf"big\.{kind}") as caught:
        ws.sources.sync(SyncRequest(name, columns={"v": "string"}))
    assert SECRET not in str(caught.value)
    made = ws.tree.find(f"main.{name}.in")
    assert made is None or made.head_version == 0
    cutter.most = None
    [synced] = ws.sources.sync(SyncRequest(name, mode="append"))
    assert synced.rows_read == 100_000
