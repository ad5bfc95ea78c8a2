"""PyIceberg's way to files, with one client for each set of keys, and patience that ends.

PyIceberg makes a client for every table that it loads, with connections of its own, and asks AWS for the region of a
bucket that lies elsewhere. Here tables with the same keys share one. The properties have PyIceberg's names:
`s3.endpoint`, `s3.access-key-id` and so on, from the settings or from what the catalog vends with a table.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyarrow import fs
from pyiceberg import io as names
from pyiceberg.io.pyarrow import PyArrowFileIO, _cached_resolve_s3_region
from pyiceberg.utils.properties import get_first_property_value, property_as_bool

FILE_IO = f"{__name__}.StoreIO"
"""The value of `py-io-impl` that chooses `StoreIO`."""

CLIENTS = 64
"""So many clients are kept for tables that are loaded later; one in use stays in any case."""

CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 10.0
ATTEMPTS = 3
"""How often a request is sent that fails for a moment: connections that break, and answers like "slow down"."""

DEFAULT_REGION = "us-east-1"
"""What stores at an endpoint of their own are signed for: most of them take any region."""


class StoreIO(PyArrowFileIO):
    """Opens files by PyArrow. Its text tells nothing of its properties, which can be keys."""

    def _initialize_s3_fs(self, netloc: str | None) -> fs.FileSystem:
        return _client(tuple(sorted(_options(dict(self.properties), netloc).items())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _options(properties: dict[str, Any], bucket: str | None) -> dict[str, Any]:
    """Return the arguments of PyArrow's client that PyIceberg's properties stand for."""
    first = get_first_property_value
    given = {
        "endpoint_override": properties.get(names.S3_ENDPOINT),
        "access_key": first(properties, names.S3_ACCESS_KEY_ID, names.AWS_ACCESS_KEY_ID),
        "secret_key": first(properties, names.S3_SECRET_ACCESS_KEY, names.AWS_SECRET_ACCESS_KEY),
        "session_token": first(properties, names.S3_SESSION_TOKEN, names.AWS_SESSION_TOKEN),
        "role_arn": first(properties, names.S3_ROLE_ARN, names.AWS_ROLE_ARN),
        "session_name": first(properties, names.S3_ROLE_SESSION_NAME, names.AWS_ROLE_SESSION_NAME),
        "proxy_options": properties.get(names.S3_PROXY_URI),
    }
    region = first(properties, names.S3_REGION, names.AWS_REGION)
    if region is None:
        # Only AWS can be asked where a bucket is, and only of buckets of its own.
        region = DEFAULT_REGION if given["endpoint_override"] else _cached_resolve_s3_region(bucket=bucket)
    return {name: value for name, value in given.items() if value} | {
        "region": region,
        "connect_timeout": float(properties.get(names.S3_CONNECT_TIMEOUT) or CONNECT_SECONDS),
        "request_timeout": float(properties.get(names.S3_REQUEST_TIMEOUT) or REQUEST_SECONDS),
        "force_virtual_addressing": property_as_bool(properties, names.S3_FORCE_VIRTUAL_ADDRESSING, False),
        "anonymous": property_as_bool(properties, names.S3_ANONYMOUS, False),
    }


@lru_cache(maxsize=CLIENTS)
def _client(options: tuple[tuple[str, Any], ...]) -> fs.S3FileSystem:
    # Small files go in one request instead of three; a bucket that is missing is told when they are closed.
    strategy = fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS)
    return fs.S3FileSystem(**dict(options), allow_delayed_open=True, retry_strategy=strategy)
