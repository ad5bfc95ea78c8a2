"""A dataset's route: which arm serves it, which mirrors it. The answer to "which arm does a read go to" starts here."""

from __future__ import annotations

from dataclasses import dataclass

from lakeward.errors import UnknownObject

ARM_MODES = {"postgres": "pg", "iceberg": "iceberg_native"}
"""The mode of a dataset that lives on one arm alone, by that arm."""


def check_arm(arm: str | None) -> None:
    """Refuse an arm that there is not; None: none was named.

    Raises:
        UnknownObject: there is none of that name.
    """
    if arm is not None and arm not in ARM_MODES:
        raise UnknownObject.among("arm", arm, ARM_MODES, arm=arm)


MODES = ("pg", "dual", "iceberg_dual", "iceberg_native")
"""What a writer may do, in ascending order."""


ARMS_OF: dict[str, tuple[str, str | None]] = {
    "pg": ("postgres", None),
    "dual": ("postgres", "iceberg"),
    "iceberg_dual": ("iceberg", "postgres"),
    "iceberg_native": ("iceberg", None),
}
"""The primary and the mirror of each mode."""


def in_words(mode: str) -> str:
    """Return where the rows of a mode are.

    Example:
        >>> in_words("dual")
        'the postgres arm, mirrored to iceberg'
    """
    primary, mirror = ARMS_OF[mode]
    return f"the {primary} arm" + (f", mirrored to {mirror}" if mirror else "")


@dataclass(frozen=True)
class Route:
    """The one truth about where a dataset's rows are. `epoch` counts its changes and is checked by decide."""

    mode: str
    primary_arm: str
    mirror_arm: str | None
    epoch: int
