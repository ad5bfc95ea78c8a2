"""The list that people edit: what is written is read back, whatever the names; what is no list is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeward.control.identifiers import TableIdentifier
from lakeward.control.moves import Relocation
from lakeward.errors import UsageError
from lakeward.migration.moves.move_list import read_list, write_list
from lakeward.migration.moves.planning import PlannedMove, Unmovable

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
IDENTIFIERS = st.lists(TEXTS, min_size=2, max_size=3).map(TableIdentifier.of)
MOVES = st.builds(PlannedMove, TEXTS, st.builds(Relocation, IDENTIFIERS, IDENTIFIERS))


@given(moves=st.lists(MOVES, max_size=4, unique_by=lambda move: move.dataset), reason=TEXTS)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, moves: list[PlannedMove], reason: str
) -> None:
    path = tmp_path_factory.mktemp("lists") / "moves.toml"
    write_list(path, moves, [Unmovable(reason, reason)])
    assert read_list(path) == moves
    write_list(path, moves[:1], replace=True)
    assert read_list(path) == moves[:1]


def test_lines_are_cut_out_and_commented(tmp_path: Path) -> None:
    path = tmp_path / "moves.toml"
    moves = [
        PlannedMove(f"a.b.{name}", Relocation(TableIdentifier(("x",), name), TableIdentifier(("a", "b"), name)))
        for name in ("c", "d", "e")
    ]
    write_list(path, moves)
    lines = path.read_text().splitlines()
    edited = [f"# {line}" if '"a.b.c"' in line else line for line in lines if '"a.b.d"' not in line]
    path.write_bytes("\r\n".join(["\ufeff", *edited]).encode())
    assert read_list(path) == moves[2:]
    with pytest.raises(UsageError, match="is there already"):
        write_list(path, moves)
    assert read_list(path) == moves[2:]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[move", "can't be read: "),
        ("a = 1", "has 'a' where only"),
        ("move = 1", "has a value where the table"),
        ("[move]\n'a.b.c' = 1", "says of a.b.c something else"),
        ("[move]\n'a.b.c' = {from = ['a'], to = ['b', 'c']}", "says of a.b.c something else"),
        ("[move]\n'a.b.c' = {from = ['a', 'b']}", "says of a.b.c something else"),
        ("[move]\nx = {from=['a','b'],to=['a','c']}\nx = {from=['a','b'],to=['a','d']}", "can't be read: "),
    ],
)
def test_what_is_no_list_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "moves.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=why) as caught:
        read_list(path)
    assert str(path) in caught.value.message and caught.value.safe == "nothing was moved"
