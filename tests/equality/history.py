"""One history with every kind of window, for each kind of node."""

from __future__ import annotations

from support.pipeline_play import Play

A = [(1, 0, 1, "x"), (2, 0, None, None), (3, 1, 3, "y"), (4, 9, 2, "")]
B = [(0, "zero"), (1, None), (5, "five")]

HISTORY: tuple[tuple[str, list[tuple[str, str, list[tuple[object, ...]]]], bool], ...] = (
    ("the first build", [("a", "append", A), ("b", "append", B)], False),
    ("nothing new", [], False),
    (
        "after appends",
        [
            ("a", "append", [(5, 1, 2, "z"), (6, 7, -5, None)]),
            ("a", "append", [(7, 0, 4, "w")]),
            ("b", "append", [(9, "n")]),
        ],
        False,
    ),
    ("after upserts", [("a", "upsert", [(1, 0, 1, "x"), (3, 1, 5, "new"), (8, 5, 1, None)])], False),
    ("in full", [], True),
    ("after deletes", [("a", "append", [(9, 1, 2, "q")]), ("a", "delete", [(2,), (3,)])], False),
    ("after a replace", [("a", "replace", [(1, 0, 7, "x"), (4, 9, 2, ""), (11, 5, None, "k")])], False),
    ("an upsert that changes nothing", [("a", "upsert", [(1, 0, 7, "x")])], False),
)
"""Windows: what is written to which source before a build, and whether the build is one in full."""


def play_history(play: Play) -> None:
    """Write and build, one window after the other; each build is compared."""
    for _, writes, full in HISTORY:
        for source, verb, rows in writes:
            play.write(source, verb, rows)
        play.build(full)
