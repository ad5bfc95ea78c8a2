"""Arrow arrays of text → typed Arrow arrays, for the forms in which the Postgres arm keeps values. Strict and exact."""

from __future__ import annotations

import binascii

import pyarrow as pa
import pyarrow.compute as pc


def same(texts: pa.Array, _type: pa.DataType) -> pa.Array:
    """Return the texts."""
    return texts


def cast(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return the values of plain numbers, booleans, ISO dates and ISO timestamps."""
    return texts.cast(type_)


def time(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return the values of ISO times. Arrow has no such cast, but one for timestamps."""
    return pc.binary_join_element_wise("1970-01-01T", texts, "").cast(pa.timestamp("us")).cast(type_)


def binary(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return the bytes of base64 texts."""
    values = [None if text is None else binascii.a2b_base64(text, strict_mode=True) for text in texts.to_pylist()]
    return pa.array(values, type_)


def uuid(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return the values of UUIDs in the form 8-4-4-4-12."""
    digits = pc.fill_null(pc.replace_substring(texts, "-", ""), "0" * 32)
    if any(length != 32 for length in pc.unique(pc.binary_length(digits)).to_pylist()):
        raise ValueError("a UUID has 32 hexadecimal digits")
    data = pa.py_buffer(bytes.fromhex("".join(digits.to_pylist())))
    storage = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(texts), [None, data])
    if texts.null_count:
        storage = pc.if_else(texts.is_valid(), storage, pa.scalar(None, pa.binary(16)))
    return pa.ExtensionArray.from_storage(type_, storage)
