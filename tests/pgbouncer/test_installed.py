"""Says aloud that pgbouncer is missing: a run without its tests looks like one with them."""

from __future__ import annotations

import shutil
import warnings


def test_pgbouncer_is_installed() -> None:
    if not (shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")):
        warnings.warn(
            "nothing is tested behind pgbouncer: it is not installed (apt-get install pgbouncer)", stacklevel=1
        )
