"""The settings of the workspace that is served."""

from __future__ import annotations

from pydantic import Field

from lakeward.server.documents.document import Document, example


class Setting(Document):
    """A setting. Secrets are masked."""

    model_config = example(name="server.port", value="8321", source="default", description="its port; 0: a free one")

    name: str
    value: str
    source: str = Field(description="flag, a variable's name, a file, or default")
    description: str


class SettingList(Document):
    """Every setting, as `lakeward doctor` shows it."""

    model_config = example(settings=[])

    settings: list[Setting]
