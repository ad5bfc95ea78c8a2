"""What of a test's cells every run plays: `support.covering`."""

from __future__ import annotations

from itertools import product

import pytest

from support.covering import FEW, TURNS, cover, in_turn

CELLS = [
    {"arm": arm, "verb": verb, "point": point}
    for arm, verb, point in product(("postgres", "iceberg", "memory"), range(5), "abcdefg")
]


def test_the_values_named_together_all_meet_and_the_others_take_turns() -> None:
    chosen = [CELLS[place] for place in cover(CELLS, ["arm point", "verb"])]
    assert {(cell["arm"], cell["point"]) for cell in chosen} == {(cell["arm"], cell["point"]) for cell in CELLS}
    assert {cell["verb"] for cell in chosen} == set(range(5))
    assert len(chosen) == 21


def test_a_cell_that_there_is_not_is_not_asked_for() -> None:
    cells = [cell for cell in CELLS if (cell["arm"], cell["point"]) != ("memory", "a")]
    chosen = cover(cells, ["arm point"])
    assert len(chosen) == 20


def test_every_pair_of_three_parameters_takes_few_cells() -> None:
    together = ["arm verb", "arm point", "verb point"]
    chosen = [CELLS[place] for place in cover(CELLS, together)]
    for pair in together:
        one, other = pair.split()
        assert {(cell[one], cell[other]) for cell in chosen} == {(cell[one], cell[other]) for cell in CELLS}
    assert len(chosen) < len(CELLS) / 2


def test_the_same_ones_in_every_process() -> None:
    assert cover(CELLS, ["arm verb"]) == cover(list(CELLS), ["arm verb"])


def test_a_parameter_that_there_is_not_is_an_error() -> None:
    with pytest.raises(KeyError, match="place"):
        cover(CELLS, ["arm place"])


def test_in_as_many_runs_as_there_are_turns_each_cell_is_played_once() -> None:
    cells = list(range(11))
    played = [in_turn(cells, turn) for turn in range(TURNS)]
    assert sorted(cell for each in played for cell in each) == cells
    assert all(len(each) >= len(cells) // TURNS for each in played)


@pytest.mark.parametrize("turn", range(TURNS))
def test_of_few_cells_all_are_played(turn: int) -> None:
    assert in_turn(list(range(FEW)), turn) == list(range(FEW))
    assert in_turn(list(range(FEW + 1)), turn)
