"""Opens the Iceberg catalog that the settings name, with patience that ends.

PyIceberg's REST client waits for an answer for ever, and gives up at the first kept-alive connection that the server
closed meanwhile. Here every answer has a time limit. What only reads is asked again; so is what could not be sent. A
write that was sent is never sent again below our own protocol, which looks first whether it arrived.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import pydantic
import requests
from pyiceberg.catalog import _ENV_CONFIG, Catalog, CatalogType, infer_catalog_type, load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io import PY_IO_IMPL
from pyiceberg.utils.config import merge_config
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from lakeward.errors import SettingsError
from lakeward.storage.arms.iceberg.file_io import FILE_IO

TIMEOUT_PROPERTY = "lakeward.timeout-seconds"
"""A property of REST catalogs: how long an answer may take, in seconds."""
TIMEOUT_SECONDS = 60.0
CONNECT_SECONDS = 10.0

READ_RETRIES = Retry(
    total=3,
    connect=2,
    read=1,
    status=3,
    other=0,
    redirect=0,
    allowed_methods={"GET", "HEAD"},
    status_forcelist={502, 503, 504},
    backoff_factor=0.1,
    raise_on_status=False,
    # A server may name any time; our own limits stay the last word.
    respect_retry_after_header=False,
)
"""For GET and HEAD. Failed connects are tried again for every method: nothing was sent."""


_ADDRESS = re.compile(r"(\w[\w+.-]*://)\S*")
"""An address, which may have a password in it."""


def names_catalog(properties: Mapping[str, str]) -> bool:
    """Say whether properties are those of a catalog, and not only of the store that our own one keeps its tables in."""
    return not properties.keys().isdisjoint({"name", "type", "uri", "py-catalog-impl"})


def open_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """Open a catalog by PyIceberg's properties, those of `.pyiceberg.yaml` and its variables included.

    Raises:
        SettingsError: the properties make no catalog.
    """
    try:
        known = merge_config(_ENV_CONFIG.get_catalog_config(name) or {}, cast(Any, dict(properties)))
        known.setdefault(PY_IO_IMPL, FILE_IO)
        kind = known.get("type") or ("" if "py-catalog-impl" in known else infer_catalog_type(name, known))
        if str(getattr(kind, "value", kind)).lower() == CatalogType.REST.value and "uri" in known:
            return PatientRestCatalog(name, **cast("dict[str, str]", known))
        return load_catalog(name, **{PY_IO_IMPL: str(known[PY_IO_IMPL])} | dict(properties))
    except (ValueError, ImportError) as error:
        if isinstance(error, requests.RequestException | pydantic.ValidationError):
            raise  # the catalog's answer is wrong, not what we asked
        why = _ADDRESS.sub(r"\1…", str(error))
        raise SettingsError(
            f"the Iceberg catalog can't be opened: {why}",
            next_step="correct `catalog` in lakeward.toml, or LAKEWARD_CATALOG__…",
            setting="catalog",
        ) from None


class PatientRestCatalog(RestCatalog):
    """A REST catalog whose every request ends, with an answer or without."""

    def _create_session(self) -> requests.Session:
        session = super()._create_session()
        seconds = float(self.properties.get(TIMEOUT_PROPERTY, TIMEOUT_SECONDS))
        # Signed requests have an adapter of their own under the catalog's address, which is longer and so wins.
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Limited(seconds))
        return session


class _Limited(HTTPAdapter):
    def __init__(self, seconds: float) -> None:
        super().__init__(max_retries=READ_RETRIES)
        self._limits = (min(CONNECT_SECONDS, seconds), seconds)

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        # So PyIceberg says that files shall stay. The specification's word is "false", and some delete for any other.
        request.url = (request.url or "").replace("?purgeRequested=False", "?purgeRequested=false")
        if options.get("timeout") is None:
            options["timeout"] = self._limits
        return super().send(request, *args, **options)
