"""What is sent in lots comes out as it went in, whole, whatever its parts are, and however slowly it is taken."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pyarrow as pa

import lakeward
from lakeward.server.lots import CHUNK_BYTES, CRUMB_BYTES, Lot, bodies, gathered

Make = Callable[..., lakeward.Dataset]


def test_small_parts_are_sent_with_others_and_the_last_ones_are_told() -> None:
    large = bytes(range(256)) * (CHUNK_BYTES // 256)
    made = [[b"a"], [b"b"] * 3, [large, memoryview(large)], [b"c"]]
    lots = list(gathered(iter(made)))
    assert [each.last for each in lots] == [False, True]
    assert [len(each) for each in lots[0].parts] == [1, 3, len(large), len(large)]
    assert b"".join(part for lot in lots for part in lot.parts) == b"".join(part for parts in made for part in parts)
    assert list(gathered(iter([]))) == []
    assert list(gathered(iter([[large]]))) == [Lot([large])]


def test_a_lot_is_cut_without_being_copied_and_let_go_of_as_it_is_sent() -> None:
    parts: list[bytes | memoryview] = [b"x" * CRUMB_BYTES, b"y" * (CHUNK_BYTES * 2), b"z"]
    sent = b""
    for body in bodies(parts):
        assert 0 < len(body) <= CHUNK_BYTES
        sent += b"".join(body.parts)
    assert sent == b"x" * CRUMB_BYTES + b"y" * (CHUNK_BYTES * 2) + b"z" and parts == []


def test_whoever_takes_little_at_a_time_gets_every_row(client: httpx.Client, orders: Make) -> None:
    # More than the connection holds on its way.
    dataset, count, note = orders(arm="iceberg"), 50_000, "n" * 400
    dataset.write(pa.table({"id": range(count), "note": [note] * count, "amount": pa.nulls(count)}))
    taken = bytearray()
    with client.stream("GET", f"/datasets/{dataset.name}/rows", params={"format": "arrow"}) as answer:
        for part in answer.iter_raw(1 << 12):
            taken += part
    with pa.ipc.open_stream(taken) as reader:
        rows = reader.read_all()
    assert rows["id"].to_pylist() == list(range(count)) and rows["note"].unique().to_pylist() == [note]
