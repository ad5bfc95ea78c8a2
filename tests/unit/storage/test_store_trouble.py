"""What an object store says, in our words. The texts are PyArrow's, as stores made it say them."""

from __future__ import annotations

import pytest

from lakeward.errors import CatalogError, StorageFull
from lakeward.storage.arms.iceberg.store_trouble import store_error
from lakeward.storage.arms.iceberg.trouble import catalog_errors

LISTING = "When listing objects under key 'x/' in bucket 'lake': AWS Error {} during ListObjectsV2 operation: {}"
ASKING = (
    "When reading information for key 'x' in bucket 'lake': AWS Error {} during HeadObject operation: No response body."
)

CASES = {
    LISTING.format("SIGNATURE_DOES_NOT_MATCH", "canary"): "refuses the key: the secret does not belong to it",
    LISTING.format("INVALID_ACCESS_KEY_ID", "canary"): "does not know the key",
    LISTING.format("REQUEST_TIME_TOO_SKEWED", "canary"): "its clock and this machine's differ",
    LISTING.format("NO_SUCH_BUCKET", "canary"): "has no such bucket",
    LISTING.format("SLOW_DOWN", "canary"): "is asked too much",
    LISTING.format("NETWORK_CONNECTION", "curlCode: 28, Timeout was reached; Details: canary"): "Timeout was reached",
    ASKING.format("ACCESS_DENIED"): "the key is wrong or may not do this",
    ASKING.format("UNKNOWN (HTTP status 503)"): "is asked too much (UNKNOWN, 503)",
    ASKING.format("SOMETHING_NEW"): "failed (SOMETHING_NEW)",
}


@pytest.mark.parametrize("text", CASES)
def test_a_failure_names_the_dataset_and_the_bucket_and_says_what_to_do(text: str) -> None:
    with pytest.raises(CatalogError) as raised, catalog_errors("dataset a.b.c"):
        raise OSError(text)
    error = raised.value
    assert error.message.startswith("dataset a.b.c: the store of bucket lake ") and CASES[text] in error.message
    assert error.safe and error.next_step and error.fields["store"] == "lake" and "canary" not in str(error)


def test_what_pyiceberg_calls_denied_has_the_answer_behind_it() -> None:
    denied = PermissionError("Cannot open file, access denied: s3://lake/x")
    denied.__cause__ = OSError(LISTING.format("NO_SUCH_BUCKET", ""))
    assert "has no such bucket" in str(store_error("d", denied))


def test_a_store_that_is_full_is_like_a_full_disk() -> None:
    assert isinstance(store_error("d", OSError(ASKING.format("UNKNOWN (HTTP status 507)"))), StorageFull)


def test_what_is_no_answer_of_a_store_is_left_to_others() -> None:
    assert store_error("d", FileNotFoundError(2, "No such file")) is None
