"""Settings: what is in force, and where each came from."""

from __future__ import annotations

from lakeward.server.documents.settings import Setting, SettingList
from lakeward.server.rooms import Here
from lakeward.server.routing import noun
from lakeward.server.rules import needs
from lakeward.wiring.doctor import setting_values

router = noun("settings")


@router.get("/settings", summary="List settings", dependencies=[needs("doctor.read")])
def list_settings(rooms: Here) -> SettingList:
    """Every setting with its value and source, as `lakeward doctor` shows it; secrets are masked."""
    return SettingList(settings=[Setting.plain(**vars(each)) for each in setting_values(rooms.workspace.settings)])
