"""Messages that PostgreSQL 18 sent, read; and what is no message, refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeward.sources.change_logs import pgoutput
from lakeward.sources.change_logs.pgoutput import Begin, Relation, RelationColumn, Unreadable
from lakeward.sources.change_logs.pgoutput_rows import RowMessages, Side, read_rows

# CREATE TABLE orders (id int PRIMARY KEY, note text, m mood)
BEGIN = bytes.fromhex("4200000000128052b800030488eda3498500002250")
RELATION = bytes.fromhex(
    "52000040277075626c6963006f7264657273006400030169640000000017ffffffff006e6f74650000000019ffffffff006d0000004024ffffffff"
)
# (1, 'ünï', 'ok'); (2, NULL, NULL)
INSERTS = [
    bytes.fromhex("49000040274e00037400000001317400000005c3bc6ec3af74000000026f6b"),
    bytes.fromhex("49000040274e00037400000001326e6e"),
]
# note = 'b' where id = 1
UPDATE = bytes.fromhex("55000040274e000374000000013174000000016274000000026f6b")
# id = 3 where id = 1
NEW_KEY = bytes.fromhex("55000040274b00037400000001316e6e4e000374000000013374000000016274000000026f6b")
DELETE = bytes.fromhex("44000040274b00037400000001336e6e")
# m = 'ok' where id = 2; its note is large
LARGE_STAYS = bytes.fromhex("55000040274e00037400000001327574000000026f6b")
# REPLICA IDENTITY FULL
WHOLE_DELETE = bytes.fromhex("44000040274f000374000000013274000000016374000000026f6b")
TRUNCATE = bytes.fromhex("54000000010000004027")
COMMIT = bytes.fromhex("430000000000128052b8000000001280545800030488eda34985")

ROWS = [*INSERTS, UPDATE, NEW_KEY, DELETE, LARGE_STAYS, TRUNCATE, WHOLE_DELETE]
# One behind the other, each with as many columns as the table.
COLUMNS = 3


def values(side: Side) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in side.texts), strict=True))


def test_a_transaction_says_where_and_when_it_was_committed() -> None:
    assert pgoutput.begin(BEGIN) == Begin(0x128052B8, 1_796_095_879_096_709)
    assert pgoutput.commit_end(COMMIT) == 0x12805458


def test_a_table_says_what_its_columns_are_and_which_tell_a_row() -> None:
    columns = (
        RelationColumn("id", 23, -1, True),
        RelationColumn("note", 25, -1, False),
        RelationColumn("m", 16420, -1, False),
    )
    assert pgoutput.relation(RELATION) == Relation(16423, "public", "orders", columns)
    assert pgoutput.truncated(TRUNCATE) == [16423]


def test_rows_are_read_by_column_with_what_was_not_sent() -> None:
    rows = read_rows(ROWS, COLUMNS)
    assert bytes(rows.tags) == b"IIUUDUTD"
    assert rows.new.rows.tolist() == [0, 1, 2, 3, 5] and rows.old.rows.tolist() == [3, 4, 7]
    assert values(rows.new) == [
        ("1", "ünï", "ok"),
        ("2", None, None),
        ("1", "b", "ok"),
        ("3", "b", "ok"),
        ("2", None, "ok"),
    ]
    assert values(rows.old) == [("1", None, None), ("3", None, None), ("2", "c", "ok")]
    unchanged = [None if flags is None else np.flatnonzero(flags).tolist() for flags in rows.new.unchanged]
    assert unchanged == [None, [4], None]


def test_a_table_without_columns_and_no_messages_are_read() -> None:
    assert values(read_rows([b"I\0\0\0\1N\0\0"], 0).new) == []
    assert len(read_rows([TRUNCATE], COLUMNS).tags) == 1


@pytest.mark.parametrize("message", ROWS[:6])
def test_a_row_that_is_cut_anywhere_is_refused_whatever_follows(message: bytes) -> None:
    for end in range(1, len(message)):
        for following in ([], [INSERTS[0]], [message]):
            with pytest.raises(Unreadable):
                read_rows([message[:end], *following], COLUMNS)
    for longer in (message + b"\0", message + INSERTS[0]):
        with pytest.raises(Unreadable):
            read_rows([longer, INSERTS[0]], COLUMNS)
    for columns in (0, COLUMNS - 1, COLUMNS + 1):
        with pytest.raises(Unreadable):
            read_rows([message], columns)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (pgoutput.begin, BEGIN),
        (pgoutput.commit_end, COMMIT),
        (pgoutput.relation, RELATION),
        (pgoutput.truncated, TRUNCATE),
    ],
)
def test_another_message_that_is_cut_anywhere_is_refused(read: object, message: bytes) -> None:
    assert callable(read)
    for end in range(1, len(message)):
        with pytest.raises(Unreadable):
            read(message[:end])
    with pytest.raises(Unreadable):
        read(message + b"\0")


@settings(max_examples=150)
@given(st.data())
def test_bytes_that_were_changed_are_refused_or_read_but_never_read_beyond(data: st.DataObject) -> None:
    messages = [bytearray(each) for each in ROWS if each != TRUNCATE]
    for _ in range(data.draw(st.integers(1, 3))):
        changed = data.draw(st.sampled_from(messages))
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        rows: RowMessages = read_rows([bytes(each) for each in messages], COLUMNS)
    except Unreadable:
        return
    total = sum(len(text or b"") for side in (rows.old, rows.new) for column in side.texts for text in binary(column))
    assert total <= sum(map(len, messages))


def binary(column: object) -> list[bytes | None]:
    return column.cast("binary").to_pylist()  # type: ignore[attr-defined]
