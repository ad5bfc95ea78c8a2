"""Sources of dlt into datasets: a destination whose load packages become visible whole, or not at all.

This is the only room that knows dlt, which is an extra. Nothing else of the product imports it.
"""

from __future__ import annotations

try:
    import dlt  # noqa: F401
except ModuleNotFoundError as error:
    from lakeward.errors import SettingsError

    raise SettingsError(
        "dlt is not installed here", safe="nothing was changed", next_step="pip install 'lakeward[dlt]'"
    ) from error

from lakeward.dlt.destination import lakeward
from lakeward.dlt.running import Loaded, load

__all__ = ["Loaded", "lakeward", "load"]
