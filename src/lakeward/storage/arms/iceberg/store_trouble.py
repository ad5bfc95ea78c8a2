"""What to make of an object store that fails: its own codes, in words that say what to do.

PyArrow has the store's answer in the text of an OSError only. Of that text the code, the bucket and the client's word
on a broken connection are taken, and nothing else: what a store says in its own words may hold a key.
"""

from __future__ import annotations

import re

from lakeward.errors import CatalogError, StorageFull

_ANSWER = re.compile(r"(?:in|of)? ?bucket '(?P<bucket>[^']+)'.*?AWS Error (?P<code>[A-Z_0-9]+|\[code \d+\])", re.DOTALL)
_CODE = re.compile(r"AWS Error (?P<code>[A-Z_0-9]+|\[code \d+\])")
_STATUS = re.compile(r"HTTP (?:status|response code)[: ]+(?P<status>\d{3})", re.IGNORECASE)
_CONNECTION = re.compile(r"curlCode: (?P<reason>\d+, [A-Za-z' ]{1,60})")

_KEYS = "correct `s3.access-key-id` and `s3.secret-access-key` in `catalog`, or let them do what docs/stores.md lists"
_DENIED = f"`lakeward doctor` asks it for the reason; {_KEYS}"
_REACH = "look whether it runs and `s3.endpoint` in `catalog` is right, then repeat"

_MEANINGS = {
    "ACCESS_DENIED": ("refuses: the key is wrong or may not do this, or this machine's clock is wrong", _DENIED),
    "INVALID_ACCESS_KEY_ID": ("does not know the key", _KEYS),
    "INVALID_CLIENT_TOKEN_ID": ("does not know the key", _KEYS),
    "INVALID_SIGNATURE": ("refuses the key: the secret does not belong to it", _KEYS),
    "SIGNATURE_DOES_NOT_MATCH": ("refuses the key: the secret does not belong to it", _KEYS),
    "MISSING_AUTHENTICATION_TOKEN": ("wants a key", _KEYS),
    "UNRECOGNIZED_CLIENT": ("does not know the key", _KEYS),
    "REQUEST_EXPIRED": ("refuses: its clock and this machine's differ by too much", "set the clock of this machine"),
    "REQUEST_TIME_TOO_SKEWED": (
        "refuses: its clock and this machine's differ by too much",
        "set the clock of this machine",
    ),
    "NO_SUCH_BUCKET": ("has no such bucket", "make the bucket, or correct LAKEWARD_WAREHOUSE"),
    "NO_SUCH_UPLOAD": ("has forgotten a file that was being written", "repeat"),
    "NETWORK_CONNECTION": ("can't be reached", _REACH),
    "REQUEST_TIMEOUT": ("did not answer in time", _REACH),
    "SLOW_DOWN": ("is asked too much", "repeat later"),
    "THROTTLING": ("is asked too much", "repeat later"),
    "SERVICE_UNAVAILABLE": ("is out of order for the moment", "repeat later"),
    "INTERNAL_FAILURE": ("failed inside", "repeat later"),
}
_BY_STATUS = {"429": "SLOW_DOWN", "500": "INTERNAL_FAILURE", "502": "SERVICE_UNAVAILABLE", "503": "SLOW_DOWN"}
"""What a status means where there is no more to go by: to a question without a body the answer has none."""
_FULL = "507"
_OTHER = ("failed", "`lakeward doctor` tries it; its own log may say more")


def store_error(what: str, error: OSError) -> CatalogError | StorageFull | None:
    """Return what a failure of an object store becomes; None: it is no such failure.

    Args:
        what: names the dataset.
        error: PyArrow's.
    """
    # PyIceberg says of some only that access was denied, and keeps the store's answer as the cause.
    text = f"{error} {error.__cause__ or ''}"
    found = _CODE.search(text)
    if found is None:
        return None
    answer, connection, status = _ANSWER.search(text), _CONNECTION.search(text), _STATUS.search(text)
    store = f"the store of bucket {answer['bucket']}" if answer else "the object store"
    if status and status[1] == _FULL:
        full, room = f"{what}: no space left in {store}", "free space there, then repeat"
        return StorageFull(full, safe="nothing was made visible", next_step=room)
    code = _BY_STATUS.get(status[1], found["code"]) if status else found["code"]
    meaning, next_step = _MEANINGS.get(code, _OTHER)
    details = [found["code"], *([connection["reason"]] if connection else []), *([status[1]] if status else [])]
    return CatalogError(
        f"{what}: {store} {meaning} ({', '.join(details)})",
        safe="nothing was made visible; every committed version stands, and maintenance removes what is left over",
        next_step=next_step,
        store=answer["bucket"] if answer else None,
        code=found["code"],
    )
