"""SeaweedFS: a real object store that speaks S3, and a real Iceberg REST catalog with OAuth2, on loopback."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

WEED = shutil.which("weed", path=str(Path(sys.executable).parent))
"""The program, None where its package has none for the platform."""

SECRET = "canary/Secret+42=="
"""The secret key of `admin`: of characters that are written differently in an address."""
READER_SECRET = "canary-of-the-reader"

BUCKET, TABLE_BUCKET = "lake", "tables"
"""A bucket for the SQL catalog's tables, and the one that the REST catalog keeps."""

_PORTS = (
    *("master.port", "master.port.grpc", "filer.port", "filer.port.grpc", "volume.port", "volume.port.grpc"),
    *("s3.port", "s3.port.grpc", "s3.port.iceberg"),
)
_OFF = ("master.telemetry", "webdav", "admin.ui", "s3.autoCreateBucket")


@dataclass(frozen=True)
class SeaweedFS:
    """A running one."""

    endpoint: str
    catalog: str

    def properties(self, key: str = "admin", secret: str = SECRET) -> dict[str, str]:
        """Return the catalog properties that lead to the store."""
        return {"s3.endpoint": self.endpoint, "s3.access-key-id": key, "s3.secret-access-key": secret}

    def rest(self) -> dict[str, str]:
        """Return the properties of its REST catalog: a token is had for the key and its secret."""
        place = {"type": "rest", "uri": self.catalog, "warehouse": f"s3://{TABLE_BUCKET}"}
        place["oauth2-server-uri"] = f"{self.catalog}/v1/oauth/tokens"
        return place | {"credential": f"admin:{SECRET}"} | self.properties()

    def files(self) -> fs.S3FileSystem:
        """Open the store without Lakeward."""
        return fs.S3FileSystem(
            endpoint_override=self.endpoint, access_key="admin", secret_key=SECRET, region="us-east-1"
        )

    def exists(self, path: str) -> bool:
        """Say whether there is an object, given by its bucket and name."""
        return bool(self.files().get_file_info(path).is_file)

    def below(self, path: str) -> list[str]:
        """Return the objects below a place, given by its bucket and name."""
        selector = fs.FileSelector(path, recursive=True, allow_not_found=True)
        return [each.path for each in self.files().get_file_info(selector) if each.is_file]


@contextmanager
def running(directory: Path) -> Iterator[SeaweedFS]:
    """Run SeaweedFS on free ports of 127.0.0.1, with its files below a directory."""
    assert WEED is not None
    ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
    identities = {
        "identities": [
            _identity("admin", SECRET, ["Admin", "Read", "List", "Tagging", "Write"]),
            _identity("reader", READER_SECRET, [f"Read:{BUCKET}", f"List:{BUCKET}"]),
        ]
    }
    (directory / "identities.json").write_text(json.dumps(identities), encoding="utf-8")
    arguments = {
        "dir": directory,
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "s3.config": directory / "identities.json",
    }
    arguments |= {"bucket": BUCKET, "tableBucket": TABLE_BUCKET, "s3.port.lance": 0, **ports}
    arguments |= dict.fromkeys(_OFF, "false")
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [WEED, "mini", *(f"-{name}={value}" for name, value in arguments.items())],
            stdout=log,
            stderr=log,
            cwd=directory,
        )
        try:
            started = SeaweedFS(*(f"http://127.0.0.1:{ports[name]}" for name in ("s3.port", "s3.port.iceberg")))
            _await(started, process, directory / "log")
            yield started
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _identity(name: str, secret: str, actions: list[str]) -> dict[str, object]:
    return {"name": name, "credentials": [{"accessKey": name, "secretKey": secret}], "actions": actions}


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _await(started: SeaweedFS, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        assert process.poll() is None and time.monotonic() < deadline, log.read_text(encoding="utf-8")[-2000:]
        try:
            with urllib.request.urlopen(f"{started.catalog}/v1/config?warehouse=s3://{TABLE_BUCKET}", timeout=10):
                buckets = started.files().get_file_info([BUCKET, TABLE_BUCKET])
                if all(each.type == fs.FileType.Directory for each in buckets):
                    return
        except OSError:
            pass  # it is still starting
        time.sleep(0.05)
