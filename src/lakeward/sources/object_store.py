"""Files in an object store that speaks S3: listed, and read by ranges, by whoever the options or the machine say asks.

PyArrow's client has the store's answer in the text of an error only. Of that text the code is taken, and nothing else:
what a store says in its own words may hold a key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import IO, ClassVar, cast

import pyarrow as pa
from pyarrow import fs

from lakeward.errors import SettingsError, SourceError, SourceRefused, UsageError
from lakeward.sources.source_file import FileState, SourceFile

SCHEMES = ("s3", "s3a", "s3n")
ATTEMPTS = 3
"""How often a request is sent that fails for a moment: connections that break, and answers like "slow down"."""
CONNECT_SECONDS, REQUEST_SECONDS = 5.0, 10.0
DEFAULT_REGION = "us-east-1"
"""What stores at an endpoint of their own are signed for: most of them take any region."""

_LOCATION = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_CODE = re.compile(r"AWS Error (?P<code>[A-Z_0-9]+|\[code \d+\])")
_STATUS = re.compile(r"HTTP (?:status|response code)[: ]+(?P<status>\d{3})", re.IGNORECASE)

_KEYS = "correct the key, or let it do GetObject and ListBucket there"
_BUCKET = "correct the bucket's name"
_GONE = "look whether it was removed"
_REACH = "look whether it runs and can be reached from here, then repeat"
_MEANINGS = {
    "ACCESS_DENIED": ("refuses: the key is wrong or may not do this, or this machine's clock is wrong", _KEYS),
    "INVALID_ACCESS_KEY_ID": ("does not know the key", _KEYS),
    "INVALID_CLIENT_TOKEN_ID": ("does not know the key", _KEYS),
    "INVALID_SIGNATURE": ("refuses the key: the secret does not belong to it", _KEYS),
    "SIGNATURE_DOES_NOT_MATCH": ("refuses the key: the secret does not belong to it", _KEYS),
    "NO_SUCH_BUCKET": ("has no such bucket", _BUCKET),
    "NETWORK_CONNECTION": ("can't be reached", _REACH),
    "REQUEST_TIMEOUT": ("did not answer in time", _REACH),
    "SLOW_DOWN": ("is asked too much", "repeat later"),
    "THROTTLING": ("is asked too much", "repeat later"),
    "SERVICE_UNAVAILABLE": ("is out of order for the moment", "repeat later"),
    "INTERNAL_FAILURE": ("failed inside", "repeat later"),
    "RESOURCE_NOT_FOUND": ("has no such object", _GONE),
    "NO_SUCH_KEY": ("has no such object", _GONE),
}
_FINAL = (_KEYS, _BUCKET, _GONE)
"""What leads out where the store has answered, and would answer the same again."""

_BY_STATUS = {
    "401": "ACCESS_DENIED",
    "403": "ACCESS_DENIED",
    "404": "NO_SUCH_KEY",
    "429": "SLOW_DOWN",
    "500": "INTERNAL_FAILURE",
    "503": "SLOW_DOWN",
}
"""What a status means where there is no more to go by: to a question without a body the answer has none."""


@dataclass(frozen=True)
class StoreAccess:
    """How a store is reached, and by whom; None: as the machine says, by AWS's usual variables, files and roles.

    Its text has no secret.
    """

    endpoint: str | None = None
    region: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None
    session_token: str | None = None
    anonymous: bool = False

    def __repr__(self) -> str:
        return f"StoreAccess({self.endpoint!r})"


def is_location(text: str) -> bool:
    """Say whether a text names a place in a store, and no file of this machine.

    Raises:
        UsageError: it is a place of a kind that is not read.
    """
    found = _LOCATION.match(text)
    if found and found[1].lower() not in SCHEMES:
        raise UsageError(
            f"{found[1]}:// is not read",
            safe="nothing was changed",
            next_step="name a file of this machine, or s3://bucket/key",
        )
    return found is not None


def split_location(location: str) -> tuple[str, str]:
    """Return bucket and key of a location.

    Raises:
        UsageError: it has no bucket, or holds a key to the store.
    """
    bucket, _, key = location.partition("://")[2].partition("/")
    if "@" in bucket:
        raise SettingsError(
            "a location holds a key to its store, which would be shown",
            safe="nothing was changed",
            next_step="write s3://bucket/key, and give the key by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    if not bucket or re.search(r"[*?\[]", bucket):
        raise UsageError(f"{location} names no bucket", safe="nothing was changed", next_step="write s3://bucket/key")
    return bucket, key


@dataclass(frozen=True)
class ListedObject:
    """An object as a listing has it: its key, and its size with the time at which it was put there."""

    key: str
    state: FileState


class ObjectStore:
    """A store, which is reached when it is asked for something.

    Args:
        access: how.
    """

    def __init__(self, access: StoreAccess | None = None) -> None:
        access = access or StoreAccess()
        usual = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        self._access = replace(access, endpoint=access.endpoint or usual)
        self._regions: dict[str, fs.S3FileSystem] = {}

    def find(self, bucket: str, key: str) -> ListedObject | None:
        """Return the object of that name; None: there is none.

        Raises:
            SourceError: the store can't be asked.
        """
        with told(f"s3://{bucket}/{key}"):
            info = self._files(bucket).get_file_info(f"{bucket}/{key}".rstrip("/"))
        return _listed(info) if info.type == fs.FileType.File and not key.endswith("/") else None

    def listed(self, bucket: str, folder: str, deep: bool) -> list[ListedObject]:
        """Return the objects below a folder, in the order of their keys; only those directly below it unless `deep`.

        Raises:
            SourceError: the store can't be asked.
        """
        place = f"{bucket}/{folder}".rstrip("/")
        with told(f"s3://{place}"):
            selector = fs.FileSelector(place, recursive=deep, allow_not_found=True)
            found = self._files(bucket).get_file_info(selector)
        return sorted((_listed(info) for info in found if info.is_file), key=lambda each: each.key)

    def file(self, bucket: str, key: str) -> StoredObject:
        """Return an object, which is looked at when it is read."""
        return StoredObject(lambda: self._files(bucket), bucket, key)

    def _files(self, bucket: str) -> fs.S3FileSystem:
        region = self._region(bucket)
        if region not in self._regions:
            access = self._access
            given = {
                "access_key": access.access_key_id,
                "secret_key": access.secret_access_key,
                "session_token": access.session_token,
                "endpoint_override": access.endpoint,
            }
            self._regions[region] = fs.S3FileSystem(
                **{name: value for name, value in given.items() if value},
                anonymous=access.anonymous,
                region=region,
                connect_timeout=CONNECT_SECONDS,
                request_timeout=REQUEST_SECONDS,
                retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
            )
        return self._regions[region]

    def _region(self, bucket: str) -> str:
        """Return the region that requests are signed for. Only AWS can be asked where a bucket is."""
        given = self._access.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if given:
            return given
        if self._access.endpoint:
            return DEFAULT_REGION
        with told(f"s3://{bucket}"):
            return str(fs.resolve_s3_region(bucket))


class StoredObject(SourceFile):
    """One object, read by ranges.

    Args:
        files: opens the way to the store.
        bucket, key: where it is; characters of the key mean themselves.
    """

    # A listing has whole seconds, of the store's clock. It refuses requests whose time is a quarter of an hour off.
    settled_seconds: ClassVar[float] = 16 * 60.0

    def __init__(self, files: Callable[[], fs.S3FileSystem], bucket: str, key: str) -> None:
        self._open_files = files
        self._path = f"{bucket}/{key}"

    def __str__(self) -> str:
        return f"s3://{self._path}"

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self._path.rpartition("/")[2]

    @cached_property
    def _files(self) -> fs.S3FileSystem:
        return self._open_files()

    def hash(self, state: FileState) -> str:
        """Return its ETag, which the store made of its content."""
        return f"etag:{state.identity}"

    def open(self) -> IO[bytes]:
        """Open it; nothing but its size is read yet."""
        with plain(str(self)):
            return cast(IO[bytes], ObjectStream(self._files.open_input_file(self._path), str(self)))

    def state(self) -> FileState:
        """Return its size and ETag, by asking the store."""
        with plain(str(self)), self._files.open_input_file(self._path) as file:
            facts = {_text(name).lower(): _text(value) for name, value in file.metadata().items()}
            return FileState(file.size(), facts.get("etag") or facts.get("last-modified", ""))


class ObjectStream:
    """An open object, whose errors have no words of the store.

    Args:
        file: PyArrow's.
        place: where it is, for errors.
    """

    def __init__(self, file: pa.NativeFile, place: str) -> None:
        self._file = file
        self._place = place

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return bool(self._file.closed)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, none at the end."""
        with plain(self._place):
            return bytes(self._file.read(size if size >= 0 else None))

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to a position from the start, where it is (1), or the end (2)."""
        return int(self._file.seek(position, whence))

    def tell(self) -> int:
        """Return where it is."""
        return int(self._file.tell())

    def size(self) -> int:
        """Return how many bytes there are."""
        return int(self._file.size())

    def close(self) -> None:
        """Close it."""
        self._file.close()

    def flush(self) -> None:
        """Do nothing: it is only read."""

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can seek."""
        return True

    def writable(self) -> bool:
        """Say that it can't be written."""
        return False


@contextmanager
def plain(place: str) -> Iterator[None]:
    """Give the failure of a store as an OSError in our words."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise FileNotFoundError(2, "the store has no such object") from None
        what, _ = _meaning(error)
        raise OSError(f"the store {what}") from None


@contextmanager
def told(place: str) -> Iterator[None]:
    """Name the failure of a store.

    Raises:
        SourceError: what went wrong, in our words.
    """
    try:
        yield
    except OSError as error:
        what, next_step = _meaning(error)
        kind = SourceRefused if next_step in _FINAL else SourceError
        raise kind(f"{place}: the store {what}", safe="nothing was written", next_step=next_step, path=place) from None


def _meaning(error: OSError) -> tuple[str, str]:
    code, status = _CODE.search(str(error)), _STATUS.search(str(error))
    found = code["code"] if code else ""
    if found not in _MEANINGS and status:
        found = _BY_STATUS.get(status["status"], found)
    meaning, next_step = _MEANINGS.get(found, ("failed", "look into its own log, then repeat"))
    details = ", ".join(each for each in (found, status["status"] if status else "") if each)
    return f"{meaning} ({details})" if details else meaning, next_step


def _listed(info: fs.FileInfo) -> ListedObject:
    return ListedObject(info.path.partition("/")[2], FileState(int(info.size), str(info.mtime_ns)))


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
